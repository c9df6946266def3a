"""Runs cases one after the other: processes that die, others that finish, and what the ledger says of it."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tallystick.store.crash_points import EFFECTS
from tests.crash.effects.cases import Case, Fault, Moment, cases
from tests.crash.effects.worker import BUSY, Line, Place, Worker, first_of, stop
from tests.crash.sweep.processes import Child
from tests.crash.sweep.processes import Line as Pipe

_SECONDS = 60.0
# Reading all the books of two thousand cases.
_AUDIT_SECONDS = 900.0
_CASE_MS = 1_000_000
_BEGIN_MS = 1_700_000_000_000
# Every so many cases their books are checked, and at the end those of all; a case has at most two jobs.
_CHECK_EVERY = 50


def around(store: str) -> dict[str, tuple[str, str]]:
    """Return the points before and after each kind of write of a store."""
    if store == "sqlite":
        from tallystick.store.sqlite.crash_points import AROUND as POINTS
    else:
        from tallystick.store.postgres.crash_points import AROUND as POINTS
    return POINTS


class Provider:
    """The provider's process."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        call = [sys.executable, "-m", "tests.app.programs.provider", str(ledger)]
        self._process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def charges(self, key: str) -> int:
        """Return how often it has charged under a key."""
        return self._ledger.read_text("utf-8").split().count(key) if self._ledger.exists() else 0

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Cases:
    """One run, and its figures."""

    def __init__(self, folder: Path, url: str, store: str) -> None:
        self._log = folder / "log.txt"
        self.provider = Provider(folder / "ledger.txt")
        self._place = Place(url, self.provider.port, store)
        # A child that had to import its store would do little else.
        importlib.import_module(f"tallystick.store.{store}.store")
        self.figures: Counter[str] = Counter()
        self.wrong: list[str] = []

    def run(self, seed: str, count: int) -> bool:
        """Run so many cases, say what came of them, and tell whether all was well."""
        last = None
        for last in cases(seed, count):
            self._case(last)
            if last.number % _CHECK_EVERY == _CHECK_EVERY - 1:
                self._books(last, 2 * _CHECK_EVERY)
        if last is not None:
            self._books(last)
        for number, point in enumerate(self._points(), start=count):
            self._at(number, point)
        return not self.wrong

    def _points(self) -> list[str]:
        """Return the places around everything that is written about effects."""
        return [point for kind in EFFECTS for point in around(self._place.store)[kind]]

    def _at(self, number: int, point: str) -> None:
        """Kill the first process that comes to a point, and let another one finish."""
        case = Case(number, Moment.IN_CALL, Fault.CUT)
        now = _BEGIN_MS + number * _CASE_MS
        hit = 0
        for step, paths in enumerate([(BUSY, "/drop"), (), ()]):
            at, dies = now + step * 100_000, "" if hit else point

            def body(pipe: Pipe, at: int = at, dies: str = dies, paths: tuple[str, ...] = paths) -> int:
                worker = Worker(self._place, case, at, dies, *paths)
                return self._said(pipe, worker.recover if at > now else worker.begin)

            child = self._process(body)
            hit += child.killed
        self._judge(case, child)
        self.figures["kills"] += hit
        self.figures["points"] += hit
        if not hit:
            self.wrong.append(f"never hit: {point}")

    def _case(self, case: Case) -> None:
        now = _BEGIN_MS + case.number * _CASE_MS
        self._killed(self._process(lambda pipe: self._said(pipe, first_of(self._place, case, now).begin)))
        Line(self.provider.port).quiet()  # it acts within the time to settle
        deaths = [Moment.IN_PROBE] if (case.moment, case.fault) == (Moment.IN_PROBE, Fault.KILLED) else []
        deaths += [case.again] if case.again is not None else []
        for number, dies in enumerate([*deaths, None], start=1):
            at = now + number * 100_000
            child = self._process(
                lambda pipe, at=at, dies=dies: self._said(pipe, Worker(self._place, case, at, dies).recover)
            )
            self._killed(child)
            Line(self.provider.port).quiet()
        self.figures["cases"] += 1
        self._judge(case, child)

    def _process(self, body: Callable[[Pipe], int], seconds: float = _SECONDS) -> Child:
        child = Child(body, self._log)
        if child.wait(seconds) is None:
            child.tell_stacks()
            child.end()
            raise RuntimeError(f"a process hangs; see {self._log}")
        if child.status and not child.killed:
            raise RuntimeError(
                f"a process broke with {child.status}:\n{self._log.read_text('utf-8')[-3000:]}"
            )
        return child

    def _said(self, pipe: Pipe, body: Callable[[], str | None]) -> int:
        pipe.say(body() or "")
        return 0

    def _killed(self, child: Child) -> None:
        self.figures["kills"] += child.killed

    def _judge(self, case: Case, child: Child) -> None:
        """Compare what the books say with the provider's ledger."""
        charged = self.provider.charges(case.key)
        told: dict[str, Any] = json.loads(child.last_words) if child.last_words else {"jobs": [], "keys": []}
        happened = ["DONE", "HAPPENED"] in told["keys"]
        ended = [state for state, _hold, _result in told["jobs"]]
        found = {
            "doubles": charged > 1,
            "denied": charged > 0 and not happened,
            "invented": happened and not charged,
            "stuck": not ended or any(state != "SUCCEEDED" for state in ended),
        }
        for name, so in found.items():
            self.figures[name] += so
        if any(found.values()):
            self.wrong.append(f"{case}: charged {charged} times, and the books say {told}")

    def _books(self, case: Case, jobs_max: int | None = None) -> None:
        at = _BEGIN_MS + (case.number + 1) * _CASE_MS

        def body(pipe: Pipe) -> int:
            return self._said(pipe, lambda: Worker(self._place, case, at).books(jobs_max))

        child = self._process(body, _AUDIT_SECONDS)
        self.wrong += json.loads(child.last_words)

    def control(self, number: int, *, stopped: bool, dedupes: bool = False) -> int:
        """Break the promise on purpose, and return how often the provider has charged.

        `stopped`: the worker stands still between its last look at the lease and the call. Else the provider
        takes longer than the time to settle.
        """
        case = Case(number, Moment.AFTER_INTENT, Fault.KILLED)
        now = _BEGIN_MS + number * _CASE_MS
        path = "/once" if dedupes else "/charge"

        def first(pipe: Pipe) -> int:
            dies, behaves = (None, path) if stopped else (Moment.IN_CALL, "/slow")
            worker = Worker(self._place, case, now, dies, behaves)
            if stopped:
                worker.before_call = stop
            return self._said(pipe, worker.begin)

        def second(pipe: Pipe) -> int:
            return self._said(pipe, Worker(self._place, case, now + 100_000, None, path).recover)

        if stopped:
            child = Child(first, self._log)
            _pid, status = os.waitpid(child.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), f"it is to stand still; see {self._log}"
        else:
            child = self._process(first)
        self._process(second)
        if stopped:
            child.revive()
            child.wait(_SECONDS)
            child.end()
        else:
            Line(self.provider.port).post("/release", "").close()
        Line(self.provider.port).quiet()
        return self.provider.charges(case.key)

    def close(self) -> None:
        """End the provider."""
        self.provider.close()
