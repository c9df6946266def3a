"""Effects and outbox: what jobs have asked of the world, what came of it, and what could not be sent."""

from __future__ import annotations

from typing import Final

from tallystick.app.remote.redriving import redrive
from tallystick.core.remote.keys import ADMIN
from tallystick.core.watching.searching import EffectSearch
from tallystick.dashboard.answers import Answer, Go, HtmlPage
from tallystick.dashboard.visits import Visit
from tallystick.errors import BadInput
from tallystick.store.api import searched

ROWS: Final = 50


def effects(visit: Visit) -> Answer:
    """Show effects: those that are open by their keys, or those that have ended, the last one first."""
    shows, key = visit.asked("show") or "open", visit.asked("key")
    if shows not in ("open", "ended"):
        raise BadInput(f"{shows!r} is not one of open, ended")
    search = EffectSearch(visit.tenant, ended=shows == "ended", key=key)
    found = searched(visit.store).effects_found(search, after=visit.asked("after"), limit=ROWS)
    more = None if found.reached is None else visit.at("effects", show=shows, key=key, after=found.reached)
    shown = {
        "title": "Effects",
        "rows": found.rows,
        "shows": shows,
        "key": key or "",
        "older": more,
    }
    return HtmlPage("effects.html", shown)


def outbox(visit: Visit) -> Answer:
    """Show directives: how late each service is, what waits, and what could not be published."""
    inspection = visit.store.inspect()
    shows, service, after = (
        visit.asked("show") or "waiting",
        visit.asked("service"),
        visit.asked("after") or "",
    )
    look = {"waiting": inspection.waiting_directives, "dead": inspection.dead_directives}.get(shows)
    if look is None:
        raise BadInput(f"{shows!r} is not one of waiting, dead")
    rows = look(visit.tenant, service, after=after, limit=ROWS + 1)
    more = rows[ROWS - 1].outbox_id if len(rows) > ROWS else None
    lag = inspection.outbox_lag(visit.tenant)
    if not visit.is_operator:
        rows, lag = [row.for_tenants() for row in rows], [each.for_tenants() for each in lag]
    shown = {
        "title": "Outbox",
        "lag": lag,
        "rows": rows[:ROWS],
        "shows": shows,
        "service": service or "",
        "older": visit.at("outbox", show=shows, service=service, after=more) if more else None,
        "store_now": visit.store.now(),
    }
    return HtmlPage("outbox.html", shown)


def redrive_directive(visit: Visit) -> Answer:
    """Make a new job that asks again for the step of a directive that could not be published."""
    visit.need(ADMIN)
    job = redrive(visit.app, visit.sent("directive"), visit.tenant, by=visit.who)
    return Go(visit.at(f"jobs/{job.id}"), "This new job asks again for the step.")
