"""How fast jobs of a queue begin, by the rules alone."""

from __future__ import annotations

from random import Random

import pytest

from tallystick.core.durations import duration_ms
from tallystick.core.queues.admitting import (
    DueOfKey,
    QueuePicture,
    Waiting,
    book,
    choose,
    next_token_us,
    rest_ms,
    spent,
)
from tallystick.core.queues.rows import Limits, QueueTurn

TEN_MINUTES_US = 600_000_000


RATES = pytest.mark.parametrize(("rate", "burst"), [("7/1s", 1), ("90/1m", 1), ("100/1s", 1), ("10/1s", 5)])


def begun(rate: str, burst: int, late_us: int, ready_at: int | None) -> list[int]:
    """Return when jobs begin in ten minutes, by the rules that every claim follows.

    A worker looks when there is a token, and a little late; its clock is read in whole milliseconds.
    Jobs wait since `ready_at`, or from each claim on.
    """
    limits, chance = Limits(rate=rate, burst=burst), Random(7)
    now, turn, began = 0, QueueTurn(), list[int]()
    while now < TEN_MINUTES_US:
        picture = QueuePicture(limits, [], turn, {}, now)
        waiting = [Waiting(f"{n}", "", True, now // 1_000 if ready_at is None else 0) for n in range(20)]
        chosen = choose(picture, [], [DueOfKey("", waiting)], 20, "w")
        assert len(chosen) <= burst
        turn = book(picture, chosen).turn
        began += [now] * len(chosen)
        now = next_token_us(turn.full_us, rate, burst, now) + chance.randint(0, late_us)
        now = -(-now // 1_000) * 1_000
    return began


def per_us_of(rate: str) -> float:
    number, _, period = rate.partition("/")
    return int(number) / (duration_ms(period) * 1_000)


@pytest.mark.slow
@RATES
@pytest.mark.parametrize("late", [0.0, 0.1, 0.4])
def test_over_ten_minutes_a_rate_is_kept_within_two_percent_by_a_worker_that_is_late(rate, burst, late):
    per_us = per_us_of(rate)
    began = begun(rate, burst, int(late / per_us), ready_at=0)
    wanted = TEN_MINUTES_US * per_us
    assert 0.98 * wanted <= len(began) <= wanted + burst
    for first, at in enumerate(began):
        # Counted from the first of all, there are never more than the rate and the burst let.
        assert first + 1 <= burst + (at - began[0]) * per_us + 1e-6
        for last in range(first, min(first + 3 * burst + 3, len(began))):
            most = burst + 0.5 + (began[last] - at) * per_us
            assert last - first + 1 <= most + 1e-6


@RATES
def test_what_no_job_waited_for_is_not_made_up_for(rate, burst):
    """Jobs that come with each claim: between any two instants there are at most the rate and the burst."""
    per_us = per_us_of(rate)
    began = begun(rate, burst, int(0.4 / per_us), ready_at=None)
    for first, at in enumerate(began):
        for last in range(first, min(first + 3 * burst + 3, len(began))):
            assert last - first + 1 <= burst + (began[last] - at) * per_us + 1e-6


def test_a_claim_that_is_late_moves_no_later_token_up_to_half_an_interval():
    at = 1_000_000
    assert spent(at, "10/1s", 1, at + 30_000, ready_us=0) == at + 100_000
    assert spent(at, "10/1s", 1, at + 80_000, ready_us=0) == at + 80_000 + 50_000
    assert spent(at, "10/1s", 1, at + 30_000, ready_us=at + 20_000) == at + 120_000, "it waited since then"
    assert spent(at, "10/1s", 1, at + 30_000, ready_us=at + 30_000) == at + 130_000
    assert spent(0, "10/1s", 1, at + 30_000, ready_us=0) == at + 130_000, "it was never charged"
    hour = at + 3_600_000_000
    assert spent(at, "10/1s", 1, hour, ready_us=0) == hour + 100_000, "no worker was there"
    # More than one token in the bucket: what overflowed is counted in the same way.
    assert spent(at, "10/1s", 3, at + 30_000, ready_us=0) == at + 100_000
    assert spent(at + 150_000, "10/1s", 3, at, ready_us=0) == at + 250_000, "it was not full"


def rest(full_us: int, asked_us: int, **limits) -> int:
    return rest_ms(Limits(**limits), QueueTurn("", full_us), None, 0, 1_000_000, asked_us=asked_us)


def test_a_queue_rests_until_its_next_token_and_not_at_all_if_that_came_behind_the_last_claim():
    assert rest(1_030_000, 5_000, rate="20/1s") == 30
    assert rest(1_029_001, 5_000, rate="20/1s") == 30, "a part of a millisecond is not too early"
    assert rest(1_000_000, 5_000, rate="20/1s") == 0
    assert rest(995_001, 5_000, rate="20/1s") == 0
    assert rest(995_000, 5_000, rate="20/1s") == 50, "the last claim saw it and could not use it"
    assert rest(1_096_000, 5_000, rate="20/1s", burst=3) == 0, "the first of three tokens is as new"


def test_a_token_of_a_key_is_of_no_use_before_the_queue_has_one():
    limits = Limits(rate="20/1s", key_rate="100/1s")
    assert rest_ms(limits, QueueTurn("", 1_030_000), 1_004_000, 0, 1_000_000) == 30
    assert rest_ms(limits, QueueTurn("", 900_000), 1_004_000, 0, 1_000_000) == 4
