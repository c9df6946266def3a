"""The batch path of a Sequence: the same operations on many seqs at once, with numpy.

A batch means exactly what the scalar calls would mean, one after the other in the order given. When every
seq of the batch is regular (no repeats, all legal, nothing stale) the arrays are written in a few vector
operations under one hold of the lock; otherwise the scalar code runs in a loop. There is one semantics,
and the fast path is only taken where it cannot differ. An unknown seq refuses the whole batch. Numpy
pays from about a hundred seqs per batch.
"""

# ruff: noqa: SLF001 (the batch path is the other half of Sequence and works on its arrays)
from __future__ import annotations

from array import array
from collections.abc import Iterable
from collections.abc import Sequence as Seqs
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tallystick.core.lifecycles import SlotState
from tallystick.core.retry import GiveUp, RetryAfter
from tallystick.errors import BadInput
from tallystick.stage.sequence.events import EventKind
from tallystick.stage.sequence.policy import judge
from tallystick.stage.sequence.sequence import CANCEL, DISPATCH, FAIL, RETRY, SKIP, START, SUCCEED, Sequence
from tallystick.stage.sequence.slots import CANCELLER, NOBODY

Array: TypeAlias = npt.NDArray[Any]
Many: TypeAlias = range | Seqs[int] | Array

GAVE_UP: Final = -1
STALE: Final = -2
_CONTIGUOUS_MIN: Final = 2


class SequenceBatch:
    """Many seqs per call on one Sequence; several threads may share it, and mix it with scalar calls."""

    def __init__(self, sequence: Sequence) -> None:
        self.sequence = sequence

    def dispatch(self, seqs: Many, now_ms: int, to: str = "") -> None:
        """Offer UNSEEN seqs for their first attempt."""
        with self.sequence._lock:
            chosen = _Chosen(self.sequence, seqs)
            if chosen.are_all(_only_source(DISPATCH)):
                self._dispatch(chosen, now_ms, to)
                return
        for seq in chosen.seqs():
            self.sequence.dispatch(seq, now_ms, to)

    def start(self, seqs: Many, owner: str, now_ms: int) -> Array:
        """Take the leases of DISPATCHED seqs and return their attempts; 0 where it is another worker's."""
        sequence = self.sequence
        with sequence._lock:
            chosen = _Chosen(sequence, seqs)
            if owner and chosen.are_all(_only_source(START)):
                number = sequence._intern(owner)
                holders = chosen.owner[chosen.key]
                if ((holders == NOBODY) | (holders == number)).all():
                    return self._start(chosen, number, now_ms)
        return np.array([sequence.start(seq, owner, now_ms) for seq in chosen.seqs()], dtype=np.uint16)

    def succeed(self, seqs: Many, owner: str, attempts: int | Array, now_ms: int) -> Array:
        """Report successes; False where the report is stale and changed nothing."""
        return self._settle(seqs, owner, attempts, now_ms, SUCCEED)

    def skip(self, seqs: Many, owner: str, attempts: int | Array, now_ms: int) -> Array:
        """Report skips; False where the report is stale and changed nothing."""
        return self._settle(seqs, owner, attempts, now_ms, SKIP)

    def fail(
        self,
        seqs: Many,
        owner: str,
        attempts: int | Array,
        now_ms: int,
        error_names: tuple[str, ...] = ("Exception",),
    ) -> Array:
        """Report failures; return the delay before the next attempt, GAVE_UP or STALE, seq by seq."""
        sequence = self.sequence
        with sequence._lock:
            chosen = _Chosen(sequence, seqs)
            given = _per_seq(attempts, chosen.count)
            # With jitter every seq has a delay of its own, and there is nothing to compute together.
            if sequence.policy.retry.jitter == 0 and self._all_pass(chosen, owner, given, now_ms):
                return self._fail(chosen, owner, given, now_ms, error_names)
        verdicts = (
            sequence.fail(seq, owner, attempt, now_ms, error_names)
            for seq, attempt in zip(chosen.seqs(), given.tolist(), strict=True)
        )
        return np.array([_delay(verdict) for verdict in verdicts], dtype=np.int64)

    def heartbeat(self, seqs: Many, owner: str, attempts: int | Array, now_ms: int) -> Array:
        """Renew live leases; False where a lease is lost."""
        sequence = self.sequence
        with sequence._lock:
            chosen = _Chosen(sequence, seqs)
            given = _per_seq(attempts, chosen.count)
            if self._all_pass(chosen, owner, given, now_ms):
                chosen.heartbeat[chosen.key] = np.maximum(chosen.heartbeat[chosen.key], now_ms)
                return np.ones(chosen.count, dtype=np.bool_)
        pairs = zip(chosen.seqs(), given.tolist(), strict=True)
        return np.array([sequence.heartbeat(seq, owner, n, now_ms) for seq, n in pairs], dtype=np.bool_)

    def cancel(self, seqs: Many, now_ms: int) -> None:
        """End seqs that have no outcome yet."""
        sequence = self.sequence
        with sequence._lock:
            chosen = _Chosen(sequence, seqs)
            prior = chosen.state[chosen.key]
            if sequence._fatal is None and chosen.distinct and (prior <= SlotState.IN_FLIGHT).all():
                self._cancel(chosen, prior, now_ms)
                return
        for seq in chosen.seqs():
            sequence.cancel(seq, now_ms)

    # Everything below runs under the lock, on a batch that was found regular.

    def _dispatch(self, chosen: _Chosen, now_ms: int, to: str) -> None:
        sequence = self.sequence
        chosen.heartbeat[chosen.key] = now_ms
        if to and chosen.count:
            chosen.owner[chosen.key] = sequence._intern(to)
        chosen.attempts[chosen.key] = 1
        chosen.state[chosen.key] = SlotState.DISPATCHED
        self._count(SlotState.UNSEEN, SlotState.DISPATCHED, chosen.count)
        sequence._highest = max(sequence._highest, chosen.highest())
        if sequence._offers is not None:
            sequence._offers.file_many(chosen.packed(), now_ms)
            sequence._sweep_if_crowded(self._still)

    def _start(self, chosen: _Chosen, number: int, now_ms: int) -> Array:
        chosen.heartbeat[chosen.key] = now_ms
        chosen.owner[chosen.key] = number
        chosen.state[chosen.key] = SlotState.IN_FLIGHT
        self._count(SlotState.DISPATCHED, SlotState.IN_FLIGHT, chosen.count)
        sequence = self.sequence
        sequence._leases.file_many(chosen.packed(), now_ms)
        sequence._sweep_if_crowded(self._still)
        return np.array(chosen.attempts[chosen.key])

    def _settle(self, seqs: Many, owner: str, attempts: int | Array, now_ms: int, table: bytes) -> Array:
        sequence = self.sequence
        with sequence._lock:
            chosen = _Chosen(sequence, seqs)
            given = _per_seq(attempts, chosen.count)
            if self._all_pass(chosen, owner, given, now_ms):
                target = SlotState(table[SlotState.IN_FLIGHT])
                chosen.state[chosen.key] = target
                self._count(SlotState.IN_FLIGHT, target, chosen.count)
                self._tell_all(EventKind.TERMINAL, chosen, given, owner, now_ms)
                return np.ones(chosen.count, dtype=np.bool_)
        pairs = zip(chosen.seqs(), given.tolist(), strict=True)
        return np.array([sequence._settle(seq, owner, n, now_ms, table) for seq, n in pairs], dtype=np.bool_)

    def _all_pass(self, chosen: _Chosen, owner: str, given: Array, now_ms: int) -> bool:
        """Tell whether every report of the batch passes the fence."""
        number = self.sequence._owner_ids.get(owner)
        key = chosen.key
        return bool(
            number is not None
            and chosen.are_all(SlotState.IN_FLIGHT)
            and (chosen.attempts[key] == given).all()
            and (chosen.owner[key] == number).all()
            and (chosen.heartbeat[key] > now_ms - self.sequence.policy.lease_ms).all()
        )

    def _fail(
        self, chosen: _Chosen, owner: str, given: Array, now_ms: int, error_names: tuple[str, ...]
    ) -> Array:
        """Judge the failures of one attempt number together: without jitter they have one verdict."""
        sequence = self.sequence
        delays = np.full(chosen.count, GAVE_UP, dtype=np.int64)
        for attempt in np.unique(given).tolist():
            delays[given == attempt] = _delay(judge(sequence.policy, 0, attempt, error_names))
        again = delays >= 0
        slots = chosen.slots()
        retried, ended = slots[again], slots[~again]
        chosen.state[retried] = RETRY[FAIL[SlotState.IN_FLIGHT]]
        chosen.attempts[retried] += 1
        chosen.owner[retried] = NOBODY
        chosen.heartbeat[retried] = now_ms + delays[again]
        chosen.state[ended] = FAIL[SlotState.IN_FLIGHT]
        self._count(SlotState.IN_FLIGHT, SlotState.DISPATCHED, len(retried))
        self._count(SlotState.IN_FLIGHT, SlotState.TERMINAL_FAIL, len(ended))
        if sequence._offers is not None:
            for delay in np.unique(delays[again]).tolist():
                packed = slots[delays == delay].astype(np.uint32)
                sequence._offers.file_many(packed.tobytes(), now_ms + delay)
        if sequence._emit is not None:
            name = error_names[0] if error_names else ""
            for slot, attempt, delay in zip(slots.tolist(), given.tolist(), delays.tolist(), strict=True):
                kind = EventKind.TERMINAL if delay < 0 else EventKind.ATTEMPT_FAILED
                sequence._tell(kind, slot, attempt, owner, now_ms, error=name)
        return delays

    def _cancel(self, chosen: _Chosen, prior: Array, now_ms: int) -> None:
        sequence = self.sequence
        found = np.bincount(prior, minlength=len(SlotState))
        target = SlotState(CANCEL[SlotState.DISPATCHED])
        if found[SlotState.UNSEEN]:
            sequence._highest = max(sequence._highest, int(chosen.slots()[prior == SlotState.UNSEEN].max()))
        chosen.state[chosen.key] = target
        chosen.owner[chosen.key] = CANCELLER
        for state in (SlotState.UNSEEN, SlotState.DISPATCHED, SlotState.IN_FLIGHT):
            self._count(state, target, int(found[state]))
        name = sequence._owner_names[CANCELLER]
        self._tell_all(EventKind.TERMINAL, chosen, chosen.attempts[chosen.key], name, now_ms)

    def _count(self, prior: SlotState, target: SlotState, moved: int) -> None:
        self.sequence._count[prior] -= moved
        self.sequence._count[target] += moved

    def _tell_all(self, kind: EventKind, chosen: _Chosen, attempts: Array, owner: str, now_ms: int) -> None:
        if self.sequence._emit is not None:
            for slot, attempt in zip(chosen.slots().tolist(), attempts.tolist(), strict=True):
                self.sequence._tell(kind, slot, attempt, owner, now_ms)

    def _still(self, state: int, slots: array[int]) -> array[int]:
        """Return those of the slots that are in this state."""
        if not self.sequence._count[state]:
            return array("I")
        indices = np.frombuffer(slots, dtype=np.uint32)
        states = np.frombuffer(self.sequence._state, dtype=np.uint8)
        return array("I", indices[states[indices] == state].tobytes())


class _Chosen:
    """The slots of one batch, and the arrays they are in, as numpy sees them."""

    __slots__ = ("attempts", "count", "distinct", "heartbeat", "key", "owner", "sequence", "state")

    def __init__(self, sequence: Sequence, seqs: Many) -> None:
        self.sequence = sequence
        self.state: Array = np.frombuffer(sequence._state, dtype=np.uint8)
        self.attempts: Array = np.frombuffer(sequence._attempts, dtype=np.uint16)
        self.owner: Array = np.frombuffer(sequence._owner, dtype=np.uint32)
        self.heartbeat: Array = np.frombuffer(sequence._heartbeat, dtype=np.int64)
        self.key: Any = _slots_of(sequence, seqs)
        if isinstance(self.key, slice):
            self.count = self.key.stop - self.key.start
            self.distinct = True
        else:
            self.count = len(self.key)
            self.distinct = _are_distinct(self.key)

    def are_all(self, state: int) -> bool:
        """Tell whether each slot is there once, all in this state, in a Sequence that is not latched."""
        return bool(self.sequence._fatal is None and self.distinct and (self.state[self.key] == state).all())

    def slots(self) -> Array:
        """Return the indices of the slots, in the order of the batch."""
        if isinstance(self.key, slice):
            return np.arange(self.key.start, self.key.stop)
        return np.asarray(self.key)

    def seqs(self) -> Iterable[int]:
        """Return the seqs of the batch as plain integers, in its order."""
        sequence = self.sequence
        return [sequence._seq(slot) for slot in self.slots().tolist()]

    def highest(self) -> int:
        """Return the highest index of the batch, -1 for an empty one."""
        if isinstance(self.key, slice):
            return int(self.key.stop) - 1 if self.count else -1
        return int(self.key.max()) if self.count else -1

    def packed(self) -> bytes:
        """Return the indices as native unsigned 32-bit integers."""
        return self.slots().astype(np.uint32).tobytes()


def _slots_of(sequence: Sequence, seqs: Many) -> slice | Array:
    """Return where the seqs are, as a slice if they are consecutive; an unknown seq raises."""
    total = len(sequence._state)
    if sequence._seqs is None and isinstance(seqs, range) and seqs.step == 1:
        start, stop = seqs.start - sequence._first, seqs.stop - sequence._first
        if len(seqs) >= _CONTIGUOUS_MIN and start >= 0 and stop <= total:
            return slice(start, stop)
    wanted = np.asarray(seqs, dtype=np.int64)
    if sequence._seqs is None:
        found = wanted - sequence._first
        unknown = (found < 0) | (found >= total)
    else:
        known: Array = np.frombuffer(sequence._seqs, dtype=np.int64)
        found = np.searchsorted(known, wanted)
        unknown = known[np.minimum(found, total - 1)] != wanted
    if unknown.any():
        seq = int(wanted[unknown][0])
        raise BadInput(f"seq {seq} is not expected here", seq=seq)
    return found


def _are_distinct(slots: Array) -> bool:
    if (slots[1:] > slots[:-1]).all():
        return True
    ordered = np.sort(slots.astype(np.uint32))  # half the width, and a third less time
    return bool((ordered[1:] != ordered[:-1]).all())


def _per_seq(attempts: int | Array, count: int) -> Array:
    return np.broadcast_to(np.asarray(attempts, dtype=np.int64), (count,))


def _delay(verdict: RetryAfter | GiveUp | None) -> int:
    if verdict is None:
        return STALE
    return verdict.delay_ms if isinstance(verdict, RetryAfter) else GAVE_UP


def _only_source(table: bytes) -> int:
    """Return the one state from which a trigger is legal."""
    (source,) = (state for state in SlotState if table[state])
    return source
