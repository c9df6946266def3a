"""`tally top`: a store at work, drawn again every few seconds: queues, ends, workers, slow and stuck jobs."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

import click
import msgspec

from tallystick.cli.commands.work.workers import trouble
from tallystick.cli.place import looking, store_options
from tallystick.cli.render.output import Ink, aligned, arriving, printable, show, show_data
from tallystick.cli.render.wording import ago, count, instant, short, span
from tallystick.core.audit.book import Book
from tallystick.core.durations import duration_ms
from tallystick.core.queues.rows import Limits, Queue
from tallystick.core.watching.rows import Backlog, EndedCount, RunningJob, WorkerRow
from tallystick.defaults import TOP_EVERY
from tallystick.store.api import Queues, Store
from tallystick.store.inspection import WorkerLeases, watched

_ROWS_MAX: Final = 10
_WORKERS_MAX: Final = 100
_LEASES_MAX: Final = 1_000
_QUEUES_MAX: Final = 1_000
_MINUTE_MS: Final = 60_000

# A screen of its own without a cursor, and the one from before. A frame begins at the top left.
_BEGIN: Final = "\x1b[?1049h\x1b[?25l"
_END: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"

_EXAMPLES = """\b
Examples:
  tally top shop
  tally top --url postgresql://localhost/shop --every 5s
  tally top shop --once --json
"""


class StoreSeen(NamedTuple):
    """What one look brought."""

    backlog: Backlog
    limited: list[tuple[Queue, int]]
    ended: list[EndedCount]
    workers: list[WorkerRow]
    running: list[RunningJob]
    leases: list[WorkerLeases]
    held: list[Book]


@click.command("top", epilog=_EXAMPLES)
@store_options
@click.option("--once", is_flag=True, help="Print one look and end; so it is also where no terminal is.")
@click.option("--every", default=TOP_EVERY, show_default=True, metavar="DURATION", help="How often to look.")
def command(*, app: str | None, url: str | None, as_json: bool, once: bool, every: str) -> None:
    """Watch a store: queues, ends per minute, workers, and the jobs that run longest or are stuck.

    Ctrl-C ends it. The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    pause = duration_ms(every) / 1000
    with looking(app, url) as store:
        if as_json:
            show_data(as_data(look(store)))
        elif once or not sys.stdout.isatty():
            show("\n".join(drawn(look(store), Ink.for_stream(sys.stdout))))
        else:
            _watch(store, pause)


def _watch(store: Store, pause: float) -> None:
    ink, waiting = Ink.for_stream(sys.stdout), threading.Event()
    with _screen():
        while True:
            _draw(drawn(look(store), ink))
            waiting.wait(pause)


@contextmanager
def _screen() -> Iterator[None]:
    """Have a screen of our own, and give back the one from before, whatever ends us."""
    _write(_BEGIN)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        _write(_END)


def _draw(lines: list[str]) -> None:
    """Write a frame over the one before; what does not fit on the screen is left out."""
    height = shutil.get_terminal_size().lines - 1
    _write(_HOME + "\r\n".join(f"{line}{_CLEAR_LINE}" for line in lines[:height]) + _CLEAR_BELOW)


def _write(text: str) -> None:
    with arriving():
        sys.stdout.write(text)
        sys.stdout.flush()


def look(store: Store) -> StoreSeen:
    """Look once at a store; every part of it is bounded."""
    seen, inspection = watched(store), store.inspect()
    backlog = seen.backlog()
    limited = []
    if isinstance(store, Queues):
        limited = [
            (queue, len(store.taken_slots(queue.queue)))
            for queue in store.queues(after="", limit=_QUEUES_MAX)
        ]
    return StoreSeen(
        backlog,
        limited,
        seen.ended(backlog.now - _MINUTE_MS),
        seen.workers(_WORKERS_MAX),
        seen.running(_ROWS_MAX),
        inspection.leases(_LEASES_MAX),
        inspection.held(_ROWS_MAX),
    )


def drawn(seen: StoreSeen, ink: Ink) -> list[str]:
    """Return one look for people."""
    backlog = seen.backlog
    ended = ", ".join(f"{each.ended:,} {each.state}" for each in _last_minute(seen)) or "none"
    live = sum(worker.is_live(backlog.now) for worker in seen.workers)
    head = f"{instant(backlog.now)}  {count(live, 'worker')}  ended in the last whole minute: {ended}"
    return [
        ink(head, "bold"),
        *_part("QUEUES", _queues(seen), "nothing waits", ink),
        *_part("WORKERS", _workers(seen), "no workers", ink),
        *_part("RUNNING LONGEST", _running(seen), "nothing runs", ink),
        *_part("STUCK", _stuck(seen), "nothing is stuck", ink),
    ]


def _part(title: str, rows: list[tuple[str, ...]], none: str, ink: Ink) -> list[str]:
    return ["", ink(title, "dim"), *(aligned(rows) if rows else [none])]


def _last_minute(seen: StoreSeen) -> list[EndedCount]:
    """Return the ends of the last whole minute: workers write them once a minute."""
    minute = seen.backlog.now // _MINUTE_MS - 1
    return [each for each in seen.ended if each.minute == minute]


def _queues(seen: StoreSeen) -> list[tuple[str, ...]]:
    backlog = seen.backlog
    waiting = {queue.queue: queue for queue in backlog.queues}
    limited = {queue.queue: (queue, taken) for queue, taken in seen.limited}
    rows: list[tuple[str, ...]] = []
    for name in sorted({*waiting, *limited}):
        depth = waiting.get(name)
        oldest_at = None if depth is None else depth.oldest_at
        rows.append(
            (
                name,
                f"{0 if depth is None else depth.depth:,} due",
                "" if oldest_at is None else f"oldest {ago(oldest_at, backlog.now)}",
                *(_limits(*limited[name]) if name in limited else ("", "")),
            )
        )
    return rows


def _limits(queue: Queue, taken: int) -> tuple[str, str]:
    limits = queue.limits
    most = "" if limits.concurrency is None else f" of {limits.concurrency}"
    told = [f"{taken}{most} running"] if most or taken else []
    told += [] if limits.rate is None else [f"at most {limits.rate}"]
    return ", ".join(told), "" if queue.paused_by is None else f"paused by {queue.paused_by}"


def _workers(seen: StoreSeen) -> list[tuple[str, ...]]:
    now = seen.backlog.now
    # Its own report is up to twenty seconds old; its leases are those of now.
    running = {each.owner: each.held for each in seen.leases}
    return [
        (
            f"{worker.host}/{worker.pid}",
            f"version {worker.version}",
            f"{running.get(worker.owner, 0)} of {worker.slots} running",
            ", ".join(json.loads(worker.queues)),
            f"began {ago(worker.started_at, now)}",
            trouble(worker, now),
        )
        for worker in seen.workers
    ]


def _running(seen: StoreSeen) -> list[tuple[str, ...]]:
    now = seen.backlog.now
    known = {worker.owner: f"{worker.host}/{worker.pid}" for worker in seen.workers}
    return [
        (
            job.job_id,
            job.handler,
            job.queue,
            f"for {span(max(0, now - job.started_at))}",
            known.get(job.owner, job.owner),
        )
        for job in seen.running
    ]


def _stuck(seen: StoreSeen) -> list[tuple[str, ...]]:
    lost = [
        (each.job_id or "", "lease ran out", f"{count(each.lost, 'lease')} of {each.owner}")
        for each in seen.leases
        if each.lost
    ]
    held = [(book.job_id, f"held {book.hold}", short(book.hold_reason)) for book in seen.held]
    return [*lost, *held]


def as_data(seen: StoreSeen) -> dict[str, object]:
    """Return one look for programs."""
    backlog = seen.backlog
    return {
        "now": instant(backlog.now),
        "ended_last_minute": {each.state: each.ended for each in _last_minute(seen)},
        "queues": [
            {"queue": each.queue, "due": each.depth, "oldest_at": instant(each.oldest_at)}
            for each in backlog.queues
        ],
        "limits": [
            {
                "queue": queue.queue,
                "running": taken,
                "paused_by": queue.paused_by,
                **_of_interest(queue.limits),
            }
            for queue, taken in seen.limited
        ],
        "workers": [
            {**worker._asdict(), "queues": json.loads(worker.queues), "live": worker.is_live(backlog.now)}
            for worker in seen.workers
        ],
        "running": [job._asdict() for job in seen.running],
        "lost": [each._asdict() for each in seen.leases if each.lost],
        "held": [
            {"job_id": book.job_id, "hold": book.hold, "why": printable(book.hold_reason or "")}
            for book in seen.held
        ],
    }


def _of_interest(limits: Limits) -> dict[str, object]:
    usual = Limits()
    fields = msgspec.structs.asdict(limits)
    return {name: value for name, value in fields.items() if value != getattr(usual, name)}
