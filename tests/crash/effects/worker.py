"""The worker of a case: everything is real but its clock; it kills itself where it is told to."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tallystick import DidNotHappen, Happened, Key, NotDone, Retry, Tally, crash
from tallystick.clock import VirtualClock
from tallystick.engine.audit import audit
from tallystick.testing.stepping import SteppedWorker, ask_effects, cancel_overdue, reclaim
from tests.crash.effects.cases import Case, Fault, Moment
from tests.patience import wait_until

BUSY: Final = "busy"
"""A call that has certainly done nothing."""

# How the provider behaves when it is cut at that moment; at the others nothing is on the line.
_CUTS: Final = {
    Moment.BEFORE_INTENT: (BUSY, "/drop"),
    Moment.AFTER_INTENT: ("/drop",),
    Moment.IN_CALL: ("/cut",),
    Moment.AFTER_CALL: ("/fail",),
    Moment.IN_PROBE: ("/cut",),
}
# In real time, unlike all else here: a worker that stood still must not find its call over when it goes on.
_TIMEOUT_MS = 20_000
_SETTLE_MS = 10_000
_ROUNDS_MAX = 40
_OWN: Final = "idempotency_key like '{key}/_'"
_JOBS: Final = f"select state, hold, result from jobs where {_OWN}"


class Place(NamedTuple):
    """Where a case happens."""

    url: str
    port: int
    store: str


def kill() -> None:
    """Die as by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    """Stand still here until another process lets this one go on.

    The signal is for this thread: one for the process may stop another thread first, and this one a moment
    later, with its call already on the line.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


class Line:
    """The way to the provider."""

    def __init__(self, port: int) -> None:
        self._port = port

    def post(self, path: str, key: str) -> http.client.HTTPConnection:
        """Send a request and return the connection on which its answer comes."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        connection.request("POST", path, b"", {"Idempotency-Key": key})
        return connection

    def look(self, key: str) -> dict[str, object]:
        """Ask the provider about a key."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        connection.request("GET", f"/charges/{key}")
        answer: dict[str, object] = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def quiet(self) -> None:
        """Wait until the provider has nothing under way."""
        wait_until(lambda: not self.look("")["busy"], "the provider is quiet")


class Worker:
    """One process of a case; `dies` is the moment at which it kills itself, `path` how the provider is."""

    def __init__(
        self, place: Place, case: Case, now: int, dies: Moment | str | None = None, *paths: str
    ) -> None:
        self.clock = VirtualClock(wall_ms=now, boot_ms=now)
        self.app = Tally(place.url, clock=self.clock)
        self._place, self._case, self._dies, self._paths = place, case, dies, list(paths)
        self._line = Line(place.port)
        self._cut_probe = (case.moment, case.fault) == (Moment.IN_PROBE, Fault.CUT)
        self.before_call: Callable[[], None] = lambda: None
        self.hand = SteppedWorker(self.app, self.clock)
        self._declare()
        points = {Moment.BEFORE_INTENT: "intent.before", Moment.BEFORE_DONE: "result.before"}
        if isinstance(dies, Moment) and dies in points:
            crash.arm(f"{place.store}.{points[dies]}")
        elif dies is not None and not isinstance(dies, Moment):
            crash.arm(dies)

    def _at(self, moment: Moment) -> None:
        if self._dies is moment:
            kill()

    def _declare(self) -> None:
        def find(key: Key, what: str) -> Happened[str] | DidNotHappen:
            self._at(Moment.IN_PROBE)
            if self._cut_probe:
                self._cut_probe = False
                raise ConnectionResetError("the probe was cut")
            return Happened(f"for {what}") if self._line.look(key)["charged"] else DidNotHappen()

        @self.app.effect(
            key="{what}",
            probe=None if self._case.asked else find,
            timeout=f"{_TIMEOUT_MS}ms",
            settle=f"{_SETTLE_MS}ms",
            retry=Retry(9, first="1ms"),
        )
        def charge(key: Key, what: str) -> str:
            self._at(Moment.AFTER_INTENT)
            self.before_call()
            path = self._paths.pop(0) if self._paths else "/charge"
            if path == BUSY:
                raise NotDone("busy")
            connection = self._line.post(path, key)
            self._at(Moment.IN_CALL)
            answer = connection.getresponse()
            if answer.status != 200:
                raise OSError(f"the provider says {answer.status}")
            receipt: str = json.loads(answer.read())["receipt"]
            self._at(Moment.AFTER_CALL)
            return receipt

        @self.app.workflow(attempts=99)
        def buy(what: str) -> str:
            return charge(what)

        self._buy = buy

    def begin(self) -> None:
        """Submit the jobs of the case, and work on them."""
        for number in range(1 + self._case.rival):
            self._buy.opts(idempotency_key=f"{self._case.key}/{number}").submit(self._case.key)
        self.hand.work_all()

    def recover(self) -> str:
        """Work until the jobs have ended; time passes, sweeps look, probes and people are asked."""
        for _round in range(_ROUNDS_MAX):
            if all(state == "SUCCEEDED" for state, _hold, _result in self._rows(_JOBS)):
                break
            self.clock.advance(10_000)
            reclaim(self.app)
            cancel_overdue(self.app)
            ask_effects(self.app)
            self._answer()
            self.hand.work_all()
        return self._told()

    def _answer(self) -> None:
        """Be the person who looks at the provider's ledger."""
        for (job_id,) in self._rows(f"select job_id from jobs where hold = 'IN_DOUBT' and {_OWN}"):
            charged = self._line.look(self._case.key)["charged"]
            says = {"happened": f"for {self._case.key}"} if charged else {"did_not_happen": True}
            self.app.job(job_id).resolve(by="ann", **says)

    def _told(self) -> str:
        """Say what the books say of the case."""
        keys = self._rows("select state, outcome from effect_keys where key = '{key}'")
        return json.dumps({"jobs": self._rows(_JOBS), "keys": keys})

    def books(self, jobs_max: int | None) -> str:
        """Say what is wrong with the books of the newest jobs, or of all."""
        found = audit(self.app.runtime().store, jobs_max=jobs_max).findings
        return json.dumps([str(finding) for finding in found])

    def _rows(self, query: str) -> list[list[Any]]:
        with self.app.connect() as db:
            return [list(row) for row in db.execute(query.replace("{key}", self._case.key))]


def first_of(place: Place, case: Case, now: int) -> Worker:
    """Return the process in which a case begins."""
    if case.fault is Fault.CUT:
        return Worker(place, case, now, None, *_CUTS.get(case.moment, ()))
    if case.moment is Moment.IN_PROBE:
        return Worker(place, case, now, None, "/cut")
    return Worker(place, case, now, case.moment)
