"""Ends of jobs by their own functions: what closes, what is dropped, who hears of it."""

from __future__ import annotations

from typing import Any

from tallystick.core.audit.fingerprints import of_dropped, of_end
from tallystick.core.deciding import decide
from tallystick.core.lifecycles import JobState
from tallystick.core.verbs.endings import escalate, way
from tallystick.errors import LedgerCeiling, TallyError
from tallystick.store.api import EndJob, Fact, StoredError
from tests.core.verb_answers.rows import (
    CHAIN,
    ENTERED,
    FENCE,
    NOW,
    SEEN,
    TAKEN,
    WORKED,
    Case,
    act,
    case,
    ended,
    group,
    held_by,
    idle,
    job,
    look,
    msg,
    of,
    picture_of,
    turned,
)
from tests.core.verb_answers.told import lines, silent

RETURN = Fact(CHAIN, "return", 990, 1, '{"job":"IN_PROGRESS>SUCCEEDED"}')
FAILED = StoredError('{"type":"E"}', "E", "no")


def returns(driver: str = "start", result: str | None = "7") -> EndJob:
    return EndJob.of(FENCE, JobState.SUCCEEDED, RETURN, driver=driver, result=result)


def fails() -> EndJob:
    return EndJob.of(FENCE, JobState.FAILED_FINAL, RETURN._replace(type="fail"), reason="FATAL", error=FAILED)


DONE_NOW = "attempt 1: IN_PROGRESS to DONE"
CLOSES = "semaphore=0 root=001111100000001 start=000111100000001 start_acked=1000"
TELLS = "tells return of 1 at 990 job=IN_PROGRESS>SUCCEEDED"
CANCELLED = "job=IN_PROGRESS>CANCELLING>CANCELLED attempt=IN_PROGRESS>ABORTED"
EMPTIED = "inbox dropped but nothing"
SUCCEEDS = f"job: state=SUCCEEDED {CLOSES} completed_at=1000; {TELLS}; result=7"
BROKEN = "InvariantBroken: message 's' and a disagree about its answer"


def dropped(*rows: Any, prints: Any = None) -> str:
    return f"dropped={of_dropped(rows, prints or {})}"


def _children(**but: Any) -> Any:
    return look(job(), has_open_children=True, **but)


ASKED_BELOW = (
    "AskDescendants job_id=j before=('QUEUED', 'DISPATCHING', 'IN_PROGRESS') "
    "asked=CANCELLING at=1000 ends_at=31000"
)
ENDS: list[Case] = [
    case("no attempt holds the job", look(lease=None), returns(), "StaleLease"),
    case(
        "work that is committed is not written by its worker any more",
        look(lease=held_by(status="COMMITTED")),
        returns(),
        "StaleLease",
    ),
    case("a job that has ended", look(ended(), lease=held_by()), returns(), "StaleLease"),
    case("the start closes the job", look(), returns(), DONE_NOW, EMPTIED, SUCCEEDS, "-"),
    case(
        "a job that fails closes as well",
        look(),
        fails(),
        "attempt 1: IN_PROGRESS to ABORTED FATAL, charged",
        EMPTIED,
        f"job: state=FAILED_FINAL {CLOSES} completed_at=1000; {TELLS.replace('return', 'fail')}; "
        'error={"type":"E"} error_code=E error_message=no',
        "-",
    ),
    case(
        "what is open is dropped, and its part of the semaphore is the closer's",
        look(job(semaphore=3), act("b"), act("c"), act("d", state="SUCCEEDED")),
        returns(),
        DONE_NOW,
        "2 dropped",
        EMPTIED,
        f"job: state=SUCCEEDED {CLOSES} completed_at=1000; {TELLS} {dropped(act('b'), act('c'))}; result=7",
        "-",
    ),
    case(
        "the semaphore counts one more",
        look(job(semaphore=2)),
        returns(),
        "InvariantBroken: its semaphore comes to 1, with -1 to close",
    ),
    case("the semaphore counts one less", look(job(semaphore=1), act()), returns(), "SemaphoreUnderflow"),
    case(
        "a message that is gone cannot close",
        look(idle(semaphore=1)),
        returns("s"),
        "InvariantBroken: message 's' drives a segment, and is gone or done with",
    ),
    case(
        "nor one that was acknowledged",
        look(idle(), act(state="SUCCEEDED", ledger=WORKED), msg(at=1, ledger=TAKEN, acked_at=900)),
        returns("s"),
        "InvariantBroken: message 's' drives a segment, and is gone or done with",
    ),
    case(
        "nor one that answers nothing",
        look(idle(), msg(at=1, ledger=TAKEN)),
        returns("s"),
        "InvariantBroken: message 's' drives a segment and answers nothing",
    ),
    case(
        "nor a signal that has entered no wait",
        look(idle(), act(), msg(ledger=SEEN)),
        returns("s"),
        "InvariantBroken: message 's' drives a segment and answers nothing",
    ),
    case(
        "it is taken, and its wait is open",
        look(idle(), act(ledger=ENTERED), msg(at=1, ledger=TAKEN)),
        returns("s"),
        BROKEN,
    ),
    case(
        "its wait is over without an answer",
        look(idle(), act(state="CANCELLED", ledger=ENTERED), msg(at=1, ledger=SEEN)),
        returns("s"),
        BROKEN,
    ),
    case(
        "the answer that drove the last segment is the closer",
        look(idle(), act(state="SUCCEEDED", ledger=WORKED), msg(at=1, ledger=TAKEN), lease=held_by("s")),
        returns("s"),
        (
            "job: semaphore=0; by -1, closes; s: ledger=000111100000001 acked_at=1000; a#1: "
            "ledger=001111100000001"
        ),
        DONE_NOW,
        "inbox dropped but s",
        f"job: state=SUCCEEDED completed_at=1000; {TELLS}; result=7",
        "-",
    ),
    case(
        "what drives and was not taken closes as well: its wait is dropped",
        look(idle(), act(ledger=ENTERED), msg(at=1, ledger=SEEN), lease=held_by("s")),
        returns("s"),
        (
            "job: semaphore=0; by -1, closes; s: ledger=000111100000001 acked_at=1000; a#1: "
            "ledger=001111100000001"
        ),
        DONE_NOW,
        "1 dropped",
        "inbox dropped but s",
        f"job: state=SUCCEEDED completed_at=1000; {TELLS} {dropped(act())}; result=7",
        "-",
    ),
    case(
        "the word to turn closes as a message of the root",
        look(idle(dimension=1, root_ledger=1_111_000_000_002), turned(), lease=held_by("again:j:1")),
        returns("again:j:1"),
        (
            "job: semaphore=0 root=001111100000002; by -1, closes; again:j:1: ledger=000111100000002 "
            "acked_at=1000"
        ),
        DONE_NOW,
        "inbox dropped but again:j:1",
        f"job: state=SUCCEEDED completed_at=1000; {TELLS}; result=7",
        "-",
    ),
    case(
        "a signal of an older form, which did not learn its wait, closes without the root",
        look(idle(), msg(ledger=TAKEN), lease=held_by("s")),
        returns("s"),
        "job: semaphore=0; by -1, closes; s: ledger=000111100000001 acked_at=1000",
        DONE_NOW,
        "inbox dropped but s",
        f"job: state=SUCCEEDED completed_at=1000; {TELLS}; result=7",
        "-",
    ),
    case(
        "an activity that has all its digits is not written again",
        look(
            idle(),
            act(state="SUCCEEDED", ledger=1_111_100_000_001),
            msg(at=1, ledger=TAKEN),
            lease=held_by("s"),
        ),
        returns("s"),
        "job: semaphore=0; by -1, closes; s: ledger=000111100000001 acked_at=1000",
        DONE_NOW,
        "inbox dropped but s",
        f"job: state=SUCCEEDED completed_at=1000; {TELLS}; result=7",
        "-",
    ),
    case(
        "its children are asked to end with it, and its end concerns others",
        _children(),
        returns(),
        DONE_NOW,
        EMPTIED,
        SUCCEEDS,
        ASKED_BELOW,
        "-, wakes",
    ),
    case(
        "effects that are open: look at them first",
        look(job(semaphore=2), act("pay", kind="effect")),
        returns(),
        "look again at j",
    ),
    case(
        "remote steps that are open: look at them first",
        look(job(semaphore=2), act("pay", kind="remote")),
        returns(),
        "look again at j",
    ),
    case(
        "a hold goes with the end, and the time of a wake-up",
        look(job(hold="PAUSED", ready_at=400)),
        returns(),
        DONE_NOW,
        EMPTIED,
        f"job: state=SUCCEEDED ready_at=- hold=- {CLOSES} completed_at=1000; {TELLS}; result=7",
        "-",
    ),
]
_COUNTED = "p gather#1: ledger=001111000000001 semaphore=1; p new child:j"
CHILDS: list[Case] = [
    case(
        "a child is counted by its parent",
        look(job(parent_job_id="p", parent_step="0:gather#1"), home=picture_of(idle(job_id="p"), group())),
        returns(),
        DONE_NOW,
        EMPTIED,
        SUCCEEDS,
        (
            f"{_COUNTED}: dimension=0 name=gather occurrence=1 kind=child payload=SUCCEEDED "
            f"ledger=000011000000001 "
            "redeliveries=0 created_at=1000 arrived=0 acked_at=1000"
        ),
        "-, wakes",
    ),
    case(
        "a detached one by nobody",
        look(job(parent_job_id="p"), home=picture_of(idle(job_id="p"), group())),
        returns(),
        DONE_NOW,
        EMPTIED,
        SUCCEEDS,
        "-",
    ),
    case(
        "nor one whose parent is not named",
        look(job(parent_step="0:gather#1")),
        returns(),
        DONE_NOW,
        EMPTIED,
        SUCCEEDS,
        "-",
    ),
]


def _gives_up() -> EndJob:
    fact = RETURN._replace(type="cancel")
    return EndJob.of(FENCE, JobState.CANCELLED, fact, reason="CANCELLED")


def _end_again(pictures: Any) -> str:
    """Return what the answer says that was written instead of a return."""
    end = decide(pictures, returns(), NOW).outcome
    about = (
        end.state,
        end.attempt_status,
        end.reason,
        end.charged,
        end.result,
        end.error_code,
        end.fact.type,
    )
    return " ".join(map(str, about))


def _written(pictures: Any, end: EndJob) -> tuple[str, ...]:
    return tuple(lines(pictures, silent(decide(pictures, end, NOW))))


_COME = of_end(None, None, "DEADLINE", None)
ASKED: list[Case] = [
    case(
        "a job that was asked to end is cancelled, whatever its function did: it hears of that",
        look(job(state="CANCELLING", cancel_at=1_200)),
        _end_again,
        "CANCELLED ABORTED CANCELLED False None None cancel",
    ),
    case(
        "and by its deadline says so",
        look(job(state="CANCELLING", cancel_at=1_200, code="DEADLINE")),
        _end_again,
        "CANCELLED ABORTED CANCELLED False None DEADLINE cancel",
    ),
    case(
        "a job that was not asked ends as it wished",
        look(),
        lambda pictures: _outcome(pictures, returns()),
        "-",
    ),
    case(
        "a function that gives up by itself is cancelled as it wished",
        look(job(state="CANCELLING")),
        lambda pictures: _outcome(pictures, _gives_up()),
        "-",
    ),
    case(
        "and hears of the reason",
        look(job(state="CANCELLING", code="DEADLINE")),
        lambda pictures: _outcome(pictures, _gives_up()).error_code,
        "DEADLINE",
    ),
    *(
        case(name, row, lambda pictures, end=end: " | ".join(_written(pictures, end)), " | ".join(said))
        for name, row, end, said in (
            (
                "what is written of one that gives up by itself when its time is over",
                look(job(state="CANCELLING", cancel_at=900, code="DEADLINE")),
                _gives_up(),
                (
                    "attempt 1: IN_PROGRESS to ABORTED CANCELLED",
                    EMPTIED,
                    (
                        f"job: state=CANCELLED {CLOSES} completed_at=1000; tells cancel of 1 at 990 "
                        f"job=IN_PROGRESS>SUCCEEDED ended={_COME}; error_code=DEADLINE"
                    ),
                    "-",
                ),
            ),
            (
                "what is written of one that was asked",
                look(job(state="CANCELLING", cancel_at=1_200)),
                returns(),
                (
                    "attempt 1: IN_PROGRESS to ABORTED CANCELLED",
                    EMPTIED,
                    (
                        f"job: state=CANCELLED {CLOSES} completed_at=1000; tells cancel of 1 at 990 "
                        f"{CANCELLED} ended={of_end()}"
                    ),
                    "-",
                ),
            ),
            (
                "what is written of one whose time is over",
                look(job(state="CANCELLING", cancel_at=None, code="DEADLINE")),
                returns(),
                (
                    "attempt 1: IN_PROGRESS to ABORTED CANCELLED",
                    EMPTIED,
                    (
                        f"job: state=CANCELLED {CLOSES} cancel_at=1000 completed_at=1000; tells "
                        f"cancel of 1 at 990 "
                        f"{CANCELLED} ended={_COME}; error_code=DEADLINE"
                    ),
                    "-",
                ),
            ),
        )
    ),
]


def _outcome(pictures: Any, request: EndJob) -> Any:
    return decide(pictures, request, NOW).outcome


CEILING = LedgerCeiling("full", job_id="j")
_FULL = '{"type":"LedgerCeiling","message":"full","code":"LEDGER_CEILING","tries":1}'
_FULL_SAID = f"error={_FULL} error_code=LEDGER_CEILING error_message=full"
_WHY = "reason=FATAL charged=no error={'code': 'LEDGER_CEILING', 'message': 'full'} ended=" + of_end(
    None, _FULL, "LEDGER_CEILING", "full"
)


def escalated(pictures: Any) -> Any:
    return escalate(pictures, "j", CEILING, NOW)


ESCALATED: list[Case] = [
    case(
        "a job at work has failed when its ledger is full, and the ledger stays",
        look(job(semaphore=2), act()),
        escalated,
        "attempt 1: IN_PROGRESS to ABORTED FATAL",
        "1 dropped",
        EMPTIED,
        "job: state=FAILED_FINAL semaphore=0 completed_at=1000; tells fail of 1 at 1000 "
        f"job=IN_PROGRESS>FAILED_FINAL attempt=IN_PROGRESS>ABORTED {_WHY} {dropped(act())}; {_FULL_SAID}",
        "-, wakes",
    ),
    case(
        "one whose lease is over, too",
        look(job(), lease=held_by(live=False)),
        escalated,
        "attempt 1: IN_PROGRESS to ABORTED FATAL, not live",
        EMPTIED,
        "job: state=FAILED_FINAL semaphore=0 completed_at=1000; tells fail of 1 at 1000 "
        f"job=IN_PROGRESS>FAILED_FINAL attempt=IN_PROGRESS>ABORTED {_WHY}; {_FULL_SAID}",
        "-, wakes",
    ),
    case(
        "one that no worker runs has an attempt that none made",
        look(idle(), lease=None),
        escalated,
        "new attempt 2: ABORTED FATAL by none",
        EMPTIED,
        "job: state=FAILED_FINAL attempt=2 semaphore=0 completed_at=1000; tells fail of 2 at 1000 "
        f"job=IN_PROGRESS>FAILED_FINAL attempt=LEASED>ABORTED {_WHY}; {_FULL_SAID}",
        "-, wakes",
    ),
    case(
        "one that was asked to end is cancelled",
        look(idle(state="CANCELLING", cancel_at=900), lease=None),
        escalated,
        "new attempt 2: ABORTED FATAL by none",
        EMPTIED,
        "job: state=CANCELLED attempt=2 semaphore=0 completed_at=1000; tells cancel of 2 at 1000 "
        f"job=IN_PROGRESS>CANCELLING>CANCELLED attempt=LEASED>ABORTED {_WHY}; {_FULL_SAID}",
        "-, wakes",
    ),
]


def _path(*args: Any, **named: Any) -> str:
    try:
        return way(*args, **named).path
    except TallyError as error:
        return type(error).__name__


WAYS: list[Case] = [
    case(
        f"from {state} to {end}{' as it is told' if told else ''}, after {attempt} attempts",
        look(),
        of(_path, job(state=state, attempt=attempt), end, told=told),
        path,
    )
    for state, attempt, end, told, path in (
        ("IN_PROGRESS", 1, "SUCCEEDED", False, "IN_PROGRESS>SUCCEEDED"),
        ("IN_PROGRESS", 1, "FAILED_FINAL", False, "IN_PROGRESS>FAILED_FINAL"),
        ("IN_PROGRESS", 1, "CANCELLED", False, "IN_PROGRESS>CANCELLING>CANCELLED"),
        ("QUEUED", 0, "CANCELLED", True, "QUEUED>CANCELLING>CANCELLED"),
        ("QUEUED", 0, "FAILED_FINAL", True, "QUEUED>DISPATCHING>FAILED_FINAL"),
        ("CANCELLING", 1, "CANCELLED", False, "CANCELLING>CANCELLED"),
        ("CANCELLING", 1, "CANCELLED", True, "IN_PROGRESS>CANCELLING>CANCELLED"),
        ("CANCELLING", 0, "CANCELLED", True, "QUEUED>CANCELLING>CANCELLED"),
        ("QUEUED", 0, "SUCCEEDED", False, "StateTransitionError"),
        ("DISPATCHING", 1, "FAILED_FINAL", True, "DISPATCHING>FAILED_FINAL"),
        ("DISPATCHING", 1, "FAILED_FINAL", False, "DISPATCHING>FAILED_FINAL"),
    )
]
CASES = (*ENDS, *CHILDS, *ASKED, *ESCALATED, *WAYS)
