"""The fence: who reports late is stale, who reports twice is fatal, and expiry is found without a scan."""

from __future__ import annotations

import threading

import pytest

from tallystick.core.lifecycles import SlotState
from tallystick.core.retry import RetryPolicy
from tallystick.errors import BadInput, SequenceFatal
from tallystick.stage.sequence.events import EventKind, ReclaimedSlot, SlotEvent
from tallystick.stage.sequence.policy import SlotPolicy, StuckOffer
from tallystick.stage.sequence.sequence import Sequence

POLICY = SlotPolicy(lease_ms=100, offer_ms=500, retry=RetryPolicy(attempts_max=2, jitter=0.0, base_ms=10))
NO_RETRY = SlotPolicy(lease_ms=100, offer_ms=500, retry=RetryPolicy(attempts_max=1, jitter=0.0))


def in_flight(policy: SlotPolicy = POLICY, events: list[SlotEvent] | None = None) -> Sequence:
    sequence = Sequence(1, policy=policy, events=None if events is None else events.append)
    sequence.dispatch(0, 0)
    assert sequence.start(0, "a", 0) == 1
    return sequence


def test_a_lease_ends_at_the_very_instant_of_its_end():
    assert in_flight().succeed(0, "a", 1, 99)
    sequence = in_flight()
    assert not sequence.succeed(0, "a", 1, 100)
    assert sequence.state(0) is SlotState.IN_FLIGHT
    assert sequence.stale_count == 1


def test_a_heartbeat_extends_a_live_lease_and_never_revives_an_ended_one():
    sequence = in_flight()
    assert sequence.heartbeat(0, "a", 1, 90)
    assert sequence.reclaim(100) == []
    assert not sequence.heartbeat(0, "a", 1, 190)
    assert sequence.heartbeat_ms(0) == 90
    assert sequence.reclaim(190) == [ReclaimedSlot(0, 1, "a", SlotState.DISPATCHED, 10)]


def test_a_heartbeat_never_moves_a_lease_back():
    sequence = in_flight()
    sequence.heartbeat(0, "a", 1, 50)
    assert sequence.heartbeat(0, "a", 1, 20)
    assert sequence.heartbeat_ms(0) == 50


def test_the_late_report_of_a_reclaimed_worker_is_stale_whatever_became_of_the_seq():
    """L03, L11. Reclaimed to DISPATCHED, started by another, finished by it, failed for good, cancelled."""
    events: list[SlotEvent] = []
    sequence = in_flight(events=events)
    sequence.reclaim(100)
    assert not sequence.succeed(0, "a", 1, 101)
    assert sequence.start(0, "b", 110) == 2
    assert not sequence.succeed(0, "a", 1, 111)
    assert sequence.succeed(0, "b", 2, 112)
    assert not sequence.succeed(0, "a", 1, 113)
    sequence.commit_ready()
    assert sequence.fail(0, "a", 1, 114) is None
    assert [event.kind for event in events].count(EventKind.TERMINAL) == 1
    assert sequence.stale_count == 4

    spent = in_flight(NO_RETRY)
    assert spent.reclaim(100) == [ReclaimedSlot(0, 1, "a", SlotState.TERMINAL_FAIL, 0)]
    assert not spent.succeed(0, "a", 1, 101)

    cancelled = in_flight()
    cancelled.cancel(0, 5)
    assert not cancelled.succeed(0, "a", 1, 6)


def test_the_attempt_fences_a_worker_against_its_own_past():
    """L06. The same token holds the seq again; its report for the attempt it lost is still stale."""
    sequence = in_flight()
    sequence.reclaim(100)
    assert sequence.start(0, "a", 110) == 2
    assert not sequence.succeed(0, "a", 1, 111)
    assert sequence.succeed(0, "a", 2, 112)


@pytest.mark.parametrize("committed", [False, True])
def test_the_current_holder_reporting_twice_is_fatal(committed: bool):
    sequence = in_flight()
    sequence.succeed(0, "a", 1, 1)
    if committed:
        sequence.commit_ready()
    with pytest.raises(SequenceFatal):
        sequence.skip(0, "a", 1, 2)


@pytest.mark.parametrize("attempt", [0, -1, 2, 9])
def test_a_report_for_an_attempt_that_never_was_is_fatal(attempt: int):
    with pytest.raises(SequenceFatal):
        in_flight().succeed(0, "a", attempt, 1)


def test_a_report_of_somebody_who_never_held_the_seq_is_stale():
    sequence = in_flight()
    assert not sequence.succeed(0, "stranger", 1, 1)
    assert sequence.state(0) is SlotState.IN_FLIGHT


def test_of_two_workers_that_start_one_seq_the_second_is_told_that_it_lost():
    sequence = in_flight()
    assert sequence.start(0, "b", 1) == 0
    assert sequence.owner(0) == "a"
    with pytest.raises(SequenceFatal):
        sequence.start(0, "a", 2)


def test_an_offer_to_one_worker_is_not_for_another():
    sequence = Sequence(1, policy=POLICY)
    sequence.dispatch(0, 0, to="a")
    assert sequence.start(0, "b", 1) == 0
    assert sequence.start(0, "a", 1) == 1


def test_a_worker_may_be_called_like_the_reclaimer_and_gains_nothing_by_it():
    sequence = in_flight(NO_RETRY)
    sequence.reclaim(100)
    assert not sequence.succeed(0, "(reclaimer)", 1, 101)
    with pytest.raises(BadInput):
        Sequence(1).start(0, "", 0)


def test_a_stuck_offer_is_offered_again_to_anyone():
    events: list[SlotEvent] = []
    sequence = Sequence(1, policy=POLICY, events=events.append)
    sequence.dispatch(0, 0, to="dead")
    assert sequence.reclaim(499) == []
    assert sequence.reclaim(500) == [ReclaimedSlot(0, 1, "dead", SlotState.DISPATCHED, 0)]
    assert sequence.reclaim(501) == []
    assert sequence.attempts(0) == 1
    assert [event.kind for event in events] == [EventKind.OFFERED_AGAIN]
    assert sequence.start(0, "b", 502) == 1


def test_a_stuck_offer_fails_under_the_reclaimers_lease_when_policy_says_so():
    policy = SlotPolicy(lease_ms=100, offer_ms=500, stuck=StuckOffer.FAIL)
    events: list[SlotEvent] = []
    sequence = Sequence(1, policy=policy, events=events.append)
    sequence.dispatch(0, 0)
    assert sequence.reclaim(500) == [ReclaimedSlot(0, 1, "", SlotState.TERMINAL_FAIL, 0)]
    assert sequence.owner(0) == "(reclaimer)"
    assert [event.kind for event in events] == [EventKind.TERMINAL]
    assert sequence.counts() == sequence.recount()


def test_two_reclaimers_take_one_lease_once():
    """L05. Attempts rise by exactly one."""
    sequence = in_flight()
    assert len(sequence.reclaim(100)) == 1
    assert sequence.reclaim(100) == []
    assert sequence.attempts(0) == 2


def test_reclaim_looks_at_leases_that_may_have_expired_and_at_nothing_else(monkeypatch: pytest.MonkeyPatch):
    sequence = Sequence(100_000, policy=POLICY)
    for seq in range(0, 100_000, 1000):
        sequence.dispatch(seq, 0)
        sequence.start(seq, "w", seq // 1000)
    looked: list[int] = []
    original = sequence._leases.take_due
    monkeypatch.setattr(
        type(sequence._leases), "take_due", lambda self, now: looked.extend(found := original(now)) or found
    )
    assert [gone.seq for gone in sequence.reclaim(110)] == list(range(0, 11_000, 1000))
    assert len(looked) <= 11 + POLICY.lease_ms // 16


def test_index_entries_of_finished_slots_do_not_pile_up():
    policy = SlotPolicy(lease_ms=1_600, offer_ms=1_600)
    sequence = Sequence(60_000, policy=policy)
    for seq in range(60_000):
        now = seq // 10
        sequence.dispatch(seq, now)
        sequence.start(seq, "w", now)
        sequence.succeed(seq, "w", 1, now)
        if seq % 100 == 99:
            sequence.commit_ready()
    assert sequence._leases.entries < 10_000
    assert sequence._offers is not None
    assert sequence._offers.entries < 10_000


def test_threads_that_race_for_every_seq_leave_exact_books():
    """Atomic per seq: every start has one winner and every counter survives."""
    total = 3_000
    sequence = Sequence(total, policy=POLICY)
    won: list[list[int]] = [[], [], []]

    def work(me: int) -> None:
        for seq in range(total):
            if me == 0:
                sequence.dispatch(seq, 0)
            while sequence.state(seq) is SlotState.UNSEEN:
                barrier.wait()
            if sequence.start(seq, f"w{me}", 0):
                won[me].append(seq)
                assert sequence.succeed(seq, f"w{me}", 1, 0)

    barrier = threading.Event()
    barrier.set()
    threads = [threading.Thread(target=work, args=(me,)) for me in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won[0] + won[1] + won[2]) == list(range(total))
    assert sequence.commit_ready() == total
    assert sequence.counts() == sequence.recount()
