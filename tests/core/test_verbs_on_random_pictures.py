"""Verbs are total: random rows that a database lets stand give plans that the rules accept, or a refusal."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from tallystick.core.remote.requests import StepRequest
from tallystick.core.verbs.wants import Planned
from tests.core.random_pictures import REFUSED, WRITES, answered, entered, escalated

# The same examples in every run. The number of one that fails is in what pytest prints: `number`.
EXAMPLES = range(17_000)


def test_every_request_is_answered_with_a_plan_that_the_rules_accept_or_with_a_refusal():
    seen = Counter(answered(number) for number in EXAMPLES)
    # What is about directives is decided by the verbs of protocol jobs, which have a search of their own.
    for kind in set(get_args(Planned)) - {*get_args(StepRequest)}:
        assert seen[kind.__name__, WRITES] >= 30, f"{kind.__name__} is hardly ever written: {seen}"


def test_every_entry_of_a_claim_is_counted_before_any_work_or_refused():
    seen = Counter(entered(number) for number in EXAMPLES[::2])
    assert seen[WRITES] >= 1_000
    assert seen[REFUSED] >= 10


def test_a_job_whose_ledger_is_full_ends_and_keeps_its_digits():
    seen = Counter(escalated(number) for number in EXAMPLES[::4])
    assert seen[WRITES] >= 1_500
