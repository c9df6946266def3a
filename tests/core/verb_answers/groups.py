"""Groups: children that are born, that end in time, early or late, and the one that closes."""

from __future__ import annotations

from typing import Any

from tallystick.core.chain import Chain
from tallystick.core.deciding import decide
from tallystick.core.limits import DEPTH_MAX
from tallystick.core.plans import Plan
from tallystick.core.verbs.children import child_ended
from tallystick.store.api import Fact, NewJob, Spawn
from tests.core.verb_answers.rows import (
    CHAIN,
    CLOSED,
    ENTERED_1,
    FENCE,
    FULL_1,
    GROUP,
    NOW,
    Case,
    J,
    case,
    end_of,
    ended,
    group,
    held_by,
    idle,
    job,
    join,
    look,
    msg,
)

TOTAL = 3
IDS = [GROUP.child_id(J, n) for n in range(TOTAL)]


def newborn(n: int, parent: str = J, **but: Any) -> tuple[NewJob, Fact]:
    name = GROUP.child_id(parent, n)
    child = NewJob(name, "{}", 990, None, 990, "default", "workflow", "flow", "", "default", 5, "{}")
    return child._replace(**but), Fact(Chain(name), "submit", 990, 0, "{}")


def spawns(*which: int, **but: Any) -> Spawn:
    children = tuple(newborn(n) for n in which)
    return Spawn(FENCE, CHAIN, GROUP, TOTAL, 0, False, children, 990)._replace(**but)


def seen(*born: int) -> dict[str, Any]:
    """Return which children a look has found, of all that it asked for."""
    return {"asked": frozenset(IDS), "children": frozenset(IDS[n] for n in born)}


BORN = "parent=j deadline=- of=0:gather#1"
GROUP_OPENS = (
    "new gather#1: kind=group state=IN_PROGRESS ledger=001000000000000 attempt=1 "
    "semaphore=3 threshold=0 failed=0 "
)
COUNTS = "job: semaphore=2"
AGAIN = group(3, ledger=ENTERED_1)  # the same attempt comes with its next bundle
SPAWNS: list[Case] = [
    case("no attempt holds the job", look(lease=None), spawns(0), "StaleLease"),
    case(
        "a job that was asked to end starts nothing", look(job(state="CANCELLING")), spawns(0), "CANCELLING"
    ),
    case(
        "the first children of three: the group opens, and is not whole",
        look(job(), **seen()),
        spawns(0, 1),
        f"{GROUP_OPENS}at=990",
        COUNTS,
        f"new child 0: {BORN}",
        f"new child 1: {BORN}",
        "no, wakes",
    ),
    case(
        "all at once: it is whole",
        look(job(), **seen()),
        spawns(0, 1, 2, fail_fast=True, threshold=1),
        f"{GROUP_OPENS.replace('threshold=0', 'threshold=1')}mode=fail_fast at=990",
        COUNTS,
        *(f"new child {n}: {BORN}" for n in range(3)),
        "gather#1: ledger=001100000000000 at=1000",
        "no, wakes",
    ),
    case(
        "the last of them, by the same attempt",
        look(job(semaphore=2), AGAIN, **seen(0, 1)),
        spawns(2),
        f"new child 2: {BORN}",
        "gather#1: ledger=001100000000000 at=1000",
        "no, wakes",
    ),
    case(
        "all are born: nothing is left to do",
        look(job(semaphore=2), group(3), **seen(0, 1, 2)),
        spawns(2),
        "yes",
    ),
    case(
        "an older form was whole from the beginning, and not all are born",
        look(job(semaphore=2, ledger_form=0), group(3), **seen(0)),
        spawns(1, 2),
        f"new child 1: {BORN}",
        f"new child 2: {BORN}",
        "no, wakes",
    ),
    case(
        "in an older form all are born when the last one is there",
        look(job(semaphore=2, ledger_form=0), group(3), **seen(0, 1, 2)),
        spawns(1, 2),
        "yes",
    ),
    case(
        "another attempt comes to it: an entry of leg 1",
        look(job(semaphore=2, attempt=2), group(3, ledger=ENTERED_1, attempt=7), **seen(0)),
        spawns(0, 1),
        "gather#1: ledger=002000000000000 attempt=1 at=1000",
        f"new child 1: {BORN}",
        "no, wakes",
    ),
    case(
        "and can be counted no more",
        look(job(semaphore=2), group(3, ledger=FULL_1, attempt=7), **seen(0)),
        spawns(0, 1),
        "LedgerCeiling",
    ),
    case(
        "the same attempt is not counted at the top",
        look(job(semaphore=2), group(3, ledger=FULL_1), **seen(0)),
        spawns(0, 1),
        f"new child 1: {BORN}",
        "no, wakes",
    ),
    case(
        "a group that was dropped before it was whole",
        look(job(semaphore=2), group(3, ledger=ENTERED_1, state="CANCELLED"), **seen(0)),
        spawns(1),
        "InvariantBroken: gather is over, and not all of its children were born",
    ),
    case(
        "the first is there and the last is not: look at all",
        look(job(semaphore=2), AGAIN, asked=frozenset({IDS[0], IDS[2]}), children=frozenset({IDS[0]})),
        spawns(0, 1, 2),
        "look again at j and its children",
    ),
    case(
        "all were looked at: the missing ones are born",
        look(job(semaphore=2), AGAIN, **seen(0)),
        spawns(0, 1, 2),
        f"new child 1: {BORN}",
        f"new child 2: {BORN}",
        "gather#1: ledger=001100000000000 at=1000",
        "no, wakes",
    ),
    case(
        "the ends tell of those between",
        look(
            job(semaphore=2), AGAIN, asked=frozenset({IDS[0], IDS[2]}), children=frozenset({IDS[0], IDS[2]})
        ),
        spawns(0, 1, 2),
        "gather#1: ledger=001100000000000 at=1000",
        "no, wakes",
    ),
    case(
        "a bundle without children",
        look(job(semaphore=2), AGAIN, **seen(0)),
        spawns(),
        "no, wakes",
    ),
]
_DEEP = "j" + ".0.1.00000000" * DEPTH_MAX


def _spawned(pictures: Any) -> Any:
    (name,) = pictures
    request = spawns()._replace(fence=FENCE._replace(job_id=name), children=(newborn(0, name),))
    found = decide(pictures, request, NOW)
    return type(found.error).__name__ if hasattr(found, "error") else found.outcome


DEPTH: list[Case] = [
    case(
        f"a job with {DEPTH_MAX - less} parents above it" + (" has children" if less else " has none"),
        look(job(job_id=_DEEP[: len(_DEEP) - 13 * less])),
        _spawned,
        said,
    )
    for less, said in ((0, "TooDeep"), (1, "no"))
]


def deadline_of(parent: int | None, **but: Any) -> Any:
    """Return a question after the deadline with which a child is born."""

    def asked(pictures: Any) -> str:
        plan = decide(pictures, spawns()._replace(children=(newborn(0, **but),)), NOW)
        return str(next(write.job.deadline_at for write in plan.writes if hasattr(write, "step")))

    return asked


DEADLINES: list[Case] = [
    case(f"the deadline of a child: {what}", look(job(deadline_at=at)), deadline_of(at, **but), said)
    for what, at, but, said in (
        ("none", None, {}, "None"),
        ("its own", None, {"deadline_at": 1_700}, "1700"),
        ("what its parent has left, by the clock of its birth", 1_600, {}, "1590"),
        ("the earlier of both is its parent's", 1_600, {"deadline_at": 1_700}, "1590"),
        ("the earlier of both is its own", 1_600, {"deadline_at": 1_100}, "1100"),
        ("a detached child has its own", 1_600, {"deadline_at": 1_700, "detached": 1}, "1700"),
        ("a detached child without one has none", 1_600, {"detached": 1}, "None"),
    )
]


def early(n: int, arrived: int, state: str = "SUCCEEDED", **but: Any) -> Any:
    return end_of(n, state, arrived=arrived, **but)


def counted(n: int, entry: int, left: int, *, closer: bool = False, failed: int = 0) -> str:
    digits = "0011111" if closer else "0011110"
    marks = "0001111" if closer else "0000110"
    said = f"gather#1: ledger={digits}{entry:08d} semaphore={left}" + (f" failed={failed}" if failed else "")
    return f"{said}; child:{IDS[n]}: ledger={marks}{entry:08d} acked_at=1000" + (", closes" if closer else "")


WHOLE = "gather#1: ledger=001100000000000 at=1000"
JOINED = (
    "new join:j:0:gather#1: dimension=0 name=gather occurrence=1 kind=resume ledger=000000000000000 "
    "redeliveries=0 created_at=1000 arrived=4"
)
EARLY: list[Case] = [
    case(
        "ends that came early are counted in the order in which they came; the last one closes",
        look(
            job(semaphore=2),
            group(2, ledger=ENTERED_1),
            early(1, 5),
            early(0, 6, "FAILED_FINAL"),
            **seen(0, 1),
        ),
        spawns(2),
        f"new child 2: {BORN}",
        WHOLE,
        counted(1, 1, 1),
        counted(0, 2, 0, closer=True, failed=1),
        JOINED,
        "no, wakes",
    ),
    case(
        "of two that are enough for one, the other comes too late",
        look(job(semaphore=2), group(2, 1, ledger=ENTERED_1), early(1, 6), early(0, 5), **seen(0, 1)),
        spawns(2),
        f"new child 2: {BORN}",
        WHOLE,
        counted(0, 1, 1, closer=True),
        f"child:{IDS[1]}: acked_at=1000",
        JOINED,
        "no, wakes",
    ),
    case(
        "what was acknowledged, of another group, or no end at all, is not counted",
        look(
            job(semaphore=2),
            group(2, ledger=ENTERED_1),
            early(0, 5, acked_at=900),
            early(1, 6)._replace(occurrence=2),
            msg("t", "timer", "gather", 1),
            **seen(0, 1),
        ),
        spawns(2),
        f"new child 2: {BORN}",
        WHOLE,
        "no, wakes",
    ),
    case(
        "digits of an end that no history has written",
        look(job(semaphore=2), group(2, ledger=ENTERED_1), early(0, 5, ledger=111_100_000_001), **seen(0, 1)),
        spawns(2),
        "InvariantBroken: a message comes to gather that has nothing left to do",
    ),
    case(
        "the word that it is closed is there",
        look(job(semaphore=2), group(1, ledger=ENTERED_1), early(0, 5), join(), **seen(0, 1)),
        spawns(2),
        f"new child 2: {BORN}",
        WHOLE,
        counted(0, 1, 0, closer=True),
        "no, wakes",
    ),
    case(
        "a group that nobody counts any more",
        look(job(semaphore=2), group(0, ledger=ENTERED_1), early(0, 5), **seen(0, 1)),
        spawns(2),
        f"new child 2: {BORN}",
        WHOLE,
        f"child:{IDS[0]}: acked_at=1000",
        JOINED,
        "no, wakes",
    ),
]


def ends(state: str = "SUCCEEDED") -> Any:
    """Return what the end of the first child means for its parent."""

    def asked(pictures: Any) -> Any:
        return Plan(child_ended(pictures, IDS[0], ("j", "0:gather#1"), state, NOW))

    return asked


NEW = f"new child:{IDS[0]}: dimension=0 name=gather occurrence=1 kind=child payload=SUCCEEDED"
TOO_LATE = f"{NEW} ledger=000000000000000 redeliveries=0 created_at=1000 arrived=0 acked_at=1000"
WAITS = f"{NEW} ledger=000000000000000 redeliveries=0 created_at=1000 arrived=4"


def first(entry: int, left: int, *, closer: bool = False, failed: int = 0, state: str = "SUCCEEDED") -> str:
    digits, marks = ("0011111", "0001111") if closer else ("0011110", "0000110")
    said = f"gather#1: ledger={digits}{entry:08d} semaphore={left}" + (f" failed={failed}" if failed else "")
    word = (
        f"{NEW.replace('SUCCEEDED', state)} ledger={marks}{entry:08d} redeliveries=0 "
        f"created_at=1000 arrived=0"
    )
    return f"{said}; {word} acked_at=1000" + (", closes" if closer else "")


DUE = "job: ready_at=1000"
ENDS: list[Case] = [
    case("its parent is gone", look(job(job_id="x")), ends(), "-"),
    case("one of two: it is counted", look(idle(), group(2), lease=None), ends(), first(1, 1), "-"),
    case(
        "the last: it closes, and wakes the parent",
        look(idle(), group(1, ledger=1_111_000_000_001), lease=None),
        ends(),
        first(2, 0, closer=True),
        JOINED,
        DUE,
        "-",
    ),
    case(
        "enough of them",
        look(idle(), group(2, 1), lease=None),
        ends(),
        first(1, 1, closer=True),
        JOINED,
        DUE,
        "-",
    ),
    case(
        "a worker runs the parent: it finds the word",
        look(idle(), group(1), lease=held_by()),
        ends(),
        first(1, 0, closer=True),
        JOINED,
        "-",
    ),
    case(
        "a failed one is counted as such",
        look(idle(), group(2), lease=None),
        ends("FAILED_FINAL"),
        first(1, 1, failed=1, state="FAILED_FINAL"),
        "-",
    ),
    case(
        "a second failed one",
        look(idle(), group(2, failed=1), lease=None),
        ends("CANCELLED"),
        first(1, 1, failed=2, state="CANCELLED"),
        "-",
    ),
    case(
        "the first failure wakes a parent that fails fast, and is not the closer",
        look(idle(), group(2, mode="fail_fast"), lease=None),
        ends("FAILED_FINAL"),
        first(1, 1, failed=1, state="FAILED_FINAL"),
        JOINED,
        DUE,
        "-",
    ),
    case(
        "the second one finds the word of the first",
        look(idle(), group(2, mode="fail_fast", failed=1), join(), lease=None),
        ends("FAILED_FINAL"),
        first(1, 1, failed=2, state="FAILED_FINAL"),
        "-",
    ),
    case("the parent has ended", look(ended(), group(2), lease=None), ends(), TOO_LATE, "-"),
    case("the group is not there", look(idle(), lease=None), ends(), TOO_LATE, "-"),
    case(
        "the group was dropped", look(idle(), group(2, state="CANCELLED"), lease=None), ends(), TOO_LATE, "-"
    ),
    case("the group has closed", look(idle(), group(0, ledger=CLOSED), lease=None), ends(), TOO_LATE, "-"),
    case("enough have ended before", look(idle(), group(1, 1), lease=None), ends(), TOO_LATE, "-"),
    case(
        "a group that counts nothing",
        look(idle(), group(2, semaphore=None), lease=None),
        ends(),
        TOO_LATE,
        "-",
    ),
    case(
        "it comes before the group is whole",
        look(idle(), group(2, ledger=ENTERED_1), lease=None),
        ends(),
        WAITS,
        "-",
    ),
    case(
        "by an inbox whose clock is ahead",
        look(idle(inbox_at=1_200), group(2, ledger=ENTERED_1), lease=None),
        ends(),
        WAITS.replace("created_at=1000", "created_at=1200"),
        "-",
    ),
    case(
        "no digit can count it: the parent is woken, and finds that",
        look(idle(inbox_at=1_200), group(2, ledger=1_111_099_999_999), lease=None),
        ends(),
        WAITS.replace("created_at=1000", "created_at=1200"),
        JOINED.replace("created_at=1000", "created_at=1200"),
        DUE,
        "-",
    ),
    case(
        "digits that no history has written",
        look(idle(), group(2, ledger=100_000_000_000), lease=None),
        ends(),
        WAITS,
        JOINED,
        DUE,
        "-",
    ),
    case(
        "a group of an older form without a threshold",
        look(idle(), group(1, threshold=None, failed=None), lease=None),
        ends("FAILED_FINAL"),
        first(1, 0, closer=True, failed=1, state="FAILED_FINAL"),
        "-",
    ),
]
CASES = (*SPAWNS, *DEPTH, *DEADLINES, *EARLY, *ENDS)
