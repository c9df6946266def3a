"""One call of a step, written once for both colours.

A call is a generator that says what it needs next (run the body, write a bundle, pause); `driving` meets
these needs. What was recorded is returned without running anything; what was not is run and handed over to be
recorded, and nothing new begins before that is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from tallystick.app.replay.context import WorkflowContext
from tallystick.app.running.async_tx import AsyncTx
from tallystick.app.running.user_exceptions import Escaped, contained
from tallystick.app.values.errors import Carried, carried, rebuilt
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.limits import HELD_BACKOFF_MS_MAX
from tallystick.core.retry import GiveUp, RetryPolicy, classify, decide_failure
from tallystick.engine.failure import Failure, name_step, names_of
from tallystick.engine.observe import TryFailed
from tallystick.errors import InvariantBroken, ParallelCalls, StepFailed
from tallystick.store.api import Bundle, Record, RecordStep, Transaction

if TYPE_CHECKING:
    from tallystick.app.effects.rules import EffectSpec
    from tallystick.app.remote.rules import RemoteRules
    from tallystick.app.running.daemon_threads import ThreadAnswer
    from tallystick.app.values.codec import Codec


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
    # As what of another library a tx wants its transaction, if at all.
    lends: Callable[[], type | None] | None = None
    named: bool = False
    # Of a step that a remote worker does.
    remote: RemoteRules | None = None
    # Of one that reaches outside, under a key.
    effect: EffectSpec | None = None


class Body(msgspec.Struct, frozen=True):
    """Run the user's function, for the call of this occurrence."""

    occurrence: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    # Gets the answer to come of a function that a thread of its own runs.
    begun: Callable[[Future[ThreadAnswer[Any]]], None] | None = None


class Write(NamedTuple):
    """Make a bundle durable; with one that brings work, a thread lets a claim travel in the same flush."""

    bundle: Bundle
    brings_work: bool = False


class Hand(msgspec.Struct, frozen=True):
    """Hand a bundle over and go on: nothing new begins before it is durable."""

    bundle: Bundle


class InTransaction(NamedTuple):
    """Run the user's function in a transaction that also records the step it returns."""

    occurrence: int
    body: Callable[[Transaction], RecordStep]


class InTurn(NamedTuple):
    """Wait until what was recorded before this place has been asked for."""

    n: int


class Pause(NamedTuple):
    """Wait before the next try, holding the lease."""

    ms: int


class Underway(NamedTuple):
    """Wait on for a function in its thread; if it has not ended then, the answer is this once more.

    The body of an effect is answered with it too: a thread cannot be ended when its time is over.
    """

    running: Future[ThreadAnswer[Any]]
    ms: int


class Until(NamedTuple):
    """Wait until a call is over that goes on beside this one."""

    over: Future[None]


Need: TypeAlias = Body | Write | Hand | InTransaction | InTurn | Pause | Underway | Until
Call: TypeAlias = Generator[Need, Any, Any]


def call_step(
    context: WorkflowContext, spec: StepSpec, occurrence: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    """Return what was recorded for this call, or run it until it succeeds or has failed for good.

    Calls of one step are numbered in the order in which they are made. Tasks go on in the same order on
    replay, so they may run side by side; the order of threads is chance, so calls in threads need names.
    """
    segment, name, place = context.segment, spec.name, (spec.name, occurrence)
    context.made.pop(place, None)
    if not context.is_async and context.in_threads_at_once(name, named=spec.named):
        raise ParallelCalls(
            f'calls of {name} may run at once; tell them apart with {name}.named("...")', step=name
        )
    context.in_flight.add(place)
    try:
        record = context.recall(spec.kind, place)
        if record is not None:
            if context.tasks_begun:
                # Tasks go on in the order in which they did, so that what they do next has the same numbers.
                context.in_flight.discard(place)
                yield InTurn(record.n)
            return replayed(spec, record)
        if segment.may_owe and segment.owes_answers(spec.kind):
            yield Hand(segment.decided())
        while True:
            began_at = context.runtime.clock.wall_ms()
            try:
                codec = spec.codec()  # where nothing could be kept, nothing is run
                if spec.kind == "tx":
                    return (yield from _transact(context, spec, codec, occurrence, args, kwargs))
                if context.tracing is None:
                    value = yield Body(occurrence, args, kwargs)
                else:
                    with context.span(spec.kind, name, occurrence):
                        value = yield Body(occurrence, args, kwargs)
                text, value = codec.returned(value, name)
            except Exception as error:  # noqa: BLE001 (whatever the user's function raises is what the step failed with)
                raised = error.error if isinstance(error, Escaped) else error
                yield from _tried(context, spec, occurrence, raised, began_at)
                context.check()
                context.check_cancelled()
                continue
            shown = () if segment.shown is None else segment.owed()
            row = (*shown, segment.step_succeeded(spec.kind, name, occurrence, text, began_at))
            # Where calls run side by side, what one returns may be long on its way to the next call.
            yield Hand(row) if len(context.in_flight) == 1 else Write(row)
            return value
    finally:
        context.in_flight.discard(place)
        for stir in context.stirs:
            stir()


def _transact(
    context: WorkflowContext,
    spec: StepSpec,
    codec: Codec,
    occurrence: int,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Call:
    value: Any = None

    def body(transaction: Transaction) -> RecordStep:
        nonlocal value
        began_at = context.runtime.clock.wall_ms()
        returned = _in_transaction(context, spec, transaction, args, kwargs)
        text, value = codec.returned(returned, spec.name)
        return context.segment.step_succeeded(spec.kind, spec.name, occurrence, text, began_at)

    with context.span(spec.kind, spec.name, occurrence):
        step = yield InTransaction(occurrence, body)
    context.segment.written((step,))
    return value


def _in_transaction(
    context: WorkflowContext,
    spec: StepSpec,
    transaction: Transaction,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:  # noqa: ANN401 (as annotated by the user)
    """Call a function with its transaction, in the form that it asks for."""
    runtime = context.runtime
    if spec.is_async:
        db = AsyncTx()
        return db.serve(
            transaction, spec.function(db, *args, **kwargs), context.lane().loop, runtime.tx_ms_max
        )
    if spec.lends is None or (kind := spec.lends()) is None:
        return contained(spec.function, transaction, *args, **kwargs)
    assert runtime.many_writers is not None, "a store on a file is not opened for it"
    with runtime.many_writers.lend_as(transaction, kind) as lent:
        return contained(spec.function, lent, *args, **kwargs)


def _tried(
    context: WorkflowContext, spec: StepSpec, occurrence: int, error: BaseException, began_at: int
) -> Call:
    """Record a failed try and wait for the next, or record that there is none and raise."""
    segment = context.segment
    tries = segment.tries(spec.name, occurrence) + 1
    fields, args = carried(error) if type(error) in spec.raises else Carried()
    failure = Failure.of(error, tries=tries, fields=fields, args=args)
    verdict = decide_failure(spec.policy, tries, classify(spec.policy, names_of(error)), key=segment.job_id)
    if isinstance(verdict, GiveUp):
        owed = segment.owed()
        yield Write((*owed, segment.step_failed(spec.kind, spec.name, occurrence, failure, began_at)))
        raise error_of(spec, occurrence, failure) from error
    yield Write(segment.step_tried(spec.name, occurrence, failure, verdict.delay_ms))
    tried = TryFailed(segment.fence, segment.claimed.handler, spec.name, tries)
    context.runtime.observers.tell(tried)
    if verdict.delay_ms > HELD_BACKOFF_MS_MAX:
        bundle = segment.released(
            AbortReason.SUSPENDED, charged=False, after_ms=verdict.delay_ms, failure=failure
        )
        raise context.suspended(f"{spec.name} is tried again", bundle)
    yield Pause(verdict.delay_ms)


def replayed(spec: StepSpec, record: Record) -> Any:  # noqa: ANN401 (as annotated by the user)
    """Return what was recorded for a call, or raise the error that it failed with."""
    if record.result is not None:
        return spec.codec().decode(record.result, f"the recorded result of {spec.name}")
    if record.error is None:
        raise InvariantBroken(f"{spec.name}#{record.occurrence} is recorded with neither result nor error")
    raise error_of(spec, record.occurrence, Failure.parse(record.error))


def error_of(spec: StepSpec, occurrence: int, failure: Failure) -> Exception:
    """Return the error a failed step raises; a job that fails with it remembers the step."""
    error = rebuilt(spec.raises, failure) or StepFailed(
        spec.name, failure.type, failure.message, failure.code, failure.tries
    )
    name_step(error, spec.name, occurrence)
    return error
