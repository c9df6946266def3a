"""Waiting: a segment comes to waits, and is answered from the inbox or ends."""

from __future__ import annotations

from typing import Any

from tallystick.core.audit.fingerprints import of_group
from tallystick.core.effects.rows import answer_of
from tallystick.store.api import Await, Wait
from tests.core.verb_answers.rows import (
    DONE,
    ENTERED,
    FENCE,
    SEEN,
    TAKEN,
    Case,
    act,
    case,
    fact,
    group,
    held_by,
    idle,
    job,
    join,
    look,
    msg,
    timer,
)

A1 = Wait("wait", "a", 1, None)
TIMED = Wait("wait", "a", 1, 1_490)  # of a worker whose clock is ten milliseconds behind
OVER = Wait("wait", "a", 1, 985)
B1 = Wait("wait", "b", 1, None)
TIMED_B = Wait("wait", "b", 1, 1_390)
JOINED = Wait("group", "gather", 1, None)
PAID = Wait("effect", "pay", 1, None)
SLEEP = Wait("sleep", "a", 1, 1_490)
START_OVER = "root=001111000000001 start=000011000000001 start_acked=1000"
ANSWERED = "state=SUCCEEDED ledger=001111000000001"


def waiting(*waits: Wait, driver: str = "start", **but: Any) -> Await:
    return Await(FENCE, driver, 0, waits, fact(), **but)


def over(name: str) -> str:
    return f"InvariantBroken: it waits for {name}, which is over or was never opened"


def opened(name: str = "a") -> str:
    return f"new {name}#1: kind=wait state=IN_PROGRESS ledger=001100000000000 attempt=1 at=1000"


def timed(name: str, due_at: int, arrived: int) -> str:
    about = f"name={name} occurrence=1 kind=timer due_at={due_at} ledger=000000000000000 redeliveries=0"
    return f"new j:0:{name}#1:timer: dimension=0 {about} created_at=1000 arrived={arrived}"


def told(name: str = "a", value: str = "-", ledger: str = "001111000000001", kind: str = "wait") -> str:
    about = f"step={name} occurrence=1 state=SUCCEEDED ledger={ledger}"
    return f"tells {kind} of 1 at 990 {about} result={value}"


def answer(
    guid: str = "s", *, payload: str = "-", out: bool = False, place: int = 0, ahead: str = "()"
) -> str:
    timed_out = "yes" if out else "no"
    return f"Answer(guid={guid} payload={payload} timed_out={timed_out} place={place} ahead={ahead})"


SUSPENDS = "attempt 1: IN_PROGRESS to ABORTED SUSPENDED"
STALE_OR_STOPPED: list[Case] = [
    case("no attempt holds the job", look(job(), lease=None), waiting(A1), "StaleLease"),
    case("another attempt holds it", look(lease=held_by()._replace(attempt=2)), waiting(A1), "StaleLease"),
    case("its lease is over", look(lease=held_by(live=False)), waiting(A1), "StaleLease"),
    case("it was asked to end", look(job(state="CANCELLING")), waiting(A1), "CANCELLING"),
    case(
        "it was asked to end, and knows: it may wait while it cleans up",
        look(job(state="CANCELLING")),
        waiting(A1, asked=True),
        opened(),
        SUSPENDS,
        f"job: {START_OVER}; tells word of 1 at 990",
        "-",
    ),
    case("it is held", look(job(hold="PAUSED")), waiting(A1), "PAUSED"),
]
REFUSED: list[Case] = [
    case("a wait that is over", look(job(), act(state="SUCCEEDED", ledger=DONE)), waiting(A1), over("a")),
    case("a wait that was dropped", look(job(), act(state="CANCELLED")), waiting(A1), over("a")),
    case("a group that nothing opened", look(), waiting(JOINED), over("gather")),
    case("an effect that nothing opened", look(), waiting(PAID), over("pay")),
    case("a timer whose wait is not there", look(job(), timer()), waiting(TIMED), over("a")),
    case(
        "a timer of that name is no matter to a wait without one",
        look(job(), timer(due_at=5_000)),
        waiting(A1),
        opened(),
        SUSPENDS,
        f"job: ready_at=5000 {START_OVER}; tells word of 1 at 990",
        "-, wakes",
    ),
    case("the second of two waits is refused, too", look(job(), timer()), waiting(B1, TIMED), over("a")),
    case("a remote step that asks for nothing", look(), waiting(Wait("remote", "a", 1, None)), over("a")),
]
SUSPENDED: list[Case] = [
    case(
        "the first wait of a job: the start is over, one thing is open",
        look(),
        waiting(A1),
        opened(),
        SUSPENDS,
        f"job: {START_OVER}; tells word of 1 at 990",
        "-",
    ),
    case(
        "two waits at once, one with a timer: each counts",
        look(),
        waiting(TIMED, B1),
        opened(),
        timed("a", 1_500, 4),
        opened("b"),
        SUSPENDS,
        f"job: ready_at=1500 semaphore=2 {START_OVER} inbox_end=4 inbox_at=1000; tells word of 1 at 990",
        "-, wakes",
    ),
    case(
        "two timers: each has its place in the inbox, and the first makes the job due",
        look(job(inbox_at=1_200)),
        waiting(TIMED, TIMED_B),
        opened(),
        timed("a", 1_500, 4).replace("created_at=1000", "created_at=1200"),
        opened("b"),
        timed("b", 1_400, 5).replace("created_at=1000", "created_at=1200"),
        SUSPENDS,
        f"job: ready_at=1400 semaphore=2 {START_OVER} inbox_end=5; tells word of 1 at 990",
        "-, wakes",
    ),
    case(
        "a sleep is a wait that only its timer ends",
        look(job(), msg()),
        waiting(SLEEP),
        opened().replace("kind=wait", "kind=sleep"),
        timed("a", 1_500, 4),
        SUSPENDS,
        f"job: ready_at=1500 {START_OVER} inbox_end=4 inbox_at=1000; tells word of 1 at 990",
        "-, wakes",
    ),
    case(
        "a wait that is open is met once more: that is an entry, and its timer goes on",
        look(job(semaphore=2), act(), timer(due_at=1_700)),
        waiting(TIMED),
        "a#1: ledger=002100000000000 at=1000",
        SUSPENDS,
        f"job: ready_at=1700 semaphore=1 {START_OVER}; tells word of 1 at 990",
        "-, wakes",
    ),
    case(
        "an open wait whose timer was acknowledged is due by no timer",
        look(job(semaphore=2), act(), timer(due_at=1_700, acked_at=950)),
        waiting(TIMED),
        "a#1: ledger=002100000000000 at=1000",
        SUSPENDS,
        f"job: semaphore=1 {START_OVER}; tells word of 1 at 990",
        "-",
    ),
    case(
        "a wait at the top of its entries is not counted and goes on",
        look(job(semaphore=2), act(ledger=999_100_000_000_000)),
        waiting(A1),
        SUSPENDS,
        f"job: semaphore=1 {START_OVER}; tells word of 1 at 990",
        "-",
    ),
    case(
        "a group counts its entries elsewhere",
        look(job(semaphore=2), group()),
        waiting(JOINED),
        SUSPENDS,
        f"job: semaphore=1 {START_OVER}; tells word of 1 at 990",
        "-",
    ),
    case(
        "nothing is left open by the start: the semaphore would come to zero and nobody has closed it",
        look(job(), act()),
        waiting(A1),
        "InvariantBroken: its semaphore comes to 0, with -1 to close",
    ),
    case(
        "the answer that drove the segment is settled",
        look(
            idle(),
            act(state="SUCCEEDED", ledger=1_110_000_000_001),
            msg(at=1, ledger=TAKEN),
            lease=held_by("s"),
        ),
        waiting(B1, driver="s"),
        opened("b"),
        "job: ; by 0; s: ledger=000011000000001 acked_at=1000; a#1: ledger=001111000000001",
        SUSPENDS,
        "job: ; tells word of 1 at 990",
        "-",
    ),
    case(
        "what drives and has answered nothing yet stays, with its obligation",
        look(idle(), act(ledger=ENTERED), msg(at=1, ledger=SEEN), lease=held_by("s")),
        waiting(B1, driver="s"),
        opened("b"),
        SUSPENDS,
        "job: semaphore=2; tells word of 1 at 990",
        "-",
    ),
    case(
        "the message that drives is not there",
        look(idle(), act()),
        waiting(B1, driver="s"),
        "InvariantBroken: message 's' drives a segment, and is gone or done with",
    ),
    case("not all signals were read: look at them first", look(whole=False), waiting(A1), "look again at j"),
]
ANSWERS: list[Case] = [
    case(
        "a signal is there before its wait: both are done at once",
        look(job(), msg(payload="7"), whole=False),
        waiting(A1),
        f"new a#1: kind=wait {ANSWERED} attempt=1 at=990 result=7; {told(value='7')}",
        "s: occurrence=1 ledger=000011000000001 acked_at=1000",
        answer(payload="7"),
    ),
    case(
        "a signal answers a wait that is open beside what drives the job",
        look(job(semaphore=2), act(), msg(), timer(due_at=5_000)),
        waiting(A1),
        f"a#1: {ANSWERED} at=990 result=null; {told()}",
        "job: semaphore=1; by -1; s: occurrence=1 ledger=000011000000001 acked_at=1000",
        "j:0:a#1:timer: acked_at=1000",
        answer(),
    ),
    case(
        "a timer that lost before stays as it is",
        look(job(semaphore=2), act(), msg(), timer(due_at=5_000, acked_at=950)),
        waiting(A1),
        f"a#1: {ANSWERED} at=990 result=null; {told()}",
        "job: semaphore=1; by -1; s: occurrence=1 ledger=000011000000001 acked_at=1000",
        answer(),
    ),
    case(
        "the semaphore does not count the wait beside what drives the job",
        look(job(semaphore=1), act(), msg()),
        waiting(A1),
        "InvariantBroken: a is open beside what drives it, and its semaphore says not",
    ),
    case(
        "the signal that drives the job answers its wait, and is settled with the segment",
        look(idle(), act(ledger=ENTERED), msg(at=1, ledger=SEEN), lease=held_by("s")),
        waiting(A1, driver="s"),
        "a#1: state=SUCCEEDED ledger=001110000000001 at=990 result=null; " + told(ledger="001110000000001"),
        "s: ledger=000010000000001",
        answer(),
    ),
    case(
        "a signal that has begun and does not drive this segment is done at once",
        look(job(semaphore=2), act(ledger=ENTERED), msg(at=1, ledger=SEEN)),
        waiting(A1),
        f"a#1: {ANSWERED} at=990 result=null; {told()}",
        "job: semaphore=1; by -1; s: ledger=000011000000001 acked_at=1000",
        answer(),
    ),
    case(
        "the message that drives has no entry: it is entered",
        look(idle(semaphore=2), act(), msg(), lease=held_by("s")),
        waiting(A1, driver="s"),
        f"a#1: {ANSWERED} at=990 result=null; {told()}",
        "job: semaphore=1; by -1; s: occurrence=1 ledger=000011000000001 acked_at=1000",
        answer(),
    ),
    case(
        "a wait that no message can enter any more",
        look(job(semaphore=2), act(ledger=1_100_099_999_999), msg()),
        waiting(A1),
        "LedgerCeiling",
    ),
    case(
        "a message comes to a wait that was never open",
        look(job(semaphore=2), act(ledger=1_000_000_000_000), msg()),
        waiting(A1),
        "InvariantBroken: a message comes to a, whose leg 1 is not complete",
    ),
    case(
        "the oldest answers first, whatever its place",
        look(job(), msg("b", name="b", created_at=90, arrived=2), msg("s", created_at=100, arrived=1)),
        waiting(A1, B1),
        opened(),
        "job: semaphore=2",
        f"new b#1: kind=wait {ANSWERED} attempt=1 at=990 result=null; {told('b')}",
        "b: occurrence=1 ledger=000011000000001 acked_at=1000",
        answer("b", place=1),
    ),
    case(
        "of one instant the first to arrive answers",
        look(job(), msg("b", name="b", arrived=1), msg("s", arrived=2)),
        waiting(A1, B1),
        opened(),
        "job: semaphore=2",
        f"new b#1: kind=wait {ANSWERED} attempt=1 at=990 result=null; {told('b')}",
        "b: occurrence=1 ledger=000011000000001 acked_at=1000",
        answer("b", place=1),
    ),
    case(
        "what has begun answers before what is older",
        look(
            job(semaphore=2),
            act("b", ledger=ENTERED),
            msg("b", name="b", at=1, ledger=SEEN, created_at=200),
            msg("s"),
        ),
        waiting(A1, B1),
        opened(),
        "job: semaphore=3",
        f"b#1: {ANSWERED} at=990 result=null; {told('b')}",
        "job: semaphore=2; by -1; b: ledger=000011000000001 acked_at=1000",
        answer("b", place=1),
    ),
    case(
        "the others are opened all the same, with their timers",
        look(job(), msg("b", name="b")),
        waiting(TIMED, B1),
        opened(),
        timed("a", 1_500, 4),
        "job: semaphore=2 inbox_end=4 inbox_at=1000",
        f"new b#1: kind=wait {ANSWERED} attempt=1 at=990 result=null; {told('b')}",
        "b: occurrence=1 ledger=000011000000001 acked_at=1000",
        answer("b", place=1),
    ),
    case(
        "others that are open stay as they are",
        look(job(semaphore=2), act("b"), msg()),
        waiting(A1, B1),
        f"new a#1: kind=wait {ANSWERED} attempt=1 at=990 result=null; {told()}",
        "s: occurrence=1 ledger=000011000000001 acked_at=1000",
        answer(),
    ),
]
NOT_ANSWERS: list[Case] = [
    case(
        f"it is not answered by {what}",
        look(job(semaphore=2), act(), rows),
        waiting(wait),
        "a#1: ledger=002100000000000 at=1000",
        SUSPENDS,
        f"job: {ready}semaphore=1 {START_OVER}; tells word of 1 at 990",
        "-, wakes" if ready else "-",
    )
    for what, rows, wait, ready in (
        ("a signal of another name", msg(name="b"), A1, ""),
        ("a signal that was acknowledged", msg(acked_at=900), A1, ""),
        ("a signal whose work is durable", msg(at=1, ledger=TAKEN), A1, ""),
        ("a signal that has entered another wait", msg(at=2, ledger=SEEN), A1, ""),
        ("a timer of another wait", msg("t", "timer", at=2, due_at=900), A1, ""),
        ("a timer that is not due", timer(due_at=1_001), TIMED, "ready_at=1001 "),
        ("the result of another call", msg(kind="result", at=2), A1, ""),
        ("a word of a group", msg(kind="resume", at=1), A1, ""),
        ("the end of a child", msg(kind="child", at=1), A1, ""),
    )
]
OTHER_ANSWERS: list[Case] = [
    case(
        "the word of a group that nobody opened answers nothing",
        look(job(), msg(kind="resume", at=1)),
        waiting(A1),
        opened(),
        SUSPENDS,
        f"job: {START_OVER}; tells word of 1 at 990",
        "-",
    ),
    case(
        "a timer that was delivered by its name is due",
        look(job(semaphore=2), act(), timer(due_at=None)),
        waiting(A1),
        f"a#1: {ANSWERED} at=990 result=null; {told()}",
        "job: semaphore=1; by -1; j:0:a#1:timer: ledger=000011000000001 acked_at=1000",
        answer("j:0:a#1:timer", out=True),
    ),
    case(
        "a signal is no answer to a sleep",
        look(job(semaphore=2), act(kind="sleep"), msg(), timer(due_at=5_000)),
        waiting(SLEEP),
        "a#1: ledger=002100000000000 at=1000",
        SUSPENDS,
        f"job: ready_at=5000 semaphore=1 {START_OVER}; tells word of 1 at 990",
        "-, wakes",
    ),
    case(
        "a timer that is due at this instant answers, and loses to nobody",
        look(job(semaphore=2), act(), timer(due_at=1_000)),
        waiting(A1),
        f"a#1: {ANSWERED} at=990 result=null; {told()}",
        "job: semaphore=1; by -1; j:0:a#1:timer: ledger=000011000000001 acked_at=1000",
        answer("j:0:a#1:timer", out=True),
    ),
    case(
        "time that is over at the first look: timer and wait are done at once",
        look(),
        waiting(OVER),
        timed("a", 995, 4),
        f"new a#1: kind=wait {ANSWERED} attempt=1 at=990 result=null; {told()}",
        "j:0:a#1:timer: ledger=000011000000001 acked_at=1000",
        answer("j:0:a#1:timer", out=True),
    ),
    case(
        "time that is over at this very instant",
        look(),
        waiting(OVER._replace(due_at=990)),
        timed("a", 1_000, 4),
        f"new a#1: kind=wait {ANSWERED} attempt=1 at=990 result=null; {told()}",
        "j:0:a#1:timer: ledger=000011000000001 acked_at=1000",
        answer("j:0:a#1:timer", out=True),
    ),
    case(
        "a wait that is open makes no second timer",
        look(job(semaphore=2), act()),
        waiting(OVER),
        "a#1: ledger=002100000000000 at=1000",
        SUSPENDS,
        f"job: semaphore=1 {START_OVER}; tells word of 1 at 990",
        "-",
    ),
    case(
        "a result answers its own call",
        look(
            job(semaphore=2),
            act("pay", kind="effect"),
            msg(answer_of("j", (0, "pay", 1)), "result", "pay", 1, payload='{"value":7,"row":"1:ab"}'),
        ),
        waiting(PAID),
        "pay#1: state=SUCCEEDED ledger=001111000000001 at=990 result=7; "
        + told("pay", "7", kind="effect")
        + " row=1:ab",
        "job: semaphore=1; by -1; j:0/pay#1:1: ledger=000011000000001 acked_at=1000".replace(
            "j:0/pay#1:1", answer_of("j", (0, "pay", 1))
        ),
        answer(answer_of("j", (0, "pay", 1)), payload='{"value":7,"row":"1:ab"}'),
    ),
    case(
        "the word that a group is closed answers it, and tells when it is",
        look(job(semaphore=2), group(0, ledger=1_111_100_000_002), join()),
        waiting(JOINED),
        "gather#1: state=SUCCEEDED ledger=001111100000003 at=990 result=null; "
        + told("gather", ledger="001111100000003", kind="group")
        + f" row={of_group(0, None)}",
        "job: semaphore=1; by -1; join:j:0:gather#1: ledger=000011000000003 acked_at=1000",
        answer("join:j:0:gather#1"),
    ),
    *(
        case(
            f"a group is not joined by {what}",
            look(job(semaphore=2), rows, word),
            waiting(JOINED),
            SUSPENDS,
            f"job: semaphore=1 {START_OVER}; tells word of 1 at 990",
            "-",
        )
        for what, rows, word in (
            ("the word of another", group(0), join(occurrence=2)),
            ("a word that comes before it is closed", group(1), join()),
            ("the word of one that counts nothing", group(semaphore=None), join()),
            ("the end of one child", group(0), msg(kind="child", name="gather", at=1)),
        )
    ),
    case(
        "a failed child closes a group that fails fast",
        look(job(semaphore=2), group(1, failed=1, mode="fail_fast"), join()),
        waiting(JOINED),
        "gather#1: state=SUCCEEDED ledger=001111000000001 at=990 result=null; "
        + told("gather", kind="group")
        + f" row={of_group(0, 'fail_fast')}",
        "job: semaphore=1; by -1; join:j:0:gather#1: ledger=000011000000001 acked_at=1000",
        answer("join:j:0:gather#1"),
    ),
    *(
        case(
            f"a group that fails fast goes on when {what}",
            look(job(semaphore=2), group(1, failed=failed, mode=mode), join()),
            waiting(JOINED),
            SUSPENDS,
            f"job: semaphore=1 {START_OVER}; tells word of 1 at 990",
            "-",
        )
        for what, failed, mode in (
            ("no child has failed", 0, "fail_fast"),
            ("it does not fail fast", 1, None),
        )
    ),
]


def ahead_of(*guids: str) -> str:
    """Return signals that the next waits will take, as they are printed."""
    one = "Wake(guid={!r}, kind='signal', dimension=0, name='a', occurrence=None, payload='xx', taken=False)"
    told = ", ".join(one.format(guid) for guid in guids)
    return f"({told},)" if len(guids) == 1 else f"({told})"


AT_ONCE = (
    f"new a#1: kind=wait {ANSWERED} attempt=1 at=990 result=null; {told()}",
    "s: occurrence=1 ledger=000011000000001 acked_at=1000",
)
_LATER = [msg(f"s{n}", payload="xx", arrived=n) for n in (2, 3, 4)]
_SILENT = ahead_of("s2").replace("'xx'", "None")
_BIG = msg("big", payload="x" * 1_100_000, arrived=2)
AHEAD: list[Case] = [
    case(f"signals ahead: {what}", look(job(), msg(), *rows), waiting(*waits, ahead=ahead), *said)
    for what, rows, waits, ahead, said in (
        ("none are asked for", _LATER, (A1,), 0, (*AT_ONCE, answer())),
        ("one that says nothing", [msg("s2", arrived=2)], (A1,), 2, (*AT_ONCE, answer(ahead=_SILENT))),
        ("as many as are asked for", _LATER, (A1,), 2, (*AT_ONCE, answer(ahead=ahead_of("s2", "s3")))),
        (
            "none of one that has entered a wait",
            [_LATER[0], msg("in", at=1, ledger=SEEN, arrived=1)._replace(ledger=0, occurrence=1, arrived=3)],
            (A1,),
            9,
            (*AT_ONCE, answer(ahead=ahead_of("s2"))),
        ),
        (
            "none of another name",
            [_LATER[0], msg("b", name="b", arrived=3)],
            (A1, B1),
            9,
            (opened("b"), "job: semaphore=2", *AT_ONCE, answer(ahead=ahead_of("s2"))),
        ),
        ("none that is too big, and none behind it", [_BIG, *_LATER[1:]], (A1,), 9, (*AT_ONCE, answer())),
    )
]
CASES = (
    *STALE_OR_STOPPED,
    *REFUSED,
    *SUSPENDED,
    *ANSWERS,
    *NOT_ANSWERS,
    *OTHER_ANSWERS,
    *AHEAD,
)
