"""One call of a step, written once for both colours.

A call is a generator that says what it needs next (run the body, write a bundle, pause) and is driven by a
thread or by a task. What was recorded is returned without running anything; what was not is run, recorded,
and only then returned.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from tallystick.app.context import INSIDE_STEP, INSIDE_TX, Unwind, WorkflowContext, current
from tallystick.core.derive import AbortReason
from tallystick.core.limits import HELD_BACKOFF_MS_MAX, RESULT_BYTES_MAX, check_size
from tallystick.core.retry import GiveUp, RetryPolicy, classify, decide_failure
from tallystick.engine.failure import Failure, names_of
from tallystick.errors import InvariantBroken, StaleLease, StepFailed, StepTimeout, StoreError
from tallystick.store.api import Bundle, Record, RecordStep, Transaction

if TYPE_CHECKING:
    from tallystick.app.values import Codec


@dataclass(frozen=True, slots=True)
class StepSpec:
    """What a call needs to know about the step it calls."""

    name: str
    kind: str
    function: Callable[..., Any]
    is_async: bool
    policy: RetryPolicy
    timeout_ms: int | None
    raises: tuple[type[Exception], ...]
    codec: Callable[[], Codec]


class Body(NamedTuple):
    """Run the user's function."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Write(NamedTuple):
    """Make a bundle durable."""

    bundle: Bundle


class InTransaction(NamedTuple):
    """Run the user's function in a transaction that also records the step it returns."""

    body: Callable[[Transaction], RecordStep]


class Pause(NamedTuple):
    """Wait before the next try, holding the lease."""

    ms: int


Need: TypeAlias = Body | Write | InTransaction | Pause
Call: TypeAlias = Generator[Need, Any, Any]


def call_step(
    context: WorkflowContext, spec: StepSpec, occurrence: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    """Return what was recorded for this call, or run it until it succeeds or has failed for good."""
    context.check()
    segment = context.segment
    record = segment.recall(spec.name, occurrence)
    if record is not None and record.kind == spec.kind:
        context.calls.append((spec.name, occurrence))
        return _replayed(spec, record)
    context.check_cancelled()
    if record is not None or _out_of_order(context):
        raise context.mismatch(spec.name, occurrence)
    context.calls.append((spec.name, occurrence))
    while True:
        try:
            if spec.kind == "tx":
                return (yield from _transact(context, spec, occurrence, args, kwargs))
            value = yield Body(args, kwargs)
            text, value = _kept(spec, value)
        except Exception as error:  # noqa: BLE001 (whatever the user's function raises is what the step failed with)
            yield from _tried(context, spec, occurrence, error)
            continue
        yield Write((segment.step_succeeded(spec.kind, spec.name, occurrence, text),))
        return value


def _transact(
    context: WorkflowContext, spec: StepSpec, occurrence: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    value: Any = None

    def body(transaction: Transaction) -> RecordStep:
        nonlocal value
        text, value = _kept(spec, spec.function(transaction, *args, **kwargs))
        return context.segment.step_succeeded(spec.kind, spec.name, occurrence, text)

    step = yield InTransaction(body)
    context.segment.written((step,))
    return value


def _tried(context: WorkflowContext, spec: StepSpec, occurrence: int, error: Exception) -> Call:
    """Record a failed try and wait for the next, or record that there is none and raise."""
    segment = context.segment
    tries = segment.tries(spec.name, occurrence) + 1
    fields = _declared_fields(error) if isinstance(error, spec.raises) else None
    failure = Failure.of(error, tries=tries, fields=fields)
    verdict = decide_failure(spec.policy, tries, classify(spec.policy, names_of(error)), key=segment.job_id)
    if isinstance(verdict, GiveUp):
        row = segment.step_failed(spec.kind, spec.name, occurrence, failure)
        yield Write((row,))
        raise _error_of(spec, failure) from error
    yield Write(segment.step_tried(spec.name, occurrence, failure, verdict.delay_ms))
    if verdict.delay_ms > HELD_BACKOFF_MS_MAX:
        ready_at = context.runtime.clock.wall_ms() + verdict.delay_ms
        bundle = segment.released(AbortReason.SUSPENDED, charged=False, ready_at=ready_at, failure=failure)
        raise context.unwind(f"{spec.name} is tried again later", bundle)
    yield Pause(verdict.delay_ms)


def _replayed(spec: StepSpec, record: Record) -> Any:  # noqa: ANN401 (as annotated by the user)
    if record.result is not None:
        return spec.codec().decode(record.result, f"the recorded result of {spec.name}")
    if record.error is None:
        raise InvariantBroken(f"{spec.name}#{record.occurrence} is recorded with neither result nor error")
    raise _error_of(spec, Failure.parse(record.error))


def _kept(spec: StepSpec, value: object) -> tuple[str, Any]:
    text, value = spec.codec().round_trip(value, f"what {spec.name} returned")
    check_size(f"result of {spec.name}", len(text), RESULT_BYTES_MAX)
    return text, value


def _out_of_order(context: WorkflowContext) -> bool:
    """Tell whether an unrecorded call comes while recorded ones were skipped.

    Concurrent tasks of an async workflow may overtake each other, so there this is judged when the workflow
    ends.
    """
    if not context.segment.unused:
        return False
    return not context.is_async or not context.in_flight


def _error_of(spec: StepSpec, failure: Failure) -> Exception:
    """Return the error a failed step raises: a declared class rebuilt from its fields, or `StepFailed`."""
    for kind in spec.raises:
        if failure.type == kind.__qualname__ and failure.fields is not None:
            try:
                return kind(**failure.fields)
            except TypeError:
                break  # its constructor does not take its declared fields, so it cannot be rebuilt
    return StepFailed(spec.name, failure.type, failure.message, failure.code, failure.tries)


def _declared_fields(error: Exception) -> dict[str, object] | None:
    """Return the declared fields of an error as plain data, or None if they cannot be kept."""
    fields = {name: getattr(error, name, None) for name in getattr(type(error), "__annotations__", {})}
    try:
        return dict(msgspec.to_builtins(fields))
    except TypeError:
        return None


def drive(context: WorkflowContext, spec: StepSpec, call: Call) -> Any:  # noqa: ANN401 (as annotated by the user)
    """Drive a call in this thread."""
    try:
        need = next(call)
        while True:
            try:
                value = _meet(context, spec, need)
            except BaseException as error:  # noqa: BLE001 (the call decides what every error means)
                need = call.throw(error)
            else:
                need = call.send(value)
    except StopIteration as end:
        return end.value


def _meet(context: WorkflowContext, spec: StepSpec, need: Need) -> Any:  # noqa: ANN401 (as the need says)
    match need:
        case Body():
            return _run_body(spec, need.args, need.kwargs)
        case Write():
            outcome = _written(context, lambda: context.runtime.committer.call(need.bundle))
            context.segment.written(need.bundle)
            return outcome
        case InTransaction():
            return _written(context, lambda: transact(context, need.body))
        case Pause():
            context.runtime.pause(need.ms)
    return None


async def drive_async(context: WorkflowContext, spec: StepSpec, call: Call) -> Any:  # noqa: ANN401 (as annotated)
    """Drive a call in this task; bodies and writes are met here, each layer of `await` costs every step."""
    try:
        need = next(call)
        while True:
            try:
                if type(need) is Write:
                    value = await context.lane().call(need.bundle)
                    context.segment.written(need.bundle)
                elif type(need) is Body and spec.is_async and spec.timeout_ms is None:
                    value = await _run_coroutine(spec, need)
                else:
                    value = await _meet_async(context, spec, need)
            except (StaleLease, StoreError) as error:
                need = call.throw(context.refused(error) if type(need) is Write else error)
            except BaseException as error:  # noqa: BLE001 (the call decides what every error means)
                need = call.throw(error)
            else:
                need = call.send(value)
    except StopIteration as end:
        return end.value


async def _meet_async(context: WorkflowContext, spec: StepSpec, need: Need) -> Any:  # noqa: ANN401 (as the need says)
    match need:
        case Body():
            return await _run_guarded(spec, need)
        case Pause():
            return await asyncio.sleep(need.ms / 1000)
        case _:
            return await asyncio.to_thread(_meet, context, spec, need)


def transact(context: WorkflowContext, body: Callable[[Transaction], RecordStep]) -> object:
    """Run the body in a transaction that also records its step, and return the step once durable."""
    token = current.set(INSIDE_TX)
    try:
        return context.runtime.run_tx(context.segment.fence, body)
    finally:
        current.reset(token)


def _written(context: WorkflowContext, write: Callable[[], object]) -> object:
    try:
        return write()
    except (StaleLease, StoreError) as error:
        raise context.refused(error) from error


def _run_body(spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 (as annotated)
    if spec.timeout_ms is not None:
        return _run_in_time(spec, args, kwargs)
    token = current.set(INSIDE_STEP)
    try:
        return spec.function(*args, **kwargs)
    finally:
        current.reset(token)


def _run_in_time(spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function in a thread of its own and stop waiting when its time is up.

    Python cannot end a thread: the function may go on, and what it returns then is dropped.
    """
    answer: list[tuple[bool, Any]] = []
    inside = contextvars.copy_context()
    inside.run(current.set, INSIDE_STEP)

    def run() -> None:
        try:
            answer.append((True, inside.run(spec.function, *args, **kwargs)))
        except BaseException as error:  # noqa: BLE001 (raised again in the waiting thread)
            answer.append((False, error))

    thread = threading.Thread(target=run, name=f"tally-step-{spec.name}", daemon=True)
    thread.start()
    thread.join((spec.timeout_ms or 0) / 1000)
    if not answer:
        raise StepTimeout(f"{spec.name} took longer than {spec.timeout_ms} ms", step=spec.name)
    succeeded, value = answer[0]
    if not succeeded:
        raise value
    return value


async def _run_coroutine(spec: StepSpec, body: Body) -> Any:  # noqa: ANN401 (as annotated)
    token = current.set(INSIDE_STEP)
    try:
        return await spec.function(*body.args, **body.kwargs)
    finally:
        current.reset(token)


async def _run_guarded(spec: StepSpec, body: Body) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function that must not block the loop, or must not take longer than it may."""
    if not spec.is_async:
        return await asyncio.to_thread(_run_body, spec, body.args, body.kwargs)
    try:
        async with asyncio.timeout((spec.timeout_ms or 0) / 1000):
            return await _run_coroutine(spec, body)
    except TimeoutError as error:
        raise StepTimeout(f"{spec.name} took longer than {spec.timeout_ms} ms", step=spec.name) from error


__all__ = ["StepSpec", "Unwind", "call_step", "drive", "drive_async"]
