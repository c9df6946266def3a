"""Every legal move is walked; every other one, at every state, is fatal with the five fields and latches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.clock import VirtualClock
from tallystick.core.lifecycles import SLOT, SlotState
from tallystick.core.retry import GiveUp, GiveUpReason, RetryAfter, RetryPolicy
from tallystick.errors import BadInput, SequenceFatal
from tallystick.stage.sequence.events import EventKind, SlotEvent
from tallystick.stage.sequence.policy import SlotPolicy
from tallystick.stage.sequence.sequence import Sequence

WALL_MS = 1_700_000_000_000
ONCE = SlotPolicy(retry=RetryPolicy(attempts_max=1, jitter=0.0))
TWICE = SlotPolicy(retry=RetryPolicy(attempts_max=2, jitter=0.0))


def sequence_at(state: SlotState, policy: SlotPolicy = ONCE) -> Sequence:
    """Return a Sequence of one slot that was brought to this state by legal moves of worker `w`."""
    sequence = Sequence(1, policy=policy, clock=VirtualClock(WALL_MS))
    if state is SlotState.UNSEEN:
        return sequence
    sequence.dispatch(0, 0)
    if state is SlotState.DISPATCHED:
        return sequence
    if state is SlotState.TERMINAL_CANCEL:
        sequence.cancel(0, 0)
        return sequence
    sequence.start(0, "w", 0)
    match state:
        case SlotState.TERMINAL_SUCCESS | SlotState.COMMITTED:
            sequence.succeed(0, "w", 1, 0)
        case SlotState.TERMINAL_SKIP:
            sequence.skip(0, "w", 1, 0)
        case SlotState.TERMINAL_FAIL:
            sequence.fail(0, "w", 1, 0)
    if state is SlotState.COMMITTED:
        sequence.mark_committed(0)
    return sequence


# What the holder of the slot can ask for, by the trigger of the table.
TRIGGERS: dict[str, Callable[[Sequence], object]] = {
    "dispatch": lambda s: s.dispatch(0, 0, "w"),
    "start": lambda s: s.start(0, "w", 0),
    "succeed": lambda s: s.succeed(0, "w", max(1, s.attempts(0)), 0),
    "skip": lambda s: s.skip(0, "w", max(1, s.attempts(0)), 0),
    "fail": lambda s: s.fail(0, "w", max(1, s.attempts(0)), 0),
    "cancel": lambda s: s.cancel(0, 0),
    "commit": lambda s: s.mark_committed(0),
}
TARGETS = {
    "dispatch": SlotState.DISPATCHED,
    "start": SlotState.IN_FLIGHT,
    "succeed": SlotState.TERMINAL_SUCCESS,
    "skip": SlotState.TERMINAL_SKIP,
    "fail": SlotState.TERMINAL_FAIL,
    "cancel": SlotState.TERMINAL_CANCEL,
    "commit": SlotState.COMMITTED,
}
# Moves that the table does not list and that are made as a path of listed ones, or as a no-op.
COMPOUND = {
    (SlotState.UNSEEN, "cancel"): SlotState.TERMINAL_CANCEL,
    (SlotState.COMMITTED, "commit"): SlotState.COMMITTED,
}
LEGAL = {
    (move.source, move.trigger): move.target for move in SLOT.transitions if move.trigger != "retry"
} | COMPOUND
ALL = [(state, trigger) for state in SlotState for trigger in TRIGGERS]
# Whoever had a cancelled seq lost it to the canceller: what it still sends is late, and lateness is no crime.
LATE = [(SlotState.TERMINAL_CANCEL, trigger) for trigger in ("start", "succeed", "skip", "fail")]
ILLEGAL = [pair for pair in ALL if pair not in LEGAL and pair not in LATE]


def test_the_table_is_the_twelve_moves_of_the_specification():
    legal = {(move.source.value, move.target.value) for move in SLOT.transitions}
    assert legal == {
        (0, 1),
        (1, 2),
        (2, 3),
        (2, 4),
        (2, 5),
        (1, 6),
        (2, 6),
        (3, 7),
        (4, 7),
        (5, 7),
        (6, 7),
        (5, 1),
    }


@pytest.mark.parametrize(("state", "trigger"), LEGAL, ids=str)
def test_a_legal_move_arrives(state: SlotState, trigger: str):
    sequence = sequence_at(state)
    TRIGGERS[trigger](sequence)
    assert sequence.state(0) is LEGAL[state, trigger]
    assert sequence.counts() == sequence.recount()
    assert sequence.fatal is None


@pytest.mark.parametrize(("state", "trigger"), ILLEGAL, ids=str)
def test_an_illegal_move_is_fatal_with_five_fields_and_latches(state: SlotState, trigger: str):
    sequence = sequence_at(state)
    with pytest.raises(SequenceFatal) as caught:
        TRIGGERS[trigger](sequence)
    error = caught.value
    assert (error.seq, error.prior, error.attempted) == (0, state.name, TARGETS[trigger].name)
    assert error.at_ms == WALL_MS
    holder = "(canceller)" if state is SlotState.TERMINAL_CANCEL else "w"
    asked_by_somebody = trigger not in {"cancel", "commit"}
    held = state not in {SlotState.UNSEEN, SlotState.DISPATCHED}
    assert error.owner == ("w" if asked_by_somebody else holder if held else "")
    assert error.as_dict()["code"] == "SEQUENCE_FATAL"
    assert sequence.state(0) is state, "an illegal move changes nothing"
    for again in TRIGGERS.values():
        with pytest.raises(SequenceFatal) as later:
            again(sequence)
        assert later.value is error
    for call in (lambda: sequence.reclaim(0), sequence.commit_ready, sequence.extend):
        with pytest.raises(SequenceFatal):
            call()


@pytest.mark.parametrize(("state", "trigger"), LATE, ids=str)
def test_what_comes_after_a_cancel_is_stale(state: SlotState, trigger: str):
    sequence = sequence_at(state)
    assert not TRIGGERS[trigger](sequence)
    assert sequence.state(0) is state
    assert sequence.stale_count == 1
    assert sequence.fatal is None


def test_the_retry_edge_is_taken_inside_the_failing_report_and_emits_no_terminal_event():
    events: list[SlotEvent] = []
    sequence = Sequence(1, policy=TWICE, events=events.append)
    sequence.dispatch(0, 0)
    assert sequence.attempts(0) == 1
    assert sequence.start(0, "w", 0) == 1
    assert sequence.fail(0, "w", 1, 5, ("OSError", "Exception")) == RetryAfter(1_000)
    assert sequence.state(0) is SlotState.DISPATCHED
    assert sequence.attempts(0) == 2
    assert [event.kind for event in events] == [EventKind.ATTEMPT_FAILED]
    assert sequence.terminal_count == 0
    assert sequence.start(0, "w", 6) == 2
    assert sequence.fail(0, "w", 2, 7) == GiveUp(GiveUpReason.BUDGET_SPENT)
    assert sequence.state(0) is SlotState.TERMINAL_FAIL
    assert [event.kind for event in events] == [EventKind.ATTEMPT_FAILED, EventKind.TERMINAL]


def test_a_final_error_is_not_retried_though_budget_remains():
    policy = SlotPolicy(retry=RetryPolicy(retryable=frozenset({"OSError"}), jitter=0.0))
    sequence = Sequence(1, policy=policy)
    sequence.dispatch(0, 0)
    sequence.start(0, "w", 0)
    assert sequence.fail(0, "w", 1, 0, ("ValueError", "Exception")) == GiveUp(GiveUpReason.FINAL_ERROR)
    assert sequence.state(0) is SlotState.TERMINAL_FAIL


def test_cancelling_an_unseen_seq_leaves_its_attempts_unchanged():
    sequence = sequence_at(SlotState.UNSEEN)
    sequence.cancel(0, 0)
    assert sequence.attempts(0) == 0
    assert sequence.state(0) is SlotState.TERMINAL_CANCEL
    assert sequence.highest_seen == 0


def test_cancel_open_leaves_outcomes_alone():
    sequence = Sequence(3)
    sequence.dispatch(1, 0)
    sequence.start(1, "w", 0)
    sequence.succeed(1, "w", 1, 0)
    assert sequence.cancel_open(range(3), 0) == [0, 2]
    assert sequence.terminal_count == 3
    assert sequence.state(1) is SlotState.TERMINAL_SUCCESS


def test_committing_again_is_a_no_op_that_says_so():
    sequence = sequence_at(SlotState.TERMINAL_SKIP)
    assert sequence.mark_committed(0) is True
    assert sequence.mark_committed(0) is False
    assert sequence.committed_count == 1
    assert sequence.terminal_count == 1


def test_the_cursor_takes_the_longest_run_and_never_skips_an_unfinished_seq():
    sequence = Sequence(200)
    for seq in range(200):
        sequence.dispatch(seq, 0)
        sequence.start(seq, "w", 0)
    for seq in range(199, -1, -1):
        if seq != 150:
            sequence.succeed(seq, "w", 1, 0)
    with pytest.raises(BadInput):
        sequence.mark_committed(1)
    assert sequence.fatal is None
    assert sequence.ready() == 150
    assert sequence.ready(limit=7) == 7
    assert sequence.commit_ready(limit=7) == 7
    assert sequence.next_commit == 7
    assert sequence.commit_ready() == 143
    assert sequence.commit_ready() == 0
    assert sequence.next_commit == 150
    sequence.skip(150, "w", 1, 0)
    assert sequence.commit_ready() == 50
    assert sequence.next_commit is None
    assert sequence.counts() == sequence.recount()


def test_a_sparse_set_is_committed_over_its_gaps():
    sequence = Sequence([3, 10, 11, 4_000_000_000])
    for seq in (4_000_000_000, 11, 3, 10):
        sequence.dispatch(seq, 0)
        sequence.start(seq, "w", 0)
        sequence.succeed(seq, "w", 1, 0)
    assert sequence.next_commit == 3
    assert sequence.mark_committed(3)
    assert sequence.next_commit == 10
    assert sequence.commit_ready() == 3
    assert sequence.next_commit is None
    assert sequence.highest_seen == 4_000_000_000


@pytest.mark.parametrize("seq", [-1, 2, 5, 10**12])
@pytest.mark.parametrize("expected", [2, [0, 1], [0, 7]])
def test_an_unexpected_seq_is_refused_and_latches_nothing(seq: int, expected: int | list[int]):
    sequence = Sequence(expected)
    for call in (lambda: sequence.dispatch(seq, 0), lambda: sequence.start(seq, "w", 0)):
        with pytest.raises(BadInput):
            call()
    assert sequence.fatal is None


@pytest.mark.parametrize("expected", [[1, 1], [2, 1], [5, 3, 9]])
def test_expected_seqs_must_increase(expected: list[int]):
    with pytest.raises(BadInput):
        Sequence(expected)


def test_a_sequence_grows_at_its_end():
    for expected, new in ((2, 2), (range(5, 7), 7), ([1, 9], 10), ([], 0)):
        sequence = Sequence(expected)
        sequence.extend()
        sequence.dispatch(new, 0)
        assert sequence.state(new) is SlotState.DISPATCHED
        assert sequence.counts() == sequence.recount()
