"""A worker: a number of slots, each running one segment at a time.

A slot that finishes a job asks for the next one in the same flush. An idle slot asks again when somebody
says that there may be work. Nothing here decides what is right: that is in the fence of every bundle.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallystick.clock import Clock
from tallystick.core.limits import CLAIM_BATCH_JOBS_MAX
from tallystick.engine.committer import Committer
from tallystick.engine.requests import Blocked, Called, Request
from tallystick.engine.segment import Segment
from tallystick.errors import StaleLease
from tallystick.ids import Ids
from tallystick.store.api import Bundle, ClaimedJob, ClaimJobs, EndJob, NewLease, Outcome, Store
from tallystick.worker.around import AROUND_NOTHING, Around
from tallystick.worker.arrivals import Arrivals
from tallystick.worker.handler import Handler
from tallystick.worker.loop_lane import AsyncSlots
from tallystick.worker.thread_lane import ThreadSlots

_log = logging.getLogger("tallystick.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How much a worker takes on, and how long a crash of it may go unnoticed."""

    queues: tuple[str, ...] = ("default",)
    concurrency: int = 16
    lease_ms: int = 30_000
    grace_ms: int = 10_000


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
    ) -> None:
        """Prepare the slots; nothing is claimed before `start`."""
        self.store = store
        self.committer = committer
        self.clock = clock
        self.options = options
        self.handlers = handlers
        # Random and per process: a restarted worker must never look like the one whose leases it finds.
        self.owner = ids.token()
        self._on_end = on_end
        self._around = around
        self._lock = threading.Lock()
        self._leases = 0
        self._free = options.concurrency
        self._more = True
        self._claiming = False
        self._poked_meanwhile = False
        self.claim_failed = False
        # One suspect at a time: who holds this, a claim or a segment, may have one.
        self._suspect_taken = False
        self._suspect_skipped = False
        self._stopping = False
        self._idle = threading.Condition(self._lock)
        self.running: dict[str, Segment] = {}
        self.stale_reports = 0
        self.arrivals = Arrivals()
        self._threads = ThreadSlots(self, options.concurrency)
        self._tasks = AsyncSlots(self)

    def start(self) -> None:
        """Begin to claim, when everything that is to be called before has returned; if it raises, do not."""
        if any(handler.is_async for handler in self.handlers.values()):
            self._tasks.start()
        try:
            for function in self._around.start:
                self._call(function)
        except BaseException:
            self._tasks.stop()
            raise
        self.poke()

    def _call(self, function: Callable[[], Any]) -> None:
        """Call a function of the program: in this thread, or on the loop of the worker."""
        if inspect.iscoroutinefunction(function):
            self._tasks.call(function)
        else:
            function()

    def _call_last(self) -> None:
        """Call what is to be called when the worker has stopped, the last declared first; all of it."""
        for function in reversed(self._around.stop):
            try:
                self._call(function)
            except Exception:  # noqa: BLE001 (logged with its trace; the others are to be called too)
                _log.exception(
                    "worker: %s failed",
                    getattr(function, "__name__", function),
                    extra={"action": "worker.stop_function_failed"},
                )

    def poke(self, first: Sequence[Request] = ()) -> bool:
        """There may be work, or will be after `first`: let idle slots look for it, in one flush with that.

        Return whether a claim is on its way; without one, `first` was handed over all the same.
        """
        with self._lock:
            self._more = True
            # The claim that is out may have looked before there was what this poke is about.
            self._poked_meanwhile = self._claiming
            limit = 0 if self._stopping or self._claiming else min(self._free, CLAIM_BATCH_JOBS_MAX)
            self._claiming = self._claiming or bool(limit)
            self._free -= limit
        if not limit:
            if first:
                self.committer.put(first)
            return False
        request = self.claim(limit)
        self.committer.put([*first, Called((request,), lambda outcome: self._claimed(request, outcome))])
        return True

    def claim(self, limit: int) -> ClaimJobs:
        """Return a request for jobs; equal requests of one flush are answered by one search."""
        options = self.options
        with self._lock:
            suspects = not self._suspect_taken
            self._suspect_taken = True
            self._suspect_skipped |= not suspects
        handlers = frozenset(self.handlers)
        return ClaimJobs(
            self.owner, options.queues, handlers, limit, options.lease_ms, self._next_lease, suspects
        )

    def answered(self, request: ClaimJobs, outcome: Outcome | BaseException) -> list[ClaimedJob]:
        """Return the jobs of an answered claim; slots it left empty are given back."""
        jobs: list[ClaimedJob] = outcome if isinstance(outcome, list) else []
        if len(jobs) < request.limit:
            self.free(request.limit - len(jobs), claim=outcome)
        if request.suspects and not any(job.suspect for job in jobs):
            self._release_suspect(look_again=False)
        return jobs

    def _release_suspect(self, *, look_again: bool) -> None:
        """Let the next claim have a suspect, and make one if another may have been left behind."""
        with self._lock:
            self._suspect_taken = False
            skipped, self._suspect_skipped = self._suspect_skipped, False
        if skipped or look_again:
            self.poke()

    def reserve(self, handler: tuple[str, str], queue: str) -> NewLease | None:
        """Take a free slot for a job that is about to be submitted here, if there is one."""
        with self._lock:
            if (
                self._stopping
                or not self._free
                or handler not in self.handlers
                or queue not in self.options.queues
            ):
                self._more = True
                return None
            self._free -= 1
        return NewLease(self._next_lease(), self.owner, self.options.lease_ms)

    def launch(self, claimed: Iterable[ClaimedJob]) -> None:
        """Run claimed jobs, each in a slot that is already counted as taken."""
        tasks = []
        for job in claimed:
            segment = Segment(job, self.clock)
            self.running[segment.job_id] = segment
            if self.handler_of(segment).is_async:
                tasks.append(segment)
            else:
                self._threads.run(segment)
        if tasks:
            self._tasks.run(tasks)

    def handler_of(self, segment: Segment) -> Handler:
        """Return the code of a claimed job; claims ask only for what is here."""
        return self.handlers[segment.claimed.handler, segment.claimed.version]

    def ended(self, segment: Segment, bundle: Bundle | None, outcome: Outcome | BaseException) -> None:
        """Note that a segment is over: its ending is durable, was refused, or could not be written."""
        # A job that lost its lease may run here again already, under a new one that is still to be renewed.
        if self.running.get(segment.job_id) is segment:
            del self.running[segment.job_id]
        if segment.claimed.suspect:
            # The claim that brought it left all other suspects where they were.
            self._release_suspect(look_again=True)
        if isinstance(outcome, StaleLease):
            self.stale_reports += 1
        elif isinstance(outcome, EndJob):
            self._on_end(outcome)
        elif bundle is not None and outcome is None and isinstance(bundle[-1], EndJob):
            self._on_end(bundle[-1])
        if self._stopping:
            with self._idle:
                self._idle.notify_all()

    def free(self, slots: int = 1, *, claim: Outcome | BaseException = None) -> None:
        """Give slots back, with the outcome of the claim that left them empty, if there was one.

        A claim that found less than it asked for says that nothing is left; one that failed says nothing.
        """
        with self._lock:
            self._free += slots
            if isinstance(claim, BaseException):
                self.claim_failed = True
            elif claim is not None:
                self._more = False
            self._idle.notify_all()
            unanswered = claim is None and self._more
        if unanswered:
            # Somebody said that there is work after this slot had decided not to ask for any.
            self.poke()

    def notice_cancelled(self, job_id: str) -> None:
        """Let a running segment meet the cancellation of its job at its next call."""
        segment = self.running.get(job_id)
        if segment is not None:
            segment.cancelled = True
            self.arrivals.notify(job_id)

    def notice_held(self, job_id: str, *, held: bool) -> None:
        """Let a running segment stop at its next call because its job is held, or go on after all."""
        segment = self.running.get(job_id)
        if segment is not None:
            segment.paused = held

    def wants_more(self) -> bool:
        """Tell whether a slot that becomes free should ask for another job at once."""
        return self._more and not self._stopping

    @property
    def idle(self) -> bool:
        """Tell whether slots are free and the last claim found nothing for them."""
        return bool(self._free) and not self._more

    def finish(self, segment: Segment, bundle: Bundle | None) -> Segment | None:
        """End a segment of a thread and return the next one for the same thread, in one flush."""
        handed, segment.handed = segment.handed, None
        refusal: Outcome | BaseException = None
        end: Blocked | None = None
        if isinstance(handed, Blocked):
            # The last step and the ending share a flush, unless the step is on its way already.
            if bundle is not None and self.committer.extend(handed, bundle):
                end = handed
            elif isinstance(refusal := handed.answer(), BaseException):
                bundle = None
        request = self.claim(1) if self.wants_more() else None
        asked = [] if bundle is None or end is not None else [end := self.committer.blocked(bundle)]
        claim = None if request is None else self.committer.blocked((request,))
        self.committer.put(asked if claim is None else [*asked, claim])
        # The claim was handed over last: once it is answered, so is the ending. One wake-up for both.
        found = None if claim is None else claim.answer()
        self.ended(segment, bundle, refusal if end is None else end.answer())
        if request is None:
            self.free()
            return None
        claimed = self.answered(request, found)
        if not claimed:
            return None
        following = Segment(claimed[0], self.clock)
        self.running[following.job_id] = following
        if self.handler_of(following).is_async:
            self._tasks.run([following])
            return None
        return following

    def stop(self) -> bool:
        """Claim no more, let running segments end within the grace, and tell whether all did.

        What is left then unwinds at its next call and gives its lease back; what makes no call is left to
        its lease.
        """
        grace = self.options.grace_ms / 1000
        with self._lock:
            self._stopping = True
        done = self._wait_until_idle(grace)
        if not done:
            for segment in list(self.running.values()):
                segment.lost = True
            self._tasks.cancel()
            done = self._wait_until_idle(grace)
        self._threads.stop()
        self._call_last()
        self._tasks.stop()
        return done

    def _wait_until_idle(self, seconds: float) -> bool:
        with self._idle:
            # A claim on its way counts too: what it brings must not be left to its lease.
            return self._idle.wait_for(
                lambda: not self.running and self._free == self.options.concurrency, seconds
            )

    def _claimed(self, request: ClaimJobs, outcome: Outcome | BaseException) -> None:
        with self._lock:
            self._claiming = False
            poked, self._poked_meanwhile = self._poked_meanwhile, False
        jobs = self.answered(request, outcome)
        self.launch(jobs)
        # A claim is bounded: one that got all it asked for may have left as much behind.
        if poked or len(jobs) == request.limit:
            self.poke()

    def _next_lease(self) -> str:
        self._leases += 1
        return f"{self.owner[:12]}-{self._leases}"
