"""Schedules: when each ticks next, what its last tick made, and the few things that people do with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from tallystick.core.watching.acts import About
from tallystick.dashboard.answers import Answer, Go, HtmlPage
from tallystick.dashboard.visits import Visit
from tallystick.errors import BadInput
from tallystick.store.api import Schedules

ROWS: Final = 100


def schedules(visit: Visit) -> Answer:
    """Show all schedules."""
    views = visit.app.schedules.all() if isinstance(visit.store, Schedules) else []
    shows = {"title": "Schedules", "views": views[:ROWS], "more": len(views) > ROWS}
    return HtmlPage("schedules.html", {**shows, "did": visit.acts(About.SCHEDULE)})


def act_on_schedule(visit: Visit) -> Answer:
    """Pause, resume, trigger or backfill a schedule."""
    name, verb = visit.part("schedule"), visit.part("verb")
    those = visit.app.schedules
    if verb == "pause":
        those.pause(name, by=visit.who)
        said = f"The schedule {name} is paused."
    elif verb == "resume":
        those.resume(name, by=visit.who)
        said = f"The schedule {name} goes on with its next tick."
    elif verb == "trigger":
        job = those.trigger(name, by=visit.who)
        return Go(visit.at(f"jobs/{job.id}"), f"The schedule {name} made this job just now.")
    elif verb == "backfill":
        made = those.backfill(name, _moment(visit.sent("since")), _moment(visit.sent("until")), by=visit.who)
        new = sum(job.created for job in made)
        said = f"{len(made)} ticks of {name}: {new} new jobs, {len(made) - new} had one."
    else:
        raise BadInput(f"{verb!r} is not one of pause, resume, trigger, backfill")
    return Go(visit.at("schedules"), said)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInput(f"{text!r} is not an instant; write 2026-11-17T19:00") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
