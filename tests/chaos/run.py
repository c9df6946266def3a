"""A run: a store, a crew at work, a nemesis at a time, and when the faults are over, the judgement."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tallystick import Tally
from tallystick.cli.commands.books.doctor import examine
from tallystick.clock import SystemClock
from tests.chaos.crew import Crew
from tests.chaos.disk import BadCalls, Disk, DiskFull
from tests.chaos.nemesis import Freeze, KillAll, KillOne, Nemesis, WrongClock
from tests.chaos.oracle import Ended, Evidence, Verdict, judge, told_by
from tests.chaos.oracle_outside import Outside
from tests.chaos.place import SLOTS, Place
from tests.patience import let_time_pass

# How long after the last fault everything that was acknowledged may take to end.
BOUND_SECONDS = 90.0
SHOWN_MAX = 12
_LOOK_AT = (
    "verdict.txt (this), nemesis.log (what was done when), client-*.log (what clients were told), "
    "effects.log (what steps did), bank.log and services.log (what was done outside), "
    "*.err (what processes said), kept/ or kept.sql (the database)"
)
# A nemesis that was called so often and never did anything makes a run invalid.
CALLS_MAX = 4
# Between two faults so much is to be noted by steps, a dozen of them, unless that takes very long.
_WORK_BYTES = 1_200
_WORK_SECONDS = 20.0
# The server of a run keeps nothing for a power cut, which is not tried here; doctor is right to say so.
# A worker that was killed while the disk was full is shown for a minute, with what failed in it then.
_OURS = re.compile(r'fsync is off|"[a-z ]+" fails in \d+ worker')
# What a person said of it was forgotten by a standby, after its client had seen the end.
_UNANSWERED = "is held (IN_DOUBT)"
# Labels whose row says that a job was submitted with it, and that job has not left its own row yet.
_UNDONE = (
    """SELECT label || '/receipt' FROM effects WHERE effect = 'ship'
       EXCEPT SELECT label FROM effects WHERE effect = 'receipt'""",
    """SELECT label FROM effects WHERE effect = 'booked'
       EXCEPT SELECT label FROM effects WHERE effect = 'ship'""",
)
_EFFECTS = "CREATE TABLE effects (label TEXT NOT NULL, effect TEXT NOT NULL, token TEXT NOT NULL)"
_NUMBER = {"sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT", "postgres": "BIGSERIAL PRIMARY KEY"}
_SEATS = "CREATE TABLE seats (n {}, label TEXT NOT NULL, what TEXT NOT NULL, attempt INTEGER NOT NULL)"


@dataclass(slots=True)
class Outcome:
    """What came of a run, in numbers and in sentences."""

    store: str
    seed: str
    folder: Path
    jobs: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    missing: dict[str, str] = field(default_factory=dict)
    verdict: Verdict = field(default_factory=Verdict)

    @property
    def invalid(self) -> str:
        """Say why the run proves nothing, or nothing: faults must have happened, and work been done."""
        idle = [name for name, calls in self.calls.items() if calls >= CALLS_MAX and not self.faults[name]]
        if idle:
            return f"never did anything: {', '.join(idle)}"
        if self.faults.total() < 1 or self.jobs < 10:
            return f"only {self.jobs} jobs and {self.faults.total()} faults"
        return ""

    @property
    def good(self) -> bool:
        """Tell whether the run proves something, and nothing was found."""
        return self.verdict.clean and not self.invalid


class Run:
    """One store for so many seconds."""

    def __init__(
        self, store: str, seconds: float, seed: str, only: Sequence[str] = (), *, relaxed: bool = False
    ) -> None:
        self._store, self._seconds, self._seed = store, seconds, seed
        self._only = only
        self._relaxed = relaxed
        self._clock = SystemClock()
        self._chance = random.Random(seed)
        folder = Path(tempfile.mkdtemp(prefix=f"tallystick-chaos-{store}-"))
        self._place = Place(folder)
        self.outcome = Outcome(store, seed, folder)

    def go(self) -> Outcome:
        """Work, do harm, wait for the end of it all, and judge; the folder stays if something was found."""
        outcome = self.outcome
        with self._ground() as (urls, make_nemeses):
            self._place.prepare(self._seed, urls, relaxed=self._relaxed)
            app = Tally(urls[0])
            with app.transaction() as db:
                db.execute(_EFFECTS)
                db.execute(_SEATS.format(_NUMBER[self._store]))
            app.close()
            crew = Crew(self._place)
            try:
                self._harm(crew, make_nemeses(crew))
                for slot in range(SLOTS):
                    self._place.set_clock(slot, 0)
                self._place.mark("drain")
                crew.drained(BOUND_SECONDS)
                self._await_the_rest(crew, app)
            finally:
                self._place.mark("stop")
                crew.dismiss()
            try:
                outcome.verdict = self._judged(app)
            finally:
                app.close()
        if outcome.good:
            shutil.rmtree(outcome.folder, ignore_errors=True)
        return outcome

    def _wanted(self, name: str) -> bool:
        return not self._only or name in self._only

    @contextmanager
    def _ground(self) -> Iterator[tuple[list[str], object]]:
        if self._store == "sqlite":
            disk = Disk(self._place.folder / "disk")
            try:
                yield [disk.url] * SLOTS, lambda crew: self._on_a_disk(crew, disk)
            finally:
                disk.remove(keep=None if self.outcome.good else self._place.folder / "kept")
            return
        from tests.chaos.server import Site

        site = Site(standby=self._wanted("promote"), synchronous=not self._relaxed)
        try:
            yield site.urls(SLOTS), lambda crew: self._on_a_server(crew, site)
        finally:
            if not self.outcome.good:
                site.keep(self._place.folder / "kept.sql")
            site.remove()

    def _on_a_disk(self, crew: Crew, disk: Disk) -> list[Nemesis]:
        own = [DiskFull(disk, crew), BadCalls(self._place.folder, crew)]
        return [KillOne(crew), KillAll(crew), Freeze(crew), WrongClock(self._place, shared=True), *own]

    def _on_a_server(self, crew: Crew, site: object) -> list[Nemesis]:
        from tests.chaos import server

        named = (
            server.Terminate,
            server.Cancel,
            server.Cut,
            server.HalfOpen,
            server.LostCommit,
            server.Restart,
        )
        own: list[Nemesis] = [make(site) for make in (*named, server.Promote, server.KillBouncer)]
        return [KillOne(crew), KillAll(crew), Freeze(crew), WrongClock(self._place, shared=False), *own]

    def _harm(self, crew: Crew, nemeses: list[Nemesis]) -> None:
        outcome = self.outcome
        able = []
        for nemesis in nemeses:
            if not self._wanted(nemesis.name):
                continue
            if why := nemesis.missing():
                outcome.missing[nemesis.name] = why
            else:
                able.append(nemesis)
        turn: list[Nemesis] = []
        self._breathe(crew, 0.0)
        until = self._clock.monotonic() + self._seconds
        while self._clock.monotonic() < until:
            # All of them in an order of chance, and then again: none is forgotten for long.
            turn = turn or self._chance.sample(able, len(able))
            nemesis = turn.pop()
            self._place.note("nemesis.log", begins=nemesis.name)
            begun = self._clock.monotonic()
            fired = nemesis.strike(self._chance)
            lasted = self._clock.monotonic() - begun
            self._place.note("nemesis.log", ends=nemesis.name, fired=fired)
            outcome.calls[nemesis.name] += 1
            outcome.faults[nemesis.name] += fired
            self._breathe(crew, self._chance.uniform(0.2, 1.2) + lasted / 2)

    def _breathe(self, crew: Crew, seconds: float) -> None:
        """Wait for a while, and until some work was done: a nemesis for people who sleep proves nothing."""
        work = self._place.folder / "effects.log"
        enough = _size(work) + _WORK_BYTES
        now = self._clock.monotonic()
        until, at_last = now + seconds, now + _WORK_SECONDS
        while now < until or (_size(work) < enough and now < at_last):
            crew.heal()
            let_time_pass(0.05)
            now = self._clock.monotonic()

    def _await_the_rest(self, crew: Crew, app: Tally) -> None:
        """Wait for jobs that were submitted in a transaction and that no client waits for."""
        until = self._clock.monotonic() + BOUND_SECONDS / 3
        while self._clock.monotonic() < until:
            with app.connect() as db:
                undone = [row for query in _UNDONE for row in db.execute(query)]
            if not undone:
                break
            crew.heal(draining=True)
            let_time_pass(0.1)

    def _judged(self, app: Tally) -> Verdict:
        told, surprises = told_by(self._place.notes("client-*.log"))
        calls: dict[tuple[str, str], set[str]] = defaultdict(set)
        for note in self._place.notes("effects.log"):
            calls[note["label"], note["step"]].add(note["token"])
        with app.connect() as db:
            rows = list(db.execute("SELECT label, effect, token FROM effects"))
            seats = list(db.execute("SELECT label, what, attempt FROM seats ORDER BY n"))
        # Ticks go by the clock of the server, or by that of the machine, which a nemesis may set.
        exact = self._store == "postgres" or not self.outcome.faults["clock"]
        noted = (self._place.notes(name) for name in ("bank.log", "services.log"))
        outside = Outside.read(*noted, seats, exact=exact)
        store = app.runtime().store
        jobs: dict[str, Ended | None] = {}
        for about in told.values():
            self.outcome.jobs += bool(about.jobs)
            for job_id in [job_id for ids in about.jobs.values() for job_id in ids]:
                row = store.job(job_id)
                value = None if row is None or row.result is None else row.result.strip('"')
                jobs[job_id] = None if row is None else Ended(row.state, value)
        verdict = judge(Evidence(told, calls, rows, jobs, surprises, outside), relaxed=self._relaxed)
        problems = [text for text in examine(store, None).problems if not _OURS.match(text)]
        if self._relaxed:
            problems = [text for text in problems if _UNANSWERED not in text]
        verdict.findings += problems
        return verdict


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def report(outcome: Outcome) -> None:
    """Print what was done to one store, and if something was found, where to look."""
    lines = [f"{name} cannot be had here: {why}" for name, why in outcome.missing.items()]
    struck = ", ".join(f"{name} {count}" for name, count in sorted(outcome.faults.items()))
    lines.append(f"{outcome.jobs} jobs; faults: {struck}")
    verdict = outcome.verdict
    if verdict.forgiven:
        lines.append(f"{verdict.forgiven} acknowledged jobs forgotten by an asynchronous standby")
    for name in ("lost", "doubled", "stuck", "findings"):
        found = getattr(verdict, name)
        lines += [f"{name}: {text}" for text in found[:SHOWN_MAX]]
        if len(found) > SHOWN_MAX:
            lines.append(f"{name}: and {len(found) - SHOWN_MAX} more")
    if outcome.invalid:
        lines.append(f"INVALID: {outcome.invalid}")
    if not outcome.good:
        lines.append(f"seed {outcome.seed}; everything is kept in {outcome.folder}: {_LOOK_AT}")
    print("\n".join(f"{outcome.store}: {line}" for line in lines))
    if not outcome.good:
        (outcome.folder / "verdict.txt").write_text("\n".join(lines) + "\n", "utf-8")


def last_line(outcomes: Sequence[Outcome]) -> str:
    """Return the numbers of all stores together."""
    names = ("lost", "doubled", "stuck", "findings")
    sums = {name: sum(len(getattr(outcome.verdict, name)) for outcome in outcomes) for name in names}
    jobs = sum(outcome.jobs for outcome in outcomes)
    faults = sum(outcome.faults.total() for outcome in outcomes)
    found = " ".join(f"{name}={count}" for name, count in sums.items())
    return f"chaos: jobs={jobs} faults={faults} {found}"
