"""Pages as HTML: templates that escape everything, and the words by which they say instants and states."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tallystick.cli.render.wording import ago, count, span
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.remote.keys import ADMIN, WRITE
from tallystick.core.watching.searching import COUNT_MAX
from tallystick.dashboard import static_files
from tallystick.dashboard.answers import Answer, Attached, Go
from tallystick.dashboard.shown.rates import rate_text
from tallystick.dashboard.visits import quoted
from tallystick.errors import NotAllowed, TallyError
from tallystick.version import VERSION

if TYPE_CHECKING:
    from tallystick.dashboard.pages.table import Place
    from tallystick.dashboard.visits import Visit

_HTML: Final = "text/html; charset=utf-8"
_EFFORT: Final = 6
# A file that a person opens by itself runs nothing and reaches nothing, whatever is in it.
_ATTACHED: Final = "sandbox; default-src 'none'"
# The word for a state, and the kind that gives it its colour and mark.
STATES: Final[Mapping[str, tuple[str, str]]] = {
    "QUEUED": ("queued", "wait"),
    "DISPATCHING": ("dispatching", "go"),
    "IN_PROGRESS": ("in progress", "go"),
    "CANCELLING": ("cancelling", "warn"),
    "SUCCEEDED": ("succeeded", "good"),
    "FAILED_FINAL": ("failed", "bad"),
    "CANCELLED": ("cancelled", "off"),
    "PENDING": ("pending", "wait"),
    "AWAITING_ACK": ("awaiting ack", "wait"),
    "FAILED_RETRY": ("to be retried", "warn"),
    "OPEN": ("open", "wait"),
    "LEASED": ("leased", "go"),
    "COMMITTED": ("committed", "go"),
    "DONE": ("done", "good"),
    "ABORTED": ("aborted", "off"),
    "SENT": ("sent", "good"),
    "CALLING": ("calling", "go"),
    "RESTING": ("to be called", "wait"),
    "IN_DOUBT": ("in doubt", "bad"),
    "ENDED": ("ended", "good"),
    "HAPPENED": ("happened", "good"),
    "REFUSED": ("refused", "bad"),
    "NOT_DONE": ("not done", "off"),
}
MENU: Final = (
    ("overview", "Overview", "", True),
    ("jobs", "Jobs", "jobs", False),
    ("attention", "Attention", "attention", False),
    ("effects", "Effects", "effects", False),
    ("outbox", "Outbox", "outbox", False),
    ("queues", "Queues", "queues", True),
    ("workers", "Workers", "workers", True),
    ("schedules", "Schedules", "schedules", True),
    ("runs", "Runs", "runs", True),
    ("lifecycles", "Lifecycles", "lifecycles", False),
)


class Renderer:
    """Makes answers of what handlers return."""

    def response(self, visit: Visit, place: Place, shown: Answer) -> Response:
        """Return a page, a way to another one, or a file."""
        if isinstance(shown, Go):
            visit.session.said = shown.said
            return RedirectResponse(shown.address, 303)
        if isinstance(shown, Attached):
            headers = {
                "Content-Disposition": f'attachment; filename="{shown.name}"',
                "Content-Security-Policy": _ATTACHED,
                "Cache-Control": "no-store",
            }
            return Response(shown.body, 200, headers, media_type="application/octet-stream")
        return _html(_common(visit, place.menu) | shown.shows, shown.template)

    def login(self, base: str, trouble: str, status: int = 200) -> Response:
        """Return the page that asks for a key."""
        return _html({"base": base, "trouble": trouble, "title": "Log in"}, "login.html", status)

    def error(self, base: str, visit: Visit | None, error: TallyError) -> Response:
        """Return an error as a page; of one that is ours to mend nothing is shown but its code."""
        status = error.http_status
        text = error.message if status < 500 else "The server could not do this; its log says why."
        hint = "Log in with a key that has the scope." if isinstance(error, NotAllowed) else ""
        shows = {"title": "That did not work", "code": error.code, "text": text, "hint": hint}
        if visit is None:
            return _html({"base": base, "trouble": text, **shows}, "login.html", status)
        return _html(_common(visit, "") | shows, "error.html", status)


def refusal(base: str, status: int, code: str, text: str) -> Response:
    """Return the page for a request that came to none of the pages."""
    return _html(
        {"base": base, "title": "That did not work", "code": code, "text": text}, "refused.html", status
    )


def packed(request: Request, response: Response) -> Response:
    """Return a page in gzip, if the browser takes that.

    A page has a secret of its session, and shows what its address says; that no other site can let a browser
    ask for a page with its session (guard and cookie) keeps the size of the answer from telling the secret.
    """
    takes = "gzip" in request.headers.get("accept-encoding", "")
    if response.media_type != _HTML:
        return response
    response.headers["Vary"] = "Accept-Encoding"
    if takes:
        response.body = gzip.compress(response.body, _EFFORT, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
    return response


def _html(shows: dict[str, Any], template: str, status: int = 200) -> Response:
    text = _templates().get_template(template).render(shows)
    return Response(text, status, {"Cache-Control": "no-store"}, media_type=_HTML)


def _common(visit: Visit, menu: str) -> dict[str, Any]:
    said = ""
    # A page that asks for itself again would take the words from the page that they are for.
    if not visit.request.headers.get("hx-request"):
        said, visit.session.said = visit.session.said, ""
    return {
        "base": visit.base,
        "visit": visit,
        "csrf": visit.session.csrf,
        "here": str(visit.request.url.path)
        + (f"?{visit.request.url.query}" if visit.request.url.query else ""),
        "menu": [entry for entry in MENU if visit.is_operator or not entry[3]],
        "at_menu": menu,
        "said": said,
        "now": visit.now,
        "may_write": visit.may(WRITE),
        "may_admin": visit.may(ADMIN),
        "version": VERSION,
    }


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("tallystick.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "instant": instant,
        "machine_instant": machine_instant,
        "span": span,
        "quoted": quoted,
        "state": state_word,
        "state_kind": state_kind,
        "shortened": shortened,
        "short_id": short_id,
        "json": as_json,
        "rate": rate_text,
        "stamp": stamp,
        "number": lambda number: f"{number:,}",
        "counted": lambda number: f"{number:,}{'+' if number >= COUNT_MAX else ''}",
    }
    made.globals |= {"asset": static_files.address, "ago": ago, "count": count, "is_final": is_final}
    return made


def instant(ms: int | None) -> str:
    """Return an instant as people read it, in UTC."""
    return "never" if ms is None else f"{datetime.fromtimestamp(ms / 1000, tz=UTC):%Y-%m-%d %H:%M:%S}"


def machine_instant(ms: int) -> str:
    """Return an instant as a `time` element wants it."""
    return datetime.fromtimestamp(ms / 1000, tz=UTC).isoformat(timespec="milliseconds")


def stamp(text: str) -> str:
    """Return the instant of a log as people read it.

    >>> stamp("2026-11-18T14:54:17.857Z")
    '2026-11-18 14:54:17'
    """
    return text[:19].replace("T", " ")


def state_word(state: str) -> str:
    """Return how people call a state."""
    return STATES.get(state, (state.lower().replace("_", " "), ""))[0]


def state_kind(state: str) -> str:
    """Return what kind of state it is: good, bad, go, wait, warn, off."""
    return STATES.get(state, ("", "off"))[1]


def is_final(state: str) -> bool:
    """Tell whether a job in this state has ended."""
    return JobState(state) in JOB.final


def shortened(text: str | None, chars: int = 120) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join((text or "").split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


def short_id(job_id: str) -> str:
    """Return a long identifier without its middle; two jobs of one moment differ at the end.

    >>> short_id("01a1eb24-f3b7-7f95-8856-4164e22e27ed"), short_id("one")
    ('01a1eb24…4164e22e27ed', 'one')
    """
    return job_id if len(job_id) <= 24 else f"{job_id[:8]}…{job_id[-12:]}"


def as_json(value: object) -> str:
    """Return a value as JSON for an attribute of an element; the template escapes it."""
    return msgspec.json.encode(value).decode()
