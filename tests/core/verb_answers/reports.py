"""Reports on remote steps of workflows: what their rows learn, and what their jobs hear of that."""

from __future__ import annotations

from typing import Any

from tallystick.core.remote.requests import AckStep, AnswerStep, RenewStep, StepAnswer, StepFence
from tests.core.verb_answers.rows import Case, act, case, held_by, idle, job, look
from tests.core.verb_answers.takes import HOME, charged

PAY = act("pay", kind="remote")
FENCE = StepFence("j", "0/pay#1", 1, "r1")
ACK = AckStep(FENCE)
DONE = AnswerStep(FENCE, StepAnswer(True, "d", value="7"), "r2")


def out(row: Any = None, *, lease: Any = None, home: Any = HOME, more: Any = (), **but: Any) -> Any:
    """Return a job whose remote step is out."""
    remotes = {PAY.place: charged(**but), **{each.place: step for each, step in more}}
    others = [each for each, _step in more]
    picture = look(row or idle(), PAY, *others, lease=lease, remotes=remotes)
    picture["j"].home = home
    return picture


HEARD = "Hearing(heard={} cancelling={} directive=- lease_expires_at={})"
ACKED = "remote 0/pay#1: state=IN_PROGRESS lease_expires_at=901000 acked_at=1000"
ENDED = 'remote 0/pay#1: state=IN_PROGRESS lease_expires_at=- acked_at=1000 answers=[[1,"r1","d"]] result=7'


def word(created_at: int = 1_000, said: str = '{"value":7}') -> str:
    about = (
        f"dimension=0 name=pay occurrence=1 kind=result payload={said} ledger=000000000000000 redeliveries=0"
    )
    return f"new result:j:0:pay#1:1: {about} created_at={created_at} arrived=4"


def heard(what: str, *, cancelling: str = "no", until: object = "-") -> str:
    return HEARD.format(what, cancelling, until)


STALE = StepFence("j", "0/pay#1", 2, "r1")
OTHER = act("mint", kind="remote")
AT_OTHER = charged(step_id="0/mint#1", state="IN_PROGRESS", lease_expires_at=7_000)
REPORTS: list[Case] = [
    case("there is no such job", look(), ACK._replace(fence=FENCE._replace(job_id="gone")), heard("UNKNOWN")),
    case("nor such a step", look(), ACK, heard("UNKNOWN")),
    case("its job was not looked at", out(home=None), ACK, "InvariantBroken"),
    case(
        "an ACK begins the work, and is no matter to the job",
        out(),
        ACK,
        ACKED,
        heard("ACCEPTED", until=901_000),
    ),
    case(
        "an ACK that was refused is kept for people",
        out(),
        ACK._replace(fence=STALE),
        "KeepReport report=('j', 2, 'r1', 'AckStep 0/pay#1')",
        heard("STALE", until=5_000),
    ),
    case(
        "a second ACK changes nothing, and is no report to keep",
        out(state="IN_PROGRESS"),
        ACK,
        heard("DUPLICATE", until=5_000),
    ),
    case(
        "a RESULT wakes the job",
        out(idle(inbox_at=1_200)),
        DONE,
        ENDED,
        word(1_200),
        "job: ready_at=1000 inbox_end=4",
        heard("ACCEPTED") + ", wakes",
    ),
    case("a job at work finds it", out(job(), lease=held_by()), DONE, ENDED, word(), heard("ACCEPTED")),
    case(
        "a job that is due finds it",
        out(idle(ready_at=900)),
        DONE,
        ENDED,
        word(),
        heard("ACCEPTED"),
    ),
    case(
        "a job that is to end is a step nearer to that: nobody is at a step of it",
        out(idle(state="CANCELLING", cancel_at=5_000)),
        DONE,
        ENDED,
        word(),
        "job: cancel_at=1000 inbox_end=4 inbox_at=1000",
        heard("ACCEPTED", cancelling="yes") + ", wakes",
    ),
    case(
        "it waits for another step",
        out(idle(state="CANCELLING", cancel_at=9_000, semaphore=2), more=[(OTHER, AT_OTHER)]),
        DONE,
        ENDED,
        word(),
        "job: cancel_at=7000 inbox_end=4 inbox_at=1000",
        heard("ACCEPTED", cancelling="yes") + ", wakes",
    ),
    case(
        "an ACK gives a step of it time to end",
        out(idle(state="CANCELLING", cancel_at=5_000)),
        ACK,
        ACKED,
        "job: cancel_at=901000",
        heard("ACCEPTED", cancelling="yes", until=901_000) + ", wakes",
    ),
    case(
        "a heartbeat of it is answered, and gives no more",
        out(idle(state="CANCELLING", cancel_at=5_000), state="IN_PROGRESS"),
        RenewStep(FENCE),
        heard("CANCELLING", cancelling="yes", until=5_000),
    ),
]
CASES = tuple(REPORTS)
