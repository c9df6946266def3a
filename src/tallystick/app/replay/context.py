"""Where a call of a step happens: in a workflow, inside another step, or outside.

The current context travels in a context variable, so that it follows tasks and `copy_context()` and stays
out of threads that a user starts without it.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from inspect import CORO_CLOSED, getcoroutinestate
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from tallystick.app.running.leaving import Cancelled, Unwind
from tallystick.core.lifecycles import JobState
from tallystick.core.verbs.holds import Hold, stops_here
from tallystick.engine.refusals import turn_down
from tallystick.engine.submission import tenant_in
from tallystick.errors import (
    CallDiffers,
    CallNotAwaited,
    InvariantBroken,
    LedgerError,
    Misuse,
    SemaphoreUnderflow,
    StaleLease,
    StateTransitionError,
    StoreError,
    TallyError,
)
from tallystick.watch.tracing import QUIET

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime
    from tallystick.app.effects.side_by_side import EffectCalls
    from tallystick.app.replay.async_waits import TaskWaits
    from tallystick.engine.committer import LoopLane
    from tallystick.engine.segment import Segment
    from tallystick.store.api import Bundle, ChildRow, Record

_log = logging.getLogger("tallystick.app")

_NONE_READ: Final[Mapping[str, ChildRow | None]] = {}

# When a job is tried again that the store could not serve.
_STORE_AWAY_MS: Final = 1_000

# What a write of a segment is answered with that was not taken: the lease is lost, the store is away, or the
# rules of the books refuse it. None of it is an error of the workflow, which does not meet it.
NOT_TAKEN: Final = (
    StaleLease,
    StoreError,
    InvariantBroken,
    LedgerError,
    SemaphoreUnderflow,
    StateTransitionError,
    CallDiffers,
)


class WorkflowContext:
    """One run of a workflow function over one segment."""

    __slots__ = (
        "_interrupted",
        "_lane",
        "bodies",
        "calls",
        "cancel_raised",
        "children_read",
        "effect_calls",
        "in_flight",
        "in_threads",
        "is_async",
        "made",
        "runtime",
        "segment",
        "stirs",
        "task_waits",
        "tasks_begun",
        "thread",
        "tracing",
        "unwinding",
    )

    def __init__(self, runtime: Runtime, segment: Segment, lane: LoopLane | None = None) -> None:
        """Begin at the first line of the function: on the loop of a lane, or in this thread."""
        self.runtime = runtime
        self.tracing = runtime.tracing
        self.segment = segment
        self.is_async = lane is not None
        self.thread = get_ident()
        self.calls: list[tuple[str, int]] = []
        self.cancel_raised = False
        # How children ended that recorded joins of this segment are about to ask for.
        self.children_read: Mapping[str, ChildRow | None] = _NONE_READ
        self.effect_calls: EffectCalls | None = None
        self.in_flight: set[tuple[str, int]] = set()
        self.stirs: tuple[Callable[[], None], ...] = ()  # called when a call is over
        # Calls of async steps that were made and have not begun: their coroutines were not awaited yet.
        self.made: dict[tuple[str, int], Coroutine[Any, Any, Any]] = {}
        # What runs in threads for an async workflow, and goes on there if its task is cancelled.
        self.in_threads: set[object] = set()
        self.unwinding: Unwind | None = None
        self.task_waits: TaskWaits | None = None
        self.tasks_begun = 0
        # Tasks in which an async step runs, and whether each is part of the clean-up.
        self._interrupted: set[asyncio.Task[Any]] = set()
        self.bodies: dict[asyncio.Task[Any], bool] = {}
        self._lane = lane
        if lane is not None:
            segment.interrupt = self._interrupt_soon

    def span(self, kind: str, name: str, occurrence: int) -> AbstractContextManager[object]:
        """Return the span of a try of a step, or an empty one without tracing."""
        if self.tracing is None:
            return QUIET
        return self.tracing.step(kind, name, occurrence, self.segment.tries(name, occurrence) + 1)

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Keep this workflow from being suspended: a task of it is about to go on."""
        # No call of a step, whose occurrences begin with 1.
        place = (what, 0)
        self.in_flight.add(place)
        try:
            yield
        finally:
            self.in_flight.discard(place)
            for stir in self.stirs:
                stir()

    @property
    def elsewhere(self) -> bool:
        """Tell whether this is called in a thread beside the workflow's own, whose order is chance."""
        return not self.is_async and self.thread != get_ident()

    def in_threads_at_once(self, name: str, *, named: bool) -> bool:
        """Tell whether threads may call this step at once, so that chance would number the calls."""
        if self.is_async:
            return False
        return (self.elsewhere and not named) or any(name == other for other, _occurrence in self.in_flight)

    def lane(self) -> LoopLane:
        """Return the committer's lane of the loop that this workflow runs on."""
        assert self._lane is not None, "a sync workflow runs on no loop"
        return self._lane

    def begin(self) -> None:
        """Call the function only if this segment may write, and can read what earlier ones have left."""
        self.check()
        if self.segment.unreadable:
            why = (
                f"what was kept of this job cannot be read ({self.segment.unreadable}): put it right and "
                "resume the job, or cancel it; tally doctor says whether facts are damaged"
            )
            raise self.unwind(why, self.segment.held("MISMATCH", why))

    def check(self) -> None:
        """Go on only if this segment may still write."""
        if self.unwinding is not None:
            raise self.unwinding
        segment = self.segment
        if segment.over:
            raise Misuse(f"the workflow of job {segment.job_id} has ended; a task of it cannot go on")
        if segment.lost:
            raise self.unwind("the worker is stopping or has lost this job's lease", segment.given_back())
        if segment.paused and stops_here(held=True, cancelling=segment.cancelled):
            raise self.unwind("the job is held", segment.put_away())

    def recall(self, kind: str, place: tuple[str, int]) -> Record | None:
        """Return what was recorded for a call to which the function comes; None for one that may begin now.

        One that would come before others that are recorded, or is recorded as another kind, holds the job.
        """
        self.check()
        segment = self.segment
        past = segment.past
        record = past.recall(kind, *place) if past.left else None
        if record is None or record.kind != kind:
            # An effect that has begun is asked for before the job ends.
            if segment.cancelled and not past.was_opened(place):
                self.check_cancelled()
            if record is not None or (past.left and self.has_skipped()):
                raise self.mismatch(place)
        self.calls.append(place)
        return record

    def check_cancelled(self) -> None:
        """Raise `Cancelled`, once, if the job was asked to end; called before anything new is begun."""
        if self.segment.cancelled and not self.cancel_raised:
            raise self.cancelling()

    def cancelling(self) -> Cancelled:
        """Return what the workflow meets because its job was asked to end; what comes after it cleans up."""
        self.cancel_raised = True
        return Cancelled(f"job {self.segment.job_id} is being cancelled")

    def _interrupt_soon(self) -> None:
        """Stop the async steps that run, from any thread."""
        with suppress(RuntimeError):  # the loop is closed, and nothing runs on it any more
            self.lane().loop.call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        """Stop the async steps that run; those that clean up go on."""
        for task, cleans_up in self.bodies.items():
            if not cleans_up and task not in self._interrupted:
                self._interrupted.add(task)
                task.cancel()

    def begin_body(self) -> asyncio.Task[Any]:
        """Note that an async step begins in this task, unless its job was asked to end meanwhile."""
        if self.segment.cancelled:
            self.check_cancelled()
        # With the loop: to find it, asyncio would ask the system for the process, at every step.
        assert self._lane is not None, "a sync workflow runs on no loop"
        task = asyncio.current_task(self._lane.loop)
        assert task is not None, "a step of an async workflow is awaited in a task"
        self.bodies[task] = self.cancel_raised
        return task

    def left_body(self, task: asyncio.Task[Any], error: asyncio.CancelledError) -> BaseException:
        """Return what a step was left by: `Cancelled` if it was stopped here, else what it was."""
        return self.cancelling() if task in self._interrupted else error

    def end_body(self, task: asyncio.Task[Any]) -> None:
        """Note that an async step has ended in this task, stopped or not."""
        del self.bodies[task]
        if task in self._interrupted:
            self._interrupted.discard(task)
            task.uncancel()

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Let what is awaited here be stopped when the job is asked to end."""
        task = self.begin_body()
        try:
            yield
        except asyncio.CancelledError as error:
            raise self.left_body(task, error) from None
        finally:
            self.end_body(task)

    def heed(self, answer: object) -> None:
        """Raise `Cancelled`, or stop, if a wait was refused because the job is to end or held by now."""
        if isinstance(answer, Hold):
            raise self.unwind("the job is held", self.segment.put_away())
        if answer == JobState.CANCELLING:
            self.segment.cancelled = True
            raise self.cancelling()

    def unwind(self, why: str, bundle: Bundle | None) -> Unwind:
        """Return the exception that ends this segment, the same one at every later call."""
        if self.unwinding is None:
            self.unwinding = Unwind(why, bundle)
        return self.unwinding

    def suspended(self, until: str, bundle: Bundle | None = None) -> Unwind:
        """Return the exception that leaves a workflow which is put away, by this bundle if not yet."""
        if self.unwinding is None:
            self.segment.suspended = True
            self.unwinding = Unwind(f"suspended until {until}", bundle, suspends=True)
        return self.unwinding

    def swallowed(self) -> Bundle | None:
        """Return the ending of a function that returned although it was to be left; it is not believed.

        One that swallowed a suspension would never do what comes after the wait, so its job is held.
        """
        unwind = self.unwinding
        assert unwind is not None
        if not unwind.suspends:
            return unwind.bundle
        why = (
            f"the workflow was {unwind}, and it caught that and returned: let BaseException pass at a wait "
            "(no bare `except:`, no `return` in `finally`, await every wait), and resume the job; it stands "
            "where it waited"
        )
        held = self.segment.held_waiting if unwind.bundle is None else self.segment.held
        return held("SUSPEND_SWALLOWED", why)

    def refused(self, error: BaseException) -> Unwind:
        """Return the exception for a write that the store did not take: this segment is over.

        What is wrong with the store is never the job's error: if it can be told so, another segment goes on
        in a moment, and no attempt is charged. A lease that is lost has another holder already. What the
        rules of the books refuse would be refused again: the job is held until a person has looked.
        """
        if isinstance(error, StaleLease):
            return self.unwind(str(error), None)
        if isinstance(error, StoreError):
            job_id = self.segment.job_id
            _log.warning("job %s: given back, %s", job_id, error, extra={"action": "segment.given_back"})
            return self.unwind(str(error), self.segment.given_back(_STORE_AWAY_MS))
        assert isinstance(error, TallyError), "what is not taken is told by one of our errors"
        return self.unwind(str(error), turn_down(self.segment, error))

    def left_behind(self) -> CallNotAwaited | None:
        """Return what a function did wrong that returned while calls of steps were not awaited, if it did."""
        # One that was cancelled before it began is closed already.
        made = [place for place, call in self.made.items() if getcoroutinestate(call) != CORO_CLOSED]
        for call in self.made.values():
            call.close()
        self.made.clear()
        places = [*made, *(place for place in self.in_flight if place[1])]
        if not places:
            return None
        for task in self.bodies:
            task.cancel()
        names = ", ".join(f"{name}#{occurrence}" for name, occurrence in sorted(places))
        return CallNotAwaited(
            f"the workflow returned before {names} had ended: await every call of a step, or cancel its task",
            steps=names,
        )

    def has_skipped(self) -> bool:
        """Tell whether a call that is not recorded comes before others that are, or that are open.

        Tasks and threads may overtake each other: what they skip is judged when nothing else can go on.
        """
        past = self.segment.past
        if not past.left or self.elsewhere or (self.is_async and self.tasks_begun):
            return False
        return past.behind or not self.cancel_raised

    def check_detour(self, waits: Sequence[tuple[str, int]]) -> None:
        """Hold the job if all tasks are still, wait for something new, and did not come to what is open."""
        past = self.segment.past
        if past.open and not self.cancel_raised and not all(past.was_opened(place) for place in waits):
            raise self.mismatch(*waits)

    def left_out(self) -> bool:
        """Tell whether the function has ended or waits without having come to what it came to before.

        A job that is to end may be left anywhere.
        """
        past = self.segment.past
        return past.left and (past.behind or not self.segment.cancelled)

    def mismatch(self, *made: tuple[str, int], also: str = "") -> Unwind:
        """Return the exception for a workflow that no longer does what it did; the job is held."""
        recorded = [f"{record.name}#{record.occurrence}" for record in self.segment.claimed.records]
        recorded += [f"{name}#{occurrence} (open)" for name, occurrence in self.segment.past.open]
        called = [f"{name}#{occurrence}" for name, occurrence in (*self.calls, *made)]
        also = f"{also}\n" if also else ""
        diff = "\n".join(difflib.ndiff(recorded, called))
        why = (
            f"the workflow no longer makes the calls it made before (- recorded, + now):\n{diff}\n{also}"
            "give the changed workflow a new version=, or put back the code and resume the job"
        )
        return self.unwind(why, self.segment.held("MISMATCH", why))


class Inside:
    """Marks the inside of a step or a transaction: what it calls is part of it, and not recorded on its own.

    A transaction that a program opens for itself is inside no workflow.
    """

    __slots__ = ("cleans_up", "context", "in_tx", "name", "occurrence", "tries")

    def __init__(
        self, context: WorkflowContext | None, name: str = "", occurrence: int = 0, *, in_tx: bool = False
    ) -> None:
        """Remember whose step begins here, and whether its workflow knows already that its job is to end."""
        self.context = context
        self.in_tx = in_tx
        self.name = name
        self.occurrence = occurrence
        # Read now: the thread of a try that was given up may ask when the next one has begun.
        self.tries = 0
        self.cleans_up = False
        if context is not None:
            self.cleans_up = context.cancel_raised
            if context.segment.failed_tries:
                self.tries = context.segment.tries(name, occurrence)


current: ContextVar[WorkflowContext | Inside | None] = ContextVar("tallystick_context", default=None)


def tenant_inside() -> str | None:
    """Return the tenant of the job in whose code this is called, if any."""
    here = current.get()
    context = here.context if isinstance(here, Inside) else here
    return None if context is None else tenant_in(context.segment.claimed.options)


def refuse_inside(what: str, instead: str = "do it in a step") -> None:
    """Refuse what a replay would do again, or what would wait for the writer that its caller holds."""
    context = current.get()
    if isinstance(context, WorkflowContext):
        raise Misuse(f"a workflow cannot {what}: it would again on replay; {instead}")
    if isinstance(context, Inside) and context.in_tx:
        raise Misuse(f"{what} outside of this transaction, which holds the writer")
