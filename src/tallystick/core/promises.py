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
_ANSWERED: Final = _OPENED.enter_leg2().mark_work().mark_children()
_CONSUMED: Final = GuidLedger.first_seen(_ANSWERED).mark_work().mark_children(closed=False)
_CLOSED: Final = GuidLedger(1).mark_work().mark_children(closed=True).mark_tasks()


def _children(count: int) -> ActivityLedger:
    ledger = _OPENED
    for _ in range(count):
        ledger = ledger.enter_leg2().mark_work().mark_children()
    return ledger.mark_tasks()


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
        "intent first; in doubt after a crash: ask, never guess",
        "the answer of the call, of a probe or of a person",
        (Bundle("intent", _OPENED, None), Bundle("result", _ANSWERED, _CONSUMED)),
    ),
    Promise(
        "remote",
        "outbox out, ACK and RESULT back",
        "RESULT of (job, step, attempt)",
        (Bundle("directive in the outbox", _OPENED, None), Bundle("RESULT", _ANSWERED, _CONSUMED)),
    ),
    Promise(
        "wait, sleep",
        "no thread, no lease, no lost wake-up",
        "signal or timer",
        (Bundle("suspension", _OPENED, None), Bundle("delivery", _ANSWERED, _CONSUMED)),
    ),
    Promise(
        "gather",
        "one closer, however many children",
        "one a child; the last is shown, of a group of three",
        (
            Bundle("spawn", _OPENED, None),
            Bundle(
                "the closer", _children(3), GuidLedger(3).mark_work().mark_children(closed=True).mark_tasks()
            ),
        ),
    ),
    Promise(
        "whole job",
        "one result, completion tasks exactly once",
        "start",
        (Bundle("claim", None, GuidLedger(1)), Bundle("return", None, _CLOSED)),
    ),
)
