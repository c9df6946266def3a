"""The entry of a claim: which message drives a job that was put away, and how that is counted."""

from __future__ import annotations

from typing import Any

from tallystick.core.verbs.claiming import claim_text, enter
from tests.core.verb_answers.rows import (
    DONE,
    ENTERED,
    NOW,
    SEEN,
    TAKEN,
    WORKED,
    Case,
    act,
    case,
    end_of,
    group,
    idle,
    join,
    look,
    msg,
    of,
    timer,
    turned,
)


def claims(pictures: Any) -> Any:
    """Enter what drives the job."""
    return enter(pictures["j"], NOW)


def wake(
    guid: str = "s",
    kind: str = "signal",
    name: str = "a",
    at: object = 1,
    *,
    turn: int = 0,
    taken: str = "no",
) -> str:
    return (
        f"Wake(guid={guid} kind={kind} dimension={turn} name={name} occurrence={at} payload=- taken={taken})"
    )


ENTERS = "a#1: ledger=001100000000001 at=1000"
FIRST = "ledger=000000000000001"
TIMER = "j:0:a#1:timer"
ENTRIES: list[Case] = [
    case("nothing drives it", look(idle(), act(), lease=None), claims, "-"),
    case(
        "a signal enters its wait, and learns which",
        look(idle(), act(), msg(), lease=None),
        claims,
        ENTERS,
        f"s: occurrence=1 {FIRST}",
        wake(),
    ),
    case(
        "of waits of its name the first in their order",
        look(
            idle(),
            act(occurrence=3),
            act(occurrence=2),
            act(dimension=1),
            act("b"),
            act(kind="sleep"),
            msg(),
            lease=None,
        ),
        claims,
        "a#2: ledger=001100000000001 at=1000",
        f"s: occurrence=2 {FIRST}",
        wake(at=2),
    ),
    case(
        "a signal that waits for a later call",
        look(idle(), act("b"), act(kind="sleep"), msg(), lease=None),
        claims,
        "-",
    ),
    case(
        "a signal whose wait is over",
        look(idle(), act(state="SUCCEEDED", ledger=DONE), msg(), lease=None),
        claims,
        "-",
    ),
    case("one that was acknowledged", look(idle(), act(), msg(acked_at=900), lease=None), claims, "-"),
    case(
        "a timer that is due at this instant",
        look(idle(), act(), timer(due_at=1_000), lease=None),
        claims,
        ENTERS,
        f"{TIMER}: {FIRST}",
        wake(TIMER, "timer"),
    ),
    case("a timer that is not", look(idle(), act(), timer(due_at=1_001), lease=None), claims, "-"),
    case(
        "a timer whose wait is over",
        look(idle(), act(state="SUCCEEDED", ledger=DONE), timer(), lease=None),
        claims,
        "-",
    ),
    case("a timer whose wait is gone", look(idle(), timer(), lease=None), claims, "-"),
    case(
        "one that has begun, and its wait is gone", look(idle(), timer(ledger=SEEN), lease=None), claims, "-"
    ),
    case(
        "a signal that has entered a wait drives that one, and not one before it",
        look(idle(), act(), act(occurrence=2, ledger=ENTERED), msg(at=2, ledger=SEEN), lease=None),
        claims,
        "s: redeliveries=1",
        wake(at=2),
    ),
    case(
        "the older of two",
        look(
            idle(),
            act(),
            act("b"),
            msg(created_at=90, arrived=2),
            timer("b", due_at=95, arrived=1),
            lease=None,
        ),
        claims,
        ENTERS,
        f"s: occurrence=1 {FIRST}",
        wake(),
    ),
    case(
        "of one instant the first to arrive",
        look(idle(), act(), act("b"), msg(arrived=5), msg("t", name="b", arrived=4), lease=None),
        claims,
        "b#1: ledger=001100000000001 at=1000",
        f"t: occurrence=1 {FIRST}",
        wake("t", name="b"),
    ),
    case(
        "what has begun drives again, before what is older; that is no entry",
        look(
            idle(),
            act(),
            act("b", ledger=ENTERED),
            msg(),
            msg("t", name="b", at=1, ledger=SEEN, created_at=200),
            lease=None,
        ),
        claims,
        "t: redeliveries=1",
        wake("t", name="b"),
    ),
    case(
        "a signal of an older form that has begun learns its wait",
        look(idle(), act(ledger=ENTERED), msg(ledger=SEEN), lease=None),
        claims,
        "s: occurrence=1 redeliveries=1",
        wake(),
    ),
    case(
        "one that has answered a wait that is over drives on to the end of its segment",
        look(idle(), act(state="SUCCEEDED", ledger=WORKED), msg(at=1, ledger=TAKEN), lease=None),
        claims,
        "s: redeliveries=1",
        wake(taken="yes"),
    ),
    case(
        "unless the wait that it has answered is gone, which no history leaves",
        look(idle(), msg(at=1, ledger=TAKEN), lease=None),
        claims,
        "-",
    ),
    case(
        "so does one of an older form, which did not learn its wait",
        look(idle(), act(), msg(ledger=TAKEN), lease=None),
        claims,
        "s: redeliveries=1",
        wake(at="-", taken="yes"),
    ),
    case(
        "the word to turn enters the root",
        look(idle(dimension=1), turned(0), lease=None),
        claims,
        "job: root=001111000000002",
        "again:j:1: ledger=000000000000002",
        wake("again:j:1", "resume", "again", turn=1),
    ),
    case("a signal of that name does not", look(idle(), act(), msg(name="again"), lease=None), claims, "-"),
    case(
        "and again after a worker was lost",
        look(idle(dimension=1), turned(2), lease=None),
        claims,
        "again:j:1: redeliveries=1",
        wake("again:j:1", "resume", "again", turn=1),
    ),
    case(
        "a root that can count no more",
        look(idle(root_ledger=1_111_099_999_999), turned(0), lease=None),
        claims,
        "LedgerCeiling",
    ),
    case(
        "a wait that can count no more",
        look(idle(), act(ledger=1_100_099_999_999), msg(), lease=None),
        claims,
        "LedgerCeiling",
    ),
    case(
        "a wait that is not whole",
        look(idle(), act(ledger=1_000_000_000_000), msg(), lease=None),
        claims,
        "InvariantBroken: a message comes to a, whose leg 1 is not complete",
    ),
    case(
        "digits out of their range", look(idle(), act(ledger=-1), msg(), lease=None), claims, "LedgerCorrupt"
    ),
    case(
        "the word that a group is closed",
        look(idle(), group(0, ledger=1_111_100_000_002), join(), lease=None),
        claims,
        "gather#1: ledger=001111100000003 at=1000",
        "join:j:0:gather#1: ledger=000000000000003",
        wake("join:j:0:gather#1", "resume", "gather"),
    ),
    case(
        "the end of a child drives nobody before its group is whole",
        look(idle(), group(2, ledger=1_000_000_000_000, state="SUCCEEDED"), end_of(0, None), lease=None),
        claims,
        "-",
    ),
    case(
        "a message without a place that is no signal drives nothing",
        look(idle(), act(), msg(kind="result"), lease=None),
        claims,
        "-",
    ),
]
TEXTS: list[Case] = [
    case(
        "what the fact of a claim says",
        look(),
        of(claim_text, '{"job":"x"}', "l", "w"),
        '{"job":"x","lease":"l","by":"w"}',
    ),
    case(
        "and that of one at birth",
        look(),
        of(claim_text, '{"job":"x"}', "l", "w", at_birth=True),
        '{"job":"x","lease":"l","by":"w","at_birth":true}',
    ),
]
CASES = (*ENTRIES, *TEXTS)
