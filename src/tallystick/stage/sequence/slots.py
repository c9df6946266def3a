"""The memory of a Sequence: fifteen bytes per slot, O(1) counters, one latch.

A slot is a state byte, two bytes of attempts, four of owner and eight of heartbeat. A set of expected seqs
with gaps costs eight more. Nothing here moves a slot; `sequence` and `batch` do, under the lock.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Final

from tallystick.clock import Clock, SystemClock
from tallystick.core.lifecycles import SLOT, SlotState
from tallystick.errors import BadInput, SequenceFatal
from tallystick.stage.sequence.events import SlotEvent
from tallystick.stage.sequence.expiry import ExpiryIndex
from tallystick.stage.sequence.policy import SlotPolicy

SLOTS_MAX: Final = 0xFFFFFFFF  # what four bytes can number

# Owners that are not workers. A slot that one of them ended is no longer its worker's.
NOBODY: Final = 0
RECLAIMER: Final = 1
CANCELLER: Final = 2
_RESERVED: Final = ("", "(reclaimer)", "(canceller)")


def moves(trigger: str) -> bytes:
    """Return, for each prior state, the state that a trigger leads to; 0 where it is illegal.

    UNSEEN is the target of no move, so its code is free to mean "illegal".
    """
    table = bytearray(len(SlotState))
    for transition in SLOT.transitions:
        if transition.trigger == trigger:
            table[transition.source] = transition.target
    return bytes(table)


assert all(transition.target is not SlotState.UNSEEN for transition in SLOT.transitions)
assert len(SlotState) == 8
assert [array(kind).itemsize for kind in "HIq"] == [2, 4, 8]

# For bytes.translate: 1 where a slot still blocks the commit cursor.
_OPEN: Final = bytes(1 if code < SlotState.TERMINAL_SUCCESS else 0 for code in range(256))
_RUN_FIRST_LOOK: Final = 64


class SlotTable:
    """States, attempts, owners and heartbeats of the expected seqs, and everything that can be read."""

    __slots__ = (
        "_acquire",
        "_attempts",
        "_clock",
        "_count",
        "_cursor",
        "_dense",
        "_emit",
        "_fatal",
        "_first",
        "_heartbeat",
        "_highest",
        "_leases",
        "_lock",
        "_offers",
        "_owner",
        "_owner_ids",
        "_owner_names",
        "_release",
        "_seqs",
        "_state",
        "policy",
        "reclaimed_count",
        "stale_count",
    )

    def __init__(
        self,
        expected: int | Iterable[int],
        *,
        policy: SlotPolicy | None = None,
        clock: Clock | None = None,
        events: Callable[[SlotEvent], object] | None = None,
    ) -> None:
        """Expect seqs 0..n-1, or the given seqs in increasing order.

        `events` is called under the lock with every fact, in order; it must be quick and must not call back.
        """
        self.policy = policy or SlotPolicy()
        self.stale_count = 0
        self.reclaimed_count = 0
        self._lock = threading.Lock()
        self._acquire = self._lock.acquire
        self._release = self._lock.release
        self._clock = clock or SystemClock()
        self._emit = events
        self._fatal: SequenceFatal | None = None
        self._first, self._seqs, total = _layout(expected)
        # True while a seq is found by subtraction and nothing is latched: what the hot path asks first.
        self._dense = self._seqs is None
        self._state = bytearray(total)
        self._attempts = array("H", bytes(2 * total))
        self._owner = array("I", bytes(4 * total))
        self._heartbeat = array("q", bytes(8 * total))
        self._count = [total, 0, 0, 0, 0, 0, 0, 0]
        self._highest = -1
        self._cursor = 0
        self._owner_names = list(_RESERVED)
        # A worker that calls itself like a reserved owner gets a number of its own, like any other.
        self._owner_ids: dict[str, int] = {}
        self._leases = ExpiryIndex(self.policy.lease_ms)
        self._offers = None if self.policy.offer_ms is None else ExpiryIndex(self.policy.offer_ms)

    # Reading never waits for the latch: a person who looks for the reason must be able to look.

    def __len__(self) -> int:
        return len(self._state)

    @property
    def fatal(self) -> SequenceFatal | None:
        """Return the error that stopped this Sequence, if one did."""
        return self._fatal

    @property
    def unseen_count(self) -> int:
        """Return how many slots wait for their first dispatch."""
        return self._count[SlotState.UNSEEN]

    @property
    def dispatched_count(self) -> int:
        """Return how many slots are DISPATCHED now."""
        return self._count[SlotState.DISPATCHED]

    @property
    def in_flight_count(self) -> int:
        """Return how many slots are IN_FLIGHT now."""
        return self._count[SlotState.IN_FLIGHT]

    @property
    def terminal_count(self) -> int:
        """Return how many slots have their outcome; those that were committed stay counted."""
        return sum(self._count[SlotState.TERMINAL_SUCCESS :])

    @property
    def committed_count(self) -> int:
        """Return how many slots are COMMITTED."""
        return self._count[SlotState.COMMITTED]

    @property
    def next_commit(self) -> int | None:
        """Return the seq at the commit cursor, or None when everything is committed."""
        return self._seq(self._cursor) if self._cursor < len(self._state) else None

    @property
    def highest_seen(self) -> int | None:
        """Return the highest seq that was ever dispatched."""
        return self._seq(self._highest) if self._highest >= 0 else None

    def state(self, seq: int) -> SlotState:
        """Return where a seq stands."""
        return SlotState(self._state[self._find(seq)])

    def attempts(self, seq: int) -> int:
        """Return how often a seq entered DISPATCHED by dispatch or retry."""
        return self._attempts[self._find(seq)]

    def owner(self, seq: int) -> str:
        """Return the owner that holds a seq, or held it last; empty while it is offered."""
        return self._owner_names[self._owner[self._find(seq)]]

    def heartbeat_ms(self, seq: int) -> int:
        """Return when the holder was last heard of, on the clock that its heartbeats use."""
        return self._heartbeat[self._find(seq)]

    def states(self) -> bytes:
        """Return a copy of all state bytes, in seq order."""
        with self._lock:
            return bytes(self._state)

    def recount(self) -> dict[SlotState, int]:
        """Count the slots in each state by looking at all of them: for tests and audits, not for use."""
        states = self.states()
        return {state: states.count(state) for state in SlotState}

    def counts(self) -> dict[SlotState, int]:
        """Return how many slots are in each state now, from the counters."""
        with self._lock:
            return dict(zip(SlotState, self._count, strict=True))

    def extend(self, count: int = 1) -> None:
        """Expect this many more seqs, right after the last one."""
        with self._lock:
            self._check_latch()
            if len(self._state) + count > SLOTS_MAX:
                raise BadInput(f"a sequence holds at most {SLOTS_MAX} slots", slots=len(self._state) + count)
            if self._seqs is not None:
                last = self._seqs[-1]
                self._seqs = _longer(self._seqs, array("q", range(last + 1, last + 1 + count)).tobytes())
            self._attempts = _longer(self._attempts, bytes(2 * count))
            self._owner = _longer(self._owner, bytes(4 * count))
            self._heartbeat = _longer(self._heartbeat, bytes(8 * count))
            try:
                self._state.extend(bytes(count))
            except BufferError:
                self._state = bytearray(self._state) + bytes(count)
            self._count[0] += count

    def ready(self, limit: int | None = None) -> int:
        """Return how many slots from the commit cursor on are terminal without a gap, up to `limit`."""
        with self._lock:
            return self._ready(len(self._state) if limit is None else limit)

    def _ready(self, limit: int) -> int:
        found = 0
        look = _RUN_FIRST_LOOK
        end = min(self._cursor + limit, len(self._state))
        position = self._cursor
        # Looking further and further ahead costs what the run is long, however much lies behind it.
        while position < end:
            chunk = self._state[position : min(position + look, end)]
            gap = chunk.translate(_OPEN).find(1)
            if gap >= 0:
                return found + gap
            found += len(chunk)
            position += len(chunk)
            look *= 2
        return found

    def _seq(self, index: int) -> int:
        return self._first + index if self._seqs is None else self._seqs[index]

    def _find(self, seq: int) -> int:
        if self._seqs is None:
            index = seq - self._first
            if 0 <= index < len(self._state):
                return index
        else:
            index = bisect_left(self._seqs, seq)
            if index < len(self._seqs) and self._seqs[index] == seq:
                return index
        raise BadInput(f"seq {seq} is not expected here", seq=seq)

    def _check_latch(self) -> None:
        if self._fatal is not None:
            raise self._fatal.with_traceback(None)

    def _intern(self, owner: str) -> int:
        number = self._owner_ids.get(owner)
        if number is None:
            if not owner:
                raise BadInput("a lease needs an owner; give the worker a token")
            number = self._owner_ids[owner] = len(self._owner_names)
            self._owner_names.append(owner)
        return number

    def _latch(self, index: int, attempted: SlotState, owner: str, why: str) -> SequenceFatal:
        """Stop this Sequence for good, and return the error that every later call will raise."""
        holder = owner or self._owner_names[self._owner[index]]
        prior = SlotState(self._state[index])
        self._fatal = SequenceFatal(
            self._seq(index), prior.name, attempted.name, holder, at_ms=self._clock.wall_ms(), why=why
        )
        self._dense = False
        return self._fatal


def _longer(numbers: array[int], more: bytes) -> array[int]:
    """Return the array with more behind it, the same one if possible.

    A batch call that has just let go of the lock may still have numpy looking at the array, which then
    cannot grow. It looks no more than that, so a longer copy is as good.
    """
    try:
        numbers.frombytes(more)
    except BufferError:
        return array(numbers.typecode, numbers.tobytes() + more)
    return numbers


def _layout(expected: int | Iterable[int]) -> tuple[int, array[int] | None, int]:
    """Return the first seq, the sorted seqs when there are gaps, and how many there are."""
    if isinstance(expected, int):
        expected = range(expected)
    if isinstance(expected, range) and expected.step == 1:
        first, seqs, total = expected.start, None, len(expected)
    else:
        seqs = array("q", expected)
        first, total = (seqs[0] if seqs else 0), len(seqs)
        if any(after <= before for before, after in pairwise(seqs)):
            raise BadInput("expected seqs must be given in increasing order, each once")
        if not total or seqs[-1] - first == total - 1:
            seqs = None
    if total > SLOTS_MAX:
        raise BadInput(f"a sequence holds at most {SLOTS_MAX} slots", slots=total)
    return first, seqs, total
