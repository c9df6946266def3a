"""The history of a job as a page shows it: facts in words, grouped by attempt, or raw with their hashes."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from tallystick.cli.render.history_words import details, in_words
from tallystick.core.chain import read_step_payload
from tallystick.dashboard.shown.payloads import Room, indented, redacted
from tallystick.store.api import StoredEvent
from tallystick.store.inspection import Inspection

FACTS_PAGE = 100
_KINDS = {
    "return": "good",
    "fail": "bad",
    "hold": "warn",
    "doubt": "bad",
    "reclaim": "warn",
    "try": "warn",
    "cancel": "off",
    "claim": "go",
    "resolve": "good",
    "resume": "good",
    "suspend": "wait",
}


class FactLine(NamedTuple):
    """One fact."""

    n: int
    at: int
    attempt: int
    type: str
    kind: str
    words: str
    took: int | None
    raw: str
    hash: str


class FactsPage(NamedTuple):
    """A page of facts; `after` leads to the next one."""

    groups: list[tuple[int, list[FactLine]]]
    after: int | None


def facts_page(inspection: Inspection, job_id: str, *, after: int, raw: bool) -> FactsPage:
    """Return a page of the history; values are shown in the raw form alone."""
    facts = inspection.facts(job_id, after=after, limit=FACTS_PAGE + 1)
    began = inspection.began(job_id, after=after, limit=FACTS_PAGE)
    room = Room()
    shown = [_shown(fact, began.get(fact.n), room if raw else None) for fact in facts[:FACTS_PAGE]]
    groups = [(attempt, list(group)) for attempt, group in groupby(shown, key=lambda fact: fact.attempt)]
    return FactsPage(groups, facts[FACTS_PAGE - 1].n if len(facts) > FACTS_PAGE else None)


def _shown(fact: StoredEvent, began: int | None, room: Room | None) -> FactLine:
    return FactLine(
        fact.n,
        fact.at,
        fact.attempt,
        fact.type,
        _KINDS.get(fact.type, ""),
        _words(fact),
        None if began is None else fact.at - began,
        "" if room is None else room.fit(indented(redacted(details(fact)))),
        fact.event_hash.hex(),
    )


def _words(fact: StoredEvent) -> str:
    """Return what a fact says, without the values that a program has put into it."""
    step = read_step_payload(fact.payload)
    if step is None or step.error is not None:
        return in_words(fact)
    name = step.name if step.occurrence == 1 else f"{step.name}#{step.occurrence}"
    return f"{fact.type} {name} ended: {step.state.lower()}"
