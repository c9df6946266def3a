"""A Sequence: numbered slots that move through eight states by twelve legal moves and no other.

Every call is one atomic operation. A report passes one fence: the owner and the attempt must be those of
the slot, in flight, before the lease expires. What fails the fence is stale: it is counted, changes
nothing, and the caller is told. What passes it and asks for a move that the table does not list is fatal:
the Sequence is latched, and every later operation raises the same error.

Instants are milliseconds of a monotonic clock, given by the caller; only fatal errors read the wall clock.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from tallystick.core.lifecycles import SlotState
from tallystick.core.retry import GiveUp, RetryAfter
from tallystick.errors import BadInput
from tallystick.stage.sequence.events import EventKind, ReclaimedSlot, SlotEvent
from tallystick.stage.sequence.expiry import ExpiryIndex
from tallystick.stage.sequence.policy import LEASE_EXPIRED, OFFER_EXPIRED, StuckOffer, judge
from tallystick.stage.sequence.slots import CANCELLER, NOBODY, RECLAIMER, SlotTable, moves

DISPATCH: Final = moves("dispatch")
START: Final = moves("start")
SUCCEED: Final = moves("succeed")
SKIP: Final = moves("skip")
FAIL: Final = moves("fail")
CANCEL: Final = moves("cancel")
COMMIT: Final = moves("commit")
RETRY: Final = moves("retry")

_UNSEEN: Final = int(SlotState.UNSEEN)
_DISPATCHED: Final = int(SlotState.DISPATCHED)
_IN_FLIGHT: Final = int(SlotState.IN_FLIGHT)
_FAILED: Final = int(SlotState.TERMINAL_FAIL)
_COMMITTED: Final = int(SlotState.COMMITTED)
_CANCELLED: Final = int(SlotState.TERMINAL_CANCEL)

# The paths of moves that one operation takes, checked against the table when this module is imported.
assert RETRY[FAIL[_IN_FLIGHT]] == _DISPATCHED
assert FAIL[START[_DISPATCHED]] == _FAILED
assert CANCEL[DISPATCH[_UNSEEN]] == _CANCELLED


class Sequence(SlotTable):
    """The slots and their operations, one seq per call; `SequenceBatch(sequence)` takes many.

    The four calls of every item take the lock by hand: `with` costs as much again as the rest of the call.
    """

    __slots__ = ()

    def dispatch(self, seq: int, now_ms: int, to: str = "") -> None:
        """Offer an UNSEEN seq for its first attempt, to one worker or to anyone."""
        self._acquire()
        try:
            state = self._state
            index = seq - self._first
            if not self._dense or not 0 <= index < len(state):
                index = self._open(seq)
            prior = state[index]
            target = DISPATCH[prior]
            if not target:
                raise self._latch(index, SlotState.DISPATCHED, to, "only an UNSEEN seq can be dispatched")
            # What a bad argument could make fail goes first; the state is the last thing to change.
            self._heartbeat[index] = now_ms
            if to:
                self._owner[index] = self._intern(to)
            self._attempts[index] = 1
            state[index] = target
            count = self._count
            count[prior] -= 1
            count[target] += 1
            if index > self._highest:  # noqa: PLR1730 (max() would be the most expensive line here)
                self._highest = index
            offers = self._offers
            if offers is not None:
                if offers.last_from <= now_ms < offers.last_until:
                    offers.last.append(index)
                else:
                    self._turn(offers, index, now_ms)
        finally:
            self._release()

    def start(self, seq: int, owner: str, now_ms: int) -> int:
        """Take the lease of a DISPATCHED seq and return the attempt, or 0 if it is another worker's."""
        self._acquire()
        try:
            state = self._state
            index = seq - self._first
            if not self._dense or not 0 <= index < len(state):
                index = self._open(seq)
            prior = state[index]
            target = START[prior]
            number = self._owner_ids.get(owner) or self._intern(owner)
            holder = self._owner[index]
            if not target or (holder and holder != number):
                return self._refuse_start(index, owner, now_ms)
            self._heartbeat[index] = now_ms
            self._owner[index] = number
            state[index] = target
            count = self._count
            count[prior] -= 1
            count[target] += 1
            leases = self._leases
            if leases.last_from <= now_ms < leases.last_until:
                leases.last.append(index)
            else:
                self._turn(leases, index, now_ms)
            return self._attempts[index]
        finally:
            self._release()

    def succeed(self, seq: int, owner: str, attempt: int, now_ms: int) -> bool:
        """Report success; False means that the report is stale and changed nothing."""
        return self._settle(seq, owner, attempt, now_ms, SUCCEED)

    def skip(self, seq: int, owner: str, attempt: int, now_ms: int) -> bool:
        """Report that there was nothing to do; False means that the report is stale and changed nothing."""
        return self._settle(seq, owner, attempt, now_ms, SKIP)

    def fail(
        self, seq: int, owner: str, attempt: int, now_ms: int, error_names: tuple[str, ...] = ("Exception",)
    ) -> RetryAfter | GiveUp | None:
        """Report a failure and return what follows from it, or None if the report is stale.

        With a retryable error and budget left the slot passes TERMINAL_FAIL to DISPATCHED in this one
        operation, and no terminal event is emitted. Retrying later is not possible.
        """
        with self._lock:
            index = self._open(seq)
            if not self._passes(index, owner, attempt, now_ms, FAIL):
                self._refuse(index, owner, attempt, now_ms, SlotState.TERMINAL_FAIL)
                return None
            return self._judge_failure(index, self._owner[index], now_ms, error_names)

    def heartbeat(self, seq: int, owner: str, attempt: int, now_ms: int) -> bool:
        """Renew a live lease from now on; False means that it is lost, and nothing brings it back."""
        with self._lock:
            index = self._open(seq)
            if not self._passes(index, owner, attempt, now_ms, SUCCEED):
                self._note_stale(index, owner, attempt, now_ms)
                return False
            self._heartbeat[index] = max(self._heartbeat[index], now_ms)
            return True

    def cancel(self, seq: int, now_ms: int) -> None:
        """End a seq that has no outcome yet: UNSEEN by way of DISPATCHED, IN_FLIGHT by force."""
        with self._lock:
            index = self._open(seq)
            if not self._cancel(index, now_ms):
                raise self._latch(index, SlotState.TERMINAL_CANCEL, "", "the seq has its outcome already")

    def cancel_open(self, seqs: Iterable[int], now_ms: int) -> list[int]:
        """End those of the seqs that have no outcome yet, and return them; leave the others alone."""
        with self._lock:
            return [seq for seq in seqs if self._cancel(self._open(seq), now_ms)]

    def mark_committed(self, seq: int) -> bool:
        """Commit the terminal seq at the cursor; False means that it was COMMITTED before: a no-op.

        A seq ahead of the cursor is refused with `BadInput` and nothing changes: commits are in order.
        """
        self._acquire()
        try:
            state = self._state
            index = seq - self._first
            if not self._dense or not 0 <= index < len(state):
                index = self._open(seq)
            prior = state[index]
            if prior == _COMMITTED:
                return False
            target = COMMIT[prior]
            if not target:
                raise self._latch(index, SlotState.COMMITTED, "", "only a terminal seq can be committed")
            if index != self._cursor:
                first = self._seq(self._cursor)
                raise BadInput(
                    f"seq {seq} cannot be committed before seq {first}", seq=seq, next_commit=first
                )
            state[index] = target
            count = self._count
            count[prior] -= 1
            count[target] += 1
            self._cursor += 1
            return True
        finally:
            self._release()

    def commit_ready(self, limit: int | None = None) -> int:
        """Commit the longest run of terminal seqs at the cursor, up to `limit`, and return its length."""
        with self._lock:
            self._check_latch()
            length = self._ready(len(self._state) if limit is None else limit)
            start, end = self._cursor, self._cursor + length
            run = self._state[start:end]
            for prior in range(SlotState.TERMINAL_SUCCESS, _COMMITTED):
                self._count[prior] -= run.count(prior)
            self._count[_COMMITTED] += length
            self._state[start:end] = bytes((_COMMITTED,)) * length
            self._cursor = end
            self._sweep_if_crowded(self._still)
            return length

    def reclaim(self, now_ms: int) -> list[ReclaimedSlot]:
        """End every expired lease and every stuck offer, in seq order, and say what became of each.

        The outcome depends only on the policy, the slots' attempts and heartbeats, and `now_ms`.
        """
        with self._lock:
            self._check_latch()
            done = [self._reclaim_lease(index, now_ms) for index in self._expired_leases(now_ms)]
            done += [self._reclaim_offer(index, now_ms) for index in self._expired_offers(now_ms)]
            self.reclaimed_count += len(done)
            return sorted(done)

    # Everything below runs under the lock.

    def _open(self, seq: int) -> int:
        """Return the index of a seq that may be operated on."""
        self._check_latch()
        return self._find(seq)

    def _passes(self, index: int, owner: str, attempt: int, now_ms: int, table: bytes) -> bool:
        """Tell whether a report passes the fence and its move is legal."""
        return bool(
            table[self._state[index]]
            and self._attempts[index] == attempt
            and self._owner[index] == self._owner_ids.get(owner)
            and now_ms - self._heartbeat[index] < self.policy.lease_ms
        )

    def _settle(self, seq: int, owner: str, attempt: int, now_ms: int, table: bytes) -> bool:
        self._acquire()
        try:
            state = self._state
            index = seq - self._first
            if not self._dense or not 0 <= index < len(state):
                index = self._open(seq)
            prior = state[index]
            target = table[prior]
            if (
                not target
                or self._attempts[index] != attempt
                or self._owner[index] != self._owner_ids.get(owner)
                or now_ms - self._heartbeat[index] >= self._leases.timeout_ms
            ):
                self._refuse(index, owner, attempt, now_ms, SlotState(table[_IN_FLIGHT]))
                return False
            state[index] = target
            count = self._count
            count[prior] -= 1
            count[target] += 1
            if self._emit is not None:
                self._tell(EventKind.TERMINAL, index, attempt, owner, now_ms)
            return True
        finally:
            self._release()

    def _judge_failure(
        self, index: int, owner: int, now_ms: int, error_names: tuple[str, ...]
    ) -> RetryAfter | GiveUp:
        """Take an IN_FLIGHT slot to TERMINAL_FAIL, and on to DISPATCHED if the policy says so."""
        attempt = self._attempts[index]
        verdict = judge(self.policy, self._seq(index), attempt, error_names)
        target = FAIL[self._state[index]]
        name = self._owner_names[owner]
        if isinstance(verdict, RetryAfter):
            target = RETRY[target]
            self._heartbeat[index] = now_ms + verdict.delay_ms
            if self._offers is not None:
                self._offers.file(index, now_ms + verdict.delay_ms)
            self._attempts[index] = attempt + 1
            self._owner[index] = NOBODY
        self._state[index] = target
        self._count[_IN_FLIGHT] -= 1
        self._count[target] += 1
        kind = EventKind.ATTEMPT_FAILED if target == _DISPATCHED else EventKind.TERMINAL
        self._tell(kind, index, attempt, name, now_ms, error=error_names[0] if error_names else "")
        return verdict

    def _cancel(self, index: int, now_ms: int) -> bool:
        prior = self._state[index]
        if prior == _UNSEEN:
            # The table has no move from UNSEEN to TERMINAL_CANCEL, so the slot passes DISPATCHED on its way.
            self._state[index] = DISPATCH[prior]
            self._highest = max(self._highest, index)
        target = CANCEL[self._state[index]]
        if not target:
            return False
        self._state[index] = target
        self._owner[index] = CANCELLER
        self._count[prior] -= 1
        self._count[target] += 1
        self._tell(EventKind.TERMINAL, index, self._attempts[index], self._owner_names[CANCELLER], now_ms)
        return True

    def _refuse_start(self, index: int, owner: str, now_ms: int) -> int:
        """Refuse a start: 0 for an owner that lost the race, fatal for the holder or on UNSEEN."""
        prior = self._state[index]
        mine = self._owner[index] == self._owner_ids[owner]
        if prior == _UNSEEN or (mine and prior != _DISPATCHED):
            raise self._latch(index, SlotState.IN_FLIGHT, owner, "only a DISPATCHED seq can be started")
        self._note_stale(index, owner, self._attempts[index], now_ms)
        return 0

    def _refuse(self, index: int, owner: str, attempt: int, now_ms: int, attempted: SlotState) -> None:
        """Answer a report that did not pass: return if it is stale, raise if it cannot be."""
        current = self._attempts[index]
        prior = self._state[index]
        if not 1 <= attempt <= current or (attempt == current and prior == _DISPATCHED):
            raise self._latch(index, attempted, owner, f"attempt {attempt} was never started")
        mine = attempt == current and self._owner[index] == self._owner_ids.get(owner)
        if mine and prior != _IN_FLIGHT:
            raise self._latch(index, attempted, owner, "its holder has reported before")
        self._note_stale(index, owner, attempt, now_ms)

    def _note_stale(self, index: int, owner: str, attempt: int, now_ms: int) -> None:
        self.stale_count += 1
        self._tell(EventKind.STALE, index, attempt, owner, now_ms)

    def _tell(
        self, kind: EventKind, index: int, attempt: int, owner: str, now_ms: int, *, error: str = ""
    ) -> None:
        if self._emit is not None:
            state = SlotState(self._state[index])
            self._emit(SlotEvent(kind, self._seq(index), attempt, owner, state, now_ms, error))

    def _expired_leases(self, now_ms: int) -> list[int]:
        expired = []
        for index in self._leases.take_due(now_ms):
            if self._state[index] == _IN_FLIGHT:
                if now_ms - self._heartbeat[index] >= self.policy.lease_ms:
                    expired.append(index)
                else:
                    self._leases.file(index, self._heartbeat[index])
        return expired

    def _expired_offers(self, now_ms: int) -> list[int]:
        expired = []
        if self._offers is not None:
            for index in self._offers.take_due(now_ms):
                if self._state[index] == _DISPATCHED:
                    if now_ms - self._heartbeat[index] >= self._offers.timeout_ms:
                        expired.append(index)
                    else:
                        self._offers.file(index, self._heartbeat[index])
        return expired

    def _reclaim_lease(self, index: int, now_ms: int) -> ReclaimedSlot:
        holder = self._owner[index]
        attempt = self._attempts[index]
        # The reclaimer takes the slot over first: a report for it from now on is stale, not fatal.
        self._owner[index] = RECLAIMER
        verdict = self._judge_failure(index, holder, now_ms, LEASE_EXPIRED)
        delay_ms = verdict.delay_ms if isinstance(verdict, RetryAfter) else 0
        owner = self._owner_names[holder]
        return ReclaimedSlot(self._seq(index), attempt, owner, SlotState(self._state[index]), delay_ms)

    def _reclaim_offer(self, index: int, now_ms: int) -> ReclaimedSlot:
        """Offer a stuck slot again to anyone, or fail it under the reclaimer's own lease."""
        holder = self._owner_names[self._owner[index]]
        attempt = self._attempts[index]
        if self.policy.stuck is StuckOffer.FAIL:
            self._state[index] = START[self._state[index]]
            self._count[_DISPATCHED] -= 1
            self._count[_FAILED] += 1
            self._owner[index] = RECLAIMER
            self._state[index] = FAIL[self._state[index]]
            name = self._owner_names[RECLAIMER]
            self._tell(EventKind.TERMINAL, index, attempt, name, now_ms, error=OFFER_EXPIRED[0])
        else:
            self._owner[index] = NOBODY
            self._heartbeat[index] = now_ms
            if self._offers is not None:
                self._offers.file(index, now_ms)
            self._tell(EventKind.OFFERED_AGAIN, index, attempt, holder, now_ms)
        return ReclaimedSlot(self._seq(index), attempt, holder, SlotState(self._state[index]), 0)

    def _turn(self, expiry: ExpiryIndex, index: int, began_ms: int) -> None:
        """File a slot under a new bucket: a rare moment, and so the one to tidy up in."""
        self._sweep_if_crowded(self._still)
        expiry.file(index, began_ms)

    def _sweep_if_crowded(self, still: Callable[[int, array[int]], array[int]]) -> None:
        """Forget index entries of slots that have moved on, once they outnumber the others."""
        for expiry, state in ((self._leases, _IN_FLIGHT), (self._offers, _DISPATCHED)):
            if expiry is not None and expiry.is_crowded(self._count[state]):
                expiry.sweep(partial(still, state))

    def _still(self, state: int, slots: array[int]) -> array[int]:
        """Return those of the slots that are in this state."""
        if not self._count[state]:
            return array("I")
        states = self._state
        return array("I", [slot for slot in slots if states[slot] == state])
