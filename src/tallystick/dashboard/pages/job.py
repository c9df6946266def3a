"""One job: why it stands where it stands, what can be done, and its books under one tab each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from tallystick.app.api.job import Job
from tallystick.app.asking.many import OPEN
from tallystick.app.asking.sentence import Why
from tallystick.core.lifecycles import JobState
from tallystick.core.remote.listing import StepRow, step_key
from tallystick.core.watching.acts import About
from tallystick.core.watching.searching import JobSearch
from tallystick.dashboard.answers import Answer, Attached, Go, HtmlPage
from tallystick.dashboard.shown.acts import acts_of
from tallystick.dashboard.shown.books import books_of
from tallystick.dashboard.shown.facts import facts_page
from tallystick.dashboard.shown.graph import graph
from tallystick.dashboard.shown.payloads import Room, indented, redacted
from tallystick.dashboard.shown.timeline import timeline
from tallystick.dashboard.visits import Visit, quoted
from tallystick.engine.audit.whole_store import verify
from tallystick.errors import NoSuchRoute, NotFound
from tallystick.http.shown import job_shown
from tallystick.store.api import Effects, JobRow, Queues, searched

STEPS_MAX: Final = 200
KIN_MAX: Final = 100
WAITS_MAX: Final = 20
VALUES_MAX: Final = 50
# Stands for a list of which the pages before have shown all.
_NONE: Final = "none"
_FORKABLE: Final = frozenset({"step", "tx", "effect", "remote", "wait", "sleep", "group", "protocol"})


def job(visit: Visit) -> Answer:
    """Show one job."""
    found, row = visit.job()
    tab = visit.asked("tab") or "timeline"
    if tab not in TABS:
        raise NoSuchRoute
    inspection = visit.store.inspect()
    why = found.why()
    steps = visit.store.steps(row.job_id, None, STEPS_MAX)
    effects = visit.store.effects(row.job_id) if isinstance(visit.store, Effects) else []
    waits = inspection.open_waits(row.job_id, limit=WAITS_MAX)
    names = [
        step.name if step.occurrence == 1 else f"{step.name}#{step.occurrence}"
        for step in steps
        if step.kind in _FORKABLE
    ]
    whole = inspection.whole(row.job_id)
    label, does = TABS[tab]
    shows = {
        "title": f"{row.handler} {row.job_id}",
        "row": row,
        "why": str(why),
        "why_kind": _why_kind(row),
        "until": why.until,
        "kin": _kin_of_why(why, row),
        "remedies": [
            act for act in why.actions if act.startswith(("tally work", "tally doctor", "tally verify"))
        ],
        "acts": acts_of(row, waits, names, effects),
        "queue": _queue(visit, row),
        "dead_directives": _dead_directives(visit, row),
        "tags": [] if row.tags is None else msgspec.json.decode(row.tags),
        "values": redacted(dict(islice(found.values().items(), VALUES_MAX))),
        "parent": None if whole is None else whole.born.parent_job_id,
        "tabs": [(name, word) for name, (word, _does) in TABS.items()],
        "tab": tab,
        "tab_label": label,
        **does(visit, found, row),
    }
    return HtmlPage(f"job_{tab}.html", shows)


def payload(visit: Visit) -> Answer:
    """Give a payload of a job as a file, whole and as it is stored."""
    _found, row = visit.job()
    what = visit.part("what")
    texts = {"arguments": row.payload, "result": row.result, "error": row.error}
    text = texts.get(what)
    if text is None:
        raise NotFound(f"job {row.job_id} has no {what}", job_id=row.job_id)
    return Attached(f"{row.job_id}-{what}.json", text.encode())


def verify_job(visit: Visit) -> Answer:
    """Check the books of a job once; its page shows what was found."""
    _found, row = visit.job()
    visit.check_books(row.job_id, lambda: verify(visit.store, job_id=row.job_id))
    return Go(visit.at(f"jobs/{quoted(row.job_id)}", tab="books"))


def _why_kind(row: JobRow) -> str:
    if row.hold is not None:
        return "warn"
    kinds = {JobState.SUCCEEDED: "good", JobState.FAILED_FINAL: "bad", JobState.CANCELLED: "off"}
    return kinds.get(JobState(row.state), "go")


def _kin_of_why(why: Why, row: JobRow) -> list[tuple[str, str]]:
    """Return the other jobs that the sentence is about."""
    found = []
    text = str(why)
    if why.child is not None and "; the child " in text:
        found.append(("the child it waits for", text.partition("; the child ")[2].partition(":")[0]))
    if row.retried_as is not None:
        found.append(("the job that took its place", row.retried_as))
    if row.retry_of is not None:
        found.append(("the job whose place it took", row.retry_of))
    return found


def _queue(visit: Visit, row: JobRow) -> object | None:
    """Return the queue of a job that has not ended, if it is paused or has limits."""
    if row.completed_at is not None or not isinstance(visit.store, Queues):
        return None
    return visit.store.queue(row.queue)


def _dead_directives(visit: Visit, row: JobRow) -> list[object]:
    found = visit.store.inspect().directives(row.job_id)
    return [each for each, _at in found if each.state == "FAILED_FINAL" and each.reason != "withdrawn"]


def _children(visit: Visit, row: JobRow, before: str | None = None) -> list[JobRow]:
    """Return one child more than a page has, the last one first."""
    search = JobSearch(row.tenant_id, parent=row.job_id)
    return searched(visit.store).jobs_found(search, before=before, limit=KIN_MAX + 1).rows


def _open_children(visit: Visit, row: JobRow) -> list[JobRow]:
    """Return the last children that have not ended, in whatever window they are."""
    search, found, before = JobSearch(row.tenant_id, OPEN, parent=row.job_id), list[JobRow](), None
    while len(found) <= KIN_MAX:
        page = searched(visit.store).jobs_found(search, before=before, limit=KIN_MAX + 1)
        found, before = [*found, *page.rows], page.reached
        if before is None or len(page.rows) > KIN_MAX:
            break
    return found


def _timeline(visit: Visit, _job: Job[Any], row: JobRow) -> dict[str, Any]:
    """Show attempts, and a page of steps and one of children; each goes on where the page before ended."""
    after, before = visit.asked("steps"), visit.asked("children")
    is_first = after is None and before is None
    attempts = visit.store.inspect().attempts(row.job_id) if is_first else []
    steps = [] if after == _NONE else _steps(visit, row, after)
    children = [] if before == _NONE else _children(visit, row, before)
    more_steps, more_children = len(steps) > STEPS_MAX, len(children) > KIN_MAX
    steps, children = steps[:STEPS_MAX], children[:KIN_MAX]
    address = f"jobs/{quoted(row.job_id)}"
    follows = {
        "steps": steps[-1].key if more_steps else _NONE,
        "children": children[-1].job_id if more_children else _NONE,
    }
    return {
        "timeline": timeline(row, attempts[-STEPS_MAX:], steps, children, visit.now),
        "attempts_shown": min(len(attempts), STEPS_MAX),
        "older_attempts": max(0, len(attempts) - STEPS_MAX),
        "next_page": visit.at(address, tab="timeline", **follows) if more_steps or more_children else None,
        "first_page": None if is_first else visit.at(address, tab="timeline"),
    }


def _steps(visit: Visit, row: JobRow, after: str | None) -> list[StepRow]:
    """Return one step more than a page has."""
    return visit.store.steps(row.job_id, None if after is None else step_key(after), STEPS_MAX + 1)


def _graph(visit: Visit, _job: Job[Any], row: JobRow) -> dict[str, Any]:
    inspection = visit.store.inspect()
    whole = inspection.whole(row.job_id)
    parent_id = None if whole is None else whole.born.parent_job_id
    parent = None if parent_id is None else visit.store.job(parent_id)
    steps, last = _steps(visit, row, None), _children(visit, row)
    waits = inspection.open_waits(row.job_id, limit=WAITS_MAX)
    is_cut = len(steps) > STEPS_MAX or len(last) > KIN_MAX
    still_open = _open_children(visit, row) if len(last) > KIN_MAX else []
    children = list({each.job_id: each for each in (*last, *still_open)}.values())
    drawing = graph(row, parent, steps, waits, children, visit.base)
    return {"graph": drawing.drawn, "left_out": drawing.left_out, "is_cut": is_cut}


def _history(visit: Visit, _job: Job[Any], row: JobRow) -> dict[str, Any]:
    after = visit.asked("after") or "0"
    raw = visit.asked("raw") is not None
    number = int(after) if after.isascii() and after.isdecimal() and len(after) < 16 else 0
    facts = facts_page(visit.store.inspect(), row.job_id, after=number, raw=raw)
    return {"facts": facts, "raw": raw, "did": visit.acts(About.JOB, row.job_id)}


def _books(visit: Visit, _job: Job[Any], row: JobRow) -> dict[str, Any]:
    inspection = visit.store.inspect()
    book = inspection.book(row.job_id)
    if book is None:
        raise NotFound(f"job {row.job_id} is not there any more", job_id=row.job_id)
    return {"books": books_of(inspection, book), "checked": visit.checked(row.job_id)}


def _payloads(visit: Visit, _job: Job[Any], row: JobRow) -> dict[str, Any]:
    if visit.asked("show") is None:
        return {"payloads": None}
    steps = visit.store.steps(row.job_id, None, STEPS_MAX)
    messages = visit.store.inspect().messages(row.job_id, after="", limit=STEPS_MAX)
    pretty = Room().pretty
    shown = [("arguments", "what it was submitted with", pretty(row.payload), True)]
    shown += [
        (name, about, pretty(text), True)
        for name, about, text in (
            ("result", "what it returned", row.result),
            ("error", "what it failed with", row.error),
        )
        if text is not None
    ]
    shown += [(step.key, step.kind, pretty(step.result), False) for step in steps if step.result is not None]
    shown += [
        (f"{each.kind} {each.name}", "message", pretty(each.payload), False)
        for each in messages
        if each.payload is not None
    ]
    return {"payloads": shown}


def _json(visit: Visit, _job: Job[Any], row: JobRow) -> dict[str, Any]:
    data = msgspec.to_builtins(job_shown(row), enc_hook=str, builtin_types=(msgspec.Raw,))
    with_values = visit.asked("show") is not None
    for name in ("result", "tags"):
        raw = data.get(name)
        if isinstance(raw, msgspec.Raw):
            shows = with_values or name == "tags"
            data[name] = redacted(msgspec.json.decode(raw)) if shows else "(hidden)"
    return {"json": Room().fit(indented(data)), "with_values": with_values}


TABS: Final[Mapping[str, tuple[str, Callable[[Visit, Job[Any], JobRow], dict[str, Any]]]]] = {
    "timeline": ("Timeline", _timeline),
    "graph": ("Graph", _graph),
    "history": ("History", _history),
    "books": ("Books", _books),
    "payloads": ("Payloads", _payloads),
    "json": ("JSON", _json),
}
