"""What an effect costs beside a step: one more flush, and no more."""

from __future__ import annotations

from bench.effects import costs


def test_an_effect_costs_one_more_flush_than_a_step(url):
    cost = costs(url, jobs=5)
    # The last of ten steps shares its flush with the end of its job.
    assert (round(cost["step"].flushes, 1), round(cost["effect"].flushes, 1)) == (0.9, 2.0)
