"""Any history at all: counters equal a recount, scalar equals batch, and a replay decides the same again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.clock import VirtualClock
from tallystick.core.lifecycles import SlotState
from tallystick.core.retry import RetryPolicy
from tallystick.errors import BadInput, SequenceFatal
from tallystick.stage.sequence.batch import SequenceBatch, _delay
from tallystick.stage.sequence.events import EventKind, SlotEvent
from tallystick.stage.sequence.policy import SlotPolicy, StuckOffer
from tallystick.stage.sequence.sequence import Sequence

TOTAL = 12
NAMES = (("OSError", "Exception"), ("NoRetry", "tallystick.errors.NoRetry"))

policies = st.builds(
    SlotPolicy,
    lease_ms=st.sampled_from([1, 40, 100]),
    offer_ms=st.sampled_from([None, 60]),
    stuck=st.sampled_from(list(StuckOffer)),
    retry=st.builds(
        RetryPolicy,
        attempts_max=st.integers(1, 3),
        base_ms=st.sampled_from([0, 20]),
        jitter=st.sampled_from([0.0, 0.5]),
    ),
)
layouts = st.sampled_from([TOTAL, range(100, 100 + TOTAL), [seq * seq for seq in range(TOTAL)]])
owners = st.sampled_from(["a", "b"])
many = st.one_of(
    st.lists(st.integers(0, TOTAL - 1), max_size=6),
    st.tuples(st.integers(0, TOTAL - 1), st.integers(0, TOTAL)).map(lambda pair: range(*pair)),
)
# How much of the attempt a reporter knows: the current one, the one before, or nonsense.
offsets = st.sampled_from([0, 0, 0, 0, 1, -1])
calls = st.one_of(
    st.tuples(st.just("dispatch"), many, st.sampled_from(["", "", "a"])),
    st.tuples(st.just("start"), many, owners),
    st.tuples(st.sampled_from(["succeed", "skip", "heartbeat"]), many, owners, offsets),
    st.tuples(st.just("fail"), many, owners, offsets, st.sampled_from(NAMES)),
    st.tuples(st.just("cancel"), many),
    st.tuples(st.just("commit"), st.integers(0, TOTAL)),
    st.tuples(
        st.just("reclaim"),
    ),
    st.tuples(st.just("pass"), st.integers(0, 80)),
)
histories = st.lists(calls, max_size=25)

# A call that never refuses keeps histories alive; illegal ones are met in every fifth history or so.
LEGAL_STEPS = {(0, 1), (1, 2), (2, 3), (2, 4), (2, 5), (1, 6), (2, 6), (3, 7), (4, 7), (5, 7), (6, 7)}
COMPOUND_STEPS = {(2, 1), (1, 5), (0, 6)}


class Played:
    """One Sequence with its history: what was called, what came back, what was emitted."""

    def __init__(self, expected: Any, policy: SlotPolicy, *, batched: bool) -> None:
        self.events: list[SlotEvent] = []
        self.sequence = Sequence(expected, policy=policy, clock=VirtualClock(), events=self.events.append)
        self.batch = SequenceBatch(self.sequence)
        self.batched = batched
        self.seqs = list(range(expected)) if isinstance(expected, int) else list(expected)
        self.now = 1_000
        self.answers: list[object] = []

    def play(self, call: tuple[Any, ...]) -> None:
        name, *rest = call
        try:
            self.answers.append(getattr(self, f"_{name}")(*rest))
        except (SequenceFatal, BadInput) as error:
            self.answers.append((type(error).__name__, error.as_dict()))

    def _each(
        self, chosen: list[int] | range, one: Callable[[int], Any], all_at_once: Callable[[Any], Any]
    ) -> Any:
        seqs = [self.seqs[index] for index in chosen]
        if not self.batched:
            return [one(seq) for seq in seqs]
        consecutive = isinstance(chosen, range) and self.sequence._seqs is None and seqs
        found = all_at_once(range(seqs[0], seqs[-1] + 1) if consecutive else np.array(seqs, dtype=np.int64))
        return [None] * len(seqs) if found is None else found.tolist()

    def _pass(self, ms: int) -> None:
        self.now += ms

    def _dispatch(self, chosen, to):
        return self._each(
            chosen,
            lambda seq: self.sequence.dispatch(seq, self.now, to),
            lambda seqs: self.batch.dispatch(seqs, self.now, to),
        )

    def _start(self, chosen, owner):
        return self._each(
            chosen,
            lambda seq: self.sequence.start(seq, owner, self.now),
            lambda seqs: self.batch.start(seqs, owner, self.now),
        )

    def _report(self, name, chosen, owner, offset):
        given = {seq: max(0, self.sequence.attempts(seq) + offset) for seq in self.seqs}
        return self._each(
            chosen,
            lambda seq: getattr(self.sequence, name)(seq, owner, given[seq], self.now),
            lambda seqs: getattr(self.batch, name)(
                seqs, owner, np.array([given[seq] for seq in seqs], dtype=np.int64), self.now
            ),
        )

    def _succeed(self, *rest):
        return self._report("succeed", *rest)

    def _skip(self, *rest):
        return self._report("skip", *rest)

    def _heartbeat(self, *rest):
        return self._report("heartbeat", *rest)

    def _fail(self, chosen, owner, offset, names):
        given = {seq: max(0, self.sequence.attempts(seq) + offset) for seq in self.seqs}
        return self._each(
            chosen,
            lambda seq: _delay(self.sequence.fail(seq, owner, given[seq], self.now, names)),
            lambda seqs: self.batch.fail(
                seqs, owner, np.array([given[seq] for seq in seqs], dtype=np.int64), self.now, names
            ),
        )

    def _cancel(self, chosen):
        return self._each(
            chosen,
            lambda seq: self.sequence.cancel(seq, self.now),
            lambda seqs: self.batch.cancel(seqs, self.now),
        )

    def _commit(self, limit):
        return self.sequence.commit_ready(limit)

    def _reclaim(self):
        return self.sequence.reclaim(self.now)

    def books(self) -> tuple[object, ...]:
        s = self.sequence
        return (
            s.states(),
            s.counts(),
            [s.attempts(seq) for seq in self.seqs],
            [s.owner(seq) for seq in self.seqs],
            [s.heartbeat_ms(seq) for seq in self.seqs],
            s.highest_seen,
            s.next_commit,
            s.stale_count,
            s.reclaimed_count,
            str(s.fatal),
        )


def only_used_steps(before: bytes, after: bytes, *, single: bool) -> bool:
    moved = {(a, b) for a, b in zip(before, after, strict=True) if a != b}
    return not single or moved <= LEGAL_STEPS | COMPOUND_STEPS


@settings(max_examples=150)
@given(layouts, policies, histories)
def test_counters_equal_a_recount_and_terminal_events_are_single_shot(expected, policy, history):
    played = Played(expected, policy, batched=False)
    for call in history:
        before = played.sequence.states()
        played.play(call)
        after = played.sequence.states()
        s = played.sequence
        assert s.counts() == s.recount()
        assert s.unseen_count + s.dispatched_count + s.in_flight_count + s.terminal_count == TOTAL
        assert s.committed_count <= s.terminal_count
        assert after[: s.committed_count] == bytes([SlotState.COMMITTED]) * s.committed_count
        assert SlotState.COMMITTED not in after[s.committed_count :]
        repeats = (
            call[0] != "pass"
            and len(call) > 1
            and isinstance(call[1], list)
            and len(set(call[1])) < len(call[1])
        )
        assert only_used_steps(before, after, single=not repeats)
    ended = [event.seq for event in played.events if event.kind is EventKind.TERMINAL]
    assert len(ended) == len(set(ended)) == played.sequence.terminal_count


@settings(max_examples=250)
@given(layouts, policies, histories)
def test_the_batch_path_is_the_scalar_path(expected, policy, history):
    scalar = Played(expected, policy, batched=False)
    batch = Played(expected, policy, batched=True)
    for call in history:
        scalar.play(call)
        batch.play(call)
        assert batch.answers == scalar.answers
        assert batch.books() == scalar.books()
    assert batch.events == scalar.events


@settings(max_examples=60)
@given(layouts, policies, histories)
def test_a_recorded_history_decides_the_same_way_when_it_is_played_again(expected, policy, history):
    first = Played(expected, policy, batched=False)
    for call in history:
        first.play(call)
    again = Played(expected, policy, batched=False)
    for call in history:
        again.play(call)
    assert again.answers == first.answers
    assert again.events == first.events
    assert again.books() == first.books()


@settings(max_examples=100)
@given(policies, histories)
def test_reclaim_finds_exactly_what_a_scan_would_find(policy, history):
    """The expiry index against the definition: in flight and not heard of for the whole lease."""
    played = Played(TOTAL, policy, batched=False)
    for call in history:
        if call[0] == "reclaim" and played.sequence.fatal is None:
            s, now = played.sequence, played.now
            due = []
            for seq in range(TOTAL):
                limit = {SlotState.IN_FLIGHT: policy.lease_ms, SlotState.DISPATCHED: policy.offer_ms}.get(
                    s.state(seq)
                )
                if limit is not None and now - s.heartbeat_ms(seq) >= limit:
                    due.append(seq)
            assert [gone.seq for gone in s.reclaim(now)] == due
        else:
            played.play(call)


def test_an_unknown_seq_spoils_a_batch_before_it_changes_anything():
    sequence = Sequence(4)
    with pytest.raises(BadInput):
        SequenceBatch(sequence).dispatch([1, 2, 99], 0)
    assert sequence.unseen_count == 4


def test_a_regular_batch_takes_the_vector_path_and_no_scalar_call(monkeypatch: pytest.MonkeyPatch):
    """Otherwise the equality above would compare the scalar path with itself."""

    def forbidden(*_args: object) -> None:
        pytest.fail("a scalar call")

    for order in (range(100), np.arange(100), np.arange(100)[::-1], list(range(0, 100, 3))):
        with monkeypatch.context() as patch:
            for name in ("dispatch", "start", "_settle", "fail", "heartbeat", "cancel"):
                patch.setattr(Sequence, name, forbidden)
            sequence = Sequence(100, policy=SlotPolicy(retry=RetryPolicy(attempts_max=2, jitter=0.0)))
            batch = SequenceBatch(sequence)
            batch.dispatch(order, 0)
            assert (batch.start(order, "w", 0) == 1).all()
            assert batch.heartbeat(order, "w", 1, 1).all()
            assert (batch.fail(order, "w", 1, 2) == 1_000).all()
            assert (batch.start(order, "w", 3) == 2).all()
            assert (batch.fail(order, "w", 2, 4) == -1).all()
            rest = sorted(set(range(100)) - {int(seq) for seq in order})
            batch.cancel(rest, 5)
        assert sequence.terminal_count == 100
        assert sequence.counts() == sequence.recount()


def test_a_sequence_can_grow_while_numpy_looks_at_it():
    sequence = Sequence(3)
    looking = (
        np.frombuffer(sequence._state, dtype=np.uint8),
        np.frombuffer(sequence._heartbeat, dtype=np.int64),
    )
    sequence.extend(2)
    SequenceBatch(sequence).dispatch(range(5), 7)
    assert sequence.dispatched_count == 5
    assert looking[0].sum() == 0, "what was looked at is the old copy"


@pytest.mark.parametrize("wrong", [1.5, None, "now", 2**70])
def test_a_bad_instant_changes_nothing(wrong: Any):
    sequence = Sequence(2)
    with pytest.raises((TypeError, OverflowError)):
        sequence.dispatch(0, wrong)
    assert sequence.counts() == sequence.recount() == {**dict.fromkeys(SlotState, 0), SlotState.UNSEEN: 2}
    sequence.dispatch(0, 0)
    with pytest.raises((TypeError, OverflowError)):
        sequence.start(0, "w", wrong)
    assert sequence.state(0) is SlotState.DISPATCHED
    assert sequence.counts() == sequence.recount()


ODD = 4


def in_flight(odd_owner: str = "w") -> Sequence:
    """Return a Sequence in which everything is in flight for the first time, by `w` except the odd one."""
    sequence = Sequence(8, policy=SlotPolicy(retry=RetryPolicy(attempts_max=3, jitter=0.0)))
    for seq in range(8):
        sequence.dispatch(seq, 0)
        sequence.start(seq, odd_owner if seq == ODD else "w", 0)
    return sequence


DEVIATIONS: dict[str, Callable[[Sequence], object]] = {
    "another attempt": lambda s: (s.fail(ODD, "w", 1, 0), s.start(ODD, "w", 0)),
    "another owner": lambda s: None,
    "waiting again": lambda s: s.fail(ODD, "w", 1, 0),
    "cancelled": lambda s: s.cancel(ODD, 0),
    "older heartbeat": lambda s: [s.heartbeat(seq, "w", 1, 29_999) for seq in range(8) if seq != ODD],
}


@pytest.mark.parametrize("name", ["succeed", "skip", "heartbeat", "fail"])
@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_one_odd_slot_in_a_batch_is_answered_as_a_scalar_call_would(name: str, deviation: str):
    now = 30_000 if deviation == "older heartbeat" else 1
    scalar, batch = (in_flight("x" if deviation == "another owner" else "w") for _ in range(2))
    for sequence in (scalar, batch):
        DEVIATIONS[deviation](sequence)
    answers = [getattr(scalar, name)(seq, "w", 1, now) for seq in range(8)]
    if name == "fail":
        answers = [_delay(answer) for answer in answers]
    found = getattr(SequenceBatch(batch), name)(range(8), "w", 1, now)
    assert found.tolist() == answers
    assert found[ODD] in {False, -2}
    assert batch.states() == scalar.states()
    assert batch.counts() == scalar.counts() == batch.recount()
    assert batch.stale_count == scalar.stale_count == 1


def test_a_slot_that_was_failed_in_a_batch_can_be_started_by_anyone():
    sequence = in_flight()
    SequenceBatch(sequence).fail(range(3), "w", 1, 0)
    assert [sequence.owner(seq) for seq in range(3)] == ["", "", ""]
    assert SequenceBatch(sequence).start(range(3), "x", 0).tolist() == [2, 2, 2]
