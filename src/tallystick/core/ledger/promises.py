"""What each promise writes: the digits after every durable step, as data.

The table is computed with the increments of `digits`, so the printed page cannot drift from the code.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tallystick.core.digits import ActivityLedger, GuidLedger


class Bundle(NamedTuple):
    """One durable step of a promise and the ledgers after it (None: the promise has no such ledger)."""

    when: str
    activity: ActivityLedger | None
    guid: GuidLedger | None


class Promise(NamedTuple):
    """One decorator or call, the message that answers it, and its bundles in order."""

    name: str
    keeps: str
    message: str
    bundles: tuple[Bundle, ...]


_OPENED: Final = ActivityLedger(0).enter_leg1().complete_leg1()
_ENTERED: Final = _OPENED.enter_leg2()
_ANSWERED: Final = _ENTERED.mark_work().mark_children()
_CONSUMED: Final = GuidLedger.first_seen(_ANSWERED).mark_work().mark_children(closed=False)
_CLOSED: Final = GuidLedger(1).mark_work().mark_children(closed=True).mark_tasks()


def _children(count: int) -> ActivityLedger:
    ledger = _OPENED
    for _ in range(count):
        ledger = ledger.enter_leg2().mark_work().mark_children()
    return ledger.mark_tasks()


def _counted(entry: int) -> GuidLedger:
    return GuidLedger(entry).mark_work()


PROMISES: Final = (
    Promise(
        "step",
        "at least once; the result is kept",
        "none: the return value, delivered once, in process, under the fence",
        (Bundle("result and digits, one row", _ANSWERED, None),),
    ),
    Promise(
        "tx",
        "exactly once: the user's rows and the marker in one transaction",
        "none: as for a step",
        (Bundle("the user's rows, result and digits", _ANSWERED, None),),
    ),
    Promise(
        "effect",
        "intent first; in doubt after a crash: ask, never guess; further calls count in leg 1",
        "the answer of the call, of a probe or of a person",
        (Bundle("intent", _OPENED, None), Bundle("result", _ANSWERED, _CONSUMED)),
    ),
    Promise(
        "remote",
        "a directive out, ACK and RESULT back; further directives count in leg 1",
        "RESULT of (job, step, attempt)",
        (Bundle("directive in the outbox", _OPENED, None), Bundle("RESULT", _ANSWERED, _CONSUMED)),
    ),
    Promise(
        "wait, sleep",
        "no thread, no lease, no lost wake-up",
        "signal or timer",
        (
            Bundle("suspension", _OPENED, None),
            Bundle("claim because of its message", _ENTERED, GuidLedger(1)),
            Bundle("answered, the segment goes on", _ENTERED.mark_work(), GuidLedger(1).mark_work()),
            Bundle("the segment ends in another wait", _ANSWERED, _CONSUMED),
            Bundle("the segment ends and closes the job", _ANSWERED.mark_tasks(), _CLOSED),
        ),
    ),
    Promise(
        "gather",
        "one closer, however many children",
        "one per child; here of a group of three, and then the word that it is closed",
        (
            Bundle("some of the children", ActivityLedger(0).enter_leg1(), None),
            Bundle("the last of the children", _OPENED, None),
            Bundle("the first child to end", _ANSWERED, _CONSUMED),
            Bundle("the closer", _children(3), _counted(3).mark_children(closed=True).mark_tasks()),
            Bundle("the word drives the parent", _children(3).enter_leg2(), GuidLedger(4)),
        ),
    ),
    Promise(
        "whole job",
        "one result, completion tasks exactly once",
        "start; the activity is the root, leg 1 of which is the submission",
        (
            Bundle("submit", _OPENED, GuidLedger(0)),
            Bundle("claim", _ENTERED, GuidLedger(1)),
            Bundle("first suspension, if there is one", _ANSWERED, _CONSUMED),
            Bundle("return without one", _ANSWERED.mark_tasks(), _CLOSED),
        ),
    ),
    Promise(
        "again",
        "one job, as many turns as eight digits count",
        "the word to turn, an entry of the root; here the first",
        (
            Bundle("claim", _ANSWERED.enter_leg2(), GuidLedger(2)),
            Bundle("the next turn", _ANSWERED.enter_leg2(), _counted(2).mark_children(closed=False)),
            Bundle(
                "return instead",
                _ANSWERED.enter_leg2().mark_tasks(),
                _counted(2).mark_children(closed=True).mark_tasks(),
            ),
        ),
    ),
)
