"""Verbs of two processes, their requests in every order, either of them cut off anywhere: then the sweep.

A process is the answers that it has had: its verb is asked again from its beginning whenever it goes on. So
a state is the tables and two lists of answers, and it is visited once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tallystick.clock import VirtualClock
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.remote.plans import Hearing
from tallystick.core.remote.requests import (
    ExpireStep,
    ProtocolRequest,
    RenewStep,
    SubmitCommand,
    TakeDirective,
)
from tallystick.ids import SystemIds
from tallystick.store.azure import keys
from tallystick.store.azure.changing import Here, change, renew
from tallystick.store.azure.due import come, for_strangers, for_sweep, look, sweep
from tallystick.store.azure.requests import Asking, Reply, Request
from tallystick.store.azure.submitting import submit
from tests.azure.service import Tables
from tests.azure.worlds import ModelSubject, judge, mending, run_out

Verb = Callable[[Here], Asking[Any]]


class Ended(NamedTuple):
    """A verb has returned this."""

    value: object


def asked(request: SubmitCommand | ProtocolRequest) -> Verb:
    """Return the verb of a request."""

    def verb(here: Here) -> Asking[Any]:
        match request:
            case SubmitCommand():
                outcome, _seen = yield from submit(request, here)
                return outcome
            case RenewStep():
                return (yield from renew(request, here)).hearing
            case _:
                return (yield from change(request, here)).hearing

    return verb


def swept(job_id: str) -> Verb:
    """Return what the sweep does for one job: it looks, and acts on what is due."""

    def verb(here: Here) -> Asking[Any]:
        heard, now = list[Hearing](), here.now()
        for row in (yield from come(keys.due_partition(job_id), now, 10, for_sweep(now))):
            seen = yield from sweep(row, here)
            if seen is not None:
                expired = yield from change(ExpireStep(job_id, here.token), here)
                heard.append(expired.hearing)
        return heard

    return verb


def relayed(job_id: str) -> Verb:
    """Return what a relay does for one job: it looks for what is due for endpoints, and takes it."""

    def verb(here: Here) -> Asking[Any]:
        heard = list[Hearing]()
        for row in (yield from come(keys.due_partition(job_id), here.now(), 10, for_strangers(()))):
            seen = yield from look(row, here)
            pending = None if seen is None else seen.picture.pending
            if pending is not None:
                take = TakeDirective(job_id, pending.step_id, pending.attempt_no)
                taken = yield from change(take, here)
                heard.append(taken.hearing)
        return heard

    return verb


class Pair:
    """Two verbs at once, on tables that are as they are."""

    def __init__(self, tables: Tables, now: int, verbs: tuple[Verb, ...]) -> None:
        self._tables = tables
        self._now = now
        self._verbs = verbs
        self._next: dict[tuple[int, tuple[Any, ...]], Request | Ended] = {}
        self._mended: set[int] = set()
        self._known: Known = set()
        self.states = 0

    def search(self, judged: Callable[[ModelSubject, list[object]], None]) -> None:
        """Visit every state; every one of them may be the last before a crash of both."""
        begin = (self._tables, tuple(() for _verb in self._verbs))
        seen: set[Any] = set()
        left: list[tuple[Tables, tuple[tuple[Any, ...], ...]]] = [begin]
        while left:
            tables, answers = left.pop()
            state = (tables.print, answers)
            if state in seen:
                continue
            seen.add(state)
            self.states += 1
            self._crash(tables)
            asks = [self._asks(which, had) for which, had in enumerate(answers)]
            if all(isinstance(each, Ended) for each in asks):
                self._over(tables, [each.value for each in asks if isinstance(each, Ended)], judged)
            for which, request in enumerate(asks):
                if not isinstance(request, Ended):
                    after = tables.copy()
                    reply = _frozen(after.answer(request))
                    had = (*answers[which], reply)
                    left.append((after, (*answers[:which], had, *answers[which + 1 :])))

    def _asks(self, which: int, answers: tuple[Any, ...]) -> Request | Ended:
        """Return what a process asks next, after these answers."""
        found = self._next.get((which, answers))
        if found is None:
            here = Here(lambda: self._now, f"token{which}")
            asking = self._verbs[which](here)
            try:
                found = asking.send(None)
                for answer in answers:
                    found = asking.send(_thawed(answer))
            except StopIteration as ended:
                found = Ended(ended.value)
            self._next[which, answers] = found
        return found

    def _crash(self, tables: Tables) -> None:
        """Let everybody die here: the sweep alone brings the job to its end, with true books all the way."""
        if tables.print in self._mended:
            return
        self._mended.add(tables.print)
        mended(tables, self._now, self._known)

    def _over(
        self, tables: Tables, values: list[object], judged: Callable[[ModelSubject, list[object]], None]
    ) -> None:
        subject = subject_of(tables, self._now)
        judge(subject, swept=False)
        judged(subject, values)


def subject_of(tables: Tables, now: int) -> ModelSubject:
    """Return a copy of tables, opened at an instant."""
    subject = ModelSubject(tables.copy())
    subject.clock.advance(now - subject.clock.wall_ms())
    subject.store._ids = Instants(subject.clock)
    return subject


class Instants(SystemIds):
    """Names of changes by their instants: what one process does alone leads to the same rows every time."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def token(self) -> str:
        return f"at {self._clock.wall_ms()}"


Known = set[tuple[int, int, int]]
"""Looks of a mending, tables and instants from which the sweep was followed to the end."""


def mended(tables: Tables, now: int, known: Known) -> None:
    """Let the sweep alone bring every job to its end, with true books all the way."""
    subject = subject_of(tables, now)
    for minutes in mending(subject):
        stand = (minutes, subject.client.tables.content, subject.clock.wall_ms())
        if stand in known:
            return
        known.add(stand)
    judge(subject, lags=True)
    run_out(subject)
    judge(subject)
    for job in subject.jobs():
        assert JobState(job.state) in JOB.final, job


def _frozen(reply: Reply) -> Any:
    return ("rows", tuple(_row(row) for row in reply)) if isinstance(reply, list) else _row(reply)


def _row(reply: Any) -> Any:
    return _Hashed(reply) if hasattr(reply, "values") and hasattr(reply, "rk") else reply


class _Hashed:
    """A row that was read; two are the same if all that they say is."""

    __slots__ = ("print", "row")

    def __init__(self, row: Any) -> None:
        self.row = row
        self.print = hash((row.pk, row.rk, row.etag, frozenset(row.values.items())))

    def __hash__(self) -> int:
        return self.print

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and self.row == other.row


def _thawed(answer: Any) -> Any:
    if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == "rows":
        return [each.row for each in answer[1]]
    return answer.row if isinstance(answer, _Hashed) else answer
