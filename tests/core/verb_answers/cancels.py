"""Cancelling: jobs that are asked to end, and those that end at once, by a message of the root."""

from __future__ import annotations

from typing import Any

from tallystick.core.audit.fingerprints import of_end
from tallystick.core.deciding import decide
from tallystick.core.remote.answers import answer_text
from tallystick.core.remote.rows import ProtocolStep
from tallystick.core.verbs.control import cancel_unclaimed
from tallystick.store.api import CancelJob, CancelUnclaimed
from tests.core.verb_answers.ends import dropped
from tests.core.verb_answers.rows import (
    NOW,
    OPEN,
    TAKEN,
    WORKED,
    Case,
    act,
    case,
    effect,
    end_of,
    ended,
    held_by,
    idle,
    job,
    look,
    msg,
    picture_of,
    queued,
    timer,
    turned,
)

GRACE = 500


def asks(**but: Any) -> CancelJob:
    return CancelJob("j", GRACE)._replace(**but)


FORCED = {"force": True}
BELOW = (
    "AskDescendants job_id=j before=('QUEUED', 'DISPATCHING', 'IN_PROGRESS') "
    "asked=CANCELLING at=1000 ends_at=1500"
)
LATE_BELOW = f"{BELOW} code=DEADLINE"
ASKED = "job: state=CANCELLING cancel_at=1500"
ASKS: list[Case] = [
    case("there is no such job", look(), asks(job_id="gone"), "NotFound"),
    case("a job at work is asked", look(), asks(), ASKED, "CANCELLING, wakes"),
    case("even one whose lease is over", look(lease=held_by(live=False)), asks(), ASKED, "CANCELLING, wakes"),
    case(
        "a hold goes with that",
        look(job(hold="PAUSED")),
        asks(),
        "job: state=CANCELLING hold=- cancel_at=1500",
        "CANCELLING, wakes",
    ),
    case("and everything below it", look(has_open_children=True), asks(), ASKED, BELOW, "CANCELLING, wakes"),
    case(
        "one that was asked keeps its grace",
        look(job(state="CANCELLING", cancel_at=1_200)),
        asks(),
        "CANCELLING",
    ),
    case("one that has ended stays", look(ended(), lease=None), asks(), "SUCCEEDED"),
    case("one that has ended, by force", look(ended(), lease=None), asks(force=True), "SUCCEEDED"),
    case(
        "what is committed is its holder's to finish",
        look(lease=held_by(status="COMMITTED")),
        asks(force=True),
        "IN_PROGRESS",
    ),
    case("a deadline that has not passed", look(job(deadline_at=1_001)), asks(late=True), "IN_PROGRESS"),
    case("a job without a deadline", look(), asks(late=True), "IN_PROGRESS"),
    case(
        "a deadline that passes at this instant gives the reason",
        look(job(deadline_at=1_000), has_open_children=True),
        asks(late=True),
        f"{ASKED} code=DEADLINE; error_code=DEADLINE",
        LATE_BELOW,
        "CANCELLING, wakes",
    ),
    case(
        "a person ends it before its deadline",
        look(job(deadline_at=1_001)),
        asks(),
        ASKED,
        "CANCELLING, wakes",
    ),
    case(
        "a protocol job is asked elsewhere",
        look(queued(attempt=0, start_acked_at=500), lease=None),
        asks(),
        "CancelProtocol(job_id=j force=no)",
    ),
    case(
        "and with force",
        look(queued(attempt=0, start_acked_at=500), lease=None),
        asks(force=True),
        "CancelProtocol(job_id=j force=yes)",
    ),
    case(
        "one that has ended stays as well",
        look(ended(attempt=0), lease=None),
        asks(),
        "SUCCEEDED",
    ),
]


def word(ledger: str, arrived: int = 4, dimension: int = 0, created_at: int = 1_000) -> str:
    about = f"dimension={dimension} name=cancel occurrence=1 kind=resume ledger=00000000000000{ledger}"
    return f"new cancel:j: {about} redeliveries=0 created_at={created_at} arrived={arrived}"


def closed(root: str, ledger: str, by: int = -1, more: str = "") -> str:
    about = f"semaphore=0 root={root}{more}; by {by}, closes; "
    return f"job: {about}cancel:j: ledger=00011110000000{ledger} acked_at=1000"


def tells(
    attempt: int = 2, forced: str = "no", *, begun: bool = True, code: str | None = None, more: str = ""
) -> str:
    path = "IN_PROGRESS" if begun else "QUEUED"
    about = f"job={path}>CANCELLING>CANCELLED attempt=LEASED>ABORTED forced={forced}"
    about += f" code={code}" if code else ""
    return f"tells cancel of {attempt} at 1000 {about} ended={of_end(error_code=code)}{more}"


NEVER_MADE = "new attempt 2: ABORTED CANCELLED by cancel:j"
EMPTIED = "inbox dropped but cancel:j"
NOW_ENDED = "CANCELLED now"
AT_ONCE: list[Case] = [
    case(
        "a job that waits ends at once: the root closes what is open",
        look(idle(), act(), lease=None),
        asks(),
        word("2"),
        closed("001111100000002", "2"),
        NEVER_MADE,
        "1 dropped",
        EMPTIED,
        (
            f"job: state=CANCELLED attempt=2 cancel_at=1000 completed_at=1000; "
            f"{tells(more=' ' + dropped(act()))}"
        ),
        NOW_ENDED,
    ),
    case(
        "by a name, and by force",
        look(idle(semaphore=1, cancel_at=700, inbox_at=1_100), act(), lease=None),
        asks(force=True, by="ann"),
        word("2", created_at=1_100),
        closed("001111100000002", "2"),
        NEVER_MADE,
        "1 dropped",
        EMPTIED,
        "job: state=CANCELLED attempt=2 completed_at=1000; "
        + tells(forced="yes", more=f" by=ann {dropped(act())}"),
        NOW_ENDED,
    ),
    case(
        "a job that no worker has claimed: its start is over with that",
        look(queued(), lease=None),
        asks(),
        word("1"),
        closed("001111100000001", "1", more=" start_acked=1000"),
        "new attempt 1: ABORTED CANCELLED by cancel:j",
        EMPTIED,
        (
            f"job: state=CANCELLED attempt=1 ready_at=- cancel_at=1000 completed_at=1000; "
            f"{tells(1, begun=False)}"
        ),
        NOW_ENDED,
    ),
    case(
        "its time is over before it was claimed: that is the reason",
        look(queued(deadline_at=900), lease=None, has_open_children=True),
        asks(late=True),
        word("1"),
        closed("001111100000001", "1", more=" start_acked=1000 code=DEADLINE"),
        "new attempt 1: ABORTED CANCELLED by cancel:j",
        EMPTIED,
        "job: state=CANCELLED attempt=1 ready_at=- cancel_at=1000 completed_at=1000; "
        f"{tells(1, begun=False, code='DEADLINE')}; error_code=DEADLINE",
        LATE_BELOW,
        "CANCELLED now, wakes",
    ),
    case(
        "one that was asked for its deadline ends with that reason",
        look(idle(state="CANCELLING", cancel_at=900, code="DEADLINE"), act(), lease=None),
        asks(force=True),
        word("2"),
        closed("001111100000002", "2"),
        NEVER_MADE,
        "1 dropped",
        EMPTIED,
        "job: state=CANCELLED attempt=2 completed_at=1000; "
        + tells(forced="yes", code="DEADLINE", more=" " + dropped(act()))
        + "; error_code=DEADLINE",
        NOW_ENDED,
    ),
    case(
        "what was taken and not settled is owed: it counts",
        look(
            idle(semaphore=2),
            act(),
            act("b", state="SUCCEEDED", ledger=WORKED),
            msg("b", name="b", at=1, ledger=TAKEN),
            end_of(0, ledger=TAKEN),
            turned(2, acked_at=900),
            timer(due_at=5_000),
            lease=None,
        ),
        asks(),
        word("2"),
        closed("001111100000002", "2", -2),
        NEVER_MADE,
        "1 dropped",
        EMPTIED,
        (
            f"job: state=CANCELLED attempt=2 cancel_at=1000 completed_at=1000; "
            f"{tells(more=' ' + dropped(act()))}"
        ),
        NOW_ENDED,
    ),
    case(
        "the word to turn is owed from its birth",
        look(idle(dimension=1), turned(0), lease=None),
        asks(),
        word("2", dimension=1),
        closed("001111100000002", "2"),
        NEVER_MADE,
        EMPTIED,
        f"job: state=CANCELLED attempt=2 cancel_at=1000 completed_at=1000; {tells()}",
        NOW_ENDED,
    ),
    case(
        "a semaphore that counts other things",
        look(idle(semaphore=2), act(), lease=None),
        asks(),
        "InvariantBroken: 1 activities are open, and its semaphore counts 2",
    ),
    case(
        "the word that ends it is there, and it goes on",
        look(idle(), act(), msg("cancel:j", "resume", "cancel", 1, acked_at=900), lease=None),
        asks(),
        "InvariantBroken: it has the message that ends it, and has not ended",
    ),
    case(
        "nothing counts in it: no message can bring it to zero",
        look(idle(semaphore=0), lease=None),
        asks(),
        "InvariantBroken: its semaphore comes to 0, with 0 to close",
    ),
    case(
        "an effect of it is in doubt: it ends when that is known",
        look(idle(semaphore=1), act("pay", kind="effect"), lease=None, **effect()),
        asks(force=True),
        "job: state=CANCELLING cancel_at=253402300799000",
        "CANCELLING, wakes",
    ),
    case(
        "unless a person ends it all the same",
        look(idle(semaphore=1), act("pay", kind="effect"), lease=None, **effect()),
        asks(force=True, abandon=True),
        word("2"),
        closed("001111100000002", "2"),
        NEVER_MADE,
        "1 dropped",
        EMPTIED,
        "job: state=CANCELLED attempt=2 cancel_at=1000 completed_at=1000; "
        + tells(forced="yes", more=f" abandons={{'0/pay#1': 'k'}} {dropped(act('pay', kind='effect'))}"),
        NOW_ENDED,
    ),
    case(
        "children of it are asked in the same bundle, with its grace",
        look(idle(), act(), lease=None, has_open_children=True),
        asks(),
        word("2"),
        closed("001111100000002", "2"),
        NEVER_MADE,
        "1 dropped",
        EMPTIED,
        (
            f"job: state=CANCELLED attempt=2 cancel_at=1000 completed_at=1000; "
            f"{tells(more=' ' + dropped(act()))}"
        ),
        BELOW,
        "CANCELLED now, wakes",
    ),
]
_SAID = "the root of job j was entered as often as can be counted"
_FULL = f'{{"type":"LedgerCeiling","message":"{_SAID}","code":"LEDGER_CEILING","tries":1}}'
CEILING: list[Case] = [
    case(
        "a root that can count no further entry: the job has failed",
        look(idle(root_ledger=1_111_099_999_999), act(), lease=None),
        asks(),
        "new attempt 2: ABORTED FATAL by none",
        "1 dropped",
        "inbox dropped but nothing",
        "job: state=FAILED_FINAL attempt=2 semaphore=0 completed_at=1000; tells fail of 2 at 1000 "
        "job=IN_PROGRESS>FAILED_FINAL attempt=LEASED>ABORTED reason=FATAL charged=no "
        f"error={{'code': 'LEDGER_CEILING', 'message': '{_SAID}'}} "
        f"ended={of_end(None, _FULL, 'LEDGER_CEILING', _SAID)} {dropped(act())}; "
        f"error={_FULL} error_code=LEDGER_CEILING error_message={_SAID}",
        "FAILED_FINAL now, wakes",
    ),
]
FORCED_TELLS = "tells cancel of 1 at 1000 job=IN_PROGRESS>CANCELLING>CANCELLED attempt=IN_PROGRESS>ABORTED"
START_CLOSES = "semaphore=0 root=001111100000001 start=000111100000001 start_acked=1000"
BY_FORCE: list[Case] = [
    case(
        "the grace of a job at work is over",
        look(job(state="CANCELLING", cancel_at=900)),
        asks(force=True),
        "attempt 1: IN_PROGRESS to ABORTED CANCELLED",
        "inbox dropped but nothing",
        f"job: state=CANCELLED {START_CLOSES} completed_at=1000; {FORCED_TELLS} forced=yes ended={of_end()}",
        NOW_ENDED,
    ),
    case(
        "with its reason and its author, and a lease that is over",
        look(job(state="CANCELLING", cancel_at=900, code="DEADLINE"), lease=held_by(live=False)),
        asks(force=True, by="ann"),
        "attempt 1: IN_PROGRESS to ABORTED CANCELLED, not live",
        "inbox dropped but nothing",
        f"job: state=CANCELLED {START_CLOSES} completed_at=1000; {FORCED_TELLS} "
        f"forced=yes code=DEADLINE by=ann ended={of_end(error_code='DEADLINE')}",
        NOW_ENDED,
    ),
    case(
        "the message that drives it is gone",
        look(idle(), act(), lease=held_by("s")),
        asks(force=True),
        "InvariantBroken: message 's' drives a segment, and is gone or done with",
    ),
    case(
        "its semaphore counts one more",
        look(job(semaphore=2)),
        asks(force=True),
        "InvariantBroken: its semaphore comes to 1, with -1 to close",
    ),
    case(
        "what is committed and has no holder any more is finished, and not undone",
        look(lease=held_by(status="COMMITTED", live=False)),
        asks(force=True),
        "attempt 1: COMMITTED to DONE, not live",
        "inbox dropped but nothing",
        f"job: state=SUCCEEDED {START_CLOSES} completed_at=1000; tells reclaim of 1 at 1000 "
        "job=IN_PROGRESS>SUCCEEDED attempt=COMMITTED>DONE verdict=FINISH",
        "SUCCEEDED",
    ),
    case(
        "but a job that was asked before is cancelled",
        look(job(state="CANCELLING", cancel_at=900), lease=held_by(status="COMMITTED", live=False)),
        asks(force=True),
        "attempt 1: COMMITTED to DONE, not live",
        "inbox dropped but nothing",
        f"job: state=CANCELLED {START_CLOSES} completed_at=1000; tells reclaim of 1 at 1000 "
        "job=IN_PROGRESS>CANCELLING>CANCELLED attempt=COMMITTED>DONE verdict=FINISH",
        "CANCELLED",
    ),
]
PAY = act("pay", kind="remote")
_AT_IT = ProtocolStep("j", "0/pay#1", 0, "t", "bank", "IN_PROGRESS", OPEN, 3, None, 1, "r1", 5_000)
REMOTE: list[Case] = [
    case(
        "a remote worker is at a step of it: it has until its lease ends",
        look(
            idle(hold="PAUSED", ready_at=2_000),
            PAY,
            lease=None,
            remotes={PAY.place: _AT_IT},
            has_open_children=True,
        ),
        asks(),
        "job: state=CANCELLING ready_at=- hold=- cancel_at=5000",
        BELOW,
        "CANCELLING, wakes",
    ),
    case(
        "asked again it has as long as before",
        look(idle(state="CANCELLING", cancel_at=5_000), PAY, lease=None, remotes={PAY.place: _AT_IT}),
        asks(),
        "CANCELLING",
    ),
    case(
        "the lease has moved since",
        look(idle(state="CANCELLING", cancel_at=4_000), PAY, lease=None, remotes={PAY.place: _AT_IT}),
        asks(),
        "job: cancel_at=5000",
        "CANCELLING, wakes",
    ),
    case(
        "a job that was to end then anyhow, and was not asked",
        look(idle(cancel_at=5_000), PAY, lease=None, remotes={PAY.place: _AT_IT}),
        asks(),
        "job: state=CANCELLING",
        "CANCELLING, wakes",
    ),
    case(
        "its result cannot be counted: the job has failed",
        look(
            idle(),
            act("pay", kind="effect", ledger=1_100_099_999_999),
            msg("r", "result", "pay", 1, payload=answer_text("7", None)),
            lease=None,
        ),
        lambda pictures: _outcome(pictures, asks()),
        "FAILED_FINAL now",
    ),
]


def _outcome(pictures: Any, request: Any) -> Any:
    return decide(pictures, request, NOW).outcome


GONE_HOME = picture_of(ended(job_id="p"))


def child(n: int, **but: Any) -> Any:
    """Return a child that was asked to end before any worker had it."""
    about = {"state": "CANCELLING", "cancel_at": 900, "ready_at": None, "inbox_end": 0, "inbox_at": 0}
    row = queued(**{**about, "job_id": f"j.{n}", "parent_job_id": "p", "parent_step": "0:gather#1", **but})
    return picture_of(row)


def _pictures(*children: Any, home: Any = GONE_HOME) -> Any:
    found = look(*(), lease=None)
    found.clear()
    for each in children:
        found[each.job.job_id] = each
    if home is not None:
        found["p"] = home
    return found


def _busy(picture: Any) -> Any:
    picture.lease = held_by()
    return picture


def ending(*names: str) -> Any:
    """Ask which of these jobs end alike, in how many lists."""

    def asked(pictures: Any) -> str:
        plan = cancel_unclaimed(pictures, CancelUnclaimed(names), NOW)
        said = " and ".join(",".join(chain.job_id for chain in end.chains) for end in plan.writes)
        assert plan.outcome == {name for end in plan.writes for name in (c.job_id for c in end.chains)}
        return said or "none"

    return asked


UNCLAIMED: list[Case] = [
    case(
        "those that are alike end in one list", _pictures(child(1), child(2)), ending("j.1", "j.2"), "j.1,j.2"
    ),
    case(
        "those that differ in two", _pictures(child(1), child(2, rev=6)), ending("j.1", "j.2"), "j.1 and j.2"
    ),
    case(
        "one that has something open does not end with what is like it",
        _pictures(child(1), picture_of(child(2).job, act())),
        ending("j.1", "j.2"),
        "j.1",
    ),
    case("one that is gone is no matter", _pictures(child(1)), ending("j.1", "j.2"), "j.1"),
    *(
        case(f"not {what}", _pictures(*rows, home=home), ending("j.1"), "none")
        for what, rows, home in (
            ("a job that was not asked", [child(1, state="QUEUED")], GONE_HOME),
            ("one that a worker had", [child(1, attempt=1)], GONE_HOME),
            ("one that a worker has", [_busy(child(1))], GONE_HOME),
            ("one that has time left", [child(1, cancel_at=1_001)], GONE_HOME),
            ("one that nobody has set an end", [child(1, cancel_at=None)], GONE_HOME),
            ("one with an inbox", [child(1, inbox_end=1)], GONE_HOME),
            ("one without a parent that counts it", [child(1, parent_step=None)], GONE_HOME),
            ("one whose parent is not seen", [child(1)], None),
            ("one whose parent goes on", [child(1)], picture_of(idle(job_id="p"))),
            ("one with children of its own", [picture_of(child(1).job, has_open_children=True)], GONE_HOME),
            ("one that has something open", [picture_of(child(1, semaphore=2).job, act())], GONE_HOME),
            ("one with a message", [picture_of(child(1).job, msg())], GONE_HOME),
            ("one whose books are wrong", [child(1, semaphore=2)], GONE_HOME),
        )
    ),
]
CASES = (*ASKS, *AT_ONCE, *CEILING, *BY_FORCE, *REMOTE, *UNCLAIMED)
