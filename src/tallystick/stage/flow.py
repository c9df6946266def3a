"""The rules of a stage without its threads: what may be admitted, started, committed, and when.

Nothing here waits, sleeps or reads a clock; the lanes call it under one lock. So every schedule can be
played in a test. The promises, which hold for any order of calls:

- Seqs are committed in order, each once, in contiguous runs.
- The head of the line (the seq at the commit cursor) is never held back: backpressure applies to every
  seq except that one, so as long as something is unfinished, something can be done about it.
- At most `active` windows are open, and results beyond `buffer_bytes` are only those already in flight.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any, NamedTuple

from tallystick.core.lifecycles import SlotState
from tallystick.core.retry import RetryAfter
from tallystick.errors import StageFault, TallyError
from tallystick.stage.diagnostics import Diagnostics, WindowOccupancy
from tallystick.stage.outcome import CANCEL, FAIL, SKIP, SUCCESS, ItemFailure, Outcome, Result
from tallystick.stage.sequence.policy import SlotPolicy
from tallystick.stage.windows import Window


class Ticket(NamedTuple):
    """The right of one worker to compute one seq, as the slot knows it."""

    seq: int
    item: Any
    attempt: int
    owner: str
    window: Window


class Finished(NamedTuple):
    """An outcome whose turn has come, with what the journal needs of it."""

    outcome: Outcome[Any]
    result: Result
    key: str


class Flow:
    """Where every admitted seq stands, from admission to commit."""

    def __init__(self, *, first: int, active: int, policy: SlotPolicy, buffer_bytes: float) -> None:
        self.next_commit = first
        self.buffered_bytes = 0
        self.started = 0
        self.stale = 0
        self.reclaimed = 0
        self.retried = 0
        self.finished = dict.fromkeys((SUCCESS, SKIP, FAIL, CANCEL), 0)
        self.input_ended = False
        self.stopping = False
        self._windows: deque[Window] = deque()
        self._active = active
        self._policy = policy
        self._buffer_bytes = buffer_bytes
        self._first = first
        self._end = first
        self._next_fresh = first
        self._waiting: list[tuple[int, int]] = []  # (due_ms, seq) of attempts whose backoff is not over
        self._again: list[int] = []  # seqs to be tried again now, lowest first
        self._halt: int | None = None  # the lowest seq that a stop cancelled; nothing from there on commits

    # Admission.

    def admit(self, item: object, key: str, window_number: int, now_ms: int) -> bool:
        """Take one more item into its window; False means that too many windows are open for it."""
        windows = self._windows
        if not windows or windows[-1].number != window_number:
            if windows:
                windows[-1].sealed = True
                self._retire()
            if len(windows) >= self._active:
                return False
            windows.append(Window(window_number, self._end, self._policy))
        windows[-1].append(item, key, now_ms)
        self._end += 1
        return True

    def end_input(self) -> None:
        """Know that no further item will come."""
        self.input_ended = True
        if self._windows:
            self._windows[-1].sealed = True
            self._retire()

    # Compute.

    def take(self, owner: str, now_ms: int) -> Ticket | None:
        """Start the lowest seq that may be started now, or return None."""
        while self._waiting and self._waiting[0][0] <= now_ms:
            heapq.heappush(self._again, heapq.heappop(self._waiting)[1])
        if self._again:
            seq = self._again[0]
        elif self._next_fresh < self._end:
            seq = self._next_fresh
        else:
            return None
        # A full buffer holds back everything but the head of the line, which alone can empty it.
        if self.buffered_bytes >= self._buffer_bytes and seq != self.next_commit:
            return None
        if self._again:
            heapq.heappop(self._again)
        else:
            self._next_fresh += 1
        window = self._window_of(seq)
        attempt = window.sequence.start(seq, owner, now_ms)
        if not attempt:
            raise self.fault(f"seq {seq} was handed out, and another worker holds it")
        self.started += 1
        return Ticket(seq, window.items[seq - window.first], attempt, owner, window)

    def report(self, ticket: Ticket, result: Result, now_ms: int) -> bool:
        """Take in what an attempt came to; False means that the report is stale and changed nothing."""
        seq, _, attempt, owner, window = ticket
        sequence = window.sequence
        state = result.state
        if state is SUCCESS:
            accepted = sequence.succeed(seq, owner, attempt, now_ms)
        elif state is SKIP:
            accepted = sequence.skip(seq, owner, attempt, now_ms)
        elif state is CANCEL:
            accepted = sequence.heartbeat(seq, owner, attempt, now_ms)
            if accepted:
                sequence.cancel(seq, now_ms)
        else:
            verdict = sequence.fail(seq, owner, attempt, now_ms, result.error_names)
            accepted = verdict is not None
            if isinstance(verdict, RetryAfter):
                self._try_again(window, seq, now_ms, verdict.delay_ms)
                return True
        if accepted:
            self._keep(window, seq, result)
        else:
            self.stale += 1
        return accepted

    def heartbeat(self, ticket: Ticket, now_ms: int) -> bool:
        """Renew the lease of a ticket; False means that it is lost."""
        return ticket.window.sequence.heartbeat(ticket.seq, ticket.owner, ticket.attempt, now_ms)

    def reclaim(self, now_ms: int) -> list[str]:
        """Take back every expired lease and return the workers that lost one."""
        lost = []
        for window in self._windows:
            for gone in window.sequence.reclaim(now_ms):
                self.reclaimed += 1
                lost.append(gone.owner)
                if gone.state is FAIL:
                    failure = ItemFailure("LeaseExpired", f"no sign of life for {self._policy.lease_ms} ms")
                    self._keep(window, gone.seq, Result(FAIL, failure=failure))
                else:
                    self._try_again(window, gone.seq, now_ms, gone.delay_ms)
        return lost

    @property
    def has_retries(self) -> bool:
        """Tell whether seqs whose backoff is over wait for a worker."""
        return bool(self._again)

    def next_due_ms(self) -> int | None:
        """Return when the next backoff is over."""
        return self._waiting[0][0] if self._waiting else None

    # Commit.

    def ready(self, limit: int) -> int:
        """Return how many outcomes from the commit cursor on can be committed now, up to `limit`."""
        if not self._windows:
            return 0
        if self._halt is not None:
            limit = min(limit, self._halt - self.next_commit)
        return self._windows[0].sequence.ready(limit)

    def peek(self, count: int, bytes_max: float) -> list[Finished]:
        """Return the next outcomes in order, as many as `count` and `bytes_max` allow but at least one."""
        window = self._windows[0]
        start = self.next_commit - window.first
        found: list[Finished] = []
        size = 0
        for index in range(start, start + count):
            result = window.results[index]
            if result is None:
                raise self.fault(f"seq {window.first + index} is terminal without a result")
            size += result.size_bytes
            if found and size > bytes_max:
                break
            seq = window.first + index
            attempts = window.sequence.attempts(seq)
            outcome: Outcome[Any] = Outcome(
                seq, window.items[index], result.state, result.value, result.failure, attempts
            )
            found.append(Finished(outcome, result, window.keys[index]))
        return found

    def commit(self, count: int) -> None:
        """Move the commit cursor over this many outcomes, which were peeked at before."""
        window = self._windows[0]
        if window.sequence.commit_ready(count) != count:
            raise self.fault(f"{count} outcomes from seq {self.next_commit} on were to be committed")
        start = self.next_commit - window.first
        for index in range(start, start + count):
            result = window.results[index]
            self.buffered_bytes -= result.size_bytes if result else 0
            window.items[index] = window.results[index] = None
        self.next_commit += count
        self._retire()

    # The end.

    @property
    def is_latched(self) -> bool:
        """Tell whether a slot was asked for an illegal move, so that nothing can be moved any more."""
        return any(window.sequence.fatal is not None for window in self._windows)

    @property
    def is_done(self) -> bool:
        """Tell whether every item there will be is committed."""
        return self.input_ended and not self._windows

    @property
    def is_settled(self) -> bool:
        """Tell whether a stop has nothing left to wait for: no lease, and nothing more to commit."""
        return self.in_flight == 0 and not self.ready(1)

    @property
    def in_flight(self) -> int:
        """Return how many seqs are being computed."""
        return sum(window.sequence.in_flight_count for window in self._windows)

    def stop(self, now_ms: int) -> None:
        """Start nothing more: cancel what was not begun, and let what was begun come to its end."""
        self.stopping = True
        self._cancel_all(SlotState.DISPATCHED, now_ms)
        self._waiting.clear()
        self._again.clear()
        self._next_fresh = self._end

    def force(self, now_ms: int) -> None:
        """Cancel what is still in flight; whatever its workers report from now on is stale."""
        self._cancel_all(SlotState.IN_FLIGHT, now_ms)

    def diagnostics(self) -> Diagnostics:
        """Return where everything stands."""
        windows = tuple(
            WindowOccupancy(
                window.number,
                window.first,
                len(window.items),
                window.sealed,
                window.sequence.dispatched_count,
                window.sequence.in_flight_count,
                window.sequence.terminal_count,
                window.sequence.committed_count,
            )
            for window in list(self._windows)
        )
        unfinished = [
            (window.first + index, SlotState(code).name)
            for window in list(self._windows)
            for index, code in enumerate(window.sequence.states())
            if code <= SlotState.IN_FLIGHT
        ]
        oldest = unfinished[0] if unfinished else (None, "")
        lag = sum(window.terminal - window.committed for window in windows)
        return Diagnostics(
            next_commit=self.next_commit,
            highest_seen=self._end - 1,
            terminal=self.next_commit - self._first + lag,
            in_flight=sum(window.in_flight for window in windows),
            windows=windows,
            oldest_blocked=oldest[0],
            oldest_blocked_state=oldest[1],
            buffered_bytes=self.buffered_bytes,
            commit_lag=lag,
        )

    def fault(self, what: str, cause: TallyError | None = None) -> StageFault:
        """Return the error of a broken invariant, with everything a person needs to find out why."""
        found = self.diagnostics()
        details = cause.fields if cause is not None else {}
        return StageFault(f"{what}\n{found}", diagnostics=found.as_dict(), **details)

    def _keep(self, window: Window, seq: int, result: Result) -> None:
        window.results[seq - window.first] = result
        self.buffered_bytes += result.size_bytes
        self.finished[result.state] += 1

    def _try_again(self, window: Window, seq: int, now_ms: int, delay_ms: int) -> None:
        if self.stopping:
            self._cancel(window, seq, now_ms)
            return
        self.retried += 1
        heapq.heappush(self._waiting, (now_ms + delay_ms, seq))

    def _cancel_all(self, state: SlotState, now_ms: int) -> None:
        for window in self._windows:
            for index, code in enumerate(window.sequence.states()):
                if code == state:
                    self._cancel(window, window.first + index, now_ms)

    def _cancel(self, window: Window, seq: int, now_ms: int) -> None:
        window.sequence.cancel(seq, now_ms)
        self._keep(window, seq, Result(CANCEL, failure=ItemFailure("Stopped", "the stage was stopped")))
        self._halt = seq if self._halt is None else min(self._halt, seq)

    def _window_of(self, seq: int) -> Window:
        for window in self._windows:
            if seq < window.end:
                return window
        raise self.fault(f"seq {seq} belongs to no open window")

    def _retire(self) -> None:
        while self._windows and self._windows[0].is_spent:
            self._windows.popleft()
