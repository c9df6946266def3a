"""Workflows as users hold them, and how a worker runs them: one segment in, one ending out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

from tallystick.app.children import Child
from tallystick.app.context import Again, Cancelled, Inside, Unwind, WorkflowContext, current
from tallystick.app.detached import submitted
from tallystick.app.driving import drive, drive_async
from tallystick.app.job import Job
from tallystick.app.signature import Signature
from tallystick.app.tasks import watch
from tallystick.app.values import Codec
from tallystick.app.writes import NO_BODY
from tallystick.core.derive import AbortReason
from tallystick.core.durations import duration_ms
from tallystick.core.limits import LEG2_ENTRIES_MAX, RESULT_BYTES_MAX, check_size
from tallystick.core.retry import GiveUp, RetryPolicy, classify, decide_failure
from tallystick.engine.failure import Failure, names_of
from tallystick.engine.submission import PRIORITY_DEFAULT, Submission, check_payload
from tallystick.errors import LedgerCeiling, Misuse, TallyError, WrongColour
from tallystick.store.api import Bundle

if TYPE_CHECKING:
    from tallystick.app.tally import Tally
    from tallystick.engine.segment import Segment

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
Duration = str | float | timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSpec:
    """What was declared about a workflow."""

    name: str
    version: str
    function: Callable[..., Any]
    signature: Signature
    policy: RetryPolicy
    attempts_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """What one submission can be told."""

    queue: str = "default"
    priority: int = PRIORITY_DEFAULT
    delay_ms: int = 0
    deadline_ms: int | None = None
    idempotency_key: str | None = None
    idempotent: bool = False
    within: object = None
    tags: tuple[str, ...] = ()
    detached: bool = False


class _Submittable(Generic[P, R_co]):
    """What sync and async workflows share: a declaration, options, and the way to become a job."""

    is_async = False

    def __init__(self, app: Tally, spec: WorkflowSpec, options: SubmitOptions) -> None:
        self._app = app
        self._spec = spec
        self._options = options
        self.name = spec.name
        self.version = spec.version
        self.__name__ = spec.name
        self.__doc__ = spec.function.__doc__
        self.__wrapped__ = spec.function

    @property
    def app(self) -> Tally:
        """Return the Tally that declared it."""
        return self._app

    @property
    def queue(self) -> str:
        """Return the queue that its jobs wait in unless told otherwise."""
        return self._options.queue

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Make a job of this call; it is durable when this returns.

        Without a key every call is a new job. `job.created` tells whether this call made it.
        """
        if isinstance(current.get(), Inside) and self._options.within is None:
            raise Misuse(f"inside a step or transaction submit with {self.name}.opts(within=db)")
        context = current.get()
        if isinstance(context, WorkflowContext):
            self._check_detached(context, "submit", is_async=False)
            job_id, created = drive(context, NO_BODY, submitted(context, self.submission(args, kwargs)))
            return self._job(job_id, created=created)
        runtime = self._app.runtime()
        job_id, created = runtime.submit(self.submission(args, kwargs), self._options.within)
        return self._job(job_id, created=created)

    def child(self, *args: P.args, **kwargs: P.kwargs) -> Child[R_co]:
        """Prepare this call as a child of the workflow that makes it; `gather` starts it."""
        return Child(self, args, kwargs)

    async def submit_aio(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Make a job of this call without blocking the event loop."""
        context = current.get()
        if isinstance(context, Inside):
            raise Misuse(f"inside a step or transaction submit with {self.name}.opts(within=db)")
        if context is not None:
            self._check_detached(context, "submit_aio", is_async=True)
            call = submitted(context, self.submission(args, kwargs))
            job_id, created = await drive_async(context, NO_BODY, call)
            return self._job(job_id, created=created)
        runtime = self._app.runtime()
        primitive = runtime.prepare(self.submission(args, kwargs))
        try:
            outcome = await runtime.lane().call((primitive,))
        except BaseException:
            runtime.give_up(primitive)
            raise
        job_id, created = runtime.settle(primitive, outcome)
        return self._job(job_id, created=created)

    def _check_detached(self, context: WorkflowContext, verb: str, *, is_async: bool) -> None:
        """Refuse a submission in a workflow that would repeat, or is of the wrong colour."""
        if not self._options.detached:
            raise Misuse(
                f"inside a workflow write {self.name}.child(...) and gather it, or for a job that outlives "
                f"this one {self.name}.opts(detached=True).{verb}(...)"
            )
        if context.is_async is not is_async:
            other = "await ...submit_aio(...)" if context.is_async else "submit(...)"
            raise WrongColour(f"this workflow is {'async' if context.is_async else 'sync'}: use {other}")

    def submit_many(self, calls: Iterable[tuple[Any, ...]]) -> list[Job[R_co]]:
        """Make a job of each tuple of arguments, sharing flushes; all are durable when this returns.

        If one is refused the others stand, and the first refusal is raised.
        """
        runtime, codec = self._app.runtime, self.result_codec
        encode = self._spec.signature.encode
        payloads = [check_payload(encode(args, {})) for args in calls]
        jobs: list[Job[R_co]] = []
        for answer in runtime().submit_many(self._like(""), payloads):
            if isinstance(answer, BaseException):
                raise answer
            jobs.append(Job(runtime, answer[0], codec, created=answer[1]))
        return jobs

    def opts(
        self,
        *,
        idempotency_key: str | None = None,
        idempotent: bool | None = None,
        within: object = None,
        queue: str | None = None,
        priority: int | None = None,
        delay: Duration | None = None,
        deadline: Duration | None = None,
        tags: Iterable[str] | None = None,
        detached: bool | None = None,
    ) -> Self:
        """Return this workflow with options for its submissions.

        A `detached` child goes on when its parent has ended, and may be submitted inside a workflow.
        `within` is what `app.transaction()` or a tx step gives; on PostgreSQL also a psycopg connection, or
        an SQLAlchemy session or connection on one.
        """
        old = self._options
        options = replace(
            old,
            idempotency_key=old.idempotency_key if idempotency_key is None else idempotency_key,
            idempotent=old.idempotent if idempotent is None else idempotent,
            within=old.within if within is None else within,
            queue=old.queue if queue is None else queue,
            priority=old.priority if priority is None else priority,
            delay_ms=old.delay_ms if delay is None else duration_ms(delay),
            deadline_ms=old.deadline_ms if deadline is None else duration_ms(deadline),
            tags=old.tags if tags is None else tuple(dict.fromkeys(tags)),
            detached=old.detached if detached is None else detached,
        )
        return type(self)(self._app, self._spec, options)

    def result_codec(self) -> Codec:
        """Return how its result is read."""
        return self._spec.signature.result

    def submission(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Submission:
        """Encode a call, as it becomes a job."""
        return self._like(self._spec.signature.encode(args, kwargs))

    def _like(self, payload: str) -> Submission:
        options = self._options
        return Submission(
            handler=self.name,
            version=self.version,
            payload=payload,
            queue=options.queue,
            priority=options.priority,
            delay_ms=options.delay_ms,
            deadline_ms=options.deadline_ms,
            attempts_max=self._spec.attempts_max,
            idempotency_key=options.idempotency_key,
            by_content=options.idempotent,
            tags=options.tags,
            detached=options.detached,
        )

    def _job(self, job_id: str, *, created: bool) -> Job[R_co]:
        return Job(self._app.runtime, job_id, self.result_codec, created=created)

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

    def _ending(self, context: WorkflowContext, value: object) -> Bundle | None:
        """Return the ending of a function that returned."""
        if context.unwinding is not None:
            return context.swallowed()
        if context.segment.behind:
            return context.mismatch("", 0).bundle
        text, _value = self._spec.signature.result.round_trip(value, f"what {self.name} returned")
        check_size(f"result of {self.name}", len(text), RESULT_BYTES_MAX)
        return context.segment.returned(text)

    def _turning(self, context: WorkflowContext, again: Again) -> Bundle | None:
        """Return the ending of a function that asked to begin again."""
        if context.unwinding is not None:
            return context.unwinding.bundle
        try:
            if context.segment.claimed.dimension + 2 > LEG2_ENTRIES_MAX:
                raise LedgerCeiling(
                    f"job {context.segment.job_id} has turned as often as its ledger can count"
                )
            payload = self._spec.signature.encode(*again.arguments)
            check_size("arguments of the next turn", len(payload), RESULT_BYTES_MAX)
        except TallyError as error:
            return self._failing(context, error)
        return context.segment.turned(payload)

    def _failing(self, context: WorkflowContext, error: Exception) -> Bundle | None:
        """Return the ending of a function that raised."""
        if context.unwinding is not None:
            return context.unwinding.bundle
        segment = context.segment
        failure = Failure.of(error, tries=segment.fence.attempt)
        policy = self._spec.policy
        tries = segment.claimed.charged + 1
        verdict = decide_failure(policy, tries, classify(policy, names_of(error)), key=segment.job_id)
        if isinstance(verdict, GiveUp):
            return segment.failed(failure)
        ready_at = context.runtime.clock.wall_ms() + verdict.delay_ms
        return segment.released(AbortReason.ERROR, charged=True, ready_at=ready_at, failure=failure)


class Workflow(_Submittable[P, R_co]):
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
        context = WorkflowContext(self._app.runtime(), segment, is_async=False)
        token = current.set(context)
        try:
            context.check()
            args, kwargs = self._spec.signature.decode(segment.claimed.payload)
            return self._ending(context, self._spec.function(*args, **kwargs))
        except Unwind as unwind:
            return unwind.bundle
        except Cancelled:
            return segment.cancelled_by_request()
        except Again as again:
            return self._turning(context, again)
        except Exception as error:  # noqa: BLE001 (whatever the user's function raises is what the job failed with)
            return self._failing(context, error)
        finally:
            current.reset(token)

    async def run_async(self, segment: Segment) -> Bundle | None:
        """Refuse: a sync workflow has no place on a loop."""
        raise Misuse(f"{self.name} is sync and cannot run job {segment.job_id} on a loop")


class AsyncWorkflow(_Submittable[P, R_co]):
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

    async def run_async(self, segment: Segment) -> Bundle | None:
        """Run one segment in this task."""
        watch(asyncio.get_running_loop())
        context = WorkflowContext(self._app.runtime(), segment, is_async=True)
        current.set(context)
        try:
            context.check()
            args, kwargs = self._spec.signature.decode(segment.claimed.payload)
            value = await self._spec.function(*args, **kwargs)
            if context.parking is not None:
                await context.parking.settled()
            return self._ending(context, value)
        except asyncio.CancelledError:
            # The worker is stopping: give the lease back, so that another one can go on at once.
            segment.lost = True
            if context.parking is not None:
                await context.parking.settled()
            return _given_back(context)
        except BaseException as error:  # noqa: BLE001 (what is neither ours nor an error of the user's goes on)
            return self._ended_by(context, error)
        finally:
            if context.parking is not None:
                context.parking.abandon()

    def _ended_by(self, context: WorkflowContext, error: BaseException) -> Bundle | None:
        """Return the ending of a function that was left by an exception, its own or one of ours.

        A task group raises what its tasks raised as one; among it may be what is ours.
        """
        if context.unwinding is not None:
            return context.unwinding.bundle
        if isinstance(error, Again):
            return self._turning(context, error)
        if isinstance(error, Cancelled) or (
            isinstance(error, BaseExceptionGroup) and error.subgroup(Cancelled) is not None
        ):
            return context.segment.cancelled_by_request()
        if isinstance(error, Exception):
            return self._failing(context, error)
        raise error


def _given_back(context: WorkflowContext) -> Bundle | None:
    try:
        context.check()
    except Unwind as unwind:
        return unwind.bundle
    except TallyError:
        return None
    return None
