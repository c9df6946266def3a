"""How fast jobs of a queue begin, by the rules alone."""

from __future__ import annotations

from random import Random

import pytest

from tallystick.core.durations import duration_ms
from tallystick.core.queues.admitting import DueOfKey, QueuePicture, Waiting, book, choose, next_token_us
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
