"""Kill a workflow at every commit, and see that it ends as if nothing had happened.

    def test_checkout_survives_every_crash():
        crash_everywhere(checkout, 42)

runs `checkout(42)` once undisturbed. Then it runs it again for every commit of that run, on a fresh store
each time, in a process that is killed (SIGKILL) before or after that commit; another process takes over. Each
time the job must end with the same result, and `tally verify` must find nothing. Time is virtual: leases,
retries, sleeps and timeouts pass at once.

The processes are forks of the test's own, so workflows may be declared in the test itself. What their
functions do to memory is gone with them: `note` writes a line that outlives the kill.
"""

from __future__ import annotations

import importlib
import itertools
import mmap
import os
import struct
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from tallystick import crash
from tallystick.app.api.job import Job
from tallystick.app.api.tally import Tally
from tallystick.app.api.workflows import AsyncWorkflow, Workflow
from tallystick.clock import VirtualClock
from tallystick.core.verbs.holds import Hold
from tallystick.defaults import QUEUE
from tallystick.errors import BadInput, Misuse
from tallystick.testing.forking import TookTooLong, forked
from tallystick.testing.stepping import SteppedWorker, ask_effects, cancel_overdue, check_store, reclaim

__all__ = ["CrashReport", "CrashTrial", "crash_everywhere", "note"]

Signals: TypeAlias = Iterable[tuple[str, object]]

# The commits of each store: our own, and those of transactions of the user.
_COMMITS: Final = {"sqlite": ("commit", "transaction"), "postgres": ("commit", "tx_commit")}
_SIDES: Final = ("before", "after")
_DEATHS_MAX: Final = 2
# How far time is moved when no job is due: a little at first, and ever further.
_PACE_MS: Final = 1_000
_PACE_MS_MAX: Final = 86_400_000
_PATIENCE_MS: Final = 400 * _PACE_MS_MAX
_EVER: Final = -1
_INSTANTS: Final = struct.Struct("=qq")
_FINDINGS_SHOWN: Final = 3
_encode: Final = msgspec.json.Encoder().encode

_notes: Path | None = None


def note(text: str) -> None:
    """Write a line that outlives the death of this process; `check` finds it in the notes of its trial.

    A fake of an outside world notes here what it was asked to do. Elsewhere it does nothing.
    """
    if _notes is not None:
        line = text.replace("\n", " ") + "\n"
        with _notes.open("ab", buffering=0) as file:
            file.write(line.encode())


class CrashTrial(NamedTuple):
    """What `check` gets: the job at its end, where its workers were killed, and all notes in their order."""

    job: Job[Any]
    killed_at: tuple[str, ...]
    notes: list[str]


class CrashReport(NamedTuple):
    """What came of it: the places at which workers were killed, and how often."""

    workflow: str
    kills: int
    places: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        """Return it as one line."""
        return f"{self.workflow}: {self.kills} kills in {len(self.places)} trials, all survived"


class _JobStanding(msgspec.Struct, frozen=True):
    """How a job stands when no process has anything more to do for it."""

    state: str = "unknown"
    hold: str | None = None
    result: str | None = None
    error: str | None = None
    why: str = ""


class _Word(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a process tells the test: first which job, at last how it stands, and what is wrong."""

    job_id: str | None = None
    end: _JobStanding = _JobStanding()
    wrong: str | None = None


class _TrialOutcome(NamedTuple):
    """What came of a trial: where its workers were killed, how its job stands, and what is wrong."""

    store: str
    killed_at: tuple[str, ...]
    end: _JobStanding
    wrong: str | None


class _SharedClock(VirtualClock):
    """A virtual clock that goes on in the next process where this one left it."""

    def __init__(self, memory: mmap.mmap) -> None:
        """Go on from what the memory holds."""
        wall_ms, boot_ms = _INSTANTS.unpack_from(memory)
        super().__init__(wall_ms, boot_ms)
        self._memory = memory

    def advance(self, ms: int) -> None:
        """Let time pass here and in the processes to come."""
        super().advance(ms)
        _INSTANTS.pack_into(self._memory, 0, self.wall_ms(), self.boot_ms())


def crash_everywhere(
    workflow: Workflow[..., Any] | AsyncWorkflow[..., Any],
    *args: object,
    signals: Signals = (),
    prepare: Callable[[], object] | None = None,
    check: Callable[[CrashTrial], object] | None = None,
    meanwhile: Callable[[], object] | None = None,
    fresh: Callable[[], str] | None = None,
    deaths: int = 1,
    same_result: bool = True,
    may_ask: bool = False,
    seconds: float = 60,
) -> CrashReport:
    """Run a workflow with these arguments, killed at every commit in turn; raise AssertionError if it shows.

    `prepare` is called on every fresh store, for instance to create tables. `signals` are sent to the job
    when it is submitted, each a name and a value. `check` is called at the end of every trial, and whatever
    it raises makes the trial fail. `meanwhile` is called whenever no job is due: it may play a remote worker.

    `fresh` returns the address of an empty store for each trial; without it that is a file in a temporary
    folder. With `deaths=2` the worker that takes over is killed at each of its commits, too. A workflow
    whose result differs from run to run, because it asks for the time or for chance, needs
    `same_result=False`. With `may_ask` a trial may also end with the job held IN_DOUBT: an effect that
    cannot be probed asks a person. A process may take so many `seconds`.
    """
    if not 1 <= deaths <= _DEATHS_MAX:
        raise BadInput(f"deaths is 1 or {_DEATHS_MAX}, not {deaths}")
    if not hasattr(os, "fork"):
        raise Misuse("crash_everywhere forks the process of the test, which this system cannot do")
    workflow.app.bind(workflow.app.url)  # refused while it is in use, and here rather than in each process
    with tempfile.TemporaryDirectory(prefix="tallystick-crashes-") as folder:
        places = _FreshStores(Path(folder), fresh)
        trials = _Trials(
            workflow, args, tuple(signals), prepare, check, meanwhile, places, same_result, may_ask, seconds
        )
        return trials.run(deaths)


class _FreshStores:
    """Fresh stores, one per trial."""

    def __init__(self, folder: Path, fresh: Callable[[], str] | None) -> None:
        self._folder = folder
        self._fresh = fresh
        self._numbers = itertools.count(1)

    def next(self) -> tuple[str, Path]:
        """Return the address of an empty store, and where its notes are kept."""
        number = next(self._numbers)
        url = self._fresh() if self._fresh else f"sqlite:///{self._folder / f'{number}.db'}"
        return url, self._folder / f"{number}.notes"


class _Trials(NamedTuple):
    """What is tried, and how it is judged."""

    workflow: Workflow[..., Any] | AsyncWorkflow[..., Any]
    args: tuple[object, ...]
    signals: tuple[tuple[str, object], ...]
    prepare: Callable[[], object] | None
    check: Callable[[CrashTrial], object] | None
    meanwhile: Callable[[], object] | None
    places: _FreshStores
    same_result: bool
    may_ask: bool
    seconds: float

    def run(self, deaths: int) -> CrashReport:
        """Run undisturbed, then killed everywhere; raise what was not survived."""
        name = self.workflow.name
        plain = self._try(())
        if plain.wrong is not None:
            raise AssertionError(f"{name} went wrong without any crash: {plain.wrong}")
        tried = list(self._killed((), deaths, plain.store))
        failed = [
            f"killed at {' and '.join(each.killed_at)}: {wrong}"
            for each in tried
            if (wrong := each.wrong or self._differs(plain.end, each.end)) is not None
        ]
        if failed:
            raise AssertionError("\n".join([f"{name}: {len(failed)} of {len(tried)} crashes show", *failed]))
        places = tuple(each.killed_at for each in tried)
        return CrashReport(name, sum(map(len, places)), places)

    def _killed(self, before: tuple[str, ...], deaths: int, store: str) -> Iterator[_TrialOutcome]:
        """Try every place at which the next worker can be killed; behind its last commit there is none."""
        for kind, side in itertools.product(_COMMITS[store], _SIDES):
            for visit in itertools.count(1):
                tried = self._try((*before, f"{store}.{kind}.{side}:{visit}"))
                if len(tried.killed_at) == len(before):
                    break
                yield tried
                if deaths > 1:
                    yield from self._killed(tried.killed_at, deaths - 1, store)

    def _differs(self, plain: _JobStanding, end: _JobStanding) -> str | None:
        """Return in which way a job has not ended as it did undisturbed."""
        if self.may_ask and end.hold == Hold.IN_DOUBT:
            return None
        if (end.state, end.hold) != (plain.state, plain.hold):
            return f"the job is {end.state}, not {plain.state}: {end.why}"
        if self.same_result and (end.result, end.error) != (plain.result, plain.error):
            return f"it ended with {end.result or end.error}, not with {plain.result or plain.error}"
        return None

    def _try(self, plan: tuple[str, ...]) -> _TrialOutcome:
        """Let one process after the other work at a job on a fresh store, each but the last killed."""
        url, notes = self.places.next()
        store = url.partition(":")[0].removesuffix("ql")
        if store not in _COMMITS:
            raise BadInput(f"crash_everywhere is for SQLite and PostgreSQL, not for {store}")
        # Here, so that not every process has to do it.
        importlib.import_module(f"tallystick.store.{store}.store")
        with mmap.mmap(-1, _INSTANTS.size) as memory:
            now = VirtualClock()
            _INSTANTS.pack_into(memory, 0, now.wall_ms(), now.boot_ms())
            job_id: str | None = None
            for number, point in enumerate((*plan, "")):
                life = _Life(self, url, notes, memory, plan[:number], job_id, point)
                try:
                    lived = forked(life.told, self.seconds)
                except TookTooLong as late:
                    return _TrialOutcome(store, plan[:number], _JobStanding(), str(late))
                word = [msgspec.json.decode(line, type=_Word) for line in lived.lines]
                job_id = next((each.job_id for each in word if each.job_id), job_id)
                if not (lived.was_killed and point):
                    wrong = word[-1].wrong if word else f"a process ended with exit code {lived.code}"
                    return _TrialOutcome(
                        store, plan[:number], word[-1].end if word else _JobStanding(), wrong
                    )
        raise AssertionError("the last process of a trial has no point to be killed at")


class _Life(NamedTuple):
    """The work of one process: it goes on with the job of the one before, or begins with a new one."""

    trials: _Trials
    url: str
    notes: Path
    memory: mmap.mmap
    killed_at: tuple[str, ...]
    job_id: str | None
    point: str

    def told(self) -> Iterator[bytes]:
        """Do all there is to do for the job, or be killed; tell which job it is, and how it stands."""
        global _notes  # noqa: PLW0603 (a process of its own, and functions of the user write there)
        _notes = self.notes
        app, clock = self.trials.workflow.app, _SharedClock(self.memory)
        app.bind(self.url, clock=clock)
        worker = SteppedWorker(app, clock, f"worker-{len(self.killed_at) + 1}", _queues(app))
        job = self._submitted() if self.job_id is None else app.job(self.job_id)
        yield _encode(_Word(job_id=job.id))
        crash.arm(self.point)
        if self.job_id is not None:
            worker.expire()
        self._drive(worker, job)
        crash.arm("")
        row = job.row()
        end = _JobStanding(row.state, row.hold, row.result, row.error_code, str(job.why()))
        yield _encode(_Word(end=end, wrong=self._wrong(job)))
        app.close()

    def _submitted(self) -> Job[Any]:
        if self.trials.prepare is not None:
            self.trials.prepare()
        job = self.trials.workflow.submit(*self.trials.args)
        for name, value in self.trials.signals:
            job.send(name, value)
        return job

    def _drive(self, worker: SteppedWorker, job: Job[Any]) -> None:
        """Work, and let time pass whenever no job is due, until the job ends or only a person can help."""
        app, clock, store = worker.app, worker.clock, worker.runtime.store
        passed, pace = 0, _PACE_MS
        while passed < _PATIENCE_MS:
            due = store.next_due(worker.queues, _EVER)
            if due is not None and due <= clock.wall_ms() and worker.work() != "idle":
                pace = _PACE_MS
                continue
            if self.trials.meanwhile is not None:
                self.trials.meanwhile()
            row = job.row()
            if row.completed_at is not None or row.hold is not None:
                return
            if not reclaim(app) + len(cancel_overdue(app)) + ask_effects(app):
                clock.advance(pace)
                passed, pace = passed + pace, min(2 * pace, _PACE_MS_MAX)

    def _wrong(self, job: Job[Any]) -> str | None:
        """Return what is wrong at the end: with the books, or in the eyes of the test."""
        row = job.row()
        if row.completed_at is None and row.hold is None:
            return f"the job does not end: {job.why()}"
        if found := check_store(self.trials.workflow.app):
            return "verify finds: " + "; ".join(str(each) for each in found[:_FINDINGS_SHOWN])
        if self.trials.check is not None:
            notes = self.notes.read_text("utf-8").splitlines() if self.notes.exists() else []
            try:
                self.trials.check(CrashTrial(job, self.killed_at, notes))
            except Exception as error:  # noqa: BLE001 (whatever a check raises is what it found)
                return "".join(traceback.format_exception(error)).rstrip()
        return None


def _queues(app: Tally) -> list[str]:
    return sorted({QUEUE, *(each.queue for each in app.workflows.values())})
