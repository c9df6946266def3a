"""Attention: everything that waits for a person, each with what to do about it."""

from __future__ import annotations

from typing import Final, NamedTuple

from tallystick.app.asking.unanswered import unanswered_effects
from tallystick.core.verbs.holds import Hold
from tallystick.core.watching.searching import WINDOW_JOBS
from tallystick.dashboard.answers import Answer, Go, HtmlPage
from tallystick.dashboard.visits import Visit
from tallystick.engine.audit import audit
from tallystick.store.api import JobRow, searched

SHOWN: Final = 25
VERIFIED_JOBS: Final = 1_000


class Trouble(NamedTuple):
    """One job that needs a person, and the act that mends it: its verb, its words."""

    row: JobRow
    says: str
    verb: str = ""
    label: str = ""


class Kind(NamedTuple):
    """One kind of trouble: what it is, and which jobs have it; `more` if there are others, and where."""

    name: str
    about: str
    troubles: list[Trouble]
    more: bool
    link: str = ""
    # What to know about those that are not shown.
    beyond: str = ""


def attention(visit: Visit) -> Answer:
    """Show all kinds of trouble."""
    kinds = [
        _in_doubt(visit),
        _unanswered(visit),
        _held(visit),
        _dead(visit),
        _late(visit),
        _expired(visit),
    ]
    outbox = visit.store.inspect().dead_directives(visit.tenant, None, after="", limit=SHOWN + 1)
    if not visit.is_operator:
        outbox = [row.for_tenants() for row in outbox]
    shows = {
        "title": "Attention",
        "kinds": [kind for kind in kinds if kind.troubles or kind.more],
        "quiet": [kind for kind in kinds if not (kind.troubles or kind.more)],
        "outbox": outbox[:SHOWN],
        "outbox_more": len(outbox) > SHOWN,
        "stale": visit.store.inspect().stale_reports() if visit.is_operator else None,
        "checked": visit.checked(None) if visit.is_operator else None,
        "verified_jobs": VERIFIED_JOBS,
    }
    return HtmlPage("attention.html", shows)


def verify_newest(visit: Visit) -> Answer:
    """Check the books of the newest jobs once; the page shows what was found."""
    visit.check_books(None, lambda: audit(visit.store, jobs_max=VERIFIED_JOBS))
    return Go(visit.at("attention"))


def _in_doubt(visit: Visit) -> Kind:
    rows = searched(visit.store).held_jobs(visit.tenant, [Hold.IN_DOUBT], before=None, limit=SHOWN + 1)
    unknown = "it is not known what came of an effect"
    found = [Trouble(row, row.hold_reason or unknown, "", "Say what came of it") for row in rows]
    about = "An effect was called, and it is not known what came of it. Look at the other side, then say it."
    return Kind("In doubt", about, found[:SHOWN], len(found) > SHOWN, visit.at("effects"))


def _unanswered(visit: Visit) -> Kind:
    found = unanswered_effects(visit.store, visit.tenant, SHOWN + 1)
    rows = {row.job_id: row for row in _rows(visit, [each.row.job_id for each in found])}
    troubles = [
        Trouble(rows[each.row.job_id], each.says, "", "Say what came of it")
        for each in found
        if each.row.job_id in rows
    ]
    about = (
        "It is not known what came of these effects, and no job is held for them: their job was asked to end "
        "or has ended, or no worker asks their probe. Look at the other side, then say it."
    )
    link = visit.at("effects")
    return Kind("Effects without an answer", about, troubles[:SHOWN], len(found) > SHOWN, link)


def _held(visit: Visit) -> Kind:
    holds = [hold for hold in Hold if hold is not Hold.IN_DOUBT]
    rows = searched(visit.store).held_jobs(visit.tenant, holds, before=None, limit=SHOWN + 1)
    found = [Trouble(row, f"{row.hold}: {row.hold_reason}", "resume", "Resume") for row in rows]
    about = "Workers leave these jobs alone until a person resumes them."
    return Kind("Held", about, found[:SHOWN], len(found) > SHOWN, visit.at("jobs", held="yes"))


def _dead(visit: Visit) -> Kind:
    rows = visit.store.dead(tenant_id=visit.tenant, handler=None, after=None, limit=SHOWN + 1)
    found = [Trouble(row, f"{row.error_code}: {row.error_message}", "retry", "Retry") for row in rows]
    about = "Jobs that have failed for good and were not retried."
    link = visit.at("jobs", dead="yes")
    return Kind("Dead letters", about, found[:SHOWN], len(found) > SHOWN, link)


def _late(visit: Visit) -> Kind:
    late = searched(visit.store).late_jobs(visit.tenant, limit=SHOWN + 1)
    why = "its grace or its deadline is over, and no worker has ended it yet"
    found = [Trouble(row, why) for row in late.rows]
    about = "Their time is over. A worker ends them with its next sweep; if they stay here, no worker runs."
    looked = f"Of all tenants, the {WINDOW_JOBS:,} jobs that are late for longest were looked at"
    is_cut = late.reached is not None
    return Kind(
        "Late",
        about,
        found[:SHOWN],
        len(found) > SHOWN or is_cut,
        beyond=f"{looked}; others are late too." if is_cut else "",
    )


def _expired(visit: Visit) -> Kind:
    rows = searched(visit.store).lost_jobs(visit.tenant, limit=SHOWN + 1)
    why = "the lease of its worker has run out, and no worker has taken it over"
    found = [Trouble(row, why) for row in rows]
    about = "The worker was lost. Another one takes the job over; if they stay here, no worker runs."
    return Kind("Expired leases", about, found[:SHOWN], len(found) > SHOWN)


def _rows(visit: Visit, job_ids: list[str]) -> list[JobRow]:
    rows = (visit.store.job(job_id) for job_id in dict.fromkeys(job_ids))
    return [row for row in rows if row is not None and row.tenant_id == visit.tenant]
