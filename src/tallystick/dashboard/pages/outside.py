"""Effects and outbox: what jobs have asked of the world, what came of it, and what could not be sent."""

from __future__ import annotations

from typing import Final

from tallystick.app.remote.redriving import redrive
from tallystick.core.remote.keys import ADMIN
from tallystick.dashboard.answers import Answer, Go, Page
from tallystick.dashboard.visits import Visit
from tallystick.errors import BadInput
from tallystick.store.api import Effects, searched

ROWS: Final = 50


def effects(visit: Visit) -> Answer:
    """Show effects: those that are open by their keys, or those that have ended, the last one first."""
    store = searched(visit.store)
    shows, key = visit.asked("show") or "open", visit.asked("key")
    older: dict[str, object] | None = None
    if key is not None and isinstance(visit.store, Effects):
        rows = visit.store.open_effects(visit.tenant, key)
    elif shows == "ended":
        before = _number(visit.asked("before"), visit.store.now() + 1)
        rows = store.ended_effects(visit.tenant, before=before, limit=ROWS + 1)
        older = {"before": rows[ROWS - 1].ended_at} if len(rows) > ROWS else None
    elif shows == "open":
        after = (visit.asked("after_key") or "", visit.asked("after_exec") or "")
        rows = store.open_effects_page(visit.tenant, after=after, limit=ROWS + 1)
        last = rows[ROWS - 1] if len(rows) > ROWS else None
        older = None if last is None else {"after_key": last.key, "after_exec": last.exec_id}
    else:
        raise BadInput(f"{shows!r} is not one of open, ended")
    shown = {
        "title": "Effects",
        "rows": rows[:ROWS],
        "shows": shows,
        "key": key or "",
        "older": None if older is None else visit.at("effects", show=shows, **older),
    }
    return Page("effects.html", shown)


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
    shown = {
        "title": "Outbox",
        "lag": inspection.outbox_lag(visit.tenant),
        "rows": rows[:ROWS],
        "shows": shows,
        "service": service or "",
        "older": visit.at("outbox", show=shows, service=service, after=more) if more else None,
        "store_now": visit.store.now(),
    }
    return Page("outbox.html", shown)


def redrive_directive(visit: Visit) -> Answer:
    """Make a new job that asks again for the step of a directive that could not be published."""
    visit.need(ADMIN)
    job = redrive(visit.app, visit.sent("directive"), visit.tenant, by=visit.who)
    return Go(visit.at(f"jobs/{job.id}"), "This new job asks again for the step.")


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else otherwise
