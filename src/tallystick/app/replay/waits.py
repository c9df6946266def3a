"""Waiting inside a workflow: for a signal, for a while, without a thread and without a lease.

A wait that ends soon does not unwind its workflow: the segment stays in memory, within its lease. It stays
when its own timer is that close, and for a signal only while its worker has nothing better to do. Nothing is
promised by it: what has not come by then suspends the job as any other wait does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from threading import get_ident
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeAlias, TypeVar, overload

from tallystick.app.api.retrying import When
from tallystick.app.replay.call_drivers import write
from tallystick.app.replay.context import WorkflowContext, current
from tallystick.app.running.leaving import Again
from tallystick.app.values.codec import Codec
from tallystick.core.limits import HELD_WAIT_MS_MAX, check_name
from tallystick.core.schedules.timetable import delay_ms
from tallystick.errors import BadValue, OutsideWorkflow, StoreError, WaitInThread, WrongColour
from tallystick.store.api import Answer, Bundle, Record, Wait

T = TypeVar("T")
Kind: TypeAlias = Literal["wait", "sleep", "group", "remote", "effect"]

_log = logging.getLogger("tallystick.app")

# How often a segment that stays looks into its inbox because a process has written.
LOOKS_MAX: Final = 20

PUT_ASIDE: Final = object()
"""What a wait has instead of a value that does not fit its type."""


@overload
def wait(name: str, type: type[T]) -> T: ...
@overload
def wait(name: str, type: type[T], *, timeout: When) -> T | None: ...
def wait(name: str, type: Any, *, timeout: When | None = None) -> Any:  # noqa: A002 (it is one)
    """Wait for a signal of this name and return its value, or None when the time is up.

    `timeout` is a duration or an instant. The job holds no thread and no lease meanwhile. A signal that was
    sent before is taken at once; one whose value does not fit the type is put aside, and the wait goes on.
    """
    context = workflow_context("wait", is_async=False)
    codec = Codec(type, f"the signal {name}")
    check_name("signal", name)
    while True:
        recalled = recall(context, "wait", name)
        result = recalled.result if isinstance(recalled, Record) else ask(context, as_wait(recalled, timeout))
        value = value_of(recalled, result, codec, timed=timeout is not None)
        if value is not PUT_ASIDE:
            return value


def sleep(duration: When) -> None:
    """Sleep for a while, or until an instant, through restarts, without a thread and without a lease."""
    context = workflow_context("sleep", is_async=False)
    recalled = recall(context, "sleep", "sleep")
    if not isinstance(recalled, Record):
        ask(context, as_wait(recalled, duration))


class Asked(NamedTuple):
    """A wait that this workflow comes to for the first time."""

    context: WorkflowContext
    kind: Kind
    name: str
    occurrence: int


def recall(context: WorkflowContext, kind: Kind, name: str, occurrence: int | None = None) -> Record | Asked:
    """Return what was recorded for this wait, or what is to be asked for; it may have its number already."""
    context.check()
    segment = context.segment
    occurrence = segment.number(name) if occurrence is None else occurrence
    record = segment.past.recall(kind, name, occurrence)
    if record is None:
        context.check_cancelled()
        if context.has_skipped():
            raise context.mismatch((name, occurrence))
        return Asked(context, kind, name, occurrence)
    if record.kind != kind:
        raise context.mismatch((name, occurrence))
    context.calls.append((name, occurrence))
    return record


def as_wait(asked: Asked, limit: When | None) -> Wait:
    """Return the wait with the instant at which its own timer answers it, on the boot clock.

    The workflow may stay in memory before it asks the store, and the wall clock may be set meanwhile.
    """
    now = asked.context.runtime.clock.boot_ms()
    due_at = None if limit is None else now + delay_ms(limit, asked.context.runtime.clock.wall_ms())
    return Wait(asked.kind, asked.name, asked.occurrence, due_at)


def ask(context: WorkflowContext, wait: Wait, *, spawns: Bundle = (), read_after: bool = False) -> str | None:
    """Take the answer to a wait in this thread, staying in memory a little for it, or unwind until it comes.

    Children that it waits for may be spawned in the same bundle. What follows may read what is decided:
    then that is durable first.
    """
    _which, payload = ask_any(context, (wait,), spawns=spawns, read_after=read_after)
    return payload


def ask_any(
    context: WorkflowContext, waits: Sequence[Wait], *, spawns: Bundle = (), read_after: bool = False
) -> tuple[int, str | None]:
    """Take the answer to one of several waits, as `ask` does, and say which of them has it."""
    if context.tracing is None:
        return _ask_any(context, waits, spawns, read_after=read_after)
    with context.tracing.waiting(waits):
        return _ask_any(context, waits, spawns, read_after=read_after)


def _ask_any(
    context: WorkflowContext, waits: Sequence[Wait], spawns: Bundle, *, read_after: bool
) -> tuple[int, str | None]:
    for which, wait in enumerate(waits):
        wake = context.segment.foretold(wait, alone=not context.in_flight)
        if wake is not None:
            context.segment.take(wait, wake)
            if read_after:
                write(context, context.segment.decided())
            context.calls.append((wait.name, wait.occurrence))
            return which, wake.payload
    stay(context, waits)
    context.check()
    context.check_cancelled()
    asked, alone = context.cancel_raised, not context.in_flight
    bundle = context.segment.awaiting(*waits, asked=asked, after=spawns, alone=alone)
    outcome = write(context, bundle, brings_work=bool(spawns))
    publish_soon(context, waits)
    context.heed(outcome)
    if not isinstance(outcome, Answer):
        names = ", ".join(f"{wait.name}#{wait.occurrence}" for wait in waits)
        raise context.suspended(f"{names} is answered")
    wait = waits[outcome.place]
    context.segment.leaving = False
    context.segment.answers.bring(wait, outcome)
    context.calls.append((wait.name, wait.occurrence))
    return outcome.place, outcome.payload


def stay(context: WorkflowContext, waits: Sequence[Wait]) -> None:
    """Hold this thread until a wait may be answered, for as long as it is worth it."""
    seconds = patience_ms(context, waits) / 1000
    worker = context.runtime.worker
    if not seconds or worker is None:
        return
    came = threading.Event()
    context.segment.listener = came.set
    try:
        for _ in range(LOOKS_MAX):
            came.clear()
            if answered(context, waits) or not came.wait(seconds):
                return
    finally:
        context.segment.listener = None


def patience_ms(context: WorkflowContext, waits: Sequence[Wait]) -> int:
    """Return how long it is worth to stay: until the first timer if it is close, else while idle."""
    worker = context.runtime.worker
    if worker is None or context.segment.cancelled:
        return 0
    if any(wait.kind in ("remote", "effect") for wait in waits):
        return 0  # what these wait for comes later, or is there; and directives are to go out now
    due = min((wait.due_at for wait in waits if wait.due_at is not None), default=None)
    if due is not None:
        left = due - context.runtime.clock.boot_ms()
        if left <= HELD_WAIT_MS_MAX:
            return max(0, left)
    signals = any(wait.kind == "wait" for wait in waits)
    return HELD_WAIT_MS_MAX if signals and worker.idle else 0


def answered(context: WorkflowContext, waits: Sequence[Wait]) -> bool:
    """Tell whether it is time to go on: the job is to end, or a signal has come."""
    segment = context.segment
    if segment.cancelled or segment.lost:
        return True
    names = [wait.name for wait in waits if wait.kind == "wait"]
    try:
        return bool(names) and context.runtime.store.has_signal(segment.job_id, names)
    except StoreError:
        return True  # the next question hears what is wrong with the store


def publish_soon(context: WorkflowContext, waits: Iterable[Wait]) -> None:
    """Let the relay of this process look for what these waits asked for: our own writes do not notify us."""
    if any(wait.asks is not None for wait in waits):
        context.runtime.publish_soon()


def value_of(recalled: Record | Asked, result: str | None, codec: Codec, *, timed: bool) -> Any:  # noqa: ANN401 (as asked for)
    """Return the value of a signal, None for a wait whose time was up, or that it was put aside.

    A value that does not fit answers this wait, on the books, and no other; the next wait takes the
    next signal.
    """
    # The record of a timeout is null, so a null that was sent means the same here, on replay as now.
    if timed and result in (None, "null"):
        return None
    try:
        return codec.decode(result or "null", f"the signal {recalled.name}")
    except BadValue as error:
        if isinstance(recalled, Asked):
            job_id = recalled.context.segment.job_id
            _log.warning("job %s: put aside, %s", job_id, error, extra={"action": "signal.put_aside"})
        return PUT_ASIDE


def again(*args: object, **kwargs: object) -> NoReturn:
    """Begin the same job once more, with these arguments and an empty history.

    The way to loop for ever: the job keeps its identifier and its key, and replays only its current turn.
    """
    context = current.get()
    if not isinstance(context, WorkflowContext):
        raise OutsideWorkflow("again is only for the body of a workflow")
    context.check()
    raise Again(args, kwargs)


def workflow_context(verb: str, *, is_async: bool) -> WorkflowContext:
    """Return the workflow that makes this call, or say where the call belongs."""
    context = current.get()
    if not isinstance(context, WorkflowContext):
        raise OutsideWorkflow(
            f"{verb} is only durable in the body of a workflow; elsewhere use the standard library"
        )
    if context.is_async is not is_async:
        home = "tallystick.aio" if context.is_async else "tallystick"
        raise WrongColour(f"this workflow is {'async' if context.is_async else 'sync'}: use {verb} of {home}")
    if not is_async and context.thread != get_ident():
        # A wait puts the whole job away, with all that its other threads have begun.
        raise WaitInThread(
            f"{verb} in a thread of its own would put the job away while its other threads go on: let "
            "threads call steps only and wait in the workflow's own thread, or make the workflow async, "
            "where tasks may wait side by side"
        )
    return context
