"""A job from the outside: ask for its result, its state, its history."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from tallystick.app.api.control import (
    DEFAULT_WHY,
    Guard,
    Wish,
    cancelling,
    forking,
    guard_of,
    pausing,
    resuming,
    retrying,
)
from tallystick.app.api.results import EndedJob, not_there
from tallystick.app.api.retrying import Duration
from tallystick.app.api.sending import deliver_one, deliver_one_async, signals
from tallystick.app.asking.history import Event
from tallystick.app.asking.sentence import Why
from tallystick.app.asking.watching import shown, watch, watch_aio
from tallystick.app.asking.why import explain
from tallystick.app.effects.resolving import Resolving
from tallystick.app.replay.context import refuse_inside
from tallystick.app.running.twins import twin_of
from tallystick.app.values.codec import Codec
from tallystick.app.values.errors import rebuilt
from tallystick.core.audit.job_view import JobView
from tallystick.core.durations import duration_ms
from tallystick.core.lifecycles import JobState
from tallystick.core.limits import PAGE_ROWS_MAX, check_name
from tallystick.core.verbs.holds import Held, Resumed
from tallystick.defaults import CANCEL_GRACE
from tallystick.engine.failure import Failure
from tallystick.engine.view import view_of
from tallystick.errors import JobCancelled, JobFailed, TallyError
from tallystick.store.api import Delivered

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime
    from tallystick.store.api import Forked, JobRow

# A call that waits no longer than this asks by itself: a look for all waiting calls may come later.
_LOOKED_FOR_MS: Final = 100


def _of_any_type() -> Codec:
    return Codec(Any)


R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Job(Resolving, msgspec.Struct, Generic[R_co], eq=False, gc=False):
    """One submission of a workflow; nothing is read before it is asked for.

    Nothing that it points to points back, so the collector need not walk the thousands that a list makes.
    """

    _runtime: Callable[[], Runtime]
    id: str
    _codec: Callable[[], Codec]
    created: bool
    _raises: tuple[type[Exception], ...] = ()
    # Whose job it must be for what is said to it; None: any tenant's.
    _tenant: str | None = None
    # What refuses it otherwise.
    _guard: Guard = ()

    def __repr__(self) -> str:
        return f"<Job {self.id}>"

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Job) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def only_of(self, tenant: str | None) -> Job[R_co]:
        """Return the same job; if it is another tenant's, whatever is to change it is refused: `NotFound`."""
        guard = guard_of(self.id, tenant)
        return Job(self._runtime, self.id, self._codec, self.created, self._raises, tenant, guard)

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for the end and return the result, or raise `JobFailed`, `JobCancelled` or `TimeoutError`.

        An error that the workflow declares with `raises=` is raised as what it was.

        A job that was removed meanwhile, or whose transaction is not durable, is `NotFound`.
        """
        refuse_inside(f"wait for job {self.id}")
        runtime = self._runtime()
        results = runtime.results
        ended = results.recent(self.id)
        if ended is not None:
            return self._settle(ended)
        runtime.store.check_may_wait()
        timeout_ms = None if timeout is None else duration_ms(timeout)
        if (ended := self._looked_up(timeout_ms)) is not None:
            return self._settle(ended)
        done = threading.Event()
        answer: list[EndedJob | TallyError] = []

        def listener(ended: EndedJob | TallyError) -> None:
            answer.append(ended)
            done.set()

        results.listen(self.id, listener)
        if not done.wait(None if timeout_ms is None else timeout_ms / 1000):
            results.forget(self.id, listener)
            raise TimeoutError(f"job {self.id} has not ended within {timeout}")
        return self._settle(answer[0])

    async def result_aio(self, timeout: Duration | None = None) -> R_co:  # noqa: ASYNC109 (as `result` has it)
        """Wait for the end without blocking the event loop; as `result` in all else."""
        seconds = None if timeout is None else duration_ms(timeout) / 1000
        try:
            return await asyncio.wait_for(self._ended(), seconds)
        except TimeoutError:
            raise TimeoutError(f"job {self.id} has not ended within {timeout}") from None

    def __await__(self) -> Generator[Any, Any, R_co]:
        """Wait for the end without blocking the event loop."""
        return self._ended().__await__()

    def send(
        self,
        name: str,
        value: object = None,
        *,
        id: str | None = None,  # noqa: A002 (the word that users know)
        by: str = "",
    ) -> Delivered:
        """Send a signal; durable when this returns. With an `id` a repeated sending is the same signal."""
        refuse_inside(f"send to job {self.id}")
        runtime = self._runtime()
        (signal,) = signals(runtime, [self.id], name, value, id)
        return deliver_one(runtime, signal, by, self._guard)

    async def send_aio(
        self,
        name: str,
        value: object = None,
        *,
        id: str | None = None,  # noqa: A002 (the word that users know)
        by: str = "",
    ) -> Delivered:
        """Send a signal without blocking the event loop."""
        refuse_inside(f"send to job {self.id}")
        runtime = self._runtime()
        (signal,) = signals(runtime, [self.id], name, value, id)
        return await deliver_one_async(runtime, signal, by, self._guard)

    def cancel(self, *, grace: Duration = CANCEL_GRACE, force: bool = False, by: str = "") -> JobState:
        """Ask the job to end, and return the state it is in now.

        A job that does not run ends at once. One that runs meets `Cancelled` at its next call and has the
        grace to clean up; then it is ended, unless an effect of it is in doubt. With `force` it ends now, and
        such an effect stays open under its key. A job that has ended stays as it is.
        """
        return self._say(cancelling(self.id, duration_ms(grace), force=force, by=by, guard=self._guard))

    async def cancel_aio(
        self, *, grace: Duration = CANCEL_GRACE, force: bool = False, by: str = ""
    ) -> JobState:
        """Ask the job to end without blocking the event loop."""
        runtime = self._runtime()
        wish = cancelling(self.id, duration_ms(grace), force=force, by=by, guard=self._guard)
        outcome = await runtime.lane().call(wish.said_to(runtime.store, self._guard))
        # It looks whether the job has ended by this, for calls that wait here.
        return await asyncio.to_thread(wish.settle, runtime, outcome)

    def pause(self, why: str = DEFAULT_WHY, *, by: str = "") -> Held:
        """Hold the job: workers do not claim it until `resume`, and if it runs it stops at its next call.

        Signals, timers and ended children are kept for it meanwhile; its deadline goes on. A function that
        makes no more calls comes to its end all the same.
        """
        return self._say(pausing(self.id, why, by=by))

    async def pause_aio(self, why: str = DEFAULT_WHY, *, by: str = "") -> Held:
        """Hold the job without blocking the event loop."""
        return await self._say_aio(pausing(self.id, why, by=by))

    def resume(self, *, by: str = "") -> Resumed:
        """Let a held job go on: paused, or held because its workflow no longer did what it had recorded."""
        return self._say(resuming(self.id, by=by))

    async def resume_aio(self, *, by: str = "") -> Resumed:
        """Let a held job go on without blocking the event loop."""
        return await self._say_aio(resuming(self.id, by=by))

    def fork(
        self,
        *,
        at: str,
        version: str | None = None,
        id: str | None = None,  # noqa: A002 (the word that users know)
        fresh_keys: bool = False,
        by: str = "",
    ) -> Job[R_co]:
        """Begin a new job that keeps what this one recorded before the step `at` (`charge`, `charge#2`).

        It has the arguments of this job's current turn, and the code of `version` if one is named. This job
        stays as it is, whatever state it is in. With an `id` a repeated call returns the same new job, and
        `created` is False; the same id for another step or version is an `IdempotencyConflict`. With
        `fresh_keys` its effects act again, under keys that end with its id.
        """
        runtime = self._runtime()
        return self._after(self._say(forking(self.id, runtime.ids, at, version, id, fresh_keys, by)))

    async def fork_aio(
        self,
        *,
        at: str,
        version: str | None = None,
        id: str | None = None,  # noqa: A002 (the word that users know)
        fresh_keys: bool = False,
        by: str = "",
    ) -> Job[R_co]:
        """Begin a new job from this one's records without blocking the event loop."""
        runtime = self._runtime()
        return self._after(
            await self._say_aio(forking(self.id, runtime.ids, at, version, id, fresh_keys, by))
        )

    def retry(self, *, by: str = "") -> Job[R_co]:
        """Begin a new job in the place of this one, which has failed: a fork at the step that it failed with.

        Said again, it returns the same new job, and `created` is False. The idempotency key goes with it; if
        another job has that key by now, this one is refused with `KeyMoved`.
        """
        runtime = self._runtime()
        return self._after(self._say(retrying(self.id, runtime.ids, runtime.reads.job(self.id), by=by)))

    async def retry_aio(self, *, by: str = "") -> Job[R_co]:
        """Begin a new job in the place of one that has failed, without blocking the event loop."""
        runtime = self._runtime()
        row = await asyncio.to_thread(runtime.reads.job, self.id)
        return self._after(await self._say_aio(retrying(self.id, runtime.ids, row, by=by)))

    def state(self) -> JobState:
        """Return where the job stands now."""
        return JobState(self.row().state)

    state_aio = twin_of(state)

    def view(self) -> JobView:
        """Return what is to be seen of the job, derived from its attempts, its open waits and the time now.

        PENDING: it does not run now, and goes on. RUNNING: an attempt holds a live lease. SUCCEEDED, FAILED
        and CANCELLED: it has ended. A worker that was lost makes it PENDING as soon as its lease runs out.
        A protocol job is RUNNING while a directive is on its way or a remote worker is at it.
        """
        view = view_of(self._runtime().store.inspect(), self.id)
        if view is None:
            raise not_there(self.id)
        return view

    view_aio = twin_of(view)

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags it was submitted with."""
        tags = self.row().tags
        return () if tags is None else tuple(msgspec.json.decode(tags))

    def row(self) -> JobRow:
        """Return everything that is stored about the job itself."""
        row = self._runtime().reads.job(self.id)
        if row is None:
            raise not_there(self.id)
        return row

    row_aio = twin_of(row)

    def children(self, *, after: Job[Any] | None = None, limit: int = PAGE_ROWS_MAX) -> list[Job[Any]]:
        """Return a page of the jobs that this one has started, detached ones too; children in their order.

        `after` is the last job of the page before.
        """
        place = "" if after is None else after.id
        found = self._runtime().store.started_by(self.id, after=place, limit=min(limit, PAGE_ROWS_MAX))
        return [Job(self._runtime, job_id, _of_any_type, created=False) for job_id in found]

    children_aio = twin_of(children)

    def value(self, name: str, default: object = None) -> Any:  # noqa: ANN401 (as the job has set it)
        """Return the value that the job shows under a name, or the default if it shows none."""
        return shown(self._runtime().reads, self.id, check_name("value", name)).get(name, default)

    value_aio = twin_of(value)

    def values(self) -> dict[str, Any]:
        """Return everything that the job shows, by name."""
        return shown(self._runtime().reads, self.id)

    values_aio = twin_of(values)

    def watch(self) -> Iterator[tuple[str, Any]]:
        """Give (name, value) for what the job shows now and whenever it shows something else, until it ends.

        What is replaced within a tenth of a second may be left out; the last value of a name never is.
        """
        refuse_inside(f"watch job {self.id}")
        return watch(self._runtime(), self.id)

    def watch_aio(self) -> AsyncIterator[tuple[str, Any]]:
        """Give the same without blocking the event loop."""
        refuse_inside(f"watch job {self.id}")
        return watch_aio(self._runtime(), self.id)

    def why(self) -> Why:
        """Say in one sentence what the job waits for, or how it ended; `Why` has more than the sentence."""
        runtime = self._runtime()
        known = None if runtime.worker is None else frozenset(runtime.worker.handlers)
        return explain(runtime.store, self.row(), runtime.clock.wall_ms(), known)

    why_aio = twin_of(why)

    def history(self) -> list[Event]:
        """Return everything that happened to the job, in order."""
        facts = self._runtime().store.history(self.id)
        if not facts:
            raise not_there(self.id)
        began = self._runtime().store.began(self.id)
        return [Event(fact, began.get(fact.n)) for fact in facts]

    history_aio = twin_of(history)

    def _say(self, wish: Wish[T]) -> T:
        runtime = self._runtime()
        return wish.settle(runtime, runtime.committer.call(wish.said_to(runtime.store, self._guard)))

    async def _say_aio(self, wish: Wish[T]) -> T:
        runtime = self._runtime()
        return wish.settle(runtime, await runtime.lane().call(wish.said_to(runtime.store, self._guard)))

    def _after(self, forked: Forked) -> Job[R_co]:
        job: Job[R_co] = Job(self._runtime, forked.job_id, self._codec, forked.created, self._raises)
        return job.only_of(self._tenant)

    def _looked_up(self, timeout_ms: int | None = None) -> EndedJob | None:
        """Return how the job ended, by its row: where it may not exist, or no look would come in time."""
        if self.created and (timeout_ms is None or timeout_ms > _LOOKED_FOR_MS):
            return None
        row = self.row()
        return None if row.completed_at is None else EndedJob.of(row)

    async def _ended(self) -> R_co:
        refuse_inside(f"wait for job {self.id}")
        if not self.created and (ended := await asyncio.to_thread(self._looked_up)) is not None:
            return self._settle(ended)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[EndedJob | TallyError] = loop.create_future()

        def settle(ended: EndedJob | TallyError) -> None:
            if not future.done():
                future.set_result(ended)

        def listener(ended: EndedJob | TallyError) -> None:
            with suppress(RuntimeError):  # the loop is closed, and with it the task that waited
                loop.call_soon_threadsafe(settle, ended)

        results = self._runtime().results
        results.listen(self.id, listener)
        try:
            return self._settle(await future)
        finally:
            results.forget(self.id, listener)

    def _settle(self, ended: EndedJob | TallyError) -> R_co:
        if isinstance(ended, TallyError):
            raise ended
        if ended.state == JobState.SUCCEEDED:
            value: R_co = self._codec().decode(ended.result or "null", f"the result of job {self.id}")
            return value
        if ended.state == JobState.CANCELLED:
            raise JobCancelled.of(f"job {self.id}", self.id, ended.error_code)
        failure = Failure.parse(ended.error) if ended.error else None
        trace = failure.trace if failure else ""
        if failure is not None and (declared := rebuilt(self._raises, failure)) is not None:
            raise declared
        raise JobFailed(
            f"job {self.id} failed: {ended.error_message or (failure.type if failure else '')}",
            job_id=self.id,
            error_code=ended.error_code,
            type=failure.type if failure else "",
            trace=trace,
        )
