"""One call of an effect, written once for both colours: the intent, the call, and what came of it.

Nothing is guessed. A call that returned has happened; one that raised `NotDone`, or an error that was
declared as safe, has not; an error of `raises=` is the provider's refusal. Whatever else ends a call leaves
it in doubt.
"""

from __future__ import annotations

from typing import Any, Final

from tallystick.app.effects.answers import Key
from tallystick.app.effects.rules import EffectSpec
from tallystick.app.replay.calls import Body, Call, InTurn, Pause, StepSpec, Write, error_of, replayed
from tallystick.app.replay.context import WorkflowContext
from tallystick.app.replay.waits import ask, ask_async
from tallystick.app.running.user_exceptions import Escaped
from tallystick.app.values.errors import Carried, carried
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.effects.requests import (
    CallEffect,
    Differs,
    DoubtEffect,
    EndEffect,
    Granted,
    Instead,
    Known,
    Later,
    RestEffect,
)
from tallystick.core.effects.rows import Came
from tallystick.core.lease import CALL_SLACK_MS
from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, HELD_BACKOFF_MS_MAX, clip_text
from tallystick.core.remote.answers import ended
from tallystick.core.retry import ErrorClass, GiveUp, decide_failure
from tallystick.engine.failure import Failure
from tallystick.errors import InvariantBroken, NotDone, ParallelCalls
from tallystick.store.api import NewLease, Record, Wait

TAKE: Final = object()
"""What a call returns instead of a value: that is in the inbox of the job."""

_BY_HAND: Final = "by hand"


def call_effect(
    context: WorkflowContext, spec: StepSpec, occurrence: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    """Return what was recorded for this call, or make it: once, whatever becomes of this process."""
    name, place = spec.name, (spec.name, occurrence)
    context.made.pop(place, None)
    if context.in_threads_at_once(name, named=spec.named):
        raise ParallelCalls(
            f'calls of {name} may run at once; tell them apart with {name}.named("...")', step=name
        )
    context.in_flight.add(place)
    try:
        record = context.recall(spec.kind, place)
        if record is not None:
            if context.tasks_begun:
                context.in_flight.discard(place)
                yield InTurn(record.n)
            return replayed(spec, record)
        return (yield from _Calling(context, spec, occurrence, args, kwargs).made())
    finally:
        context.in_flight.discard(place)
        if context.parking is not None:
            context.parking.stir()


def taken(context: WorkflowContext, spec: StepSpec, occurrence: int) -> Any:  # noqa: ANN401 (as annotated by the user)
    """Return what another has said of an effect, out of the inbox."""
    wait = Wait("effect", spec.name, occurrence, None)
    return replayed(spec, _record(spec, occurrence, *ended(ask(context, wait))))


async def taken_async(context: WorkflowContext, spec: StepSpec, occurrence: int) -> Any:  # noqa: ANN401 (as above)
    """Do the same in a task."""
    wait = Wait("effect", spec.name, occurrence, None)
    return replayed(spec, _record(spec, occurrence, *ended(await ask_async(context, wait))))


def _record(spec: StepSpec, occurrence: int, result: str | None, error: str | None) -> Record:
    return Record(spec.name, occurrence, spec.kind, "", 0, result, error, None, 0)


class _Calling:
    """One call of an effect that is not recorded."""

    def __init__(
        self,
        context: WorkflowContext,
        spec: StepSpec,
        occurrence: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        assert spec.effect is not None, "an effect has rules"
        self._context, self._spec, self._occurrence = context, spec, occurrence
        self._effect: EffectSpec = spec.effect
        self._args, self._kwargs = args, kwargs
        self._codec = spec.codec()  # where nothing could be kept, nothing is called
        self._intent = self._effect.intent(context, args, kwargs)
        self._place = (context.segment.claimed.dimension, spec.name, occurrence)
        # Of the call that is asked for, and of the last one that was granted.
        self._lease_id = self._last = ""

    def made(self) -> Call:
        """Ask for the right to call until it is given, call, and say what came of it."""
        context, spec = self._context, self._spec
        while True:
            began = context.runtime.clock.boot_ms()
            came = yield Write((*context.segment.decided(), self._asks()))
            context.heed(came)
            match came:
                case Granted(calls):
                    context.segment.open_effects += not self._last
                    self._last = self._lease_id
                    if context.runtime.clock.boot_ms() - began > CALL_SLACK_MS:
                        continue
                    done, value = yield from self._called(calls)
                    if done:
                        return value
                case Known(result, error):
                    return replayed(spec, _record(spec, self._occurrence, result, error))
                case Later(ms):
                    raise self._released(f"{spec.name} is called again", ms)
                case Instead.TAKE:
                    context.calls.remove((spec.name, self._occurrence))
                    return TAKE
                case Instead.WAIT:
                    raise context.suspended(f"it is known what came of {spec.name}#{self._occurrence}")
                case Differs(was):
                    also = f"the effect {spec.name}#{self._occurrence} was called under the key {was}"
                    raise context.mismatch((spec.name, self._occurrence), also=also)
                case _:
                    raise InvariantBroken(f"an effect was answered with {came!r}")

    def _asks(self) -> CallEffect:
        runtime, segment = self._context.runtime, self._context.segment
        self._lease_id = runtime.ids.token()
        owner = _BY_HAND if runtime.worker is None else runtime.worker.owner
        lease = NewLease(self._lease_id, owner, self._effect.rules.lease_ms)
        about = (self._place, self._intent, lease, runtime.clock.wall_ms())
        return CallEffect(
            segment.fence, segment.claimed.chain, *about, self._context.cancel_raised, self._last
        )

    def _called(self, calls: int) -> Call:
        """Call the function and write what came of it: (True, value), or (False, None) for another call."""
        spec = self._spec
        try:
            given = (Key(self._intent.key[2]), *self._args)
            with self._context.span("effect", spec.name, self._occurrence):
                value = yield Body(self._occurrence, given, self._kwargs)
            text, value = self._codec.returned(value, spec.name)
        except Exception as error:  # noqa: BLE001 (whatever the function raises says something of what happened)
            raised = error.error if isinstance(error, Escaped) else error
            return (yield from self._failed(raised, calls))
        yield from self._ended(Came.HAPPENED, text, None)
        return True, value

    def _failed(self, error: BaseException, calls: int) -> Call:
        spec = self._spec
        fields, args = carried(error) if type(error) in spec.raises else Carried()
        failure = Failure.of(error, tries=calls, fields=fields, args=args)
        if isinstance(error, (NotDone, *self._effect.safe_errors)):
            return (yield from self._not_done(error, failure))
        if isinstance(error, spec.raises):
            yield from self._ended(Came.REFUSED, None, failure.text())
            raise error_of(spec, self._occurrence, failure) from error
        yield from self._in_doubt(failure)
        raise InvariantBroken("a segment goes on whose effect is in doubt")

    def _not_done(self, error: BaseException, failure: Failure) -> Call:
        """Call again after a while, or give up: nothing has happened."""
        spec, context = self._spec, self._context
        segment = context.segment
        verdict = decide_failure(spec.policy, failure.tries, ErrorClass.RETRYABLE, key=segment.job_id)
        if isinstance(verdict, GiveUp):
            yield from self._ended(Came.NOT_DONE, None, failure.text())
            raise error_of(spec, self._occurrence, failure) from error
        tried = segment.step_tried(spec.name, self._occurrence, failure, verdict.delay_ms)
        yield Write((*tried, RestEffect(segment.fence, self._place, self._lease_id, verdict.delay_ms)))
        yield from self._wait(verdict.delay_ms)
        return False, None

    def _in_doubt(self, failure: Failure) -> Call:
        """Say that the outcome of the call is unknown, and leave the function until it is known."""
        context, spec = self._context, self._spec
        segment = context.segment
        why = clip_text(f"{failure.type}: {failure.message}", ERROR_TEXT_BYTES_MAX)
        about = (self._place, self._lease_id, why, context.runtime.clock.wall_ms())
        yield Write((*segment.decided(), DoubtEffect(segment.fence, segment.claimed.chain, *about)))
        raise context.suspended(f"it is known what came of {spec.name}#{self._occurrence}")

    def _ended(self, outcome: Came, result: str | None, error: str | None) -> Call:
        segment, at = self._context.segment, self._context.runtime.clock.wall_ms()
        about = (self._place, self._lease_id, outcome, result, error, at)
        yield Write((*segment.decided(), EndEffect(segment.fence, segment.claimed.chain, *about)))
        segment.open_effects -= 1

    def _wait(self, ms: int) -> Call:
        if ms > HELD_BACKOFF_MS_MAX:
            raise self._released(f"{self._spec.name} is called again", ms)
        yield Pause(ms)
        self._context.check()

    def _released(self, until: str, ms: int) -> BaseException:
        bundle = self._context.segment.released(AbortReason.SUSPENDED, charged=False, after_ms=ms)
        return self._context.suspended(until, bundle)
