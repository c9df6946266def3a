"""Requests about effects and ends of remote steps come to what tables written by hand say."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.core import remote_ends
from tests.core.effect_answers import judged

SITUATIONS = 6_000


def test_every_request_about_an_effect_comes_to_what_is_promised():
    kinds = Counter(judged(number).request for number in range(SITUATIONS))
    assert len(kinds) == 10
    assert min(kinds.values()) > SITUATIONS // 40


@pytest.mark.parametrize(
    "ask", [remote_ends.ends, remote_ends.rearms, remote_ends.withdraws, remote_ends.fails, remote_ends.takes]
)
def test_remote_steps_end_with_their_job_as_the_table_says(ask):
    ask()
