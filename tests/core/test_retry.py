"""Retry rules: which failures get another attempt, and exactly when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.limits import DURATION_MS_MAX
from tallystick.core.remote.policy import budget_ms
from tallystick.core.retry import (
    ACK_RETRY,
    DISPATCH_RETRY,
    ErrorClass,
    GiveUp,
    GiveUpReason,
    RetryAfter,
    RetryPolicy,
    backoff_ms,
    classify,
    decide_failure,
    error_names,
    next_delay_ms,
)
from tallystick.errors import BadInput, NoRetry, NotCanonical

MINUTE = 60_000

policies = st.builds(
    lambda attempts_max, base_ms, growth_ms, factor, jitter, table_ms: RetryPolicy(
        attempts_max=attempts_max,
        base_ms=base_ms,
        factor=factor,
        cap_ms=base_ms + growth_ms,
        jitter=jitter,
        table_ms=tuple(table_ms),
    ),
    attempts_max=st.integers(min_value=1, max_value=10_000),
    base_ms=st.integers(min_value=0, max_value=10**7),
    growth_ms=st.integers(min_value=0, max_value=10**10),
    factor=st.floats(min_value=1, max_value=1e9),
    jitter=st.floats(min_value=0, max_value=1),
    table_ms=st.lists(st.integers(min_value=0, max_value=10**9), max_size=4),
)
attempts = st.integers(min_value=1, max_value=12_000)


def test_the_tables_are_those_of_the_specification():
    assert ACK_RETRY.table_ms == (1 * MINUTE, 5 * MINUTE, 15 * MINUTE)
    assert DISPATCH_RETRY.table_ms == (30_000, 2 * MINUTE, 10 * MINUTE)


@pytest.mark.parametrize(
    ("policy", "pauses_ms"),
    [
        # Three attempts of a step: the 15 minutes are for those who raise the budget.
        (ACK_RETRY, [1 * MINUTE, 5 * MINUTE]),
        # Three pauses after the first publish.
        (DISPATCH_RETRY, [30_000, 2 * MINUTE, 10 * MINUTE]),
    ],
)
def test_a_failure_waits_by_the_table_until_the_budget_is_spent(policy, pauses_ms):
    attempts = range(1, len(pauses_ms) + 3)
    verdicts = [decide_failure(policy, attempt, ErrorClass.RETRYABLE, key="job-1") for attempt in attempts]
    spent = GiveUp(GiveUpReason.BUDGET_SPENT)
    assert verdicts == [*map(RetryAfter, pauses_ms), spent, spent]


def test_the_publish_lease_covers_every_pause_of_the_publish():
    pauses_ms = [next_delay_ms(DISPATCH_RETRY, attempt, "k") for attempt in (1, 2, 3)]
    assert sum(pauses_ms) < budget_ms(1)


def test_with_a_larger_budget_the_last_entry_of_the_table_repeats():
    patient = replace(ACK_RETRY, attempts_max=6)
    delays = [next_delay_ms(patient, attempt, "k") for attempt in range(1, 7)]
    assert delays == [1 * MINUTE, 5 * MINUTE, 15 * MINUTE, 15 * MINUTE, 15 * MINUTE, None]


def test_without_a_table_the_delay_doubles_up_to_the_cap():
    policy = RetryPolicy(attempts_max=9, base_ms=1_000, factor=2.0, cap_ms=10_000, jitter=0.0)
    delays = [next_delay_ms(policy, attempt, "k") for attempt in range(1, 10)]
    assert delays == [1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000, None]


@given(policies, attempts)
def test_backoff_never_shrinks_and_never_exceeds_the_cap(policy, attempt):
    formula = replace(policy, table_ms=())
    now_ms, later_ms = backoff_ms(formula, attempt), backoff_ms(formula, attempt + 1)
    assert formula.base_ms <= now_ms <= later_ms <= formula.cap_ms


def test_growth_beyond_every_float_ends_at_the_cap_and_nothing_stays_nothing():
    assert backoff_ms(RetryPolicy(base_ms=1, factor=1e9), 10_000) == 900_000
    assert backoff_ms(RetryPolicy(base_ms=0, factor=1e9), 10_000) == 0


@given(policies, attempts)
def test_a_table_is_followed_to_the_letter(policy, attempt):
    table = policy.table_ms or (7,)
    followed = replace(policy, table_ms=table)
    assert backoff_ms(followed, attempt) == (table + table[-1:] * attempt)[attempt - 1]


@given(policies, attempts, st.text(max_size=20))
def test_jitter_takes_away_at_most_its_fraction_and_gives_the_same_answer_every_time(policy, attempt, key):
    delay_ms = next_delay_ms(policy, attempt, key)
    assert delay_ms == next_delay_ms(policy, attempt, key)
    if attempt >= policy.attempts_max:
        assert delay_ms is None
    else:
        full_ms = backoff_ms(policy, attempt)
        assert full_ms - full_ms * policy.jitter <= delay_ms <= full_ms
        assert type(delay_ms) is int


def test_jitter_is_the_same_on_every_machine():
    policy = RetryPolicy(attempts_max=5, base_ms=100_000, cap_ms=900_000, jitter=0.5)
    assert [next_delay_ms(policy, attempt, "job-1") for attempt in (1, 2, 3, 4)] == [
        72373,
        119356,
        246127,
        617965,
    ]


def test_jitter_spreads_keys_over_its_whole_range():
    policy = RetryPolicy(base_ms=100_000, cap_ms=100_000, jitter=0.5)
    delays = [next_delay_ms(policy, 1, f"job-{number}") or 0 for number in range(1_000)]
    assert 50_000 < min(delays) < 51_000
    assert 99_000 < max(delays) <= 100_000
    for low in range(50_000, 100_000, 10_000):
        assert 150 < sum(low < delay <= low + 10_000 for delay in delays) < 250


@given(policies, attempts, st.sampled_from(ErrorClass), st.text(max_size=8))
def test_a_failure_is_retried_exactly_when_it_is_retryable_and_budget_is_left(policy, attempt, error, key):
    verdict = decide_failure(policy, attempt, error, key=key)
    if error is ErrorClass.FINAL:
        assert verdict == GiveUp(GiveUpReason.FINAL_ERROR)
    elif attempt < policy.attempts_max:
        assert verdict == RetryAfter(next_delay_ms(policy, attempt, key))
    else:
        assert verdict == GiveUp(GiveUpReason.BUDGET_SPENT)


class PaymentError(Exception):
    """An error of a user."""


class CardDeclined(PaymentError):
    """A closer error of a user."""


class CardStolen(CardDeclined):
    """The closest."""


def class_of(policy: RetryPolicy, error: type[BaseException]) -> ErrorClass:
    return classify(policy, error_names(error))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError, ErrorClass.RETRYABLE),
        (TimeoutError, ErrorClass.RETRYABLE),
        (CardStolen, ErrorClass.RETRYABLE),
        (NoRetry, ErrorClass.FINAL),
        (BadInput, ErrorClass.FINAL),
        (NotCanonical, ErrorClass.FINAL),
        (KeyboardInterrupt, ErrorClass.FINAL),
        (SystemExit, ErrorClass.FINAL),
    ],
)
def test_errors_are_retryable_unless_they_say_otherwise(error, expected):
    assert class_of(RetryPolicy(), error) is expected


def test_the_closest_declared_ancestor_decides():
    policy = RetryPolicy(
        retryable=frozenset({"Exception", "CardDeclined"}), final=frozenset({"PaymentError", "CardStolen"})
    )
    assert class_of(policy, PaymentError) is ErrorClass.FINAL
    assert class_of(policy, CardDeclined) is ErrorClass.RETRYABLE
    assert class_of(policy, CardStolen) is ErrorClass.FINAL


def test_a_policy_may_name_the_only_errors_worth_a_retry():
    policy = RetryPolicy(retryable=frozenset({"builtins.OSError"}))
    assert class_of(policy, ConnectionError) is ErrorClass.RETRYABLE
    assert class_of(policy, ValueError) is ErrorClass.FINAL
    assert classify(policy, ["SomethingUnknown"]) is ErrorClass.FINAL
    assert classify(policy, []) is ErrorClass.FINAL


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"attempts_max": 0}, "attempts_max"),
        ({"base_ms": -1}, "base_ms"),
        ({"base_ms": 2_000, "cap_ms": 1_000}, "base_ms"),
        ({"cap_ms": DURATION_MS_MAX + 1}, "cap_ms"),
        ({"factor": 0.5}, "factor"),
        ({"factor": float("nan")}, "factor"),
        ({"factor": float("inf")}, "factor"),
        ({"jitter": -0.1}, "jitter"),
        ({"jitter": 1.1}, "jitter"),
        ({"jitter": float("nan")}, "jitter"),
        ({"table_ms": (1, -1)}, "table_ms"),
        ({"table_ms": (DURATION_MS_MAX + 1,)}, "table_ms"),
        ({"final": frozenset({"Exception"})}, "retryable and final"),
    ],
)
def test_a_policy_that_cannot_work_is_refused_when_it_is_made(options, rule):
    with pytest.raises(BadInput, match=rule):
        RetryPolicy(**options)


def test_the_limits_of_a_policy_are_still_accepted():
    smallest = RetryPolicy(attempts_max=1, base_ms=0, cap_ms=0, factor=1.0, jitter=1.0)
    assert backoff_ms(smallest, 1) == 0
    assert backoff_ms(RetryPolicy(table_ms=(0, DURATION_MS_MAX)), 2) == DURATION_MS_MAX
    longest = RetryPolicy(base_ms=DURATION_MS_MAX, cap_ms=DURATION_MS_MAX, jitter=0.0)
    assert backoff_ms(longest, 1) == DURATION_MS_MAX


def test_attempts_are_counted_from_one():
    with pytest.raises(AssertionError):
        backoff_ms(RetryPolicy(), 0)
