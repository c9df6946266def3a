"""Overview, queues and workers: what runs, what waits, and since when; for operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tallystick.app.scheduling.queues import QueueView
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.queues.rows import LIMIT_NAMES, Limits
from tallystick.core.remote.keys import listed
from tallystick.core.watching.acts import About
from tallystick.core.watching.rows import Backlog, QueueDepth, WorkerRow
from tallystick.core.watching.searching import COUNT_MAX
from tallystick.dashboard.answers import Answer, Go, HtmlPage
from tallystick.dashboard.shown.rates import Rates, rates_of, since_ms
from tallystick.dashboard.visits import Visit, quoted
from tallystick.errors import BadInput
from tallystick.store.api import Schedules, searched
from tallystick.store.inspection import watched

HOURS: Final = {"1h": 1, "6h": 6, "24h": 24, "7d": 168}
POINTS: Final = 120
_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
_SHOWN: Final = 100
_WORKERS: Final = 1_000
_DIGITS: Final = 10
# Limits that are one of a few words, and what each word means.
_WORDS: Final[Mapping[str, Mapping[str, object]]] = {
    "hold_slots": {"true": True, "false": False},
    "order": {"priority": "priority", "fifo": "fifo"},
}
_ENDS: Final = tuple(state.value for state in JobState if state in JOB.final)


class QueueLine(NamedTuple):
    """One queue: what waits in it and what runs, and its limits if it has any."""

    name: str
    depth: int
    oldest_at: int | None
    running: str
    # How many of its jobs end per minute, as far as that is known.
    rate: str
    view: QueueView | None
    limits: str


def overview(visit: Visit) -> Answer:
    """Show the whole store on one page."""
    seen = watched(visit.store)
    backlog = seen.backlog(COUNT_MAX)
    period = visit.asked("period") or "1h"
    if period not in HOURS:
        raise BadInput(f"{period!r} is not one of {', '.join(HOURS)}")
    workers = seen.workers(_WORKERS)
    live = [worker for worker in workers if worker.is_live(backlog.now)]
    rates = _rates(visit, workers, backlog.now)
    lag = visit.store.inspect().outbox_lag(None)
    series, ended = _ended(visit, backlog.now, HOURS[period])
    due = _schedules(visit)
    return HtmlPage(
        "overview.html",
        {
            "title": "Overview",
            "backlog": backlog,
            "queues": queues_of(visit, backlog, rates),
            "rates": rates,
            "workers": live,
            "slots": sum(worker.slots for worker in live),
            "running": sum(worker.running for worker in live),
            "ended": ended,
            "series": series,
            "period": period,
            "periods": list(HOURS),
            "held": sum(backlog.held.values()),
            "in_doubt": backlog.held.get("IN_DOUBT", 0),
            "dead_directives": sum(each.dead for each in lag),
            "schedules": due,
            "store_now": backlog.now,
        },
    )


def queues(visit: Visit) -> Answer:
    """Show all queues that have limits or jobs that wait or run."""
    seen = watched(visit.store)
    backlog = seen.backlog(COUNT_MAX)
    shown = queues_of(visit, backlog, _rates(visit, seen.workers(_WORKERS), backlog.now))
    shows = {"title": "Queues", "queues": shown, "store_now": backlog.now, "names": LIMIT_NAMES}
    return HtmlPage("queues.html", {**shows, "did": visit.acts(About.QUEUE)})


def workers(visit: Visit) -> Answer:
    """Show the workers that were heard of within a day, and the leases of each."""
    found, now = watched(visit.store).workers(_SHOWN), visit.store.now()
    leases = {each.owner: each for each in visit.store.inspect().leases(_SHOWN)}
    shown = [(each, listed(each.queues), leases.get(each.owner)) for each in found]
    known = {each.owner for each in found}
    lost = [each for owner, each in leases.items() if owner not in known]
    rates = _rates(visit, found, now)
    shows = {"title": "Workers", "workers": shown, "lost": lost, "store_now": now, "rates": rates}
    return HtmlPage("workers.html", shows)


def act_on_queue(visit: Visit) -> Answer:
    """Pause or resume a queue, or set limits of it."""
    name, verb = visit.part("queue"), visit.part("verb")
    queue = visit.app.queues
    if verb == "pause":
        queue.pause(name, by=visit.who)
        said = f"The queue {name} is paused: no job of it is claimed."
    elif verb == "resume":
        queue.resume(name, by=visit.who)
        said = f"Jobs of the queue {name} may be claimed again."
    elif verb == "reset":
        queue.reset(name, by=visit.who)
        said = f"What programs declare about the queue {name} counts again."
    elif verb == "set":
        limit, value = visit.sent("limit"), visit.sent("value").strip()
        queue.set(name, by=visit.who, **{limit: _limit(limit, value)})
        said = f"The queue {name} has {limit}={value or 'none'} now."
    else:
        raise BadInput(f"{verb!r} is not one of pause, resume, reset, set")
    job_id = visit.sent("job", default="")
    return Go(visit.at(f"jobs/{quoted(job_id)}" if job_id else "queues"), said)


def queues_of(visit: Visit, backlog: Backlog, rates: Rates) -> list[QueueLine]:
    """Return every queue with limits or with jobs that wait or run, those with the most to do first."""
    views = {view.name: view for view in visit.app.queues.all()}
    depths = {each.queue: each for each in backlog.queues}
    runs = visit.store.inspect().running_in_queues(COUNT_MAX)
    more = "+" if sum(runs.values()) >= COUNT_MAX else ""
    shown = []
    for name in dict.fromkeys([*depths, *views, *runs]):
        view = views.get(name)
        # Where jobs keep their slots while they wait, those slots are what its limit counts.
        number = view.running if view and view.limits.hold_slots else runs.get(name, 0)
        depth = depths.get(name, QueueDepth(name, 0, None))
        limits = "" if view is None else ", ".join(_limits(view))
        rate = rates.of_queues.get(name, "0")
        shown.append(QueueLine(name, depth.depth, depth.oldest_at, f"{number:,}{more}", rate, view, limits))
    return sorted(shown, key=lambda each: (-each.depth, each.name))


def _rates(visit: Visit, workers: Sequence[WorkerRow], now: int) -> Rates:
    return rates_of(searched(visit.store).ended_of_workers(since_ms(now)), workers, now)


def _limits(view: QueueView) -> Iterator[str]:
    """Give the limits of a queue that are not the usual ones, and those that a person has set."""
    usual = Limits()
    for name in LIMIT_NAMES:
        value = getattr(view.limits, name)
        if value != getattr(usual, name) or name in view.chosen:
            said = (
                name if value is True else f"{name} {str(value).lower() if value in (None, False) else value}"
            )
            yield f"{said}{' (by hand)' if name in view.chosen else ''}"


def _ended(visit: Visit, now: int, hours: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Return how many jobs have ended, by state: as a series for a chart, and in all."""
    since = now - hours * _HOUR_MS
    minutes = max(1, hours * 60 // POINTS)
    width = minutes * _MINUTE_MS
    points: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    totals: dict[str, int] = dict.fromkeys(_ENDS, 0)
    for minute, state, number in watched(visit.store).ended(since):
        points[minute * _MINUTE_MS // width][state] += number
        totals[state] = totals.get(state, 0) + number
    places = range(since // width, now // width + 2)
    lines = [[points[place][state] if place in points else 0 for place in places] for state in _ENDS]
    times = [place * width // 1000 for place in places]
    return {"times": times, "names": list(_ENDS), "lines": lines, "minutes": minutes}, totals


def _schedules(visit: Visit) -> list[Any]:
    if not isinstance(visit.store, Schedules):
        return []
    found = [each for each in visit.store.schedules(after="", limit=_SHOWN) if each.next_at is not None]
    return sorted(found, key=lambda each: each.next_at or 0)[:5]


def _limit(name: str, text: str) -> object:
    """Return the value of a limit as a person writes it; nothing, or `none`, is no limit."""
    if name not in LIMIT_NAMES:
        raise BadInput(f"a queue has no limit {name!r}: it has {', '.join(LIMIT_NAMES)}")
    is_none = text.lower() in ("", "none")
    if name in _WORDS:
        if text.lower() not in _WORDS[name]:
            raise BadInput(f"{name} is {' or '.join(_WORDS[name])}, not {text!r}")
        return _WORDS[name][text.lower()]
    if name in ("rate", "key_rate"):
        return None if is_none else text
    if is_none and name != "burst":
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < _DIGITS):
        raise BadInput(
            f"{name} is a whole number from 1 on{'' if name == 'burst' else ', or none'}, not {text!r}"
        )
    return int(text)
