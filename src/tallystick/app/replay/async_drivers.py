"""How a task of an async workflow meets the needs of a call, runs its body, and waits.

The twin of `call_drivers`: a call gets the same answers and errors here, and the tasks beside it go on.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

from tallystick.app.replay.async_waits import is_alone, task_waits_of
from tallystick.app.replay.call_drivers import NO_BODY, meet, run_body, to_write, took_too_long
from tallystick.app.replay.calls import Body, Call, Hand, InTurn, Need, Pause, StepSpec, Until, Write
from tallystick.app.replay.context import NOT_TAKEN, Inside, WorkflowContext, current
from tallystick.app.running.daemon_threads import ThreadAnswer, run_in_daemon_thread
from tallystick.app.running.user_exceptions import Escaped, is_escape
from tallystick.engine.pending_writes import Handed
from tallystick.store.api import Bundle, Outcome, Record, Wait

T = TypeVar("T")


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
            return await _in_thread(context, meet, context, spec, need)


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
        return await _in_thread(context, run_body, context, spec, body)
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
        raise took_too_long(spec) from error
    if limit.expired():
        raise took_too_long(spec)  # it has swallowed that its time was up
    return value


async def write_async(context: WorkflowContext, bundle: Bundle, *, brings_work: bool = False) -> Outcome:
    """Make a bundle durable behind everything that this workflow has handed over, and return its outcome."""
    outcome: Outcome = await drive_async(context, NO_BODY, to_write(bundle, brings_work=brings_work))
    return outcome


async def ask_async(
    context: WorkflowContext, wait: Wait, *, spawns: Bundle = (), read_after: bool = False
) -> str | None:
    """Take the answer to a wait in this task, or unwind; other tasks may wait beside it."""
    if context.tracing is None:
        return await _ask_async(context, wait, spawns, read_after=read_after)
    with context.tracing.waiting((wait,)):
        return await _ask_async(context, wait, spawns, read_after=read_after)


async def _ask_async(context: WorkflowContext, wait: Wait, spawns: Bundle, *, read_after: bool) -> str | None:
    alone = is_alone(context)
    wake = context.segment.foretold(wait, alone=alone)
    if wake is not None:
        context.segment.take(wait, wake)
        if read_after or not alone:
            # Nothing suspends the workflow before this is written.
            with context.busy(f"answer {wait.name}#{wait.occurrence}"):
                await write_async(context, context.segment.decided())
        context.calls.append((wait.name, wait.occurrence))
        return wake.payload
    answer = await task_waits_of(context).answer(wait, spawns, write_async)
    context.calls.append((wait.name, wait.occurrence))
    return answer.payload


async def in_turn(context: WorkflowContext, record: Record) -> Record:
    """Return a record when all that happened before it has been asked for, as it was the first time."""
    if context.task_waits is not None or context.segment.past.skipped(record.n):
        await task_waits_of(context).in_turn(record.n)
    return record
