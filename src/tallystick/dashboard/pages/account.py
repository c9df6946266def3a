"""What a visitor does with the session itself: look at another tenant, or log out; and the first page."""

from __future__ import annotations

from tallystick.dashboard.answers import Answer, Go
from tallystick.dashboard.pages.overview import overview
from tallystick.dashboard.visits import Visit


def first(visit: Visit) -> Answer:
    """Show the overview to operators, and their jobs to all others."""
    return overview(visit) if visit.is_operator else Go(visit.at("jobs"))


def tenant(visit: Visit) -> Answer:
    """Look at another tenant from now on."""
    visit.choose_tenant(visit.sent("tenant").strip())
    return Go(visit.at("jobs"), f"You look at the tenant {visit.session.tenant} now.")


def log_out(visit: Visit) -> Answer:
    """End the session; its identifier opens nothing any more."""
    visit.session.until = 0.0
    return Go(visit.at("login"))
