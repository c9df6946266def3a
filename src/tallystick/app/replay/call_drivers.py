"""What meets the needs of a call: a thread or a task, and how each runs the body of a step.

Both give a call the same answers and throw the same errors into it; only how they wait differs.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

from tallystick.app.api.retrying import ONCE
from tallystick.app.replay.async_waits import task_waits_of
from tallystick.app.replay.calls import (
    Body,
    Call,
    Hand,
    InTransaction,
    InTurn,
    Need,
    Pause,
    StepSpec,
    Underway,
    Until,
    Write,
)
from tallystick.app.replay.context import NOT_TAKEN, Inside, WorkflowContext, current
from tallystick.app.running.daemon_threads import ThreadAnswer, run_in_daemon_thread
from tallystick.app.running.user_exceptions import Escaped, contained, is_escape
from tallystick.app.values.codec import Codec
from tallystick.engine.pending_writes import Blocked, Handed
from tallystick.errors import StepTimeout
from tallystick.store.api import Bundle, Outcome

T = TypeVar("T")


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
    segment = context.segment
    handed = segment.handed
    if type(handed) is Blocked:
        _written(context, handed.wait)
        segment.handed = None
    if type(need) is Body:
        return _run_body(context, spec, need)
    if type(need) is Hand:
        segment.handed = context.runtime.committer.begin(need.bundle)
        segment.written(need.bundle)
    elif type(need) is Write:
        runtime = context.runtime
        make_durable = runtime.write_and_claim if need.brings_work else runtime.committer.call
        outcome = _written(context, lambda: make_durable(need.bundle))
        segment.written(need.bundle)
        return outcome
    elif type(need) is InTransaction:
        return _written(context, lambda: transact(context, spec.name, need))
    elif type(need) is Underway:
        return _answered_in_time(spec, need)
    elif type(need) is Until:
        need.over.result()
    elif type(need) is Pause and context.runtime.pause(need.ms):
        segment.lost = True
    return None


async def drive_async(  # noqa: C901 (a branch for each need that comes often)
    context: WorkflowContext, spec: StepSpec, call: Call
) -> Any:  # noqa: ANN401 (as annotated)
    """Drive a call in this task; bodies and writes are met here, each layer of `await` costs every step."""
    try:
        need = next(call)
        segment = context.segment
        while True:
            try:
                handed = segment.handed
                if type(handed) is Handed:
                    if not handed.known:
                        await handed.told()
                    _settle(context, handed)
                if type(need) is Hand:
                    segment.handed = context.lane().begin(need.bundle)
                    segment.written(need.bundle)
                    value = None
                elif type(need) is Body and spec.is_async and spec.timeout_ms is None:
                    task = context.begin_body()
                    token = current.set(Inside(context, spec.name, need.occurrence))
                    try:
                        value = await spec.function(*need.args, **need.kwargs)
                    except asyncio.CancelledError as error:
                        raise context.left_body(task, error) from None
                    finally:
                        current.reset(token)
                        context.end_body(task)
                elif type(need) is Write and not need.brings_work:
                    value = await context.lane().call(need.bundle)
                    segment.written(need.bundle)
                else:
                    value = await _meet_async(context, spec, need)
            except BaseException as error:  # noqa: BLE001 (the call decides what every error means)
                need = call.throw(_as_met(context, need, error))
            else:
                need = call.send(value)
    except StopIteration as end:
        return end.value


def _as_met(context: WorkflowContext, need: Need, error: BaseException) -> BaseException:
    """Return what a call learns of an error: a write that was not taken ends the segment."""
    if type(need) is Write and isinstance(error, NOT_TAKEN):
        return context.refused(error)
    return Escaped(error) if type(need) is Body and is_escape(error) else error


def _settle(context: WorkflowContext, handed: Handed) -> None:
    """Go on only if the step before is durable: nothing new begins earlier."""
    if handed.refusal is not None:
        raise context.refused(handed.refusal) from handed.refusal
    if context.segment.handed is handed:
        context.segment.handed = None


async def _meet_async(context: WorkflowContext, spec: StepSpec, need: Need) -> Any:  # noqa: ANN401 (as the need says)
    match need:
        case Body():
            return await _run_guarded(context, spec, need)
        case Write():
            outcome = await context.runtime.claim_with(context.lane(), need.bundle)
            context.segment.written(need.bundle)
            return outcome
        case Until():
            return await asyncio.shield(asyncio.wrap_future(need.over))
        case InTurn():
            return await task_waits_of(context).in_turn(need.n)
        case Pause():
            with context.stoppable():
                return await context.runtime.clock.pause_aio(need.ms)
        case _:
            return await _in_thread(context, _meet, context, spec, need)


def transact(context: WorkflowContext, name: str, need: InTransaction) -> object:
    """Run the body in a transaction that also records its step, and return the step once durable."""
    token = current.set(Inside(context, name, need.occurrence, in_tx=True))
    try:
        return context.runtime.run_tx(context.segment.fence, need.body)
    finally:
        current.reset(token)


def _written(context: WorkflowContext, write: Callable[[], object]) -> object:
    try:
        return write()
    except NOT_TAKEN as error:
        raise context.refused(error) from error


def _run_body(context: WorkflowContext, spec: StepSpec, body: Body) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function in this thread, or in one of its own if its time is limited."""
    if spec.timeout_ms is not None:
        return _run_in_time(context, spec, body)
    token = current.set(Inside(context, spec.name, body.occurrence))
    try:
        return contained(spec.function, *body.args, **body.kwargs)
    finally:
        current.reset(token)


async def _in_thread(context: WorkflowContext, function: Callable[..., T], /, *args: object) -> T:
    """Run a function in a thread; until it returns the workflow knows of it, whether it waits or not."""
    inside = contextvars.copy_context()
    mark = object()
    context.in_threads.add(mark)

    def run() -> T:
        try:
            return inside.run(function, *args)
        finally:
            context.in_threads.discard(mark)

    answer: ThreadAnswer[T] = await asyncio.wrap_future(run_in_daemon_thread(run))
    return answer.value()


async def _run_guarded(context: WorkflowContext, spec: StepSpec, body: Body) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function that must not block the loop, or must not take longer than it may."""
    if not spec.is_async:
        return await _in_thread(context, _run_body, context, spec, body)
    limit = asyncio.timeout((spec.timeout_ms or 0) / 1000)
    value = None
    try:
        # An effect that is stopped would be in doubt: it has its time, and no more.
        with nullcontext() if spec.kind == "effect" else context.stoppable():
            async with limit:
                token = current.set(Inside(context, spec.name, body.occurrence))
                try:
                    value = await spec.function(*body.args, **body.kwargs)
                finally:
                    current.reset(token)
    except Exception as error:
        if not limit.expired():
            raise  # one of its own
        raise _took_too_long(spec) from error
    if limit.expired():
        raise _took_too_long(spec)  # it has swallowed that its time was up
    return value


def _run_in_time(context: WorkflowContext, spec: StepSpec, body: Body) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function in a thread of its own and stop waiting when its time is up.

    Python cannot end a thread: the function may go on. What a step returns then is dropped; the call of an
    effect learns that it is under way.
    """
    inside = contextvars.copy_context()
    inside.run(current.set, Inside(context, spec.name, body.occurrence))
    running = run_in_daemon_thread(partial(inside.run, contained, spec.function, *body.args, **body.kwargs))
    if body.begun is not None:
        body.begun(running)
    return _answered_in_time(spec, Underway(running, spec.timeout_ms or 0))


def _answered_in_time(spec: StepSpec, underway: Underway) -> Any:  # noqa: ANN401 (as annotated)
    try:
        answer = underway.running.result(underway.ms / 1000)
    except TimeoutError:
        if spec.effect is not None:
            return underway
        raise _took_too_long(spec) from None
    return answer.value()


def _took_too_long(spec: StepSpec) -> StepTimeout:
    return StepTimeout(f"{spec.name} took longer than {spec.timeout_ms} ms", step=spec.name)


def write(context: WorkflowContext, bundle: Bundle, *, brings_work: bool = False) -> Outcome:
    """Make a bundle durable, behind everything that this workflow has handed over, and return its outcome."""
    outcome: Outcome = drive(context, NO_BODY, _to_write(bundle, brings_work=brings_work))
    return outcome


async def write_async(context: WorkflowContext, bundle: Bundle, *, brings_work: bool = False) -> Outcome:
    """Do the same in a task."""
    outcome: Outcome = await drive_async(context, NO_BODY, _to_write(bundle, brings_work=brings_work))
    return outcome


def _to_write(bundle: Bundle, *, brings_work: bool) -> Call:
    """Write a bundle; if it brings work, idle slots of this process look for it in the same flush."""
    return (yield Write(bundle, brings_work))


# A call that runs no function of the user's: it only reads and writes rows of ours.
NO_BODY = StepSpec(
    name="wait",
    kind="wait",
    function=lambda: None,
    is_async=False,
    policy=ONCE.policy,
    timeout_ms=None,
    raises=(),
    codec=lambda: Codec(Any),
)
