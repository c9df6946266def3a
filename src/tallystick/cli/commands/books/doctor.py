"""`tally doctor`: whether the store is well, whether any job is stuck, and whether the books balance.

It only looks. What it finds it says in sentences that end with what to do.
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

import click

from tallystick.app.asking.unanswered import Unanswered, forgotten_effects, unanswered_effects
from tallystick.cli.commands.books.standing_still import declared_schedules, held_schedules, standing_still
from tallystick.cli.commands.books.undone import Undone, look
from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.render.output import FINDINGS, Ink, printable, show, show_data
from tallystick.cli.render.wording import ago, count, instant, short, size, span
from tallystick.clock import SystemClock
from tallystick.core.audit.book import Book
from tallystick.core.limits import SWEEP_ROWS_MAX
from tallystick.core.verbs.holds import Hold
from tallystick.core.verbs.hooks import hook_of
from tallystick.engine.audit import Audit, audit
from tallystick.store.api import OwedHook, Store
from tallystick.store.inspection import Health, StaleReports, WorkerLeases

_HELD_SHOWN: Final = 20
_NEWEST: Final = 10_000
# So much time the sample of the books may take; a command that takes minutes is not used.
_SAMPLE_SECONDS: Final = 10
# A sweep comes by every five seconds at least, so a lease that ran out so long ago is not swept.
_SILENT_MS: Final = 60_000

_EXAMPLES = """\b
Examples:
  tally doctor shop
  tally doctor --url sqlite:///shop.db --all
  tally doctor shop --json
"""


class Examination(NamedTuple):
    """Everything that was looked at."""

    health: Health
    counts: dict[str, int]
    undone: Undone
    held: list[Book]
    stale: StaleReports
    books: Audit
    leases: list[WorkerLeases]
    hooks: list[OwedHook]
    now: int
    # What stands still because a person or the clock wants it: sentences, made where the rows were read.
    stands: tuple[str, ...] = ()
    # Effects in doubt for which no job is held.
    unanswered: tuple[Unanswered, ...] = ()
    # Sentences about schedules that are held.
    schedules: tuple[str, ...] = ()
    # And about effects at rest to which the function of their job does not come back.
    forgotten: tuple[str, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Return what a person should see to."""
        found = [*self.health.problems, *self.undone.problems, *self._unheard()]
        stuck = [book for book in self.held if book.hold != Hold.PAUSED]
        for book in stuck[:_HELD_SHOWN]:
            why = short((book.hold_reason or "").split("\n")[0], 100)
            found.append(f"job {book.job_id} is held ({book.hold}): {why}")
        if stuck and len(self.held) > _HELD_SHOWN:
            found.append("there are more held jobs")
        found += self.schedules
        found += self._unanswered()
        found += self.forgotten[:_HELD_SHOWN]
        if len(self.forgotten) > _HELD_SHOWN:
            found.append("there are more effects to which their function does not come back")
        found += self._uncalled()
        found += [f"job {job_id}: {check}: {message}" for job_id, check, message in self.books.findings]
        if self.books.findings_total > len(self.books.findings):
            found.append(f"the books have {self.books.findings_total:,} findings; the first are shown")
        return found

    def _unanswered(self) -> list[str]:
        """Name effects that wait for a person, and for which no job is held."""
        found = []
        for each in self.unanswered[:_HELD_SHOWN]:
            says = short(each.says, 300)
            stop = "" if says.endswith("?") else "."
            about = f"job {each.row.job_id} ({each.job_state or 'gone'}): {says}{stop}"
            found.append(f"{about} Find out and say so: {each.command}")
        if len(self.unanswered) > _HELD_SHOWN:
            found.append("there are more effects that wait for a person")
        return found

    def _uncalled(self) -> list[str]:
        """Name jobs whose hook raises, and those whose hook no worker calls."""
        found = []
        for owed in self.hooks[:_HELD_SHOWN]:
            hook = f"job {owed.job_id}: its hook on_{hook_of(owed.state, owed.hold, owed.hook_told)}"
            if owed.hook_error is not None:
                raised = short(owed.hook_error.split("\n")[0], 100)
                found.append(f"{hook} raised {count(owed.hook_tries, 'time')}, and is called again: {raised}")
            elif self.now - owed.hook_due > _SILENT_MS:
                since = span(self.now - owed.hook_due)
                found.append(f"{hook} is owed for {since}; start a worker of {owed.handler} that declares it")
        if found and len(self.hooks) > _HELD_SHOWN:
            found.append("there are more jobs whose hook was not called")
        return found

    def _unheard(self) -> list[str]:
        """Name workers that have been silent for long, and a sweep that should have taken their jobs back."""
        silent = [
            worker
            for worker in self.leases
            if worker.lost and (worker.overdue_ms is None or worker.overdue_ms > _SILENT_MS)
        ]
        found = []
        for worker in silent[:_HELD_SHOWN]:
            since = "before the last boot" if worker.overdue_ms is None else f"{span(worker.overdue_ms)} ago"
            found.append(
                f"worker {short(worker.owner, 12)} has not been heard of since a lease of it ran out {since} "
                f"({count(worker.lost, 'job')}, one is {worker.job_id}); if it still runs, it is stopped or "
                "cut off: end it"
            )
        if silent and any(worker.held for worker in self.leases):
            found.append(
                "other workers are at work and do not take these jobs back: their sweep fails; "
                'see why in their logs ("worker: reclaim failed"), and mend or hold the job that they name'
            )
        return found

    @property
    def warnings(self) -> list[str]:
        """Return what is worth knowing and does no harm yet."""
        paused = [
            f"job {book.job_id} is paused; tally resume lets it go on"
            for book in self.held[:_HELD_SHOWN]
            if book.hold == Hold.PAUSED
        ]
        long_ones = [
            f"job {job_id} has {records:,} records; end it and start again, or split it into smaller jobs"
            for job_id, records in self.books.long_histories
        ]
        unnamed = self.books.long_total - len(long_ones)
        if unnamed:
            long_ones.append(f"{count(unnamed, 'more job')} {'has' if unnamed == 1 else 'have'} as many")
        return [*self.health.warnings, *self.stands, *paused, *long_ones]


@click.command("doctor", epilog=_EXAMPLES)
@click.argument("app", required=False)
@click.option(
    "--jobs",
    "jobs_max",
    metavar="N",
    type=click.IntRange(0),
    default=_NEWEST,
    show_default=True,
    help=f"Check the books of this many of the newest jobs, for {_SAMPLE_SECONDS} seconds at most.",
)
@click.option(
    "--all", "check_all", is_flag=True, help="Check the books of all jobs, however long that takes."
)
@url_option
@json_option
def command(*, app: str | None, jobs_max: int, check_all: bool, url: str | None, as_json: bool) -> int:
    """Examine a store and check the books of its newest jobs; `tally verify` checks all books.

    The store is that of APP, of --url, or of the variable TALLY_URL. The exit code is 0 when all is well and
    6 when a person should look: a writer that is stopped or holds on, leases and deadlines that are over and
    that no worker acts on, workers that were not heard of, roles of workers that fail, held jobs and
    schedules, effects in doubt for which no job is held, or to which their function does not come back, hooks
    that raise, books that do not balance. Warnings do not change it.
    """
    with looking(app, url) as store:
        seen = examine(store, None if check_all else jobs_max, declared_schedules(app))
    problems = seen.problems
    if as_json:
        show_data(as_data(seen))
    else:
        show("\n".join(drawn(seen, Ink.for_stream(sys.stdout))))
    return FINDINGS if problems else 0


def examine(store: Store, jobs_max: int | None, schedules: frozenset[str] | None = None) -> Examination:
    """Look at everything, once; `schedules` are those that the program declares, if it is known."""
    inspection = store.inspect()
    clock = SystemClock()
    until = None if jobs_max is None else clock.monotonic() + _SAMPLE_SECONDS
    terminal = sys.stderr.isatty()

    def on_page(done: Audit) -> None:
        if terminal:
            sys.stderr.write(f"\r\x1b[Kchecked {count(done.jobs, 'job')}")
            sys.stderr.flush()

    seen = Examination(
        inspection.health(jobs_max),
        store.counts(),
        look(store),
        inspection.held(_HELD_SHOWN + 1),
        inspection.stale_reports(),
        audit(
            store,
            jobs_max=jobs_max,
            on_page=on_page,
            is_enough=lambda: until is not None and clock.monotonic() >= until,
        ),
        inspection.leases(SWEEP_ROWS_MAX),
        inspection.hooks(_HELD_SHOWN + 1),
        clock.wall_ms(),
        standing_still(store, schedules),
        tuple(unanswered_effects(store, None, _HELD_SHOWN + 1)),
        held_schedules(store),
        tuple(forgotten_effects(store, _HELD_SHOWN + 1)),
    )
    if terminal:
        sys.stderr.write("\r\x1b[K")
    return seen


def as_data(seen: Examination) -> dict[str, object]:
    """Return the examination for programs."""
    return {
        "ok": not seen.problems,
        "problems": seen.problems,
        "warnings": seen.warnings,
        "store": seen.health.facts,
        "jobs": seen.counts,
        "expired_leases": seen.undone.expired,
        "overdue_jobs": seen.undone.overdue,
        "overdue_remote_steps": seen.undone.remote_steps,
        "workers": [worker._asdict() for worker in seen.leases],
        "held": [
            {"job_id": book.job_id, "hold": book.hold, "reason": book.hold_reason} for book in seen.held
        ],
        "unanswered_effects": [
            {
                "job_id": each.row.job_id,
                "job_state": each.job_state,
                "effect": each.row.effect,
                "key": each.row.key,
                "says": each.says,
                "command": each.command,
            }
            for each in seen.unanswered
        ],
        "hooks": [owed._asdict() for owed in seen.hooks],
        "stale_reports": {"total": seen.stale.total, "last_at": instant(seen.stale.last_at)},
        "books": {
            "jobs": seen.books.jobs,
            "facts": seen.books.facts,
            "of_jobs": sum(seen.counts.values()),
            "findings_total": seen.books.findings_total,
            "findings": [finding._asdict() for finding in seen.books.findings],
            "long_histories_total": seen.books.long_total,
            "long_histories": [{"job_id": job_id, "records": n} for job_id, n in seen.books.long_histories],
        },
    }


def drawn(seen: Examination, ink: Ink) -> list[str]:
    """Return the examination for people."""
    now = SystemClock().wall_ms()
    stale = str(seen.stale.total)
    if seen.stale.last_at is not None:
        stale = (
            f"{seen.stale.total:,}, the last {ago(seen.stale.last_at, now)} (refused, nothing was changed)"
        )
    rows = [
        *_store_rows(seen.health.facts),
        ("jobs", _counted(seen)),
        ("stale reports", stale),
        ("books", _sampled(seen)),
    ]
    lines = [f"{ink(name.ljust(14), 'cyan')}  {printable(text)}" for name, text in rows]
    lines += [f"{ink('warning', 'yellow')}: {printable(text)}" for text in seen.warnings]
    problems = seen.problems
    lines += [f"{ink('problem', 'bold', 'red')}: {printable(text)}" for text in problems]
    verdict = (
        ink(count(len(problems), "problem"), "bold", "red")
        if problems
        else ink("all is well", "bold", "green")
    )
    return [*lines, verdict]


def _counted(seen: Examination) -> str:
    """Say how many jobs stand in each state, if the store counts them."""
    if not seen.counts and seen.books.jobs:
        return "not counted here"
    return ", ".join(f"{number:,} {state}" for state, number in sorted(seen.counts.items())) or "none"


def _sampled(seen: Examination) -> str:
    """Say how many books were checked, and that there are more."""
    said = f"{count(seen.books.jobs, 'job')} and {count(seen.books.facts, 'fact')} checked"
    total = sum(seen.counts.values())
    if seen.books.jobs >= total:
        return said
    return f"{said}, the newest of {total:,} jobs; tally verify checks all"


def _store_rows(facts: dict[str, object]) -> list[tuple[str, str]]:
    rows = []
    for name, value in facts.items():
        if value is None or name == "writer_state":
            continue
        text = size(value) if name.endswith("_bytes") and isinstance(value, int) else str(value)
        if name == "writer_pid" and facts.get("writer_state"):
            text = f"{text} ({facts['writer_state']})"
        rows.append((name.removesuffix("_bytes").replace("_", " "), text))
    return rows
