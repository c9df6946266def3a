"""What happens to a pair of ledgers, as whole numbers: each transition is checked once and then remembered.

A ledger is checked when it is made (`digits`), which costs as much as writing it. Rows hold plain numbers,
and few of them are different, so what a transition made of one is kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.consistency import contradictions
from tallystick.core.ledger.decisions import Verdict, enter_leg1, enter_leg2
from tallystick.core.tuples import make
from tallystick.errors import LedgerCorrupt, LedgerError

_KEPT: Final = 16_384
_ENTRIES: Final = ActivityLedger.FIELDS[-1].base
_FULL: Final = ActivityLedger.FIELDS[-1].top
NO_MESSAGE: Final = GuidLedger(0)


class Entered(NamedTuple):
    """The ledgers of an activity and of a message that has come to it, committed before any work."""

    verdict: Verdict
    activity: int
    guid: int


def entry(activity: int, guid: int) -> Entered:
    """Return what a message makes of an activity that it drives or answers; a `guid` of 0 was never seen.

    How many were there before decides nothing until no digit can count another. So the first stands for all.

    >>> entry(1_100_000_000_000, 0)[1:], entry(1_111_000_000_041, 0)[1:]
    ((1100000000001, 1), (1111000000042, 42))
    """
    before = activity % _ENTRIES
    if guid or not 0 < before < _FULL:
        return _entry(activity, guid)
    verdict, entered, seen = _entry(activity - before, guid)
    return make(Entered, (verdict, entered + before, seen + before if seen else seen))


@lru_cache(_KEPT)
def _entry(activity: int, guid: int) -> Entered:
    verdict, entered, seen = enter_leg2(ActivityLedger(activity), GuidLedger(guid) if guid else None)
    return Entered(verdict, int(entered), int(seen or 0))


@lru_cache(_KEPT)
def first_entry(activity: int) -> tuple[Verdict, int]:
    """Return what coming to an activity once more makes of its leg 1."""
    verdict, entered = enter_leg1(ActivityLedger(activity))
    return verdict, int(entered)


@lru_cache(_KEPT)
def entries_of(activity: int) -> int:
    """Return how often leg 1 of an activity was entered."""
    return ActivityLedger(activity).leg1_entries


@lru_cache(_KEPT)
def complete(activity: int) -> int:
    """Return an activity whose leg 1 is durable now."""
    return _checked(ActivityLedger(activity).complete_leg1())[0]


@lru_cache(_KEPT)
def worked(activity: int, guid: int) -> tuple[int, int]:
    """Return both ledgers after step 1: the answer is durable, and its message still drives the segment."""
    return _checked(ActivityLedger(activity).mark_work(), GuidLedger(guid).mark_work())


def settled(activity: int, guid: int, *, closes: bool) -> tuple[int, int]:
    """Return both ledgers after step 2, with step 1 if that is missing, and with step 3 for the closer.

    The entries stay, and whether there is one decides. So the first stands for all, and what was made of it
    is remembered: the children of a group differ in their entries alone.

    >>> [f"{ledger:015d}" for ledger in settled(1_100_000_000_007, 7, closes=True)]
    ['001111100000007', '000111100000007']
    """
    more, later = max(activity % _ENTRIES - 1, 0), max(guid % _ENTRIES - 1, 0)
    try:
        marked, message = _settled(activity - more, guid - later, closes)
    except LedgerError:
        return _settled(activity, guid, closes)  # for its message, which names the whole ledger
    return marked + more, message + later


def counted(activity: int, guid: int, *, closes: bool) -> Entered:
    """Return both ledgers after a message has entered and done its step 2 in one bundle, as `settled` does.

    >>> counted(1_111_000_000_041, 0, closes=False)[1:]
    (1111000000042, 11000000042)
    """
    more = max(activity % _ENTRIES - 1, 0)
    if not guid and more < _FULL - 1:
        verdict, marked, message = _counted(activity - more, closes)
        if verdict is Verdict.RUN:
            return make(Entered, (verdict, marked + more, message + more))
    found = entry(activity, guid)
    if found.verdict is not Verdict.RUN:
        return found
    return Entered(Verdict.RUN, *settled(found.activity, found.guid, closes=closes))


@lru_cache(_KEPT)
def _counted(activity: int, closes: bool) -> tuple[Verdict | None, int, int]:  # noqa: FBT001 (a key of the cache)
    found = entry(activity, 0)
    try:
        return (found.verdict, *settled(found.activity, found.guid, closes=closes))
    except LedgerError:
        return None, 0, 0  # said with the whole ledger, by who asks for it


@lru_cache(_KEPT)
def _settled(activity: int, guid: int, closes: bool) -> tuple[int, int]:  # noqa: FBT001 (a key of the cache)
    marked = ActivityLedger(activity).mark_work().mark_children()
    message = GuidLedger(guid)
    if not message.work_done:
        message = message.mark_work()
    message = message.mark_children(closed=closes)
    return _checked(marked.mark_tasks(), message.mark_tasks()) if closes else _checked(marked, message)


def _checked(activity: ActivityLedger, guid: GuidLedger = NO_MESSAGE) -> tuple[int, int]:
    """Return both as whole numbers, unless no history can have written one of them."""
    for ledger in (activity, guid):
        if found := contradictions(ledger):
            raise LedgerCorrupt(f"{ledger.KIND} ledger {ledger.text}: {found[0]}", ledger=ledger.text)
    return int(activity), int(guid)


@lru_cache(_KEPT)
def is_complete(activity: int) -> bool:
    """Tell whether leg 1 of an activity is durable."""
    return ActivityLedger(activity).leg1_complete


@lru_cache(_KEPT)
def is_answered(activity: int) -> bool:
    """Tell whether the work of a message that came to an activity is durable."""
    return ActivityLedger(activity).get("work_done") == 1


@lru_cache(_KEPT)
def is_taken(guid: int) -> bool:
    """Tell whether the work of a message is durable."""
    return GuidLedger(guid).work_done


@lru_cache(_KEPT)
def recorded(tries: int) -> int | None:
    """Return the digits of an inline step that is recorded at its n-th try; None when no digit can count it.

    >>> f"{recorded(3):015d}"
    '003111000000001'
    """
    ledger = ActivityLedger(0)
    for _ in range(tries):
        verdict, ledger = enter_leg1(ledger)
        if verdict is Verdict.ESCALATE:
            return None
    return int(ledger.complete_leg1().enter_leg2().mark_work().mark_children())


ENTERED: Final = first_entry(0)[1]
"""An activity that was come to for the first time, and whose leg 1 is not complete."""

OPENED: Final = complete(ENTERED)
"""An activity whose leg 1 is durable: a wait that is open, a group whose children are all there, a job."""

STARTED: Final = entry(OPENED, 0)
"""Root and start of a job that is claimed for the first time."""
