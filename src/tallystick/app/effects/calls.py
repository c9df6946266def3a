"""One call of an effect, written once for both colours: the intent, the call, and what came of it.

Nothing is guessed. A call that returned has happened; one that raised `NotDone`, or an error that was
declared as safe, has not; an error of `raises=` is the provider's refusal. Whatever else ends a call leaves
it in doubt. A call is under way as long as its thread lives, which cannot be ended when its time is over.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any, Final, TypeAlias

from tallystick.app.effects.answers import Key
from tallystick.app.effects.call_threads import CallThread
from tallystick.app.effects.rules import EffectSpec
from tallystick.app.effects.side_by_side import effect_calls_of
from tallystick.app.replay.async_drivers import ask_async
from tallystick.app.replay.calls import (
    Body,
    Call,
    InTurn,
    Pause,
    StepSpec,
    Underway,
    Until,
    Write,
    error_of,
    replayed,
)
from tallystick.app.replay.context import WorkflowContext
from tallystick.app.replay.waits import ask
from tallystick.app.running.daemon_threads import ThreadAnswer
from tallystick.app.running.leaving import Unwind
from tallystick.app.running.user_exceptions import OURS, Escaped
from tallystick.app.values.errors import Carried, carried
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.effects.requests import (
    CallEffect,
    Differs,
    DoubtEffect,
    EndEffect,
    Granted,
    HeldInDoubt,
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
from tallystick.core.verbs.holds import Hold
from tallystick.engine.failure import Failure
from tallystick.engine.job_log import JOB_LOG
from tallystick.engine.observe import JobHeld
from tallystick.engine.pending_writes import Called
from tallystick.errors import InvariantBroken, NotDone, ParallelCalls, StaleLease, StepTimeout, StoreMisused
from tallystick.store.api import NewLease, Outcome, Record, Wait

_log = logging.getLogger(JOB_LOG)

TAKE: Final = object()
"""What a call returns instead of a value: that is in the inbox of the job."""

RENEWED_MS: Final = CALL_SLACK_MS // 2
"""For how long at least a call that outlives its time is waited for before its lease is renewed."""

_Said: TypeAlias = EndEffect | RestEffect | DoubtEffect


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
        for stir in context.stirs:
            stir()


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
        self._calls = 0
        self._beside = effect_calls_of(context)

    def made(self) -> Call:
        """Ask for the right to call until it is given, call, and say what came of it."""
        try:
            while True:
                while (parked := self._beside.begin(self)) is not None:
                    yield Until(parked)
                    self._context.check()
                self._context.check()
                done, value = yield from self._turn()
                if done:
                    return value
        finally:
            self._beside.end(self)

    def _turn(self) -> Call:
        """Ask for the right once and use it: (True, value), or (False, None) for another turn."""
        context, spec = self._context, self._spec
        began = context.runtime.clock.boot_ms()
        came = yield Write((*context.segment.decided(), self._asks(beside=True)))
        if came == Instead.BESIDE:
            yield from self._alone()
            try:
                began = context.runtime.clock.boot_ms()
                came = yield Write((*context.segment.decided(), self._asks(beside=False)))
                if came == Instead.WAIT or isinstance(came, HeldInDoubt):
                    raise self._suspended(came)
            finally:
                self._beside.parked()
        context.heed(came)
        match came:
            case Granted(calls):
                context.segment.open_effects += not self._last
                self._last, self._calls = self._lease_id, calls
                if context.runtime.clock.boot_ms() - began > CALL_SLACK_MS:
                    return False, None
                return (yield from self._called())
            case Known(result, error):
                return True, replayed(spec, _record(spec, self._occurrence, result, error))
            case Later(ms):
                return (yield from self._release(ms))
            case Instead.TAKE:
                context.calls.remove((spec.name, self._occurrence))
                return True, TAKE
            case Differs(was):
                also = f"the effect {spec.name}#{self._occurrence} was called under the key {was}"
                raise context.mismatch((spec.name, self._occurrence), also=also)
            case _:
                raise InvariantBroken(f"an effect was answered with {came!r}")

    def _alone(self, due_at: int | None = None) -> Call:
        """Wait until no other call of the segment goes on; from then on none begins until this is over."""
        place = (self._spec.name, self._occurrence)
        while (other := self._beside.leave(self, place, due_at)) is not None:
            yield Until(other)
            self._context.check()

    def _asks(self, *, beside: bool) -> CallEffect:
        self._lease_id = self._context.runtime.ids.token()
        return self._request(self._last, asked=self._context.cancel_raised, beside=beside)

    def _request(self, last: str, *, asked: bool, beside: bool) -> CallEffect:
        runtime, segment = self._context.runtime, self._context.segment
        lease = NewLease(self._lease_id, segment.owner, self._effect.rules.lease_ms)
        about = (self._place, self._intent, lease, runtime.clock.wall_ms())
        return CallEffect(segment.fence, segment.claimed.chain, *about, asked, last, beside)

    def _called(self) -> Call:
        """Call the function and write what came of it: (True, value), or (False, None) for another call."""
        spec, returned = self._spec, False
        try:
            with self._context.span("effect", spec.name, self._occurrence):
                value = yield from self._body()
            returned = True
            text, value = self._codec.returned(value, spec.name)
        except Exception as error:  # noqa: BLE001 (whatever the function raises says something of what happened)
            raised = error.error if isinstance(error, Escaped) else error
            return (yield from self._failed(raised, returned=returned))
        yield from self._ended(self._end(Came.HAPPENED, text, None))
        return True, value

    def _body(self) -> Call:
        """Run the function; while its thread lives the call is under way, and keeps its lease."""
        thread = CallThread(self._came_late)

        def begun(running: Future[ThreadAnswer[Any]]) -> None:
            in_threads = self._context.in_threads
            in_threads.add(running)
            running.add_done_callback(in_threads.discard)
            thread.begun(running)

        given = (Key(self._intent.key[2]), *self._args)
        try:
            value = yield Body(self._occurrence, given, self._kwargs, begun)
            if type(value) is Underway:
                took = f"takes longer than {value.ms / 1000:g} s and cannot be ended; it is waited for"
                self._warn("effect.slow", took)
            while type(value) is Underway:
                yield from self._renew()
                value = yield value._replace(ms=max(self._effect.rules.timeout_ms, RENEWED_MS))
        except BaseException as error:
            if not isinstance(error, Exception):
                thread.leave()  # the segment is over before its function
            raise
        return value

    def _renew(self) -> Call:
        """Renew the right to the call that is under way, also in a job that was asked to end.

        The lease keeps its name, so it does not matter whether an answer of the store was lost. If the job is
        held or the store away, the call goes on under the lease of the job; it is left when that is lost.
        """
        context = self._context
        try:
            came = yield Write((self._request(self._lease_id, asked=True, beside=True),))
        except Unwind as unwind:
            if unwind.bundle is None:
                raise
            return
        if came == Instead.BESIDE:
            yield from self._alone()
            try:
                came = yield Write((self._request(self._lease_id, asked=True, beside=False),))
                raise self._suspended(came)
            finally:
                self._beside.parked()
        if not isinstance(came, Granted | Hold):
            raise context.refused(InvariantBroken(f"a call that is under way was answered with {came!r}"))

    def _failed(self, error: BaseException, *, returned: bool) -> Call:
        """Write what an error says, then raise it, wait for the next call, or leave the function."""
        spec, failure = self._spec, self._failure(error)
        said = self._said_by(error, failure, returned=returned)
        if isinstance(said, DoubtEffect):
            yield from self._in_doubt(said)
        if isinstance(said, EndEffect):
            yield from self._ended(said)
            raise error_of(spec, self._occurrence, failure) from error
        assert isinstance(said, RestEffect), "a segment does not go on whose effect is in doubt"
        tried = self._context.segment.step_tried(spec.name, self._occurrence, failure, said.delay_ms)
        yield Write((*tried, said))
        self._beside.end(self)
        yield from self._wait(said.delay_ms)
        return False, None

    def _failure(self, error: BaseException) -> Failure:
        fields, args = carried(error) if type(error) in self._spec.raises else Carried()
        return Failure.of(error, tries=self._calls, fields=fields, args=args)

    def _said_by(self, error: BaseException, failure: Failure, *, returned: bool) -> _Said:
        """Return what an error says of what happened: nothing did, it was refused, or that is unknown.

        No declaration is about what the function did not raise itself: that its time was up, or, once it has
        `returned`, that its result cannot be kept.
        """
        segment, spec = self._context.segment, self._spec
        if returned or isinstance(error, StepTimeout):
            return self._doubt_of(failure)
        if isinstance(error, (NotDone, *self._effect.safe_errors)):
            verdict = decide_failure(spec.policy, self._calls, ErrorClass.RETRYABLE, key=segment.job_id)
            if isinstance(verdict, GiveUp):
                return self._end(Came.NOT_DONE, None, failure.text())
            return RestEffect(segment.fence, self._place, self._lease_id, verdict.delay_ms)
        if isinstance(error, spec.raises):
            return self._end(Came.REFUSED, None, failure.text())
        return self._doubt_of(failure)

    def _doubt_of(self, failure: Failure) -> DoubtEffect:
        segment = self._context.segment
        why = clip_text(f"{failure.type}: {failure.message}", ERROR_TEXT_BYTES_MAX)
        about = (self._place, self._lease_id, why, self._context.runtime.clock.wall_ms())
        return DoubtEffect(segment.fence, segment.claimed.chain, *about)

    def _in_doubt(self, doubt: DoubtEffect | EndEffect) -> Call:
        """Say that the outcome of the effect is unknown, and leave the function until it is known."""
        others, told = self._beside.doubt(self), False
        try:
            for over in others:
                yield Until(over)
            at, told = self._context.runtime.clock.wall_ms(), True
            came = yield Write((*self._context.segment.decided(), doubt._replace(at=at)))
            raise self._suspended(came)
        finally:
            self._beside.parked()
            if not told:  # another call in doubt has ended the segment
                self._keep(doubt)

    def _end(self, outcome: Came, result: str | None, error: str | None) -> EndEffect:
        segment, at = self._context.segment, self._context.runtime.clock.wall_ms()
        about = (self._place, self._lease_id, outcome, result, error, at)
        return EndEffect(segment.fence, segment.claimed.chain, *about)

    def _ended(self, end: EndEffect) -> Call:
        segment = self._context.segment
        came = yield Write((*segment.decided(), end._replace(beside=True)))
        if came == Instead.BESIDE:
            yield from self._in_doubt(end)
        segment.open_effects -= 1

    def _came_late(self, answer: ThreadAnswer[Any]) -> None:
        """Write what a call says that its segment has left: once that is over it is kept for people."""
        if isinstance(answer.raised, OURS):
            return
        try:
            text, _value = self._codec.returned(answer.value(), self._spec.name)
            said: _Said = self._end(Came.HAPPENED, text, None)
        except Exception as error:  # noqa: BLE001 (as in `_called`)
            raised = error.error if isinstance(error, Escaped) else error
            said = self._said_by(raised, self._failure(raised), returned=answer.raised is None)
        self._keep(said)

    def _keep(self, said: _Said) -> None:
        """Write what a call says whose segment does not."""
        try:
            self._context.runtime.committer.put([Called((said,), self._was_kept)])
        except StoreMisused as error:  # the Tally is closed
            self._was_kept(error)

    def _was_kept(self, outcome: Outcome | BaseException) -> None:
        if isinstance(outcome, StaleLease):
            self._warn("effect.late", "has ended too late; tally resolve shows what it said")
        elif isinstance(outcome, BaseException):
            self._warn("effect.late", f"has ended too late, and what it said could not be kept: {outcome}")

    def _warn(self, action: str, what: str) -> None:
        job_id, (_tenant, effect, key) = self._context.segment.job_id, self._intent.key
        about = {"action": action, "job_id": job_id, "effect": effect, "key": key}
        _log.warning("job %s: the call of %s under the key %s %s", job_id, effect, key, what, extra=about)

    def _wait(self, ms: int) -> Call:
        if ms > HELD_BACKOFF_MS_MAX:
            yield from self._release(ms)
        yield Pause(ms)
        self._context.check()

    def _release(self, ms: int) -> Call:
        """Leave the function for a while, as soon as no call beside this one goes on."""
        context, clock = self._context, self._context.runtime.clock
        due_at = clock.boot_ms() + ms
        yield from self._alone(due_at)
        try:
            after_ms = max(0, self._beside.rests_until(due_at) - clock.boot_ms())
            bundle = context.segment.released(AbortReason.SUSPENDED, charged=False, after_ms=after_ms)
            raise context.suspended(f"{self._spec.name} is called again", bundle)
        finally:
            self._beside.parked()

    def _suspended(self, came: object) -> Unwind:
        """Return what leaves a function whose segment ended with the last bundle, to which this came."""
        context, segment = self._context, self._context.segment
        if isinstance(came, HeldInDoubt):
            held = JobHeld(segment.fence, segment.claimed.handler, Hold.IN_DOUBT, came.why)
            context.runtime.observers.tell(held)
        return context.suspended(f"it is known what came of {self._spec.name}#{self._occurrence}")
