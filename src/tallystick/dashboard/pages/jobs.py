"""Jobs: a list by any filter, in pages, and one word to all jobs that match, after their number was said."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from tallystick.app.asking.many import reachable, tell_many
from tallystick.core.durations import duration_ms
from tallystick.core.lifecycles import JobState
from tallystick.core.remote.keys import ADMIN
from tallystick.core.schedules.timetable import shown as instant_shown
from tallystick.core.watching.searching import (
    COUNT_MAX,
    ERROR_WINDOWS,
    WINDOW_JOBS,
    FoundJobs,
    JobSearch,
    SearchWalk,
)
from tallystick.dashboard.answers import Answer, Go, HtmlPage
from tallystick.dashboard.visits import Visit, quoted
from tallystick.defaults import TENANT
from tallystick.errors import BadDuration, BadInput
from tallystick.store.api import searched
from tallystick.store.inspection import watched

ROWS: Final = 50
TEXTS: Final = ("workflow", "queue", "tag", "key", "parent", "error", "since", "until")
# A beginning that more jobs share, of any tenant, names none of them.
ALIKE_MAX: Final = 20
_ID: Final = re.compile(r"[0-9a-f]{4}[0-9a-f.-]{0,200}")
BULK: Final = {
    "cancel": "Cancel",
    "pause": "Pause",
    "resume": "Resume",
    "retry": "Retry",
}


class Counted(NamedTuple):
    """How many jobs match, as far as was counted."""

    number: int
    is_all: bool

    def __str__(self) -> str:
        if self.number >= COUNT_MAX:
            return f"{COUNT_MAX:,}+"
        return f"{self.number:,}" if self.is_all else f"{self.number:,}+"


def asked(visit: Visit) -> tuple[JobSearch, dict[str, object]]:
    """Return what the address asks for, and the same for links."""
    states = [_state(text) for text in visit.request.query_params.getlist("state") if text]
    given: dict[str, object] = {name: visit.asked(name) for name in TEXTS}
    held, dead = visit.asked("held") is not None, visit.asked("dead") is not None
    search = JobSearch(
        visit.tenant,
        states,
        visit.asked("workflow"),
        visit.asked("queue"),
        visit.asked("tag"),
        visit.asked("key"),
        visit.asked("parent"),
        held,
        _instant(visit, visit.asked("since")),
        _instant(visit, visit.asked("until")),
        visit.asked("error"),
        dead,
    )
    marks = {"held": "yes" if held else None, "dead": "yes" if dead else None}
    return search, {**given, "state": states, **marks}


def jobs(visit: Visit) -> Answer:
    """Show a page of jobs."""
    search, given = asked(visit)
    before = visit.asked("before")
    store = searched(visit.store)
    found = store.jobs_found(search, before=before, limit=ROWS + 1)
    rows = found.rows[:ROWS]
    older = rows[-1].job_id if len(found.rows) > ROWS else found.reached
    counted = None if before else _counted(visit, search, found)
    filters = {name: value for name, value in given.items() if value}
    return HtmlPage(
        "jobs.html",
        {
            "title": "Jobs",
            "rows": rows,
            "given": given,
            "filters": filters,
            "states": list(JobState),
            "counted": counted,
            "older": visit.at("jobs", **given, before=older) if older else None,
            "is_cut": len(found.rows) <= ROWS and found.reached is not None,
            "looked_at": _looked_at(search),
            "window": WINDOW_JOBS,
            "first_page": visit.at("jobs", **given),
            "is_first": before is None,
            "bulk": BULK,
            "bulk_query": visit.at("", **given).partition("?")[2],
        },
    )


def find(visit: Visit) -> Answer:
    """Go to the job that a text names: by its identifier, the beginning of it, or its key."""
    text = visit.asked("q")
    if text is None:
        return Go(visit.at("jobs"))
    ids = _ids_with(visit, text) if _ID.fullmatch(text) else []
    if len(ids) == 1 or text in ids:
        return Go(visit.at(f"jobs/{quoted(text if text in ids else ids[0])}"))
    return Go(visit.at("jobs", key=text))


def _ids_with(visit: Visit, text: str) -> list[str]:
    """Return the jobs that this visitor may see whose identifiers begin so."""
    ids = watched(visit.store).ids_with(text, ALIKE_MAX + 1)
    if visit.sees_all_tenants:
        return ids
    rows = (visit.store.job(job_id) for job_id in ids) if len(ids) <= ALIKE_MAX else ()
    return [row.job_id for row in rows if row is not None and row.tenant_id == visit.tenant]


def bulk(visit: Visit) -> Answer:
    """Say how many jobs a word would reach, before it is said."""
    verb = _verb(visit.part("verb"))
    search, given = asked(visit)
    counted = _count(visit, search, verb)
    shows = {
        "title": f"{BULK[verb]} many jobs",
        "verb": verb,
        "label": BULK[verb],
        "counted": counted,
        "filters": {name: value for name, value in given.items() if value},
        "back": visit.at("jobs", **given),
        "action": visit.at(f"bulk/{verb}", **given),
        "command": _command(visit, verb, search, given),
        "request": _request(visit, verb, search, given),
    }
    return HtmlPage("bulk.html", shows)


def do_bulk(visit: Visit) -> Answer:
    """Say a word to all jobs that match."""
    verb = _verb(visit.part("verb"))
    visit.need(ADMIN)
    search, given = asked(visit)
    reached = tell_many(visit.app, verb, search, visit.who)
    said = f"{BULK[verb]}: reached {reached:,} job{'' if reached == 1 else 's'}"
    if reached.passed_by:
        said += f", passed {reached.passed_by:,} by"
    return Go(visit.at("jobs", **given), f"{said}.")


def _looked_at(search: JobSearch) -> str:
    """Say which jobs a page looks at, where it does not look at all."""
    if search.walk is SearchWalk.ERROR and search.has_unindexed:
        most = f"{WINDOW_JOBS:,} matched the other filters or {ERROR_WINDOWS * WINDOW_JOBS:,} were looked at"
        return f"the newest jobs with an error before this point, until {most}"
    return f"the newest {WINDOW_JOBS:,} {search.walk.value} before this point"


def _counted(visit: Visit, search: JobSearch, found: FoundJobs) -> Counted:
    """Count what matches in the window of a list; one that is shorter than its page is counted already."""
    if len(found.rows) <= ROWS:
        return Counted(len(found.rows), is_all=found.reached is None)
    store = searched(visit.store)
    number, reached = store.count_found(search, before=None, limit=COUNT_MAX, reached=found.reached)
    return Counted(number, is_all=reached is None)


def _count(visit: Visit, search: JobSearch, verb: str) -> Counted:
    """Count what a word would reach, in all windows."""
    store, number, before = searched(visit.store), 0, None
    wanted = reachable(verb, search)
    if not wanted.states:
        # None of the states that were asked for can take the word.
        return Counted(0, is_all=True)
    while True:
        found = store.count_found(wanted, before=before, limit=COUNT_MAX - number)
        number, before = number + found.number, found.reached
        if before is None or number >= COUNT_MAX:
            return Counted(number, is_all=before is None)


def _verb(text: str) -> str:
    if text not in BULK:
        raise BadInput(f"{text!r} is not one of {', '.join(BULK)}")
    return text


def _state(text: str) -> str:
    try:
        return JobState(text.upper()).value
    except ValueError:
        raise BadInput(f"{text!r} is not a state of a job; the states are {', '.join(JobState)}") from None


def _instant(visit: Visit, text: str | None) -> int | None:
    """Return an instant that was written as one, or as how long ago it is."""
    if text is None:
        return None
    try:
        return visit.now - duration_ms(text)
    except BadDuration:
        written = text
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        raise BadInput(
            f"{text!r} is neither a length of time like 2h nor an instant like 2026-11-17T19:00"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _command(visit: Visit, verb: str, search: JobSearch, given: dict[str, object]) -> str:
    """Return the command that says the same."""
    filters = _as_told(search, given)
    if filters is None:
        return ""
    options = []
    for name, value in filters.items():
        if name in ("since", "until"):
            options.append(f"--{name} {shlex.quote(str(given[name] if _is_span(given[name]) else value))}")
        elif name == "tag":
            options.append(f"--tag {shlex.quote(str(value))}")
        else:
            values = value if isinstance(value, list) else ["yes" if value is True else value]
            options += [f"--where {name}={shlex.quote(str(each))}" for each in values]
    if visit.tenant != TENANT:
        options.append(f"--tenant {shlex.quote(visit.tenant)}")
    return " ".join([f"tally {verb} APP", *(options if filters else ["--everything", *options]), "--yes"])


def _request(visit: Visit, verb: str, search: JobSearch, given: dict[str, object]) -> str:
    """Return the request that says the same."""
    filters = _as_told(search, given)
    if filters is None:
        return ""
    words = {"verb": verb, "tenant": visit.tenant, **(filters or {"everything": True})}
    return f"POST /v1/jobs/bulk  {msgspec.json.encode(words).decode()}"


def _as_told(search: JobSearch, given: dict[str, object]) -> dict[str, object] | None:
    """Return the filters as commands and requests have them; None if no job has all of this in common.

    A word to dead letters is one to failed jobs: of those a retry reaches the same, and other words none.
    """
    found = {name: value for name, value in given.items() if value and name != "dead"}
    if search.is_dead:
        if search.states and JobState.FAILED_FINAL not in search.states:
            return None
        found["state"] = [JobState.FAILED_FINAL.value]
    instants = {"since": search.since, "until": search.until}
    found |= {name: instant_shown(at) for name, at in instants.items() if at is not None}
    return found | ({"held": True} if search.is_held else {})


def _is_span(text: object) -> bool:
    try:
        duration_ms(str(text))
    except BadDuration:
        return False
    return True
