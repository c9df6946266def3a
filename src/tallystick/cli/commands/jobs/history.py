"""`tally history`: what happened to a job, fact by fact."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from tallystick.cli.commands.jobs.show import find_job
from tallystick.cli.place import json_option, looking, url_option, whole_id
from tallystick.cli.render.history_words import details, in_words
from tallystick.cli.render.output import Ink, show, show_data
from tallystick.cli.render.wording import instant, short, span
from tallystick.core.watching.acts import About, Act
from tallystick.store.api import Searched, Store, StoredEvent

_PAGE = 100
_STYLES = {
    "return": "green",
    "fail": "red",
    "hold": "yellow",
    "reclaim": "yellow",
    "try": "yellow",
    "cancel": "yellow",
}

_EXAMPLES = """\b
Examples:
  tally history 01a1e109-dad7-70e7-b72a-a7770e0c41df shop
  tally history 01a1e109-dad7-70e7-b72a-a7770e0c41df --url sqlite:///shop.db --json
"""


@click.command("history", epilog=_EXAMPLES)
@click.argument("job")
@click.argument("app", required=False)
@url_option
@json_option
def command(*, job: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Tell what happened to a job, in order: when, in which attempt, what, and with what.

    Below the facts stands what people did to it and who they were, where that was named. The store is that of
    APP, of --url, or of the variable TALLY_URL. Values are cut to one line; --json shows all of them.
    """
    with looking(app, url) as store:
        job = whole_id(store, job)
        find_job(store, job)
        if as_json:
            show_data([as_data(fact, took) for fact, took in facts_of(store, job)])
            return
        ink = Ink.for_stream(sys.stdout)
        for fact, took in facts_of(store, job):
            show(_line(fact, took, ink))
        for act in _acts(store, job):
            show(_did(act, ink))


def facts_of(store: Store, job_id: str) -> Iterator[tuple[StoredEvent, int | None]]:
    """Return the facts of a job in order, a page at a time, and how many ms it took what each ends."""
    inspection = store.inspect()
    after = 0
    while page := inspection.facts(job_id, after=after, limit=_PAGE):
        began = inspection.began(job_id, after=after, limit=_PAGE)
        yield from ((fact, fact.at - began[fact.n] if fact.n in began else None) for fact in page)
        after = page[-1].n


def _acts(store: Store, job_id: str) -> list[Act]:
    """Return what people did to a job and who it was, in order; of very many the last ones."""
    if not isinstance(store, Searched):
        return []
    return store.acts([About.JOB], job_id, limit=_PAGE)[::-1]


def _did(act: Act, ink: Ink) -> str:
    words = f"{act.who}: {act.verb}" + (f", {act.told}" if act.told else "")
    return "  ".join(("    ", ink(str(instant(act.at)), "dim"), "         ", short(words, 160)))


def as_data(fact: StoredEvent, took_ms: int | None) -> dict[str, object]:
    """Return a fact as data."""
    return {
        "n": fact.n,
        "at": instant(fact.at),
        "attempt": fact.attempt,
        "type": fact.type,
        "words": in_words(fact),
        "details": details(fact),
        "took_ms": took_ms,
        "prev_hash": fact.prev_hash.hex(),
        "hash": fact.event_hash.hex(),
    }


def _line(fact: StoredEvent, took_ms: int | None, ink: Ink) -> str:
    style = _STYLES.get(fact.type)
    words = short(in_words(fact), 160)
    return "  ".join(
        (
            f"{fact.n:>4}",
            ink(str(instant(fact.at)), "dim"),
            f"attempt {fact.attempt}" if fact.attempt else "         ",
            ink(words, style) if style else words,
            *([] if took_ms is None else [ink(f"took {span(took_ms)}", "dim")]),
        )
    )
