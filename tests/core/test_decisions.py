"""What to do next follows from the ledgers alone."""

from __future__ import annotations

from itertools import product

import pytest

from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.decisions import (
    Cancellation,
    Countdown,
    Delivery,
    NextStep,
    Reclaim,
    Verdict,
    close_delta,
    count_down,
    decide_cancel,
    decide_deliver,
    decide_end,
    decide_reclaim,
    enter_leg1,
    enter_leg2,
    first_to_act,
    next_step,
    settle_delta,
)
from tallystick.errors import SemaphoreUnderflow

COMPLETE = ActivityLedger.parse("001100000000000")


def test_leg_1_runs_until_it_is_complete_and_is_acknowledged_after():
    first = enter_leg1(ActivityLedger(0))
    assert first == (Verdict.RUN, ActivityLedger.parse("001000000000000"))
    again = enter_leg1(first.activity)
    assert again == (Verdict.RUN, ActivityLedger.parse("002000000000000"))
    replayed = enter_leg1(again.activity.complete_leg1())
    assert replayed == (Verdict.ACKNOWLEDGE, ActivityLedger.parse("003100000000000"))


def test_at_the_ceiling_a_completed_leg_1_is_acknowledged_and_an_open_one_escalates():
    done = ActivityLedger.parse("999100000000000")
    assert enter_leg1(done) == (Verdict.ACKNOWLEDGE, done)
    unfinished = ActivityLedger.parse("999000000000000")
    assert enter_leg1(unfinished) == (Verdict.ESCALATE, unfinished)
    assert enter_leg1(ActivityLedger.parse("998000000000000")).verdict is Verdict.RUN


def test_leg_2_before_leg_1_is_refused_and_writes_nothing():
    open_leg = ActivityLedger.parse("001000000000000")
    assert enter_leg2(open_leg, None) == (Verdict.REFUSE, open_leg, None)
    assert enter_leg2(open_leg, GuidLedger(1)) == (Verdict.REFUSE, open_leg, GuidLedger(1))


def test_a_new_message_is_counted_and_takes_its_number_from_the_count():
    entry = enter_leg2(COMPLETE, None)
    assert entry == (Verdict.RUN, ActivityLedger.parse("001100000000001"), GuidLedger(1))


def test_a_redelivered_message_keeps_its_number_and_is_not_counted_again():
    """Its dimension would change if the entry were counted again."""
    busy = ActivityLedger.parse("001111000000009")
    guid = GuidLedger(3).mark_work()
    assert enter_leg2(busy, guid) == (Verdict.RUN, busy, guid)
    done = guid.mark_children(closed=False)
    assert enter_leg2(busy, done) == (Verdict.ACKNOWLEDGE, busy, done)


def test_leg_2_escalates_at_its_ceiling_but_still_takes_redeliveries():
    full = ActivityLedger.parse("001111099999999")
    assert enter_leg2(full, None) == (Verdict.ESCALATE, full, None)
    assert enter_leg2(full, GuidLedger(5)).verdict is Verdict.RUN
    assert enter_leg2(ActivityLedger.parse("001111099999998"), None).guid == 99_999_999


def test_each_missing_step_runs_in_order_and_the_closer_finishes_after_a_crash():
    assert next_step(GuidLedger(1)) is NextStep.WORK
    worked = GuidLedger(1).mark_work()
    assert next_step(worked) is NextStep.CHILDREN
    assert next_step(worked.mark_children(closed=False)) is NextStep.ACKNOWLEDGE
    closer = worked.mark_children(closed=True)
    assert next_step(closer) is NextStep.TASKS
    assert next_step(closer.mark_tasks()) is NextStep.ACKNOWLEDGE


@pytest.mark.parametrize(
    ("before", "delta", "threshold", "after", "hit"),
    [(5, 1, 0, 6, False), (1, -1, 0, 0, True), (0, 0, 0, 0, False), (2, -1, 1, 1, True), (1, 0, 1, 1, False)],
)
def test_a_hit_is_caused_by_a_change(before, delta, threshold, after, hit):
    assert count_down(before, delta, threshold) == Countdown(after, hit)


def test_a_semaphore_below_zero_is_refused():
    with pytest.raises(SemaphoreUnderflow) as refusal:
        count_down(0, -1)
    assert refusal.value.fields == {"before": 0, "delta": -1}


@pytest.mark.parametrize("closers", [2, 3, 50, 100])
@pytest.mark.parametrize("threshold", [0, 1])
def test_of_many_closers_in_one_flush_exactly_one_hits(closers, threshold):
    hits = [count_down(left, -1, threshold).hit for left in range(closers, 0, -1)]
    assert hits.index(True) == closers - 1 - threshold
    assert sum(hits) == 1


@pytest.mark.parametrize(
    ("job_final", "names", "complete", "wait_open", "live"), list(product([False, True], repeat=5))
)
def test_delivery_is_decided_for_every_combination(job_final, names, complete, wait_open, live):
    answer = decide_deliver(
        job_final=job_final,
        names_activity=names,
        leg1_complete=complete,
        wait_open=wait_open,
        attempt_live=live,
    )
    if job_final:
        assert answer is Delivery.DROP
    elif names and not complete:
        assert answer is Delivery.REFUSE
    elif names and not wait_open:
        assert answer is Delivery.DROP
    elif wait_open and not live:
        assert answer is Delivery.WAKE
    else:
        assert answer is Delivery.KEEP


@pytest.mark.parametrize("status", ["LEASED", "IN_PROGRESS", "COMMITTED", "DONE", "ABORTED"])
@pytest.mark.parametrize(
    ("expired", "effect", "held", "cancelling", "refused"), list(product([False, True], repeat=5))
)
def test_reclaim_is_decided_for_every_combination(status, expired, effect, held, cancelling, refused):
    for charged, budget in product([1, 2, 3, 4], [3, None]):
        answer = decide_reclaim(
            status=status,
            expired=expired,
            effect=effect,
            held=held,
            cancelling=cancelling,
            refused=refused,
            charged=charged,
            budget=budget,
        )
        if not expired or status in {"DONE", "ABORTED"} or (status == "COMMITTED" and held and not effect):
            expected = Reclaim.LEAVE
        elif refused:
            expected = Reclaim.HOLD
        elif status == "COMMITTED":
            expected = Reclaim.IN_DOUBT if effect else Reclaim.FINISH
        elif cancelling:
            expected = Reclaim.SETTLE
        elif budget is None:
            expected = Reclaim.HOLD
        else:
            expected = Reclaim.RETRY if charged < 3 else Reclaim.FAIL
        assert answer is expected


def test_an_effect_is_left_to_who_runs_its_job_and_a_job_that_waits_for_one_does_not_end():
    about = {"expired": True, "held": False, "refused": False, "charged": 9, "budget": 3}
    left = decide_reclaim(status="COMMITTED", effect=True, cancelling=False, runs=True, **about)
    assert left is Reclaim.LEAVE
    for cancelling in (False, True):
        tried = decide_reclaim(status="IN_PROGRESS", effect=False, cancelling=cancelling, waits=True, **about)
        assert tried is Reclaim.RETRY


@pytest.mark.parametrize(
    ("begun", "chosen"), [((), None), ((False,), 0), ((False, False), 0), ((False, True, True), 1)]
)
def test_a_message_that_has_begun_is_taken_before_an_older_one_that_has_not(begun, chosen):
    assert first_to_act(begun) == chosen


@pytest.mark.parametrize(
    ("starts", "consumed", "opened", "finished", "delta"),
    [
        (True, False, 1, False, 0),
        (True, False, 0, False, -1),
        (False, True, 1, False, 0),
        (False, True, 1, True, 0),
        (False, False, 1, False, None),
        (False, False, 1, True, 1),
    ],
)
def test_a_driving_message_closes_what_it_answered_or_stays(starts, consumed, opened, finished, delta):
    assert settle_delta(starts=starts, consumed=consumed, opened=opened, finished=finished) == delta


@pytest.mark.parametrize(("starts", "consumed"), list(product([False, True], repeat=2)))
@pytest.mark.parametrize("still_open", [0, 1, 3])
def test_the_closer_answers_for_everything_that_is_dropped_with_the_job(starts, consumed, still_open):
    expected = -still_open - (starts or consumed)
    assert close_delta(starts=starts, consumed=consumed, still_open=still_open) == expected


@pytest.mark.parametrize(
    ("final", "held", "committed", "live", "forced"), list(product([False, True], repeat=5))
)
def test_a_cancellation_is_decided_for_every_combination(final, held, committed, live, forced):
    answer = decide_cancel(final=final, held=held, committed=committed, live=live, forced=forced)
    if final:
        assert answer is Cancellation.NOTHING
    elif committed:
        assert answer is (Cancellation.NOTHING if live else Cancellation.FINISH)
    elif held and not forced:
        assert answer is Cancellation.ASK
    else:
        assert answer is Cancellation.END


@pytest.mark.parametrize(
    ("state", "attempt"), [("SUCCEEDED", "DONE"), ("FAILED_FINAL", "ABORTED"), ("CANCELLED", "ABORTED")]
)
def test_a_job_that_was_asked_to_end_is_cancelled_whatever_its_function_did(state, attempt):
    assert decide_end(state=state, attempt=attempt, cancelling=True) == ("CANCELLED", "ABORTED", True)
    assert decide_end(state=state, attempt=attempt, cancelling=False) == (
        state,
        attempt,
        state == "CANCELLED",
    )
