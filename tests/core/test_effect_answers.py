"""Every request about an effect, in thousands of situations, comes to what a table written by hand says."""

from __future__ import annotations

from collections import Counter

from tests.core.effect_answers import judged

SITUATIONS = 6_000


def test_every_request_about_an_effect_comes_to_what_is_promised():
    kinds = Counter(judged(number).request for number in range(SITUATIONS))
    assert len(kinds) == 10
    assert min(kinds.values()) > SITUATIONS // 40
