"""The job view is a pure function of the attempts, enumerated over every small set of them."""

from __future__ import annotations

from itertools import product

import pytest

from tallystick.core.audit.job_view import (
    AbortReason,
    AttemptFacts,
    JobView,
    ViewPolicy,
    agrees,
    charged_since_progress,
    job_view,
)
from tallystick.core.lifecycles import JOB, AttemptState, JobState

NOW = 1000
POLICY = ViewPolicy(attempts_max=2)

KINDS = [
    AttemptFacts(AttemptState.LEASED, NOW + 1),
    AttemptFacts(AttemptState.LEASED, NOW, charged=True),
    AttemptFacts(AttemptState.IN_PROGRESS, NOW + 1),
    AttemptFacts(AttemptState.IN_PROGRESS, NOW, charged=True),
    AttemptFacts(AttemptState.IN_PROGRESS, NOW - 1, charged=True, progressed=True),
    AttemptFacts(AttemptState.COMMITTED, NOW - 1),
    AttemptFacts(AttemptState.DONE, NOW - 1),
    AttemptFacts(AttemptState.ABORTED, NOW - 1, charged=True, reason=AbortReason.EXPIRED),
    AttemptFacts(AttemptState.ABORTED, NOW - 1, charged=True, progressed=True, reason=AbortReason.ERROR),
    AttemptFacts(AttemptState.ABORTED, NOW - 1, reason=AbortReason.SUSPENDED),
    AttemptFacts(AttemptState.ABORTED, NOW - 1, charged=True, reason=AbortReason.FATAL),
    AttemptFacts(AttemptState.ABORTED, NOW - 1, reason=AbortReason.CANCELLED),
]

SMALL_SETS = [attempts for size in range(4) for attempts in product(KINDS, repeat=size)]


def spent(attempts):
    """Count the charged attempts from the newest back to the one that last made progress.

    Of a loss the budget decides, of an error the workflow's own policy, and nobody of an attempt not charged.
    """
    if not attempts or not attempts[-1].charged or attempts[-1].reason == "ERROR":
        return 0
    tail = []
    for attempt in attempts[::-1]:
        tail.append(attempt)
        if attempt.progressed:
            break
    return len([attempt for attempt in tail if attempt.charged])


def judged_by_the_rules(attempts, open_waits):
    if any(a.status == "DONE" for a in attempts):
        return "SUCCEEDED"
    if any(a.status == "COMMITTED" for a in attempts):
        return "RUNNING"
    if any(a.status in {"LEASED", "IN_PROGRESS"} and a.expires_at > NOW for a in attempts):
        return "RUNNING"
    if any(a.reason == "CANCELLED" for a in attempts):
        return "CANCELLED"
    if any(a.reason == "FATAL" for a in attempts) or (not open_waits and spent(attempts) >= 2):
        return "FAILED"
    return "PENDING"


@pytest.mark.parametrize("open_waits", [0, 1])
def test_every_small_set_of_attempts_is_seen_as_the_rules_say(open_waits):
    assert len(SMALL_SETS) > 1_800
    for attempts in SMALL_SETS:
        view = job_view(attempts, open_waits, NOW, POLICY)
        assert view == judged_by_the_rules(attempts, open_waits), attempts


def test_a_job_nobody_touched_is_pending():
    assert job_view([], 0, NOW, POLICY) is JobView.PENDING


def test_a_lease_that_ends_now_has_ended():
    held = AttemptFacts(AttemptState.IN_PROGRESS, NOW)
    assert job_view([held], 0, NOW - 1, POLICY) is JobView.RUNNING
    assert job_view([held], 0, NOW, POLICY) is JobView.PENDING


def test_progress_forgives_what_was_charged_before_it():
    crashed = AttemptFacts(AttemptState.ABORTED, 0, charged=True)
    crashed_later = AttemptFacts(AttemptState.ABORTED, 0, charged=True, progressed=True)
    assert charged_since_progress([crashed] * 5) == 5
    assert charged_since_progress([*[crashed] * 5, crashed_later]) == 1
    assert charged_since_progress([crashed_later, crashed]) == 2


@pytest.mark.parametrize("state", list(JobState))
def test_a_final_job_agrees_with_one_view_only(state):
    views = [view for view in JobView if agrees(state, view)]
    if state in JOB.final:
        assert [view.value for view in views] == [state.value.removesuffix("_FINAL")]
    else:
        assert set(views) <= {JobView.PENDING, JobView.RUNNING}
        assert JobView.PENDING in views
