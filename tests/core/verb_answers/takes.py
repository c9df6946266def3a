"""Taking a message that the segment knew, remote steps that are asked for, and messages that "
"are delivered."""

from __future__ import annotations

from typing import Any

from tallystick.core.deciding import decide
from tallystick.core.plans import Plan
from tallystick.core.remote.rows import ProtocolJob, ProtocolStep
from tallystick.store.api import AskRemotes, Asks, Deliver, TakeAnswer, Wait, Wake
from tests.core.verb_answers.rows import (
    CHAIN,
    DONE,
    ENTERED,
    ENTERED_1,
    FENCE,
    NOW,
    OPEN,
    SEEN,
    TAKEN,
    Case,
    act,
    case,
    ended,
    group,
    held_by,
    idle,
    job,
    join,
    look,
    msg,
    queued,
    timer,
)
from tests.core.verb_answers.waits import A1, ANSWERED, JOINED, START_OVER, SUSPENDS, told, waiting

ASKS = Asks("bank", "charge", '{"cents":7}', "{}", "r1")
CHARGE = Wait("remote", "pay", 1, None, ASKS)
HOME = ProtocolJob(
    "j", "default", "IN_PROGRESS", 5, 1, ENTERED, SEEN, "p", None, None, None, None, "{}", "{}", None, None,
    0, None, None, None,
)  # fmt: skip


def charged(**but: Any) -> ProtocolStep:
    """Return a remote step that is out."""
    step = ProtocolStep(
        "j", "0/pay#1", 0, "charge", "bank", "AWAITING_ACK", OPEN, 3, ASKS.payload, 1, "r1", 5_000
    )
    return step._replace(options="{}", **but)


def taking(wait: Wait = A1, guid: str = "s") -> TakeAnswer:
    return TakeAnswer(FENCE, CHAIN, 0, wait, Wake(guid, "signal", 0, wait.name, None, None, taken=False), 990)


AT_ONCE = f"new a#1: kind=wait {ANSWERED} attempt=1 at=990 result=null; {told()}"
GONE = "InvariantBroken: the message for a is gone or taken"
OTHER = "InvariantBroken: message 's' is not that of a"
TAKES: list[Case] = [
    case("to take: no attempt holds the job", look(job(), msg(), lease=None), taking(), "StaleLease"),
    case(
        "to take: a signal for a wait that was not opened",
        look(job(), msg()),
        taking(),
        AT_ONCE,
        "s: occurrence=1 ledger=000011000000001 acked_at=1000",
        "-",
    ),
    case(
        "to take: whatever was asked of the job meanwhile",
        look(job(state="CANCELLING", hold="PAUSED"), msg()),
        taking(),
        AT_ONCE,
        "s: occurrence=1 ledger=000011000000001 acked_at=1000",
        "-",
    ),
    case(
        "to take: the signal that drives the segment",
        look(idle(), act(ledger=ENTERED), msg(at=1, ledger=SEEN), timer(due_at=5_000), lease=held_by("s")),
        taking(),
        f"a#1: state=SUCCEEDED ledger=001110000000001 at=990 result=null; {told(ledger='001110000000001')}",
        "s: ledger=000010000000001",
        "j:0:a#1:timer: acked_at=1000",
        "-",
    ),
    case("to take: no such message", look(), taking(), GONE),
    case("to take: one that was acknowledged", look(job(), msg(acked_at=950)), taking(), GONE),
    case("to take: one whose work is durable", look(job(), msg(ledger=TAKEN)), taking(), GONE),
    case(
        "to take: the wait is over",
        look(job(), act(state="CANCELLED"), msg(at=1, ledger=SEEN)),
        taking(),
        "InvariantBroken: a is not open",
    ),
    case(
        "to take: no wait, and the signal has entered one",
        look(job(), msg(at=1, ledger=SEEN)),
        taking(),
        "InvariantBroken: a is not open",
    ),
    case("to take: a signal of another name", look(job(), msg(name="b")), taking(), OTHER),
    case(
        "to take: a signal that has entered another wait",
        look(job(), act(), msg(at=2, ledger=SEEN)),
        taking(),
        OTHER,
    ),
    case(
        "to take: a wait that no message can enter",
        look(job(semaphore=2), act(ledger=1_100_099_999_999), msg()),
        taking(),
        "LedgerCeiling",
    ),
]
TAKES.append(
    case(
        "the word of a group that is not there, which no history leaves, stops no other request of its flush",
        look(job(), join(occurrence=None)),
        taking(JOINED, "join:j:0:gather#1"),
        f"new gather#1: kind=group {ANSWERED} attempt=1 at=990 result=null; {told('gather', kind='group')}",
        "join:j:0:gather#1: occurrence=1 ledger=000011000000001 acked_at=1000",
        "-",
    )
)
RESULT = msg("r", "result", "pay", 1, ledger=SEEN, payload='{"value":7}')
PAY = act("pay", kind="remote", ledger=ENTERED)
REMOTE: list[Case] = [
    case(
        "the result of a remote step drives",
        look(idle(), PAY, RESULT, lease=held_by("r"), remotes={PAY.place: charged(state="IN_PROGRESS")}),
        lambda pictures: len(_plan(pictures, taking(CHARGE, "r")).writes),
        "2",
    ),
    case(
        "it is called with other arguments than those that went out",
        look(idle(), PAY, RESULT, lease=held_by("r"), remotes={PAY.place: charged(payload='{"cents":8}')}),
        taking(CHARGE, "r"),
        "CallDiffers",
    ),
    case(
        "a job that waits for it is refused, too",
        look(idle(), PAY, RESULT, lease=held_by("r"), remotes={PAY.place: charged(service="mint")}),
        waiting(CHARGE, driver="r"),
        "CallDiffers",
    ),
    *(
        case(
            f"it is called with {what}: the error shows",
            look(idle(), PAY, RESULT, lease=held_by("r"), remotes={PAY.place: charged(payload=text)}),
            lambda pictures: decide(pictures, taking(CHARGE, "r"), NOW).error.message,
            (
                f"pay#1 was asked for as charge of bank with {shown}, and is called as charge of bank "
                f'with {{"cents":7}}'
            ),
        )
        for what, text, shown in (
            ("nothing before", None, "nothing"),
            ("little before", '{"cents":8}', '{"cents":8}'),
            ("as much as is shown", "x" * 200, "x" * 200),
            ("more before", "x" * 201, "x" * 200 + "..."),
        )
    ),
    case(
        "a wait that does not say what it asks for takes the answer",
        look(idle(), PAY, RESULT, lease=held_by("r"), remotes={PAY.place: charged(state="IN_PROGRESS")}),
        lambda pictures: len(_plan(pictures, taking(CHARGE._replace(asks=None), "r")).writes),
        "2",
    ),
    case(
        "and may wait for it",
        look(job(semaphore=2), PAY, remotes={PAY.place: charged()}),
        waiting(CHARGE._replace(asks=None)),
        SUSPENDS,
        f"job: semaphore=1 {START_OVER}; tells word of 1 at 990",
        "-",
    ),
    case(
        "a remote step whose row is gone is asked for by nobody",
        look(job(), RESULT._replace(acked_at=900)),
        taking(CHARGE, "r"),
        "InvariantBroken: the message for pay is gone or taken",
    ),
]


def _plan(pictures: Any, request: Any) -> Plan:
    plan = decide(pictures, request, NOW)
    assert isinstance(plan, Plan), plan
    return plan


def asking(*waits: Wait) -> AskRemotes:
    return AskRemotes(FENCE, CHAIN, 0, waits)


ASKED: list[Case] = [
    case("to ask: no attempt holds the job", look(lease=None), asking(CHARGE), "StaleLease"),
    case(
        "to ask: it was asked to end: no directive goes out",
        look(job(state="CANCELLING")),
        asking(CHARGE),
        "-",
    ),
    case("to ask: it is held: no directive goes out", look(job(hold="PAUSED")), asking(CHARGE), "-"),
    case(
        "to ask: a remote step is opened with its directive, and counts",
        look(),
        lambda pictures: _asked(pictures, CHARGE),
        "InsertRemote InsertOutbox MoveJob, semaphore 2, at 0/pay#1",
    ),
    case(
        "to ask: one that is open goes on",
        look(job(semaphore=2), PAY),
        lambda pictures: _asked(pictures, CHARGE),
        "MoveJob, semaphore 2, at None",
    ),
    case(
        "to ask: a job that cleans up asks for nothing more",
        look(job(state="CANCELLING")),
        waiting(CHARGE, asked=True),
        "CANCELLING",
    ),
    case(
        "to ask: and waits for what it has asked for before",
        look(job(state="CANCELLING", semaphore=2), PAY, remotes={PAY.place: charged()}),
        waiting(CHARGE, asked=True),
        SUSPENDS,
        f"job: semaphore=1 {START_OVER}; tells word of 1 at 990",
        "-",
    ),
    case(
        "to ask: a wait that opens a remote step sends its directive",
        look(),
        lambda pictures: _waited(pictures, CHARGE),
        "InsertRemote InsertOutbox MoveAttempt MoveJob, at 0/pay#1",
    ),
]


def _at_home(pictures: Any) -> Any:
    pictures["j"].home = HOME
    return pictures


def _asked(pictures: Any, wait: Wait) -> str:
    writes = _plan(_at_home(pictures), asking(wait)).writes
    job = writes[-1].job
    assert job.rev == 6
    names = " ".join(type(write).__name__ for write in writes)
    return f"{names}, semaphore {job.semaphore}, at {writes[-1].values.current_step_id}"


def _waited(pictures: Any, wait: Wait) -> str:
    writes = _plan(_at_home(pictures), waiting(wait)).writes
    names = " ".join(type(write).__name__ for write in writes)
    return f"{names}, at {writes[-1].values.current_step_id}"


def arrives(kind: Any = "signal", name: str = "a", guid: str = "g", payload: str | None = "7") -> Deliver:
    return Deliver(guid, "j", kind, name, payload)


def kept(
    at: str = "", name: str = "a", kind: str = "signal", dimension: int = 0, created_at: int = 1_000
) -> str:
    where = f"dimension={dimension} name={name}{at}"
    about = f"kind={kind} payload=7 ledger=000000000000000 redeliveries=0"
    return f"new g: {where} {about} created_at={created_at} arrived=4"


DUE = "job: ready_at=1000"
DELIVERED: list[Case] = [
    case("there is no such job", look(), arrives()._replace(job_id="gone"), "ABSENT"),
    case(
        "it was delivered before", look(job(), msg("g", acked_at=900), act(), lease=None), arrives(), "KNOWN"
    ),
    case("the job has ended", look(ended(), lease=None), arrives(), "DROPPED"),
    case("nobody waits for it yet", look(idle(), lease=None), arrives(), kept(), "KEPT"),
    case(
        "behind what is in the inbox by a later clock",
        look(idle(inbox_at=1_200), lease=None),
        arrives(),
        kept(created_at=1_200),
        "KEPT",
    ),
    case("a job that waits is woken", look(idle(), act(), lease=None), arrives(), kept(), DUE, "WOKE, wakes"),
    case("a worker runs it", look(idle(), act(), lease=held_by()), arrives(), kept(), "KEPT"),
    case(
        "even one whose lease is over",
        look(idle(), act(), lease=held_by(live=False)),
        arrives(),
        kept(),
        "KEPT",
    ),
    case("a wait of another name", look(idle(), act("b"), lease=None), arrives(), kept(), "KEPT"),
    case("a sleep takes no signal", look(idle(), act(kind="sleep"), lease=None), arrives(), kept(), "KEPT"),
    case(
        "a wait that is over",
        look(idle(), act(state="SUCCEEDED", ledger=DONE), lease=None),
        arrives(),
        kept(),
        "KEPT",
    ),
    case("it is due already", look(idle(ready_at=900), act(), lease=None), arrives(), kept(), "KEPT"),
    case("due at this instant", look(idle(ready_at=1_000), act(), lease=None), arrives(), kept(), "KEPT"),
    case(
        "due later by a timer",
        look(idle(ready_at=1_001), act(), lease=None),
        arrives(),
        kept(),
        DUE,
        "WOKE, wakes",
    ),
    case(
        "it has no time left to end",
        look(idle(state="CANCELLING", cancel_at=1_000), act(), lease=None),
        arrives(),
        kept(),
        "KEPT",
    ),
    case(
        "it has time left to end",
        look(idle(state="CANCELLING", cancel_at=1_001), act(), lease=None),
        arrives(),
        kept(),
        DUE,
        "WOKE, wakes",
    ),
    case(
        "a job that no worker has claimed is not made due",
        look(queued(ready_at=None), act(), lease=None),
        arrives(),
        kept(),
        "KEPT",
    ),
    case("a protocol job takes no signals", look(idle(attempt=0), lease=None), arrives(), "TakesNoSignals"),
    case("and refuses a timer as every job", look(idle(attempt=0), lease=None), arrives("timer"), "REFUSED"),
    case(
        "a timer wakes a sleep",
        look(idle(), act(kind="sleep", occurrence=2, dimension=1), lease=None),
        arrives("timer"),
        kept(" occurrence=2", kind="timer", dimension=1),
        DUE,
        "WOKE, wakes",
    ),
    case(
        "a timer for a wait that is not open is refused",
        look(idle(), lease=None),
        arrives("timer"),
        "REFUSED",
    ),
    case("a result for a wait is refused", look(idle(), act(), lease=None), arrives("result"), "REFUSED"),
    case(
        "an end of a child before its group is whole is refused",
        look(idle(), group(ledger=ENTERED_1), lease=None),
        arrives("child", "gather"),
        "REFUSED",
    ),
    case(
        "of two groups of a name the one that is whole takes it",
        look(idle(), group(ledger=ENTERED_1), group(occurrence=2), lease=None),
        arrives("child", "gather"),
        kept(" occurrence=2", name="gather", kind="child"),
        DUE,
        "WOKE, wakes",
    ),
    case(
        "a signal does not learn its wait before it enters it",
        look(idle(), act(dimension=1), lease=None),
        arrives(),
        kept(),
        DUE,
        "WOKE, wakes",
    ),
]
CASES = (*TAKES, *REMOTE, *ASKED, *DELIVERED)
