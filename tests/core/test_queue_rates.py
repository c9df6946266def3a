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
)
from tallystick.core.queues.rows import Limits, QueueTurn

TEN_MINUTES_US = 600_000_000


@pytest.mark.parametrize(("rate", "burst"), [("7/1s", 1), ("90/1m", 1), ("10/1s", 5)])
def test_over_ten_minutes_a_rate_is_kept_within_two_percent_and_never_above_its_burst(rate, burst):
    """By the rules that every claim follows, with a clock that moves in uneven steps."""
    limits, chance = Limits(rate=rate, burst=burst), Random(7)
    number, _, period = rate.partition("/")
    per_us = int(number) / (duration_ms(period) * 1_000)
    now, turn, began = 0, QueueTurn(), list[int]()
    while now < TEN_MINUTES_US:
        picture = QueuePicture(limits, [], turn, {}, now)
        waiting = [Waiting(f"{n}", "", first=True) for n in range(20)]
        chosen = choose(picture, [], [DueOfKey("", waiting)], 20, "w")
        turn = book(picture, chosen).turn
        began += [now] * len(chosen)
        # A worker looks again when there is a token, a little late.
        now = next_token_us(turn.full_us, rate, burst, now) + chance.randint(0, 2_000)
    wanted = TEN_MINUTES_US * per_us
    assert 0.98 * wanted <= len(began) <= 1.02 * wanted + burst
    for first, at in enumerate(began):
        for last in range(first, min(first + 3 * burst + 3, len(began))):
            most = burst + (began[last] - at) * per_us
            assert last - first + 1 <= most + 1e-6


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
