"""A stage on threads: workers compute, the caller's thread commits, one thread reads the input.

One lock guards the flow and is never held while user code runs: not while an item is computed, read or
committed. The commit function is called in the thread that called `run`. Processes are driven by the same
threads, each with a process of its own.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from tallystick.errors import SequenceFatal, WrongColour
from tallystick.stage.flow import Finished, Ticket
from tallystick.stage.lanes.compute import attempt, raised
from tallystick.stage.lanes.heartbeat import beats_with
from tallystick.stage.lanes.processes import ProcessWorker
from tallystick.stage.lanes.run import LanesRun
from tallystick.stage.outcome import FAIL, CommitBatch, Result
from tallystick.stage.settings import BATCH_BYTES_MAX, BATCH_ITEMS_MAX, Lane

# How long the commit lane sleeps when nothing wakes it, and how long right after a commit: in that short
# time it is not woken for a single item, because a wake-up costs more than computing a small item.
TICK_SECONDS: Final = 0.1
GATHER_MS: Final = 4
GATHER_ITEMS: Final = 128
JOIN_SECONDS: Final = 1.0


class ThreadLanes(LanesRun):
    """One run of a stage on threads."""

    def _prepare(self) -> None:
        lock = threading.Lock()
        self._lock = lock
        self._work = threading.Condition(lock)
        self._space = threading.Condition(lock)
        self._turn = threading.Condition(lock)
        self._idle = 0
        self._committer_sleeps = False
        self._intake_sleeps = False
        self._committed_at_ms = 0
        self._finished_since = 0
        self._dropped = False
        self._threads: dict[str, threading.Thread] = {}
        self._hired = 0
        self._processes: dict[str, ProcessWorker] = {}

    def run(self, items: Iterable[Any]) -> None:
        """Compute and commit everything, or stop in order when asked to."""
        feeder = threading.Thread(target=self._feed, args=(items,), name="stage-intake", daemon=True)
        self._stop.on_request(self.wake)
        try:
            feeder.start()
            for number in range(self._settings.workers):
                self._hire(f"worker-{number}")
            while (found := self._next_run()) is not None:
                if found:
                    self._commit(found)
                self._progress.show(self._flow.next_commit)
            if self._input_error is not None:
                raise self._input_error
        except SequenceFatal as error:
            raise self._flow.fault(error.message, error) from error
        except KeyboardInterrupt:
            # It may have come in the middle of a move; nothing more is moved, as after a crash.
            self._dropped = True
            raise
        finally:
            self._dismiss()
            feeder.join(JOIN_SECONDS)

    # The commit lane.

    def _next_run(self) -> list[Finished] | None:
        """Return outcomes whose turn has come, none if there were none for a while, None if it is over."""
        flow = self._flow
        with self._lock:
            if self._broken is not None:
                raise self._broken
            now_ms = self._clock.boot_ms()
            self._look_after(now_ms)
            count = flow.ready(BATCH_ITEMS_MAX)
            if count:
                return flow.peek(count, BATCH_BYTES_MAX)
            if flow.is_done or (flow.stopping and flow.is_settled):
                return None
            recent = now_ms - self._committed_at_ms < GATHER_MS
            self._committer_sleeps = True
            self._turn.wait(GATHER_MS / 1000 if recent else TICK_SECONDS)
            self._committer_sleeps = False
            return []

    def _commit(self, found: list[Finished]) -> None:
        batch = self._commit_lane.make_durable(found, self._flow.started)
        self.deliver(batch)
        flow = self._flow
        with self._lock:
            flow.commit(len(found))
            self._committed_at_ms = self._clock.boot_ms()
            self._finished_since = 0
            if self._idle:
                self._work.notify(self._idle)
            if self._intake_sleeps:
                self._space.notify()
        failures_max = self._settings.failures_max
        if failures_max is not None and flow.finished[FAIL] > failures_max:
            self._stop.request("too many failures")

    def deliver(self, batch: CommitBatch[Any]) -> None:
        """Hand a durable batch to the commit function."""
        if self._settings.commit is not None:
            answer = self._settings.commit(batch)
            if inspect.iscoroutine(answer):
                answer.close()
                raise WrongColour("the commit function is async; say `await stage.run_async(items)`")
        self._commit_lane.note_delivered(batch)

    def _look_after(self, now_ms: int) -> None:
        """Take back expired leases, and bring a stop forward."""
        flow = self._flow
        if self._settings.has_timeout:
            for owner in flow.reclaim(now_ms):
                self._replace(owner)
                self._work.notify()
        if self._stop.reason and not flow.stopping:
            flow.stop(now_ms)
            self._force_at_ms = now_ms + self._settings.grace_ms
            self._work.notify_all()
            self._space.notify_all()
        if self._force_at_ms is not None and now_ms >= self._force_at_ms:
            flow.force(now_ms)

    # The workers.

    def _hire(self, owner: str) -> None:
        thread = threading.Thread(target=self._labour, args=(owner,), name=f"stage-{owner}", daemon=True)
        self._threads[owner] = thread
        self._hired += 1
        thread.start()

    def _labour(self, owner: str) -> None:
        ticket: Ticket | None = None
        result: Result | None = None
        try:
            compute, process = self._computer(owner)
            while True:
                if process is not None and not process.is_running:
                    with self._lock:
                        self._hand_in(ticket, result, self._clock.boot_ms())
                        if self._over:
                            return
                    process.start()
                    ticket = None
                ticket = self._exchange(owner, ticket, result)
                if ticket is None:
                    return
                result = compute(ticket)
        except BaseException as error:  # noqa: BLE001 (a worker that cannot go on ends the stage, not itself)
            self._break(error)

    def _exchange(self, owner: str, ticket: Ticket | None, result: Result | None) -> Ticket | None:
        """Report what was done and wait for what is next, under one hold of the lock; None is the end."""
        flow = self._flow
        with self._lock:
            now_ms = self._clock.boot_ms()
            if not self._hand_in(ticket, result, now_ms) and self._settings.lane is Lane.THREADS:
                return None  # a replacement was hired when this worker lost its lease
            while not self._over:
                found = None if self._stop.reason else flow.take(owner, now_ms)
                if self._committer_sleeps and (
                    found is None
                    or self._finished_since >= GATHER_ITEMS
                    or now_ms - self._committed_at_ms >= GATHER_MS
                ):
                    self._wake_committer()
                if found is not None:
                    if self._idle and flow.has_retries:
                        self._work.notify()  # several backoffs may end at once, and only one worker woke up
                    return found
                # What makes an item startable wakes a worker, and so does the beginning of a backoff: a
                # worker that sleeps until its end needs no help from a commit lane that may be busy.
                due_ms = flow.next_due_ms()
                self._idle += 1
                self._work.wait(None if due_ms is None else max(1, due_ms - now_ms) / 1000)
                self._idle -= 1
                now_ms = self._clock.boot_ms()
            return None

    def _hand_in(self, ticket: Ticket | None, result: Result | None, now_ms: int) -> bool:
        """Report what an attempt came to, under the lock; False means that the report is stale."""
        if ticket is None or result is None:
            return True
        flow = self._flow
        retried = flow.retried
        accepted = flow.report(ticket, result, now_ms)
        self._finished_since += 1
        if flow.retried != retried:
            self._work.notify()
        return accepted

    def _wake_committer(self) -> None:
        flow = self._flow
        if flow.ready(1) or flow.is_done or self._stop.reason:
            self._committer_sleeps = False
            self._turn.notify()

    def _computer(self, owner: str) -> tuple[Callable[[Ticket], Result], ProcessWorker | None]:
        """Return what computes an item for this worker, and the process it needs for that, if any."""
        held: list[Ticket] = []

        def renew() -> bool:
            with self._lock:
                return self._flow.heartbeat(held[0], self._clock.boot_ms())

        function, as_json = self._settings.function, self._as_json
        if self._settings.lane is Lane.PROCESSES:
            process = self._processes[owner] = ProcessWorker(function)

            def compute_there(ticket: Ticket) -> Result:
                held[:] = [ticket]
                try:
                    return process.run(ticket.item, renew)
                except Exception as error:  # noqa: BLE001 (an item that has no JSON form is a failed item)
                    return raised(error)

            return compute_there, process
        beats_with(renew)

        def compute_here(ticket: Ticket) -> Result:
            held[:] = [ticket]
            return attempt(function, ticket.item, as_json=as_json)

        return compute_here, None

    def _replace(self, owner: str) -> None:
        """Make up for a worker that lost its lease: kill its process, or leave its thread to itself."""
        process = self._processes.get(owner)
        if process is not None:
            process.kill()
            return
        # Python cannot end a thread. It is left alone; if it ever reports, the report is stale.
        self._threads.pop(owner, None)
        if not self._flow.stopping:
            self._hire(f"worker-{self._hired}")

    # The input.

    def _feed(self, items: Iterable[Any]) -> None:
        flow = self._flow
        try:
            for item in items:
                admission = self._intake.describe(item)
                with self._lock:
                    while not flow.stopping and not flow.admit(*admission, self._clock.boot_ms()):
                        self._intake_sleeps = True
                        self._space.wait()
                        self._intake_sleeps = False
                    if flow.stopping:
                        return
                    if self._idle:
                        self._work.notify()
        except Exception as error:  # noqa: BLE001 (raised again in the caller's thread, when all is committed)
            self._input_error = error
        except BaseException as error:  # noqa: BLE001 (as above, at once)
            self._break(error)
            return
        with self._lock:
            flow.end_input()
            self._turn.notify()

    # The end.

    def wake(self) -> None:
        """Let the commit lane look around at once."""
        with self._lock:
            self._turn.notify()

    def _break(self, error: BaseException) -> None:
        with self._lock:
            self._broken = self._broken or error
            self._turn.notify()

    def _dismiss(self) -> None:
        """End all threads; what is still running keeps no lease, and its report will be stale."""
        flow = self._flow
        with self._lock:
            self._over = True
            if not flow.is_done and not flow.is_latched and not self._dropped:
                now_ms = self._clock.boot_ms()
                flow.stop(now_ms)
                flow.force(now_ms)
            self._work.notify_all()
            self._space.notify_all()
            busy = list(self._processes.values()) if flow.stopping or self._dropped else []
        for process in busy:
            process.kill()
        # After a stop a thread may be stuck in its item for ever; as a daemon it is not waited for.
        # With a process it is not stuck: the process was killed, and the thread sees that.
        for thread in self._threads.values() if flow.is_done or self._processes else ():
            thread.join(JOIN_SECONDS)
        for process in self._processes.values():
            process.close()
