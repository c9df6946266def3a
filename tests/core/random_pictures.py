"""One random picture by its number, given to a verb, and the plan held against the rows it was made from."""

from __future__ import annotations

from tallystick.core.deciding import decide
from tallystick.core.plans import Decision, Plan, Refusal, Relook
from tallystick.core.verbs.claiming import enter
from tallystick.core.verbs.endings import escalate
from tallystick.errors import LedgerCeiling, TallyError
from tests.core.legal_rows import JOB_ID, NOW, Chance, drawn_pictures, drawn_request
from tests.core.plan_judge import Judge

WRITES, NOTHING, REFUSED, AGAIN = "writes", "does nothing", "is refused", "looks again"
NOBODY_CLAIMS_IT = ""


def answered(number: int) -> tuple[str, str]:
    """Draw a request too; return its kind, and in a word what it comes to."""
    chance = Chance(number)
    pictures = drawn_pictures(chance)
    request = drawn_request(chance, pictures[JOB_ID])
    judge = Judge(pictures)
    what = _judged(judge, decide(pictures, request, NOW))
    unseen = pictures[JOB_ID].effects is None or pictures[JOB_ID].has_unseen_remotes
    assert what != AGAIN or not pictures[JOB_ID].whole or unseen
    return type(request).__name__, what


def entered(number: int) -> str:
    """Let a claim enter what drives the job; return in a word what that comes to."""
    pictures = drawn_pictures(Chance(number))
    if pictures[JOB_ID].job.completed_at is not None:
        return NOBODY_CLAIMS_IT
    judge = Judge(pictures)
    decision = enter(pictures[JOB_ID], NOW)
    what = _judged(judge, decision)
    wake = decision.outcome if isinstance(decision, Plan) else None
    assert wake is None or judge.messages[wake.guid].ledger > 0, "it drives a segment and has no entry"  # type: ignore[attr-defined]  # a wake has one
    return what


def escalated(number: int) -> str:
    """End the job because its ledger is full; return in a word what that comes to."""
    pictures = drawn_pictures(Chance(number))
    job, lease = pictures[JOB_ID].job, pictures[JOB_ID].lease
    if job.completed_at is not None or (lease is not None and lease.status == "COMMITTED"):
        return NOBODY_CLAIMS_IT
    judge = Judge(pictures)
    what = _judged(judge, escalate(pictures, JOB_ID, LedgerCeiling("full"), NOW))
    after = judge.jobs[JOB_ID]
    assert after.completed_at is not None
    assert (after.root_ledger, after.start_ledger) == (job.root_ledger, job.start_ledger)
    return what


def _judged(judge: Judge, decision: Decision) -> str:
    match decision:
        case Plan(writes):
            judge.judge(writes)
            return WRITES if writes else NOTHING
        case Refusal(error):
            assert isinstance(error, TallyError)
            return REFUSED
        case Relook():
            return AGAIN
