"""Workflows as users hold them, and how a worker runs them: one segment in, one ending out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tallystick.app.api.submittable import P, R_co, Submittable
from tallystick.app.effects.side_by_side import let_finish, let_finish_async
from tallystick.app.replay.async_waits import watch
from tallystick.app.replay.context import Inside, WorkflowContext, current
from tallystick.app.running.leaving import Again, Cancelled, Unwind
from tallystick.app.values.errors import Carried, carried
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.limits import LEG2_ENTRIES_MAX, PAYLOAD_BYTES_MAX, check_text
from tallystick.core.retry import GiveUp, classify, decide_failure
from tallystick.core.verbs.holds import Hold
from tallystick.core.verbs.trimming import trims_now
from tallystick.engine.failure import Failure, alone, names_of
from tallystick.engine.trimming import trim_turns
from tallystick.errors import BadInput, LedgerCeiling, Misuse, PayloadSealed, TallyError, WrongColour
from tallystick.store.api import Bundle

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime
    from tallystick.engine.committer import LoopLane
    from tallystick.engine.segment import Segment
    from tallystick.watch.tracing import Tracing

E = TypeVar("E", bound=BaseException)


class _CallableWorkflow(Submittable[P, R_co]):
    """What sync and async workflows share: how they may be called, and how each ending is written."""

    def _is_child(self, *, from_async: bool) -> bool:
        """Tell whether this call is made by a workflow, whose child it then is."""
        context = current.get()
        if context is None:
            return False
        if isinstance(context, Inside):
            raise Misuse(f"{self.name} is a workflow and cannot be called inside a step or transaction")
        if context.is_async is not from_async:
            how = f"await {self.name}.child(...)" if context.is_async else f"{self.name}.child(...).result()"
            raise WrongColour(f"here write `{how}`")
        return True

    def _arguments(self, context: WorkflowContext) -> tuple[list[Any], dict[str, Any]]:
        """Return what the function is called with; where it cannot be any more, the job is held."""
        try:
            return self._spec.signature.decode(context.segment.claimed.payload)
        except BadInput as error:
            why = (
                f"{self.name} can no longer be called as this job was submitted: {error}. Put the function "
                "back, give the changed one a new version=, or mend it, and resume the job"
            )
            raise context.unwind(why, context.segment.held(Hold.MISMATCH, why)) from error

    def _ending(self, context: WorkflowContext, value: object) -> Bundle | None:
        """Return the ending of a function that returned."""
        if context.unwinding is not None:
            return context.swallowed()
        if context.left_out():
            return context.mismatch().bundle
        if (context.made or context.in_flight) and (error := context.left_behind()) is not None:
            return self._failing(context, error)
        text, _value = self._spec.signature.result.returned(value, self.name)
        return context.segment.returned(text)

    def _trims(self, context: WorkflowContext) -> bool:
        """Tell whether old turns of the job are to go before it leaves this one."""
        keep, segment = self._app.keep_turns, context.segment
        held = context.unwinding is None and not segment.lost
        return keep is not None and held and trims_now(segment.claimed.dimension, keep)

    def _trim(self, context: WorkflowContext) -> None:
        """Remove old turns; this waits for the store."""
        keep, runtime = self._app.keep_turns, self._app.runtime()
        assert keep is not None, "it trims now"
        trim_turns(runtime.store, runtime.committer, context.segment, keep)

    def _turning(self, context: WorkflowContext, again: Again) -> Bundle | None:
        """Return the ending of a function that asked to begin again."""
        if context.unwinding is not None:
            return context.unwinding.bundle
        if context.left_out():
            return context.mismatch().bundle
        try:
            if context.segment.claimed.dimension + 2 > LEG2_ENTRIES_MAX:
                raise LedgerCeiling(
                    f"job {context.segment.job_id} has called again() as often as can be counted"
                )
            payload = self._spec.signature.encode(*again.arguments)
            check_text("arguments of the next turn", payload, PAYLOAD_BYTES_MAX)
        except TallyError as error:
            return self._failing(context, error)
        return context.segment.turned(payload)

    def _failing(self, context: WorkflowContext, error: BaseException) -> Bundle | None:
        """Return the ending of a function that raised."""
        if context.unwinding is not None:
            return context.unwinding.bundle
        error = alone(error)
        segment = context.segment
        if isinstance(error, PayloadSealed):
            return segment.held(Hold.MISMATCH, str(error))
        fields, args = carried(error) if type(error) in self._spec.raises else Carried()
        failure = Failure.of(error, tries=segment.fence.attempt, fields=fields, args=args)
        policy = self._spec.policy
        tries = segment.claimed.charged + 1
        verdict = decide_failure(policy, tries, classify(policy, names_of(error)), key=segment.job_id)
        if isinstance(error, LedgerCeiling):
            return segment.failed(failure)
        if isinstance(verdict, GiveUp):
            # A function that is what it was does not raise before it has come as far as it came before.
            if context.left_out():
                return context.mismatch(also=f"it raised {failure.type}: {failure.message}").bundle
            return segment.failed(failure)
        return segment.released(AbortReason.ERROR, charged=True, after_ms=verdict.delay_ms, failure=failure)


class Workflow(_CallableWorkflow[P, R_co]):
    """A sync workflow: it runs in a thread of the worker."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call it: as a child that is waited for in a workflow, as the plain function elsewhere."""
        if self._is_child(from_async=False):
            return self.child(*args, **kwargs).result()
        value: R_co = self._spec.function(*args, **kwargs)
        return value

    @property
    def fn(self) -> Callable[P, R_co]:
        """Return the original function."""
        return self._spec.function

    def run(self, segment: Segment) -> Bundle | None:
        """Run one segment in this thread."""
        runtime = self._app.runtime()
        tracing = runtime.look_for_tracing()
        if tracing is None:
            return self._run(runtime, segment)
        bundle: Bundle | None = None
        with tracing.running(segment, lambda: bundle):
            bundle = self._run(runtime, segment)
        return bundle

    def _run(self, runtime: Runtime, segment: Segment) -> Bundle | None:
        context = WorkflowContext(runtime, segment)
        ending, before = self._left(context), context.unwinding
        if ending is not None:
            let_finish(context)
        return _ending_after(context, ending, before)

    def _left(self, context: WorkflowContext) -> Bundle | None:
        """Run the function, and return how the segment ends."""
        segment, token = context.segment, current.set(context)
        try:
            context.begin()
            args, kwargs = self._arguments(context)
            return self._ending(context, self._spec.function(*args, **kwargs))
        except Unwind as unwind:
            return unwind.bundle
        except Cancelled:
            return segment.cancelled_by_request()
        except Again as again:
            if self._trims(context):
                self._trim(context)
            return self._turning(context, again)
        except BaseException as error:  # noqa: BLE001 (whatever the user's function raises is what the job failed with)
            return self._failing(context, error)
        finally:
            current.reset(token)

    def run_async(self, segment: Segment, lane: LoopLane) -> NoReturn:  # noqa: ARG002 (as handlers have it)
        """Refuse: a sync workflow has no place on a loop."""
        raise Misuse(f"{self.name} is sync and cannot run job {segment.job_id} on a loop")


class AsyncWorkflow(_CallableWorkflow[P, R_co]):
    """An async workflow: it runs as a task on the worker's loop."""

    is_async = True

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Await it: as a child in a workflow, as the plain coroutine function elsewhere."""
        if self._is_child(from_async=True):
            return self.child(*args, **kwargs).joined()
        return self._spec.function(*args, **kwargs)  # type: ignore[no-any-return]  # as declared

    @property
    def fn(self) -> Callable[P, Coroutine[Any, Any, R_co]]:
        """Return the original function."""
        return self._spec.function

    def run(self, segment: Segment) -> Bundle | None:
        """Refuse: an async workflow runs on a loop."""
        raise Misuse(f"{self.name} is async and cannot run job {segment.job_id} in a thread")

    def run_async(self, segment: Segment, lane: LoopLane) -> Coroutine[Any, Any, Bundle | None]:
        """Run one segment in the task that awaits this; without tracing no layer comes between."""
        runtime = self._app.runtime()
        tracing = runtime.look_for_tracing()
        if tracing is None:
            return self._run_async(runtime, segment, lane)
        return self._run_traced(runtime, tracing, segment, lane)

    async def _run_traced(
        self, runtime: Runtime, tracing: Tracing, segment: Segment, lane: LoopLane
    ) -> Bundle | None:
        bundle: Bundle | None = None
        with tracing.running(segment, lambda: bundle):
            bundle = await self._run_async(runtime, segment, lane)
        return bundle

    async def _run_async(self, runtime: Runtime, segment: Segment, lane: LoopLane) -> Bundle | None:
        watch(lane.loop)
        context = WorkflowContext(runtime, segment, lane)
        ending, before = await self._left_async(context), context.unwinding
        if ending is not None:
            await let_finish_async(context)
        return _ending_after(context, ending, before)

    async def _left_async(self, context: WorkflowContext) -> Bundle | None:
        """Run the function, and return how the segment ends."""
        segment = context.segment
        current.set(context)
        try:
            context.begin()
            args, kwargs = self._arguments(context)
            value = await self._spec.function(*args, **kwargs)
            if context.in_flight:
                await asyncio.sleep(0)  # a task that was cancelled just now unwinds first
            if context.task_waits is not None:
                await context.task_waits.settled()
            return self._ending(context, value)
        except BaseException as error:  # noqa: BLE001 (whatever leaves the function ends the job, and not the loop)
            if isinstance(error, asyncio.CancelledError) and segment.lost:
                # The worker is stopping: give the lease back, so that another one can go on at once.
                if context.task_waits is not None:
                    await context.task_waits.settled()
                # What still runs in a thread must not run beside itself: then the job is left to its lease.
                return None if context.in_threads else _given_back(context)
            if _within(error, Again) is not None and self._trims(context):
                await asyncio.to_thread(self._trim, context)
            return self._ended_by(context, error)
        finally:
            # The context points to its segment: nothing of a job is left to the collector.
            segment.interrupt = None
            if context.task_waits is not None:
                context.task_waits.abandon()

    def _ended_by(self, context: WorkflowContext, error: BaseException) -> Bundle | None:
        """Return the ending of a function that was left by an exception, its own or one of ours.

        A task group raises what its tasks raised as one; among it may be what is ours.
        """
        if context.unwinding is not None:
            return context.unwinding.bundle
        if isinstance(error, Unwind):
            return error.bundle
        if _within(error, Cancelled) is not None:
            return context.segment.cancelled_by_request()
        if (again := _within(error, Again)) is not None:
            return self._turning(context, again)
        return self._failing(context, error)


def _ending_after(context: WorkflowContext, ending: Bundle | None, before: Unwind | None) -> Bundle | None:
    """Return how a segment ends behind its last call, which may have put the job away instead."""
    after = context.unwinding
    return ending if after is before or after is None else after.bundle


def _within(error: BaseException, kind: type[E]) -> E | None:
    """Return an error of this kind: the one that was raised, or the first in a group of them."""
    while isinstance(error, BaseExceptionGroup):
        part = error.subgroup(kind)
        if part is None:
            return None
        error = part.exceptions[0]
    return error if isinstance(error, kind) else None


def _given_back(context: WorkflowContext) -> Bundle | None:
    try:
        context.check()
    except Unwind as unwind:
        return unwind.bundle
    except TallyError:
        return None
    return None
