"""Verbs are total: random rows that a database lets stand give plans that the rules accept, or a refusal."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from tallystick.core.deciding import decide
from tallystick.core.plans import Decision, Plan, Refusal, Relook
from tallystick.core.verbs.claiming import enter
from tallystick.core.verbs.endings import escalate
from tallystick.core.verbs.wants import Planned
from tallystick.errors import LedgerCeiling, TallyError
from tests.core.legal_rows import JOB_ID, NOW, Chance, drawn_pictures, drawn_request
from tests.core.plan_judge import Judge

# The same examples in every run. The number of one that fails is in what pytest prints: `number`.
EXAMPLES = range(12_000)


def judged(judge: Judge, decision: Decision) -> str:
    """Hold a decision against the rows that it was made from, and say in a word what it is."""
    match decision:
        case Plan(writes):
            judge.judge(writes)
            return "writes" if writes else "does nothing"
        case Refusal(error):
            assert isinstance(error, TallyError)
            return "is refused"
        case Relook():
            return "looks again"


def test_every_request_is_answered_with_a_plan_that_the_rules_accept_or_with_a_refusal():
    seen: Counter[tuple[str, str]] = Counter()
    for number in EXAMPLES:
        chance = Chance(number)
        pictures = drawn_pictures(chance)
        request = drawn_request(chance, pictures[JOB_ID])
        judge = Judge(pictures)
        what = judged(judge, decide(pictures, request, NOW))
        assert what != "looks again" or not pictures[JOB_ID].whole
        seen[type(request).__name__, what] += 1
    for kind in get_args(Planned):
        assert seen[kind.__name__, "writes"] >= 40, f"{kind.__name__} is hardly ever written: {seen}"


def test_every_entry_of_a_claim_is_counted_before_any_work_or_refused():
    seen: Counter[str] = Counter()
    for number in EXAMPLES[::2]:
        pictures = drawn_pictures(Chance(number))
        if pictures[JOB_ID].job.completed_at is not None:
            continue  # nobody claims it
        judge = Judge(pictures)
        decision = enter(pictures[JOB_ID], NOW)
        seen[judged(judge, decision)] += 1
        wake = decision.outcome if isinstance(decision, Plan) else None
        assert wake is None or judge.messages[wake.guid].ledger > 0, "it drives a segment and has no entry"
    assert seen["writes"] >= 1_000
    assert seen["is refused"] >= 10


def test_a_job_whose_ledger_is_full_ends_and_keeps_its_digits():
    ended = 0
    for number in EXAMPLES[::4]:
        pictures = drawn_pictures(Chance(number))
        job, lease = pictures[JOB_ID].job, pictures[JOB_ID].lease
        if job.completed_at is not None or (lease is not None and lease.status == "COMMITTED"):
            continue  # nobody claims these
        judge = Judge(pictures)
        judged(judge, escalate(pictures, JOB_ID, LedgerCeiling("full"), NOW))
        after = judge.jobs[JOB_ID]
        assert after.completed_at is not None
        assert (after.root_ledger, after.start_ledger) == (job.root_ledger, job.start_ledger)
        ended += 1
    assert ended >= 1_500
