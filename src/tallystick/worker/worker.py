"""A worker: a number of slots, each running one segment at a time.

A slot that finishes a job asks for the next one in the same flush. An idle slot asks again when there may be
work; the `ClaimDemand` keeps count of both. Nothing here decides what is right: that is in the fence of every
bundle.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tallystick.clock import Clock
from tallystick.engine.committer import Committer
from tallystick.engine.observe import Claimed
from tallystick.engine.pending_writes import Blocked, Called, Request
from tallystick.engine.refusals import turn_down
from tallystick.engine.segment import Segment
from tallystick.errors import StaleLease, StoreError, StoreMisused, TallyError
from tallystick.ids import Ids
from tallystick.store.api import Bundle, ClaimedJob, ClaimJobs, Cycle, EndJob, NewLease, Outcome, Store
from tallystick.worker.claim_demand import ClaimDemand, Look
from tallystick.worker.grace import Grace
from tallystick.worker.handler import Handler
from tallystick.worker.hooks import AROUND_NOTHING, Around
from tallystick.worker.options import WorkerOptions
from tallystick.worker.refusals import Refusals
from tallystick.worker.slots_loop import AsyncSlots
from tallystick.worker.slots_threads import ThreadSlots

_log = logging.getLogger("tallystick.worker")


class Worker:
    """Claims jobs and runs them until it is stopped."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        clock: Clock,
        ids: Ids,
        handlers: Mapping[tuple[str, str], Handler],
        options: WorkerOptions,
        on_end: Callable[[EndJob], None],
        around: Around = AROUND_NOTHING,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Prepare the slots; nothing is claimed before `start`."""
        self.store = store
        self.committer = committer
        self.clock = clock
        self.options = options
        self.handlers = handlers
        # Random and per process: a restarted worker must never look like the one whose leases it finds.
        self.owner = ids.token()
        self.ids = ids
        self._on_end = on_end
        self._around = around
        self.hooks = around.hooks
        # What is to be done when nothing runs any more, while the loop still does.
        self.finishing: Callable[[], None] = lambda: None
        self._hook_names = around.hook_names
        self._lock = threading.Lock()
        self._leases = 0
        self._demand = ClaimDemand(options.concurrency)
        # Set when the worker is to stop: a job that merely waits for its next try is given back.
        self.halting = threading.Event()
        self._idle = threading.Condition(self._lock)
        self.running: dict[str, Segment] = {}
        # Segments that are over and whose end the store did not take: maintenance gives their jobs back.
        self.owed: set[Segment] = set()
        # Segments that may begin when the function of an earlier one of the same job has been left here.
        self._behind: dict[Segment, Segment] = {}
        self.stale_reports = 0
        # Roles whose last turn failed, and why.
        self.failing: dict[str, str] = {}
        self.refusals = Refusals()
        # Queues whose limits decide when a job begins: what is submitted here does not begin at once.
        self.limited: frozenset[str] = frozenset()
        self._threads = ThreadSlots(self, options.concurrency)
        self._tasks = AsyncSlots(self, loop)

    def start(self) -> None:
        """Begin to claim, when everything that is to be called before has returned; if it raises, do not."""
        if any(handler.is_async for handler in self.handlers.values()):
            self._tasks.start()
        try:
            for function in self._around.start:
                self.call(function)
        except BaseException:
            self._tasks.stop()
            raise
        with self._lock:
            self._demand.shut = False
        self.poke()

    def call(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 (whatever the function returns)
        """Call a function of the program: in this thread, or on the loop of the worker."""
        return self._tasks.call(function) if inspect.iscoroutinefunction(function) else function()

    def _call_last(self) -> None:
        """Call what is to be called when the worker has stopped, the last declared first; all of it."""
        for function in reversed(self._around.stop):
            try:
                self.call(function)
            except BaseException:  # noqa: BLE001 (logged with its trace; the others are to be called too)
                _log.exception(
                    "worker: %s failed",
                    getattr(function, "__name__", function),
                    extra={"action": "worker.stop_function_failed"},
                )

    def poke(
        self,
        first: Sequence[Request] = (),
        *,
        through: Callable[[Sequence[Request]], None] | None = None,
    ) -> bool:
        """There may be work, or will be after `first`: let idle slots look for it, in one flush with that.

        Return whether a claim is on its way; without one, `first` was handed over all the same. The claim is
        put into the committer's queue, or goes through `through`, which gathers.
        """
        put = through or self.committer.put
        with self._lock:
            look = self._demand.say()
        if look is not None:
            put([*first, self._asking(look)])
        elif first:
            put(first)
        return look is not None

    def look_on(self, slots: int) -> Look | None:
        """Begin a look for slots whose jobs have just ended, unless the worker stops.

        The claim may share their flush.
        """
        with self._lock:
            return None if self._demand.shut else self._demand.go_on(slots)

    def claim(self, look: Look) -> ClaimJobs:
        """Return the request of a look; equal requests of one flush are answered by one search."""
        options = self.options
        about = (self.owner, options.queues, frozenset(self.handlers), look.slots, options.lease_ms)
        return ClaimJobs(*about, self._next_lease, look.suspects, self.refusals.tell, hooks=self._hook_names)

    def answered(self, look: Look, outcome: Outcome | BaseException) -> list[ClaimedJob]:
        """Return the jobs that a look has found; slots it left empty are given back."""
        jobs: list[ClaimedJob] = outcome if isinstance(outcome, list) else []
        following = None
        with self._lock:
            if isinstance(outcome, BaseException):
                self._demand.unanswered(look)
            else:
                suspect = any(job.suspect for job in jobs)
                following = self._demand.answered(look, len(jobs), suspect=suspect)
            self._idle.notify_all()
        if jobs and Claimed in self.committer.observers.wanted:
            self.committer.observers.tell(Claimed(tuple(jobs), look.slots))
        if isinstance(outcome, BaseException):
            self.refusals.note(outcome)
        elif self.refusals.last:
            self.refusals.end()
        if following is not None:
            self._look(following)
        return jobs

    def reserve(self, handler: tuple[str, str], queue: str) -> NewLease | None:
        """Take a free slot for a job that is about to be submitted here, if there is one."""
        if queue in self.limited or not self.serves(handler, queue):
            return None
        with self._lock:
            if not self._demand.take():
                return None
        return NewLease(self._next_lease(), self.owner, self.options.lease_ms)

    def serves(self, handler: tuple[str, str], queue: str) -> bool:
        """Tell whether jobs of this kind can run here."""
        return handler in self.handlers and queue in self.options.queues

    def launch(self, claimed: Iterable[ClaimedJob]) -> None:
        """Run claimed jobs, each in a slot that is already counted as taken."""
        self._begin([segment for job in claimed if (segment := self.hold(job)) is not None])

    def _begin(self, segments: Iterable[Segment]) -> None:
        tasks = []
        for segment in segments:
            handler = self.handler_of(segment)
            if handler.is_async:
                tasks.append((segment, handler))
            else:
                self._threads.run(segment)
        if tasks:
            self._tasks.run(tasks)

    def hold(self, job: ClaimedJob) -> Segment | None:
        """Return the segment of a claimed job, whose lease is renewed from now on; None if it begins later.

        What woke a job may come before its function has been left, and whatever that holds been closed.
        """
        segment = Segment(job, self.clock, self.owner)
        before = self.running.get(segment.job_id)
        self.running[segment.job_id] = segment
        if before is None or not before.leaving:
            return segment
        self._behind[before] = segment
        # Of the two threads that may take it out one does: here if the function was left in this very moment.
        return self._behind.pop(before, None) if before.over else None

    def left(self, segment: Segment) -> None:
        """Note that the function of a segment has been left, so that the next one of its job may begin."""
        segment.over = True
        if self._behind and (following := self._behind.pop(segment, None)) is not None:
            self._begin([following])

    def notify(self, job_id: str) -> None:
        """Let the function of a job look for a signal, if it stays in memory at a wait."""
        segment = self.running.get(job_id)
        if segment is not None and (look := segment.listener) is not None:
            look()

    def handler_of(self, segment: Segment) -> Handler:
        """Return the code of a claimed job; claims ask only for what is here."""
        return self.handlers[segment.claimed.handler, segment.claimed.version]

    def ended(self, segment: Segment, bundle: Bundle | None, outcome: Outcome | BaseException) -> None:
        """Note that a segment is over: its ending is durable, was refused, or could not be written."""
        if isinstance(outcome, TallyError) and not isinstance(outcome, StaleLease | StoreMisused):
            # It counts as running, so that its lease is renewed, until it could be given back, or held.
            if not isinstance(outcome, StoreError):
                turn_down(segment, outcome)
            self.owed.add(segment)
        # A job that lost its lease may run here again already, under a new one that is still to be renewed.
        elif self.running.get(segment.job_id) is segment:
            del self.running[segment.job_id]
        if segment.claimed.suspect:
            with self._lock:
                look = self._demand.suspect_ended()
            if look is not None:
                self._look(look)
        end = bundle[-1] if outcome is None and bundle is not None else outcome
        if type(end) is EndJob:
            self._on_end(end)
        elif isinstance(end, StaleLease):
            self.stale_reports += 1
        elif isinstance(end, BaseException) and segment not in self.owed:
            _log.error(
                "job %s: its end was refused, %s", segment.job_id, end, extra={"action": "end.refused"}
            )
        self.committer.observers.segment_ended(
            segment.fence, segment.claimed.handler, end, suspended=segment.suspended
        )
        if self._demand.shut:
            with self._idle:
                self._idle.notify_all()

    def given_back(self, segment: Segment) -> None:
        """Note that a job whose end the store did not take is free again, and may be claimed."""
        self.owed.discard(segment)
        with self._idle:
            if self.running.get(segment.job_id) is segment:
                del self.running[segment.job_id]
            self._idle.notify_all()

    def free(self) -> None:
        """Give a slot back, and look after all if there was a word after it had decided not to ask."""
        with self._lock:
            look = self._demand.give_back()
            self._idle.notify_all()
        if look is not None:
            self._look(look)

    def stop_task(self, segment: Segment) -> None:
        """Let the task of an async segment unwind, wherever it waits."""
        self._tasks.cancel(segment)

    def asks_after(self, segment: Segment, bundle: Bundle | None) -> bool:
        """Tell whether the slot of a segment that ends with this bundle should ask for a job in its flush.

        A child that ends may wake its parent, and a job that turns is due, whatever the last look found. The
        end of a job in a queue with limits lets another one begin.
        """
        last = bundle[-1] if bundle else None
        wakes = type(last) is Cycle or (type(last) is EndJob and last.parent is not None)
        return wakes or self._demand.wanted or segment.claimed.slot is not None

    @property
    def idle(self) -> bool:
        """Tell whether slots are free and the last look left nothing behind."""
        return bool(self._demand.free) and not self._demand.wanted

    @property
    def claim_failed(self) -> bool:
        """Tell whether the last look could not be made, and that no word of work came since."""
        return self._demand.failed

    def finish(self, segment: Segment, bundle: Bundle | None) -> Segment | None:
        """End a segment of a thread and return the next one for the same thread, in one flush."""
        self.left(segment)
        handed, segment.handed = segment.handed, None
        refusal: Outcome | BaseException = None
        end: Blocked | None = None
        if isinstance(handed, Blocked):
            # The last step and the ending share a flush, unless the step is on its way already.
            if bundle is not None and self.committer.extend(handed, bundle):
                end = handed
            elif isinstance(refusal := handed.answer(), BaseException):
                bundle = None
        look = self.look_on(1) if self.asks_after(segment, bundle) else None
        asked = [] if bundle is None or end is not None else [end := self.committer.blocked(bundle)]
        claim = None if look is None else self.committer.blocked((self.claim(look),))
        self.committer.put(asked if claim is None else [*asked, claim])
        # The claim was handed over last: once it is answered, so is the ending. One wake-up for both.
        found = None if claim is None else claim.answer()
        self.ended(segment, bundle, refusal if end is None else end.answer())
        if look is None:
            self.free()
            return None
        claimed = self.answered(look, found)
        if not claimed:
            return None
        following = self.hold(claimed[0])
        if following is not None and self.handler_of(following).is_async:
            self._begin([following])
            return None
        return following

    def stop(self) -> bool:
        """Claim no more, let running segments end within the grace, and tell whether all did.

        What is left then unwinds at its next call and gives its lease back; what makes no call is left to
        its lease. No claim is on its way when the first job is given back: it would bring it here again.
        """
        grace = Grace(self.options.grace_ms)
        with self._idle:
            self._demand.shut = True
            answered = self._idle.wait_for(lambda: not self._demand.out, grace.to_end)
        self.halting.set()
        done = answered and self._wait_until_idle(grace.to_end)
        if not done:
            for segment in list(self.running.values()):
                segment.lost = True
            self._tasks.cancel()
            done = self._wait_until_idle(grace.to_unwind)
        self._threads.stop()
        self.finishing()
        self._call_last()
        self._tasks.stop(all_ended=done)
        return done

    def _wait_until_idle(self, seconds: float) -> bool:
        with self._idle:
            # What a claim has brought and is about to begin counts too: it must not be left to its lease.
            return self._idle.wait_for(
                lambda: not self.running and self._demand.free == self.options.concurrency, seconds
            )

    def _look(self, look: Look) -> None:
        """Hand over the claim of a look; what it finds is run."""
        self.committer.put([self._asking(look)])

    def _asking(self, look: Look) -> Request:
        claim = (self.claim(look),)
        return Called(claim, lambda outcome: self.launch(self.answered(look, outcome)))

    def _next_lease(self) -> str:
        self._leases += 1
        return f"{self.owner[:12]}-{self._leases}"
