"""One attempt at one item: call the function, and turn whatever comes of it into a plain result."""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Any, Final

import msgspec

from tallystick.core.limits import RESULT_BYTES_MAX, check_size, clip_text
from tallystick.core.retry import error_names
from tallystick.errors import BadInput, CancelItem, SkipItem
from tallystick.stage.outcome import CANCEL, FAIL, SKIP, SUCCESS, ItemFailure, Result

NOTHING: Final = b"null"
NEEDS_KEY: Final = "give the stage key=..."
NEEDS_JSON: Final = "items travel to processes as JSON, so give the stage such items or lane='threads'"
_NEEDS_RESULT: Final = "return JSON, or a path to where it is"


def attempt(function: Callable[[Any], Any], item: object, *, as_json: bool) -> Result:
    """Call the function and return what came of it, whatever it was.

    Must not be called where Ctrl-C raises: there one could not tell it from what the function raises.
    """
    try:
        return settled(function(item), as_json=as_json)
    except BaseException as error:  # noqa: BLE001 (whatever the function raises is a fact about the item)
        return raised(error)


async def attempt_async(function: Callable[[Any], Awaitable[Any]], item: object, *, as_json: bool) -> Result:
    """Await the function and return what came of it; only what is meant for the task gets past this."""
    task = asyncio.current_task()
    try:
        return settled(await function(item), as_json=as_json)
    except Exception as error:  # noqa: BLE001 (whatever the function raises is a fact about the item)
        return raised(error)
    except BaseException as error:
        if _is_meant_for(task, error):
            raise
        return raised(error)


def _is_meant_for(task: asyncio.Task[Any] | None, error: BaseException) -> bool:
    """Tell whether this came into the function from outside: then it says nothing about the item."""
    if isinstance(error, asyncio.CancelledError):
        # A function that awaits a cancelled task sees the same error without being cancelled itself.
        return task is not None and task.cancelling() > 0
    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is threading.main_thread()
    # A coroutine is closed when its loop is gone, or from inside another task.
    return isinstance(error, GeneratorExit) and _running_task() is not task


def _running_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def settled(value: object, *, as_json: bool) -> Result:
    """Return the result of a success; with a journal the value is what JSON makes of it."""
    if inspect.iscoroutine(value):
        value.close()
        raise BadInput("the function returned a coroutine; declare it with `async def`")
    if not as_json:
        return Result(SUCCESS, value, None, sys.getsizeof(value))
    if value is None:
        return Result(SUCCESS, None, NOTHING, len(NOTHING))
    raw = encode(value, "result")
    check_size("result", len(raw), RESULT_BYTES_MAX)
    return Result(SUCCESS, msgspec.json.decode(raw), raw, len(raw))


def raised(error: BaseException) -> Result:
    """Return the result of an exception: a skip, a cancel, or a failure with its class names."""
    failure = ItemFailure(type(error).__name__, clip_text(_text_of(error)))
    state = SKIP if isinstance(error, SkipItem) else CANCEL if isinstance(error, CancelItem) else FAIL
    # A policy that names Exception wants everything tried again, `sys.exit()` too.
    names = error_names(type(error)) + (() if isinstance(error, Exception) else error_names(Exception)[:2])
    return Result(state, None, None, len(failure.message), failure, names)


def failure_json(failure: ItemFailure | None) -> bytes:
    """Return a failure as the journal keeps it."""
    return NOTHING if failure is None else msgspec.json.encode(failure)


def key_of(item: object, remedy: str = NEEDS_KEY) -> str:
    """Return what identifies an item in the journal: a digest of its JSON form.

    >>> key_of("a.txt") == key_of("a.txt"), key_of("a.txt") == key_of("b.txt")
    (True, False)
    """
    if isinstance(item, str):
        # Names of files need not be text that JSON can carry; the quote keeps "1" and 1 apart.
        return digest_of(b'"' + item.encode("utf-8", "surrogatepass"))
    if isinstance(item, os.PathLike):
        return key_of(os.fspath(item), remedy)
    return digest_of(encode(item, "item", remedy))


def digest_of(text: bytes) -> str:
    """Return sixteen hexadecimal digits that stand for the text."""
    return blake2b(text, digest_size=8).hexdigest()


def encode(value: object, kind: str, remedy: str = _NEEDS_RESULT) -> bytes:
    """Return a value as JSON, the same bytes for equal values, or say what to do about it."""
    try:
        text = msgspec.json.encode(value, enc_hook=_plain, order="deterministic")
        if b"null" in text and _holds_no_number(msgspec.to_builtins(value, enc_hook=_plain)):
            raise ValueError("it holds a float that is not a number or not finite")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadInput(f"this {kind} cannot be written as JSON ({error}); {remedy}", kind=kind) from error
    return text


def _holds_no_number(value: object) -> bool:
    """Tell whether a float in here would silently become null."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_holds_no_number, value.values()))
    return isinstance(value, (list, tuple, set, frozenset)) and any(map(_holds_no_number, value))


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as second:  # noqa: BLE001 (an error that cannot be printed is still an error)
        return f"(its text cannot be had: {type(second).__name__})"


def _plain(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
