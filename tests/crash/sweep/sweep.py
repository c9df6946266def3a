"""The sweep: many trials at once, each in a process of its own, until every point was hit and time is up."""

from __future__ import annotations

import os
import select
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Final
from zlib import crc32

from tallystick import crash
from tallystick.clock import SystemClock
from tallystick.store.crash_points import EFFECTS
from tests.crash.sweep.controls import controls_of
from tests.crash.sweep.oracle import Wrong
from tests.crash.sweep.place import Place
from tests.crash.sweep.plan import LEAVING, POISON, WAITING_ZOMBIES, ZOMBIES, Plan, calibration
from tests.crash.sweep.processes import Child, Line
from tests.crash.sweep.trial import Case, Relief, Verdict, run

# Most of a trial is waiting for a lease to run out, so more of them run than there are cores.
_AT_ONCE = {"sqlite": 3 * max(2, os.cpu_count() or 2), "postgres": 2 * max(2, os.cpu_count() or 2)}
_TRIES_A_POINT = 4
_TRIAL_SECONDS_MAX = 300.0
_QUICK_PAIRS = 8
_LAST_SECONDS = 10.0


# How often an unguarded case is tried until it goes wrong as it should.
_CONTROL_TRIES: Final = 3


class Sweep:
    """One run of the harness, and its figures."""

    def __init__(
        self, seed: str, seconds: float, *, quick: bool, folder: Path, server: str = "", share: int = 1
    ) -> None:
        """Prepare a sweep in a folder of its own, on files there, or in schemas of a server.

        With a share of N it kills at one point of N, and tries one control of N.
        """
        self._share = share
        self._server = server
        self._store = "postgres" if server else "sqlite"
        self._seed = seed
        self._quick = quick
        self._clock = SystemClock()
        self._until = self._clock.monotonic() + seconds
        self._folder = folder
        self._numbers = count(1)
        self._hits: Counter[str] = Counter()
        self._wrong: Counter[Wrong] = Counter()
        self._figures: Counter[str] = Counter()
        self._faults: list[str] = []

    def run(self) -> bool:
        """Run everything, say what happened, and tell whether all was well."""
        self._say(f"crash: seed={self._seed} store={self._store} folder={self._folder}")
        points = [
            point
            for point in crash.points()
            if is_swept(point, self._others()) and in_share(point, self._share)
        ]
        visits: dict[str, dict[str, int]] = {}
        for case, verdict in self._all(calibration(self._store)):
            self._take(case, verdict)
            visits.update(verdict.visits)
        plan = Plan(visits, self._seed, self._store)
        pairs = plan.pairs(_QUICK_PAIRS // self._share) if self._quick else []
        some = max(1, 3 // self._share) if self._quick else None
        fixed = [*plan.each_point(points), *pairs]
        if self._thorough:
            fixed += plan.each_waiting_point()
        fixed += [*ZOMBIES[:some], *WAITING_ZOMBIES[:some], POISON, LEAVING]
        for case, verdict in self._all(fixed):
            self._take(case, verdict)
        self._controls()
        for again in range(1, _TRIES_A_POINT):
            for case, verdict in self._all(plan.each_point(self._missed(points), again)):
                self._take(case, verdict)
        if not self._quick:
            for case, verdict in self._all(self._while_time(plan.endless())):
                self._take(case, verdict)
        return self._conclude(points)

    def _take(self, case: Case, verdict: Verdict) -> None:
        """Enter a verdict into the figures."""
        self._figures["trials"] += 1
        self._figures["kills"] += len(verdict.kills)
        self._figures["pairs"] += len(verdict.kills) > 1
        self._figures["stopped"] += verdict.stopped
        self._figures["refused"] += verdict.refused
        self._hits.update(kill.partition(":")[0] for kill in verdict.kills)
        if verdict.stopped and case.relief is not Relief.BLOCKED and not (verdict.refused or verdict.kills):
            self._faults.append(f"{case}: the stopped process was never refused, so nothing was shown")
        for finding in dict.fromkeys(verdict.findings):
            self._wrong[finding.wrong] += 1
            self._say(f"{finding.wrong}: {finding.text} [{case}]")

    def _controls(self) -> None:
        """Run the cases without a guard, which must be caught, and the same with it, which must be clean.

        On a machine that is slow a process may not get its turn in time: what is not caught is tried again. A
        guarded case gets no second chance.
        """
        controls = controls_of(self._store)[:: self._share]
        left = {str(control.case): control for control in controls}
        self._figures["controls"] += len(left)
        for _try in range(_CONTROL_TRIES):
            for case, verdict in self._all(control.case for control in list(left.values())):
                if left[str(case)].caught(verdict):
                    del left[str(case)]
                    self._figures["caught"] += 1
        for control in left.values():
            self._faults.append(f"control not caught in {_CONTROL_TRIES} tries: {control.name}")
        if self._thorough:
            for case, verdict in self._all(control.guarded for control in controls):
                self._take(case, verdict)

    @property
    def _thorough(self) -> bool:
        """Tell whether the fixed part is run in full; a quick sweep is a part of `make test`."""
        return not self._quick

    def _others(self) -> set[str]:
        """Return what this sweep is not about: the other store, and relays and backups (tested elsewhere)."""
        return {"sqlite", "postgres", "relay", "backup"} - {self._store}

    def _missed(self, points: list[str]) -> list[str]:
        return [point for point in points if not self._hits[point]]

    def _while_time(self, cases: Iterator[Case]) -> Iterator[Case]:
        for case in cases:
            if self._clock.monotonic() >= self._until:
                return
            yield case

    def _conclude(self, points: list[str]) -> bool:
        """Print the figures; the last line is for machines too."""
        missed = self._missed(points)
        for fault in [*self._faults, *(f"never hit: {point}" for point in missed)]:
            self._say(fault)
        self._say(
            "crash: "
            + " ".join(f"{name}={self._figures[name]}" for name in ("trials", "pairs", "stopped", "refused"))
            + f" controls={self._figures['caught']}/{self._figures['controls']}"
            + f" broken={self._wrong[Wrong.BROKEN]} missed={len(missed)} fewest={self._fewest(points)}"
        )
        well = not (missed or self._faults or self._wrong)
        if well:
            shutil.rmtree(self._folder)
        wrong = " ".join(
            f"{kind}={self._wrong[kind]}" for kind in (Wrong.LOST, Wrong.DUPLICATED, Wrong.STUCK)
        )
        self._say(f"crash: points={len(points) - len(missed)} kills={self._figures['kills']} {wrong}")
        return well

    def _fewest(self, points: list[str]) -> str:
        """Return the point that was hit least often, with its number."""
        point = min(points, key=lambda name: self._hits[name])
        return f"{point}:{self._hits[point]}"

    def _all(self, cases: Iterable[Case]) -> Iterator[tuple[Case, Verdict]]:
        """Run cases, several at once, and return each with its verdict as it comes."""
        waiting = iter(cases)
        running: dict[Child, tuple[Case, Place]] = {}
        try:
            while True:
                while len(running) < _AT_ONCE[self._store] and (case := next(waiting, None)) is not None:
                    running.update([self._start(case)])
                if not running:
                    return
                ready, _, _ = select.select(list(running), [], [], _TRIAL_SECONDS_MAX)
                for child in ready or list(running):
                    if child.wait(0) is not None or not ready:
                        case, place = running.pop(child)
                        yield case, _verdict(child, place)
        finally:
            for child in running:
                # A trial ends its own processes; only one that hangs is killed over their heads.
                child.wait(_LAST_SECONDS)
                child.end()

    def _start(self, case: Case) -> tuple[Child, tuple[Case, Place]]:
        place = Place(self._folder / f"{next(self._numbers):05d}", self._server)
        place.folder.mkdir()

        def trial(line: Line) -> int:
            line.say(run(case, place).text())
            return 0

        return Child(trial, place.log), (case, place)

    def _say(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def in_share(point: str, share: int) -> bool:
    """Tell whether a point is in a share of one in so many; it stays there whatever others come and go."""
    return crc32(point.encode()) % share == 0


def is_swept(point: str, others: Collection[str] = ()) -> bool:
    """Tell whether this sweep kills at a point; `tests.crash.effects` does at those of effects."""
    store, _, kind = point.partition(".")
    return store not in others and kind.partition(".")[0] not in EFFECTS


def new_folder() -> Path:
    """Make a folder in memory if there is such a place, else on disk."""
    memory = Path("/dev/shm")
    where = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="tallystick-crash-", dir=where))


def _verdict(child: Child, place: Place) -> Verdict:
    """Return what a trial said; one that broke is a fault of the harness, and says so with its log."""
    child.end()
    if child.status or not child.last_words:
        tail = place.log.read_text("utf-8")[-2000:] if place.log.exists() else ""
        raise RuntimeError(f"the trial in {place.folder} broke with status {child.status}:\n{tail}")
    verdict = Verdict.parse(child.last_words)
    if not verdict.findings:
        shutil.rmtree(place.folder)
    return verdict
