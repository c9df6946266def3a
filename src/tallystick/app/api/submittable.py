"""How a call of a workflow becomes a job: alone, as one of a list, as a child."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, Self, TypeVar

import msgspec

from tallystick.app.api.job import Job
from tallystick.app.api.retrying import Duration, When
from tallystick.app.api.sending import send_or_start
from tallystick.app.api.submitting import Submitted, submit_all, submit_all_async, submit_async
from tallystick.app.replay.async_drivers import drive_async
from tallystick.app.replay.call_drivers import NO_BODY, drive
from tallystick.app.replay.children import Child
from tallystick.app.replay.context import Inside, WorkflowContext, current, tenant_inside
from tallystick.app.replay.detached import submitted
from tallystick.app.scheduling.submit_options import (
    NEED_KEY,
    SubmitOptions,
    checked_delay,
    key_rule,
    read_tags,
    whole,
)
from tallystick.app.values.codec import Codec
from tallystick.app.values.signature import Signature
from tallystick.core.durations import duration_ms
from tallystick.core.limits import PAYLOAD_BYTES_MAX, check_text
from tallystick.core.queues.reusing import KeyRule
from tallystick.core.retry import RetryPolicy
from tallystick.core.schedules.timetable import delay_ms
from tallystick.defaults import TENANT
from tallystick.engine.submission import Submission, content_hash_of
from tallystick.errors import BadInput, IdempotencyConflict, Misuse, WrongColour
from tallystick.store.api import Transaction
from tallystick.watch.tracing import traceparent

if TYPE_CHECKING:
    from tallystick.app.api.tally import Tally

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSpec:
    """What was declared about a workflow."""

    name: str
    version: str
    function: Callable[..., Any]
    signature: Signature
    policy: RetryPolicy
    attempts_max: int
    raises: tuple[type[Exception], ...] = ()


class Submittable(Generic[P, R_co]):
    """What sync and async workflows share: a declaration, options, and the way to become a job."""

    is_async = False

    def __init__(self, app: Tally, spec: WorkflowSpec, options: SubmitOptions) -> None:
        self._app = app
        self._spec = spec
        self._options = options
        self._reserved = options.idempotent or options.idempotency_key is not None or options.rule is not None
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
    def options(self) -> SubmitOptions:
        """Return what its submissions are told."""
        return self._options

    @property
    def queue(self) -> str:
        """Return the queue that its jobs wait in unless told otherwise."""
        return self._options.queue

    @property
    def raises(self) -> tuple[type[Exception], ...]:
        """Return the errors that it declares, which are built again where its result is asked for."""
        return self._spec.raises

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Make a job of this call; it is durable when this returns.

        Without a key every call is a new job. `job.created` tells whether this call made it.
        """
        context = self._outer_context()
        if context is not None:
            self._check_detached(context, "submit", is_async=False)
            call = submitted(context, self.submission(args, kwargs), self._is_same(args, kwargs))
            job_id, created = drive(context, NO_BODY, call)
            return self._job(job_id, created=created)
        runtime, options = self._app.runtime(), self._options
        try:
            with runtime.submitting(self.name, options.queue):
                job_id, created = runtime.submit(self.submission(args, kwargs), options.within)
        except IdempotencyConflict as conflict:
            if not self._is_same(args, kwargs)(conflict):
                raise
            job_id, created = str(conflict.fields["job_id"]), False
        return self._job(job_id, created=created)

    def send_or_start(self, name: str, value: object, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Send a signal to the job that is active under this key, or start one that has it in its inbox.

        Either is one bundle, so the signal is not lost between a look and an end.
        """
        self._check_signalled(is_async=False)
        runtime, submission = self._app.runtime(), self._signalled(args, kwargs)
        with runtime.submitting(self.name, self._options.queue):
            job_id, created = send_or_start(runtime, submission, name, value)
        return self._job(job_id, created=created)

    async def send_or_start_aio(
        self, name: str, value: object, *args: P.args, **kwargs: P.kwargs
    ) -> Job[R_co]:
        """Send a signal or start a job without blocking the event loop; as `send_or_start` in all else."""
        self._check_signalled(is_async=True)
        runtime, submission = self._app.runtime(), self._signalled(args, kwargs)
        with runtime.submitting(self.name, self._options.queue):
            job_id, created = await asyncio.to_thread(send_or_start, runtime, submission, name, value)
        return self._job(job_id, created=created)

    def _check_signalled(self, *, is_async: bool) -> None:
        """Refuse a signal for a job without a key, inside a workflow, or within a transaction."""
        verb = "send_or_start_aio" if is_async else "send_or_start"
        if current.get() is not None:
            raise Misuse(f"{verb} is for the outside of workflows: inside one, send to a job by its id")
        if self._options.idempotency_key is None:
            raise BadInput(f"{verb} needs a key: write {self.name}.opts(idempotency_key=...).{verb}(...)")
        if self._options.within is not None:
            raise BadInput(f"{verb} is written by itself: leave within= out")

    def _signalled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Submission:
        submission = self.submission(args, kwargs)
        return msgspec.structs.replace(submission, rule=KeyRule("while_active"))

    def child(self, *args: P.args, **kwargs: P.kwargs) -> Child[R_co]:
        """Prepare this call as a child of the workflow that makes it; `gather` or `start` starts it."""
        if self._reserved:
            raise Misuse(
                f"a child of {self.name} takes no key: its place in its parent makes it one child, however "
                f"often that is replayed. Leave the key out, or write {self.name}.opts(idempotent=False)"
                ".child(...); for a job that others may have submitted under that key write "
                f"{self.name}.opts(detached=True, ...).submit(...)"
            )
        return Child(self, args, kwargs)

    async def submit_aio(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Make a job of this call without blocking the event loop."""
        self._check_within("submit")
        context = self._outer_context()
        if context is not None:
            self._check_detached(context, "submit_aio", is_async=True)
            call = submitted(context, self.submission(args, kwargs), self._is_same(args, kwargs))
            job_id, created = await drive_async(context, NO_BODY, call)
            return self._job(job_id, created=created)
        runtime, options = self._app.runtime(), self._options
        try:
            with runtime.submitting(self.name, options.queue):
                job_id, created = await submit_async(runtime, self.submission(args, kwargs), options.within)
        except IdempotencyConflict as conflict:
            if not await asyncio.to_thread(self._is_same(args, kwargs), conflict):
                raise
            job_id, created = str(conflict.fields["job_id"]), False
        return self._job(job_id, created=created)

    def _is_same(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[[IdempotencyConflict], bool]:
        """Return what tells whether a conflict is none: the earlier call only lacks parameters added since.

        Those must stand at their defaults.
        """

        def is_same(conflict: IdempotencyConflict) -> bool:
            row = self._app.runtime().reads.job(str(conflict.fields["job_id"]))
            if row is None:
                return False
            content = self._spec.signature.content_as_before(row.payload, args, kwargs)
            if content is None:
                return False
            return content_hash_of(self._like(content)) == str(conflict.fields["existing_hash"])

        return is_same

    def check(self) -> None:
        """Refuse a function whose annotations mean nothing at run time."""
        self._spec.signature.check()

    def _outer_context(self) -> WorkflowContext | None:
        """Return the workflow that this is called in, if any; in a step only a transaction may submit."""
        context = current.get()
        if not isinstance(context, Inside):
            return context
        if self._options.within is None:
            raise Misuse(f"inside a step or transaction submit with {self.name}.opts(within=db)")
        return None

    def _check_within(self, verb: str) -> None:
        """Refuse a transaction of a thread on a loop: it belongs to the thread that began it."""
        within = self._options.within
        # None is told first: a protocol is compared name by name, which would cost every submission.
        if within is not None and isinstance(within, Transaction):
            raise Misuse(f"a transaction belongs to its thread: with within= use {verb}, not {verb}_aio")

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

    def submit_many(self, calls: Iterable[Any], *, kwargs: bool = False) -> list[Job[R_co]]:
        """Make a job of each tuple or list of arguments, sharing flushes; all are durable when this returns.

        With `kwargs` each is a mapping that holds them by name. If one is refused the others stand, and the
        first refusal is raised.
        """
        self._check_list()
        runtime, options = self._app.runtime(), self._options
        with runtime.submitting(self.name, options.queue):
            made = submit_all(runtime, self._like(""), self._encoded(calls, by_name=kwargs), options.within)
        return self._jobs(made)

    async def submit_many_aio(self, calls: Iterable[Any], *, kwargs: bool = False) -> list[Job[R_co]]:
        """Make a job of each tuple, list or mapping of arguments without blocking the event loop."""
        self._check_within("submit_many")
        self._check_list()
        runtime, options = self._app.runtime(), self._options
        with runtime.submitting(self.name, options.queue):
            encoded = self._encoded(calls, by_name=kwargs)
            made = await submit_all_async(runtime, self._like(""), encoded, options.within)
        return self._jobs(made)

    def _check_list(self) -> None:
        """Refuse a list where it would be submitted again by every replay."""
        if self._options.rule is not None:
            raise BadInput(f"under a rule about its key submit each job of {self.name} by itself")
        if self._outer_context() is not None:
            raise Misuse(
                f"inside a workflow gather {self.name}.child(...) calls, or for jobs that outlive this one "
                f"submit them one by one with {self.name}.opts(detached=True)"
            )

    def _encoded(self, calls: Iterable[Any], *, by_name: bool) -> list[str]:
        """Return the payload of each call."""
        encode, for_hash = self._spec.signature.encode, self._reserved
        bound = [self._by_name(call) if by_name else (self._by_place(call), {}) for call in calls]
        return [check_text("payload", encode(*call, for_hash=for_hash), PAYLOAD_BYTES_MAX) for call in bound]

    def _by_place(self, call: object) -> tuple[Any, ...]:
        if not isinstance(call, tuple | list):
            raise BadInput(
                f"submit_many takes a tuple or list of arguments for each job of {self.name}, not a "
                f"{type(call).__name__}: write [(argument,), ...], or mappings with kwargs=True"
            )
        return tuple(call)

    def _by_name(self, call: object) -> tuple[tuple[()], dict[str, Any]]:
        if not isinstance(call, Mapping):
            raise BadInput(
                f"with kwargs=True submit_many takes a mapping of arguments for each job of {self.name}, "
                f"not a {type(call).__name__}"
            )
        return (), dict(call)

    def opts(
        self,
        *,
        idempotency_key: str | None = None,
        idempotent: bool | None = None,
        within: object = None,
        queue: str | None = None,
        priority: int | None = None,
        delay: When | None = None,
        deadline: Duration | None = None,
        tags: Iterable[str] | None = None,
        detached: bool | None = None,
        tenant: str | None = None,
        limit_key: str | None = None,
        reuse: Literal["never", "after_end", "after_success"] | None = None,
        unique: Literal["while_active"] | None = None,
        debounce: Duration | None = None,
        max_wait: Duration | None = None,
        replace: bool = False,
    ) -> Self:
        """Return this workflow with options for its submissions.

        `delay` is a duration from the submission on, or the instant before which the job does not begin.
        `tenant` says whose jobs they are; inside a workflow they belong to the tenant of its job.
        Jobs of a queue with one `limit_key` share the limits that the queue has for each key.
        `reuse` says when a key may make a new job: never, after its job ended, or only after it succeeded.
        With `unique="while_active"` a job that is active under the key, or with the same arguments, is the
        answer. With `debounce` the newest arguments win: the job begins when none was submitted for so long,
        at the latest after `max_wait`. `replace` gives other arguments to a job that was never claimed. A
        `detached` child goes on when its parent has ended, and may be submitted inside a workflow. `within`
        is what `app.transaction()` or a tx step gives; on PostgreSQL also a psycopg connection, or an
        SQLAlchemy session or connection on one, and with `submit_aio` an async one.
        """
        old, rule = self._options, key_rule(reuse, unique, debounce, max_wait, replaces=replace)
        options = changed(
            old,
            idempotency_key=old.idempotency_key if idempotency_key is None else idempotency_key,
            idempotent=old.idempotent if idempotent is None else idempotent,
            within=old.within if within is None else within,
            queue=old.queue if queue is None else queue,
            priority=old.priority if priority is None else whole(priority),
            delay=old.delay if delay is None else checked_delay(delay),
            deadline_ms=old.deadline_ms if deadline is None else duration_ms(deadline),
            tags=old.tags if tags is None else read_tags(tags),
            detached=old.detached if detached is None else detached,
            tenant=old.tenant if tenant is None else tenant,
            limit_key=old.limit_key if limit_key is None else limit_key,
            rule=old.rule if rule is None else rule,
        )
        if options.rule is not None and options.rule.reuse in NEED_KEY and options.idempotency_key is None:
            raise BadInput(f"{options.rule.reuse} needs a key: write .opts(idempotency_key=..., ...)")
        return type(self)(self._app, self._spec, options)

    def result_codec(self) -> Codec:
        """Return how its result is read."""
        return self._spec.signature.result

    def submission(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Submission:
        """Encode a call, as it becomes a job."""
        return self._like(self._spec.signature.encode(args, kwargs, for_hash=self._reserved))

    def _like(self, payload: str) -> Submission:
        options, runtime = self._options, self._app.runtime()
        return Submission(
            handler=self.name,
            version=self.version,
            payload=payload,
            queue=options.queue,
            priority=options.priority,
            delay_ms=self._delay_ms(options, runtime.clock.wall_ms()),
            deadline_ms=options.deadline_ms,
            attempts_max=self._spec.attempts_max,
            idempotency_key=options.idempotency_key,
            by_content=options.idempotent or (options.rule is not None and options.idempotency_key is None),
            tags=options.tags,
            limit_key=options.limit_key,
            rule=options.rule,
            detached=options.detached,
            hooks=self._app.hook_names,
            tenant_id=self._tenant(),
            traceparent=None if runtime.tracing is None else traceparent(),
        )

    def _delay_ms(self, options: SubmitOptions, now: int) -> int:
        if options.rule is not None and options.rule.quiet_ms:
            return options.rule.quiet_ms
        return delay_ms(options.delay, now) if options.delay else 0

    def _tenant(self) -> str:
        """Return whose the job will be: that of the workflow in which it is submitted has the say."""
        inside = tenant_inside()
        wanted = self._options.tenant
        if inside is None:
            return TENANT if wanted is None else wanted
        if wanted not in (None, inside):
            raise BadInput(f"a job of the tenant {inside} cannot start one of the tenant {wanted}")
        return inside

    def _job(self, job_id: str, *, created: bool) -> Job[R_co]:
        return Job(self._app.runtime, job_id, self.result_codec, created, self.raises)

    def _jobs(self, made: Iterable[Submitted]) -> list[Job[R_co]]:
        runtime, codec, raises = self._app.runtime, self.result_codec, self.raises
        return [Job(runtime, job_id, codec, created, raises) for job_id, created in made]
