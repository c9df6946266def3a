"""Turning, holding, resuming, giving back, reclaiming: what a job goes on with, or does not."""

from __future__ import annotations

from typing import Any

from tallystick.core.audit.fingerprints import of_end
from tallystick.core.deciding import decide
from tallystick.core.pictures import LostAttempts
from tallystick.core.plans import Plan
from tallystick.core.remote.rows import ProtocolStep
from tallystick.core.verbs import control_requests
from tallystick.core.verbs.asking import by
from tallystick.core.verbs.holds import Hold
from tallystick.core.verbs.reclaiming import _UNREADABLE
from tallystick.store.api import (
    Cycle,
    EndAttempt,
    Fence,
    ReclaimAttempt,
    RecordEvent,
    RecordStep,
    SetValue,
)
from tests.core.verb_answers.ends import ASKED_BELOW, CANCELLED, EMPTIED, dropped
from tests.core.verb_answers.rows import (
    CHAIN,
    DONE,
    ENTERED,
    FENCE,
    NOW,
    OPEN,
    SEEN,
    TAKEN,
    WORKED,
    Case,
    act,
    case,
    effect,
    ended,
    fact,
    held_by,
    idle,
    job,
    look,
    msg,
    of,
    turned,
)
from tests.core.verb_answers.told import lines, silent

TURNS = Cycle(FENCE, "start", 0, "[2]", fact("turn"))
START_OVER = "root=001111000000001 start=000011000000001 start_acked=1000"
LEFT = "attempt 1: IN_PROGRESS to ABORTED SUSPENDED"


def word(turn: int = 1, arrived: int = 4, created_at: int = 1_000) -> str:
    about = f"dimension={turn} name=again occurrence=1 kind=resume ledger=000000000000000 redeliveries=0"
    return f"new again:j:{turn}: {about} created_at={created_at} arrived={arrived}"


KEPT = "inbox dropped but again:j:1 and signals"
TURNED: list[Case] = [
    case("no attempt holds the job", look(lease=None), TURNS, "StaleLease"),
    case(
        "the first turn: the start is over, and its successor is owed",
        look(job(ready_at=300)),
        TURNS,
        KEPT,
        word(),
        LEFT,
        f"job: dimension=1 ready_at=1000 {START_OVER}; tells turn of 1 at 990; payload=[2]",
        "-, wakes",
    ),
    case(
        "behind what is in the inbox, and what is open is dropped",
        look(job(semaphore=2, inbox_at=1_200), act()),
        TURNS,
        "1 dropped",
        KEPT,
        word(created_at=1_200),
        LEFT,
        (
            f"job: dimension=1 ready_at=1000 semaphore=1 {START_OVER}; tells turn of 1 at 990 "
            f"{dropped(act())}; payload=[2]"
        ),
        "-, wakes",
    ),
    case(
        "the answer that drove the segment is settled",
        look(idle(), act(state="SUCCEEDED", ledger=WORKED), msg(at=1, ledger=TAKEN), lease=held_by("s")),
        TURNS._replace(driver="s"),
        "job: ; by 0; s: ledger=000011000000001 acked_at=1000; a#1: ledger=001111000000001",
        "inbox dropped but again:j:1 s and signals",
        word(),
        LEFT,
        "job: dimension=1 ready_at=1000; tells turn of 1 at 990; payload=[2]",
        "-, wakes",
    ),
    case(
        "what drives and has answered nothing is dropped with its wait",
        look(idle(), act(ledger=ENTERED), msg(at=1, ledger=SEEN), lease=held_by("s")),
        TURNS._replace(driver="s"),
        "job: ; by 0; s: ledger=000011000000001 acked_at=1000; a#1: ledger=001111000000001",
        "1 dropped",
        "inbox dropped but again:j:1 s and signals",
        word(),
        LEFT,
        f"job: dimension=1 ready_at=1000; tells turn of 1 at 990 {dropped(act())}; payload=[2]",
        "-, wakes",
    ),
    case(
        "the word of the next turn is there",
        look(job(), turned(0)),
        TURNS,
        "InvariantBroken: it turns, and the word 'again:j:1' is there already",
    ),
    case("its root can count no more", look(job(root_ledger=1_100_099_999_999)), TURNS, "LedgerCeiling"),
    case(
        "what drove it is gone",
        look(idle()),
        TURNS._replace(driver="s"),
        "InvariantBroken: message 's' drives a segment, and is gone or done with",
    ),
    case(
        "its semaphore counts less than what is open",
        look(job(semaphore=1), act()),
        TURNS,
        "InvariantBroken: its semaphore comes to 0, with -1 to close",
    ),
    case(
        "remote steps that were not looked at",
        look(job(semaphore=2), act("pay", kind="remote")),
        TURNS,
        "look again at j",
    ),
    case(
        "effects that were not looked at",
        look(job(semaphore=2), act("pay", kind="effect")),
        TURNS,
        "look again at j",
    ),
    case(
        "remote steps of a turn that is over: their directives are taken back",
        look(job(semaphore=2), act("pay", kind="remote"), remotes={(0, "pay", 1): None}),
        lambda pictures: _kinds(pictures, TURNS),
        "DropActivities WithdrawDirectives DropInbox InsertMessage MoveAttempt MoveJob",
    ),
    case(
        "a job that was asked to end ends instead of its turn",
        look(job(state="CANCELLING", cancel_at=1_200)),
        lambda pictures: _instead(pictures),  # noqa: PLW0108 (it stands below)
        "EndJob CANCELLED CANCELLED; attempt 1: IN_PROGRESS to ABORTED CANCELLED; inbox dropped but nothing; "
        "job: state=CANCELLED semaphore=0 root=001111100000001 start=000111100000001 start_acked=1000 "
        f"completed_at=1000; tells cancel of 1 at 990 {CANCELLED} ended={of_end()}; -",
    ),
    case(
        "unless what drove it is gone",
        look(idle(state="CANCELLING")),
        TURNS._replace(driver="s"),
        "InvariantBroken: message 's' drives a segment, and is gone or done with",
    ),
]


def _kinds(pictures: Any, request: Any) -> str:
    step = ProtocolStep("j", "0/pay#1", 0, "t", "bank", "IN_PROGRESS", OPEN, 3, None, 1, "r1", 5_000)
    pictures["j"].remotes = {(0, "pay", 1): step}
    return " ".join(type(write).__name__ for write in decide(pictures, request, NOW).writes)


def _instead(pictures: Any) -> str:
    plan = decide(pictures, TURNS, NOW)
    assert isinstance(plan, Plan)
    end: Any = plan.outcome
    return "; ".join((f"{type(end).__name__} {end.state} {end.reason}", *lines(pictures, silent(plan))))


def hold(**but: Any) -> control_requests.HoldJob:
    return control_requests.HoldJob("j", Hold.PAUSED, "lunch")._replace(**but)


HELD_FACT = "tells hold of 1 at 1000 hold=PAUSED why=lunch"
HELD: list[Case] = [
    case("to hold: no such job", look(), hold(job_id="gone"), "NotFound"),
    case(
        "to hold: a job that waits",
        look(idle(), lease=None),
        hold(),
        f"job: hold=PAUSED; {HELD_FACT}; hold_reason=lunch",
        "HELD",
    ),
    case(
        "to hold: by a name",
        look(idle(), lease=None),
        hold(by="ann"),
        f"job: hold=PAUSED; {HELD_FACT} by=ann; hold_reason=lunch",
        "HELD",
    ),
    case(
        "to hold: a job at work: its worker is the author",
        look(),
        hold(),
        "job: hold=PAUSED; hold_reason=lunch",
        "ASKED, wakes",
    ),
    case("to hold: a job that is held", look(idle(hold="MISMATCH"), lease=None), hold(), "ALREADY"),
    case("to hold: a job that has ended", look(ended(), lease=None), hold(), "ENDED"),
    case("to hold: a job that was asked to end", look(idle(state="CANCELLING"), lease=None), hold(), "ENDED"),
    case(
        "to hold: one whose last attempt is the one that was seen",
        look(idle(), lease=None),
        hold(since=1),
        f"job: hold=PAUSED; {HELD_FACT}; hold_reason=lunch",
        "HELD",
    ),
    case(
        "to hold: one that has had another since", look(idle(attempt=2), lease=None), hold(since=1), "MOVED"
    ),
    case("to hold: one whose attempt goes on", look(idle()), hold(since=1), "MOVED"),
    case("to hold: whoever holds it may be nobody", look(), of(by, ""), "{}"),
    case("to hold: or somebody with a name", look(), of(by, "ann"), "{'by': 'ann'}"),
]
RESUMES = control_requests.ResumeJob("j")
RESUMED: list[Case] = [
    case("to resume: no such job", look(), control_requests.ResumeJob("gone"), "NotFound"),
    case(
        "to resume: a job that is held",
        look(idle(hold="PAUSED"), lease=None),
        control_requests.ResumeJob("j"),
        "job: hold=-; tells resume of 1 at 1000 hold=PAUSED",
        "FREE, wakes",
    ),
    case(
        "to resume: by a name",
        look(idle(hold="IN_DOUBT"), lease=None),
        control_requests.ResumeJob("j", "ann"),
        "job: hold=-; tells resume of 1 at 1000 hold=IN_DOUBT by=ann",
        "FREE, wakes",
    ),
    case(
        "to resume: a job at work: its worker is the author",
        look(job(hold="PAUSED")),
        control_requests.ResumeJob("j"),
        "job: hold=-",
        "FREE, wakes",
    ),
    case(
        "to resume: a job in doubt: its probe is asked once more",
        look(idle(hold="IN_DOUBT"), act("pay", kind="effect"), lease=None, **effect()),
        lambda pictures: _kinds(pictures, control_requests.ResumeJob("j")),
        "MoveEffect MoveJob",
    ),
    case(
        "to resume: a job that was paused: its probe was not asked for that",
        look(idle(hold="PAUSED"), act("pay", kind="effect"), lease=None, **effect()),
        lambda pictures: _kinds(pictures, control_requests.ResumeJob("j")),
        "MoveJob",
    ),
    case(
        "to resume: a job that is not held",
        look(idle(), lease=None),
        control_requests.ResumeJob("j"),
        "NOT_HELD",
    ),
    case(
        "to resume: a job that has ended",
        look(ended(hold="PAUSED"), lease=None),
        control_requests.ResumeJob("j"),
        "ENDED",
    ),
]


def gives_back(**but: Any) -> EndAttempt:
    return EndAttempt(FENCE, "RELEASED", False, 1_290, None, None, fact("release"))._replace(**but)


STEP = RecordStep(FENCE, CHAIN, 0, "work", 1, "step", "SUCCEEDED", DONE, "1", None, None, 990, 980)
RECORDED: list[Case] = [
    case("a step by who holds no lease", look(lease=None), STEP, "StaleLease"),
    case("a step", look(), lambda pictures: _kinds(pictures, STEP), "InsertStep"),
    case(
        "a fact by who holds no lease",
        look(lease=held_by(live=False)),
        RecordEvent(FENCE, fact()),
        "StaleLease",
    ),
    case("a fact", look(), RecordEvent(FENCE, fact()), "tells word of 1 at 990", "-"),
    case("a value by who holds no lease", look(lease=None), SetValue(FENCE, "progress", "1"), "StaleLease"),
    case(
        "a value",
        look(),
        SetValue(FENCE, "progress", "1"),
        "PutValue job_id=j name=progress value=1 attempt=1",
        "-",
    ),
    case("a job is given back by who does not hold it", look(lease=None), gives_back(), "StaleLease"),
    case(
        "it is due again when it is said, by the clock of the store",
        look(),
        gives_back(),
        "attempt 1: IN_PROGRESS to ABORTED RELEASED",
        "job: ready_at=1300; tells release of 1 at 990",
        "-, wakes",
    ),
    case(
        "an error is charged",
        look(),
        gives_back(charged=True, reason="ERROR"),
        "attempt 1: IN_PROGRESS to ABORTED ERROR, charged",
        "job: ready_at=1300; tells release of 1 at 990",
        "-, wakes",
    ),
    case(
        "it stops for a hold, and is due by nothing",
        look(job(ready_at=300)),
        gives_back(ready_at=None, hold="MISMATCH", hold_reason="why"),
        "attempt 1: IN_PROGRESS to ABORTED RELEASED",
        "job: ready_at=- hold=MISMATCH; tells release of 1 at 990; hold_reason=why",
        "-",
    ),
    case(
        "a hold that was set meanwhile stays",
        look(job(hold="PAUSED")),
        gives_back(),
        "attempt 1: IN_PROGRESS to ABORTED RELEASED",
        "job: ready_at=1300; tells release of 1 at 990",
        "-, wakes",
    ),
]
LOST = ReclaimAttempt(FENCE)


def lost(charged: int = 0, options: str = '{"attempts_max":3}') -> dict[str, Any]:
    return {"past": LostAttempts(400, options, charged), "lease": held_by(live=False)}


ABORTED = "attempt 1: IN_PROGRESS to ABORTED"
RETRIED = f"{ABORTED} EXPIRED, charged, not live"
TOLD = "tells reclaim of 1 at 1000 attempt=IN_PROGRESS>ABORTED reason=EXPIRED verdict=RETRY"
SPENT = "{} attempts in a row ended without progress: the worker died or lost its lease"
CLOSES = "semaphore=0 root=001111100000001 start=000111100000001 start_acked=1000"


def spent(budget: int, state: str = "job: state=FAILED_FINAL") -> tuple[str, ...]:
    said = SPENT.format(budget)
    error = f'{{"type":"AttemptsSpent","message":"{said}","code":"ATTEMPTS_SPENT","tries":{budget}}}'
    return (
        RETRIED,
        EMPTIED,
        (
            f"{state} {CLOSES} completed_at=1000; tells reclaim of 1 at 1000 job=IN_PROGRESS>FAILED_FINAL "
            f"attempt=IN_PROGRESS>ABORTED reason=EXPIRED verdict=FAIL "
            f"ended={of_end(None, error, 'ATTEMPTS_SPENT', said)}; "
            f"error={error} error_code=ATTEMPTS_SPENT error_message={said}"
        ),
    )


HELD_SAID = "tells hold of 1 at 1000 attempt=IN_PROGRESS>ABORTED hold={} why={}"
RECLAIMED: list[Case] = [
    case("to reclaim: no such job", look(**lost()), ReclaimAttempt(Fence("gone", 1, "lease")), "LEAVE"),
    case("to reclaim: no attempt holds it", look(**{**lost(), "lease": None}), LOST, "LEAVE"),
    case(
        "to reclaim: another attempt holds it",
        look(**lost()),
        ReclaimAttempt(Fence("j", 2, "lease")),
        "LEAVE",
    ),
    case("to reclaim: by another lease", look(**lost()), ReclaimAttempt(Fence("j", 1, "other")), "LEAVE"),
    case("to reclaim: its lease lives", look(**{**lost(), "lease": held_by()}), LOST, "LEAVE"),
    case(
        "to reclaim: nothing is known of what it was judged by",
        look(**{**lost(), "past": None}),
        LOST,
        "LEAVE",
    ),
    case("to reclaim: the job has ended", look(ended(), **lost()), LOST, "LEAVE"),
    case(
        "to reclaim: an attempt that has ended",
        look(**{**lost(), "lease": held_by(status="ABORTED", live=False)}),
        LOST,
        "LEAVE",
    ),
    case(
        "to reclaim: one that is done",
        look(**{**lost(), "lease": held_by(status="DONE", live=False)}),
        LOST,
        "LEAVE",
    ),
    case(
        "to reclaim: an effect that nobody knows",
        look(**lost(), effects={}),
        ReclaimAttempt(FENCE, "0/pay#1"),
        "LEAVE",
    ),
    case(
        "to reclaim: a call that was lost is in doubt, also of a job that has ended",
        look(ended(), **{**lost(), "lease": None}, **effect("CALLING")),
        lambda pictures: _kinds(pictures, ReclaimAttempt(Fence("j", 1, "call-1"), "0/pay#1")),
        "MoveEffect",
    ),
    case(
        "to reclaim: it is tried again, as early in the queue as it has waited",
        look(job(ready_at=None), **lost(1)),
        LOST,
        RETRIED,
        f"job: ready_at=400; {TOLD}",
        "RETRY, wakes",
    ),
    case(
        "to reclaim: whatever the clock of its birth said, and a hold stays",
        look(job(hold="PAUSED"), **{**lost(), "past": LostAttempts(2_000, '{"attempts_max":3}', 1)}),
        LOST,
        RETRIED,
        f"job: ready_at=1000; {TOLD}",
        "RETRY, wakes",
    ),
    case("to reclaim: its budget is spent: the job fails", look(**lost(2)), LOST, *spent(3), "FAIL"),
    case("to reclaim: a budget of one", look(**lost(0, '{"attempts_max":1}')), LOST, *spent(1), "FAIL"),
    case(
        "to reclaim: but one whose worker lives is not charged",
        look(**lost(2)),
        LOST._replace(excused=True),
        f"{ABORTED} RELEASED, not live",
        f"job: ready_at=400; {TOLD.replace('EXPIRED', 'RELEASED')}",
        "RETRY, wakes",
    ),
    case(
        "to reclaim: what cannot be judged is held, and not charged",
        look(**lost(0, "broken")),
        LOST,
        f"{ABORTED} HELD, not live",
        (
            f"job: ready_at=400 hold=MISMATCH; {HELD_SAID.format('MISMATCH', _UNREADABLE)}; "
            f"hold_reason={_UNREADABLE}"
        ),
        "HOLD",
    ),
    case(
        "to reclaim: what the database has refused is held",
        look(**lost(2)),
        LOST._replace(refused="no"),
        f"{ABORTED} HELD, not live",
        f"job: ready_at=400 hold=REFUSED; {HELD_SAID.format('REFUSED', 'no')}; hold_reason=no",
        "HOLD",
    ),
    case(
        "to reclaim: one that is to end is not tried again",
        look(job(state="CANCELLING", cancel_at=900), **lost(), has_open_children=True),
        LOST,
        f"{ABORTED} CANCELLED, not live",
        EMPTIED,
        f"job: state=CANCELLED {CLOSES} completed_at=1000; tells reclaim of 1 at 1000 "
        f"{CANCELLED} reason=EXPIRED verdict=SETTLE ended={of_end()}",
        ASKED_BELOW,
        "SETTLE, wakes",
    ),
    case(
        "to reclaim: what is committed is finished, and its function is not called",
        look(**{**lost(2), "lease": held_by(status="COMMITTED", live=False)}),
        LOST,
        "attempt 1: COMMITTED to DONE, not live",
        EMPTIED,
        f"job: state=SUCCEEDED {CLOSES} completed_at=1000; tells reclaim of 1 at 1000 "
        "job=IN_PROGRESS>SUCCEEDED attempt=COMMITTED>DONE verdict=FINISH",
        "FINISH",
    ),
    case(
        "to reclaim: committed and held: a person looks first",
        look(job(hold="PAUSED"), **{**lost(), "lease": held_by(status="COMMITTED", live=False)}),
        LOST,
        "LEAVE",
    ),
    case(
        "to reclaim: committed, and the database has refused its end: it is held with its attempt",
        look(**{**lost(), "lease": held_by(status="COMMITTED", live=False)}),
        LOST._replace(refused="no"),
        "job: hold=REFUSED; hold_reason=no",
        "HOLD, wakes",
    ),
    case(
        "to reclaim: its end cannot be written: what drives it is gone",
        look(idle(), **{**lost(2), "lease": held_by("s", live=False)}),
        LOST,
        "InvariantBroken: message 's' drives a segment, and is gone or done with",
    ),
    case(
        "to reclaim: one that was claimed and has not begun",
        look(**{**lost(), "lease": held_by(status="LEASED", live=False)}),
        LOST,
        "attempt 1: LEASED to ABORTED EXPIRED, charged, not live",
        f"job: ready_at=400; {TOLD.replace('IN_PROGRESS>', 'LEASED>')}",
        "RETRY, wakes",
    ),
]
CASES = (*TURNED, *HELD, *RESUMED, *RECORDED, *RECLAIMED)
