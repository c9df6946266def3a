"""The digits that a history can reach are exactly those without a contradiction."""

from __future__ import annotations

from itertools import product

import pytest

from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.consistency import contradictions
from tallystick.core.ledger.decisions import NextStep, Verdict, enter_leg1, enter_leg2, next_step
from tallystick.core.ledger.promises import PROMISES

ENTRIES = 2


def moves(activity: ActivityLedger, guids: tuple[GuidLedger, ...]):
    """Return every state that one durable step of the protocol leads to, within a few entries."""
    if activity.leg1_entries < ENTRIES:
        yield enter_leg1(activity).activity, guids
    if activity.leg1_entries and not activity.leg1_complete:
        yield activity.complete_leg1(), guids
    if activity.leg2_entries < ENTRIES:
        entered = enter_leg2(activity, None)
        if entered.verdict is Verdict.RUN:
            yield entered.activity, (*guids, entered.guid)
    for index, guid in enumerate(guids):
        for marked, after in step(activity, guid):
            yield marked, (*guids[:index], after, *guids[index + 1 :])


def step(activity: ActivityLedger, guid: GuidLedger):
    match next_step(guid):
        case NextStep.WORK:
            yield activity.mark_work(), guid.mark_work()
        case NextStep.CHILDREN:
            yield activity.mark_children(), guid.mark_children(closed=False)
            yield activity.mark_children(), guid.mark_children(closed=True)
        case NextStep.TASKS:
            yield activity.mark_tasks(), guid.mark_tasks()


def reached() -> tuple[set[str], set[str]]:
    """Return all activity and GUID ledgers that some history of two messages has written."""
    frontier = [(ActivityLedger(0), ())]
    seen = set(frontier)
    while frontier:
        for state in moves(*frontier.pop()):
            if state not in seen:
                seen.add(state)
                frontier.append(state)
    return {activity.text for activity, _ in seen}, {guid.text for _, guids in seen for guid in guids}


ACTIVITIES, GUIDS = reached()


def in_range(kind):
    tops = [min(field.top, ENTRIES) for field in kind.FIELDS]
    for values in product(*(range(top + 1) for top in tops)):
        yield kind.of(**dict(zip((field.name for field in kind.FIELDS), values, strict=True)))


@pytest.mark.parametrize(("kind", "written"), [(ActivityLedger, ACTIVITIES), (GuidLedger, GUIDS)])
def test_a_ledger_is_consistent_exactly_when_a_history_can_have_written_it(kind, written):
    """Exhaustive over all markers and up to two entries of each leg and of messages."""
    unwritten_zero = {GuidLedger(0).text} if kind is GuidLedger else set()
    for ledger in in_range(kind):
        # A GUID ledger of zero and one with an ordinal alone are both messages that have done nothing.
        assert (not contradictions(ledger)) == (ledger.text in written | unwritten_zero), ledger.text


def test_a_contradiction_says_what_is_marked_and_what_is_missing():
    assert contradictions(GuidLedger.parse("000101000000001")) == ("step 2 is marked and step 1 is not",)
    assert contradictions(ActivityLedger.parse("000011000000001")) == (
        "a message has entered leg 2 and leg 1 is not complete",
    )


def test_every_ledger_of_the_promises_is_consistent():
    ledgers = [
        ledger for p in PROMISES for b in p.bundles for ledger in (b.activity, b.guid) if ledger is not None
    ]
    assert ledgers
    assert not [ledger.text for ledger in ledgers if contradictions(ledger)]
