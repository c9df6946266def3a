"""How a thread meets the needs of a call, and runs the body of a step.

`async_drivers` does it in a task: both give a call the same answers and throw the same errors into it.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from functools import partial
from typing import Any

from tallystick.app.api.retrying import ONCE
from tallystick.app.replay.calls import (
    Body,
    Call,
    Hand,
    InTransaction,
    Need,
    Pause,
    StepSpec,
    Underway,
    Until,
    Write,
)
from tallystick.app.replay.context import NOT_TAKEN, Inside, WorkflowContext, current
from tallystick.app.running.daemon_threads import run_in_daemon_thread
from tallystick.app.running.user_exceptions import contained
from tallystick.app.values.codec import Codec
from tallystick.engine.pending_writes import Blocked
from tallystick.errors import StepTimeout
from tallystick.store.api import Bundle, Outcome


def drive(context: WorkflowContext, spec: StepSpec, call: Call) -> Any:  # noqa: ANN401 (as annotated by the user)
    """Drive a call in this thread."""
    try:
        need = next(call)
        while True:
            try:
                value = meet(context, spec, need)
            except BaseException as error:  # noqa: BLE001 (the call decides what every error means)
                need = call.throw(error)
            else:
                need = call.send(value)
    except StopIteration as end:
        return end.value


def meet(context: WorkflowContext, spec: StepSpec, need: Need) -> Any:  # noqa: ANN401 (as the need says)
    """Give a call what it needs, in this thread, when the step before is durable."""
    segment = context.segment
    handed = segment.handed
    if type(handed) is Blocked:
        _written(context, handed.wait)
        segment.handed = None
    if type(need) is Body:
        return run_body(context, spec, need)
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


def run_body(context: WorkflowContext, spec: StepSpec, body: Body) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function in this thread, or in one of its own if its time is limited."""
    if spec.timeout_ms is not None:
        return _run_in_time(context, spec, body)
    token = current.set(Inside(context, spec.name, body.occurrence))
    try:
        return contained(spec.function, *body.args, **body.kwargs)
    finally:
        current.reset(token)


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
        raise took_too_long(spec) from None
    return answer.value()


def took_too_long(spec: StepSpec) -> StepTimeout:
    """Return the error of a body whose time was up."""
    return StepTimeout(f"{spec.name} took longer than {spec.timeout_ms} ms", step=spec.name)


def write(context: WorkflowContext, bundle: Bundle, *, brings_work: bool = False) -> Outcome:
    """Make a bundle durable, behind everything that this workflow has handed over, and return its outcome."""
    outcome: Outcome = drive(context, NO_BODY, to_write(bundle, brings_work=brings_work))
    return outcome


def to_write(bundle: Bundle, *, brings_work: bool) -> Call:
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
