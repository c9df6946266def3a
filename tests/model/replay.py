"""A trace of the model, played on a real store: every move is a bundle, every outcome and row is compared.

A trace is the list of labels of a walk, written on one line (`claim 0 0; run 0 0; write 0 0 suspended`). The
store is driven through its primitives with a clock that the test owns. It is given as a subject with `store`,
`clock` and `read`, so that any other store can be replayed on. Rows are compared digit by digit.
"""

from __future__ import annotations

import random
from typing import Any

from tallystick.core.verbs.holds import Hold
from tallystick.engine.segment import Segment
from tallystick.engine.submission import Submission, submit_job
from tallystick.errors import StaleLease
from tallystick.store.api import (
    Answer,
    CancelJob,
    ClaimJobs,
    Deliver,
    HoldJob,
    ReclaimAttempt,
    RenewLeases,
    ResumeJob,
)
from tests.model.books import NOW, Book
from tests.model.jobs import Jobs
from tests.model.outside import NAME
from tests.model.replay_remotes import ReplayRemotes, page_of_remotes
from tests.model.search import spoken
from tests.model.world import TIMER_MS, ended_by, guid_of, job_id, written_by

LEASE_MS = 1_000_000
GRACE_MS = 10**15
DEADLINE_MS = 10**11


# Trouble is chosen less often, so that most traces get somewhere.
TROUBLE = {"crash", "cancel", "expire", "grace", "late", "pause", "lose"}


class Differs(AssertionError):
    """The store did not do what the model did."""


def walk(model: Any, seed: int, length: int = 60) -> list[tuple[Any, Any]]:
    """Return a random walk of the model: pairs of a label and the state after it."""
    chance = random.Random(seed)
    state, steps = model.initial(), []
    while len(steps) < length:
        moves = model.successors(state)
        if not moves or (model.final(state) and chance.random() < 0.2):
            break
        weights = [0.3 if label[0] in TROUBLE else 1 for label, _ in moves]
        label, state = chance.choices(moves, weights)[0]
        steps.append((label, state))
    return steps


def told(steps: list[tuple[Any, Any]]) -> str:
    return "; ".join(spoken(label) for label, _ in steps)


def done(store: Any, *bundle: Any) -> Any:
    """Return the outcome of a bundle; a stale one is an outcome, too."""
    (outcome,) = store.apply([bundle])
    if isinstance(outcome, BaseException) and not isinstance(outcome, StaleLease):
        raise outcome
    return outcome


class Replay(ReplayRemotes):
    """One trace on one store; the jobs are its own, so many traces share a file."""

    def __init__(self, subject: Any, model: Jobs, name: str) -> None:
        self.subject, self.model, self.shape, self.name = subject, model, model.shape, name
        self.store, self.clock = subject.store, subject.clock
        self.segments: dict[int, Segment] = {}
        self.looks: dict[int, Any] = {}
        self.leases: dict[int, tuple[Any, int]] = {}
        budget = model.shape.budget
        deadline_ms = DEADLINE_MS if model.shape.deadline else None
        about = {"queue": f"{name}-0", "attempts_max": budget, "deadline_ms": deadline_ms}
        submission = Submission(handler="flow", payload="{}", **about)
        done(self.store, submit_job(submission, name, self.clock.wall_ms()))

    def play(self, steps: list[tuple[Any, Any]], look_every: int = 1) -> None:
        """Make every move and compare its outcome; compare the rows at every so many, and at the last."""
        before = self.model.initial()
        for n, (label, state) in enumerate(steps):
            self.clock.advance(1)
            said = getattr(self, f"_{label[0]}")(label, before, state)
            books = tuple(page(book) for book in self.model.books(state))
            looks = n % look_every == 0 or n + 1 == len(steps)
            rows = self.rows() if looks else books
            expected = label[-1] if label[0] in SAYING else "done"
            if said != expected or rows != books:
                raise Differs(
                    f"move {n + 1}, {spoken(label)}: the model says {expected}, the store {said}\n"
                    f"model {books}\nstore {rows}\ntrace {told(steps[: n + 1])}"
                )
            before = state

    def _ours(self, text: str) -> str:
        """Return an identifier as the model calls it."""
        return text.replace(self.name, NAME)

    # One method a label.

    def _claim(self, label: Any, before: Any, state: Any) -> str:
        _, w, j = label
        lease = f"{self.name}-{j}-{len(self.leases)}-{self.clock.wall_ms()}"
        request = ClaimJobs(
            f"w{w}", (f"{self.name}-{j}",), frozenset({("flow", "")}), 1, LEASE_MS, lambda: lease
        )
        claimed = done(self.store, request)
        if not claimed:
            return "nothing to claim"
        segment = self.segments[w] = Segment(claimed[0], self.clock)
        for each in (*claimed[0].records, *claimed[0].opened):
            segment.past.recall(each.kind, each.name, each.occurrence)
        self.leases[j] = (segment.fence, self.clock.boot_ms() + LEASE_MS)
        driver = self._ours(claimed[0].driver)
        return "done" if driver == state[1][w].driver else f"{driver} drives it"

    def _run(self, label: Any, before: Any, state: Any) -> str:
        return "done"

    def _write(self, label: Any, before: Any, state: Any) -> str:
        w = label[1]
        segment, run = self.segments[w], before[1][w]
        segment.cancelled = run.told
        outcome = done(self.store, *written_by(segment, self.name, self.shape, run, self.clock))
        if isinstance(outcome, StaleLease):
            return "stale"
        if isinstance(outcome, Hold):
            done(self.store, *segment.put_away())
        if isinstance(outcome, Answer):
            outcome = outcome._replace(guid=self._ours(outcome.guid))
        return self.model.said(run, outcome)[0]

    def _stop(self, label: Any, before: Any, state: Any) -> str:
        outcome = done(self.store, *ended_by(self.segments[label[1]], label[0]))
        return "stale" if isinstance(outcome, StaleLease) else label[0]

    _rest = _fail = _refuse = _stop

    def _pause(self, label: Any, before: Any, state: Any) -> str:
        return str(done(self.store, HoldJob(self.name, Hold.PAUSED, "a pause")).name)

    def _resume(self, label: Any, before: Any, state: Any) -> str:
        outcome = done(self.store, ResumeJob(self.name)).name
        return "done" if outcome == "FREE" else outcome

    def _crash(self, label: Any, before: Any, state: Any) -> str:
        self.segments.pop(label[1], None)
        return "done"

    def _commit(self, label: Any, before: Any, state: Any) -> str:
        """Leave an attempt as no SQL store does: committed, and its job not ended."""
        name = job_id(self.name, label[1])
        running = f"job_id = '{name}' AND status = 'IN_PROGRESS'"
        self.subject.write(f"UPDATE attempts SET status = 'COMMITTED' WHERE {running}")
        return "done"

    def _expire(self, label: Any, before: Any, state: Any) -> str:
        """Let one lease run out and no other: those are renewed first, as their holders would."""
        _fence, end = self.leases[label[1]]
        self._pass(max(0, end - self.clock.boot_ms()), but=label[1])
        return "done"

    def _pass(self, ms: int, but: int | None = None) -> None:
        for j, (fence, end) in list(self.leases.items()):
            live = j != but and end > self.clock.boot_ms()
            if live and done(self.store, RenewLeases((fence,), ms + LEASE_MS)):
                self.leases[j] = (fence, self.clock.boot_ms() + ms + LEASE_MS)
        self.clock.advance(ms)

    def _look(self, label: Any, before: Any, state: Any) -> str:
        _, w, j = label
        found = [row for row in self.store.expired(10_000) if row.fence.job_id == job_id(self.name, j)]
        if not found:
            return "nothing has expired"
        self.looks[w] = ReclaimAttempt(found[0].fence)
        return "done"

    def _reclaim(self, label: Any, before: Any, state: Any) -> str:
        return str(done(self.store, self.looks.pop(label[1])).name)

    def _deliver(self, label: Any, before: Any, state: Any) -> str:
        m = label[1]
        sent = self.shape.messages[m]
        return str(
            done(self.store, Deliver(guid_of(self.name, m), self.name, sent.kind, sent.name, '"x"')).name
        )

    def _fire(self, label: Any, before: Any, state: Any) -> str:
        self._pass(TIMER_MS)
        return "done"

    def _cancel(self, label: Any, before: Any, state: Any) -> str:
        return str(done(self.store, CancelJob(job_id(self.name, label[1]), GRACE_MS)))

    def _grace(self, label: Any, before: Any, state: Any) -> str:
        done(self.store, CancelJob(job_id(self.name, label[1]), 0, force=True))
        return "done"

    def _late(self, label: Any, before: Any, state: Any) -> str:
        self._pass(DEADLINE_MS)
        done(self.store, CancelJob(job_id(self.name, label[1]), GRACE_MS, late=True))
        return "done"

    # What the rows say.

    def rows(self) -> tuple[Any, ...]:
        pages = (self._page(job_id(self.name, j)) for j in range(self.shape.children + 1))
        return tuple(page for page in pages if page)

    def _page(self, name: str) -> tuple[Any, ...]:
        read = self.subject.read
        found = read(
            "select state, attempt, dimension, ready_at, hold is not null, semaphore, root_ledger,"
            " start_ledger, start_acked_at is not null, cancel_at is not null, completed_at is not null"
            " from jobs where job_id = ?",
            name,
        )
        if not found:
            return ()
        state, attempt, dimension, ready_at, *rest = found[0]
        ready = 0 if ready_at is None else 1 if ready_at <= self.clock.wall_ms() else 2
        running = "status in ('IN_PROGRESS', 'COMMITTED')"
        live = read(f"select lease_expires_at from attempts where job_id = ? and {running}", name)
        held = 0 if not live else 1 if live[0][0] > self.clock.boot_ms() else 2
        activities = read(
            "select dimension, name, occurrence, kind, state, ledger, semaphore, failed from steps"
            " where job_id = ? and kind in ('wait', 'group', 'remote')",
            name,
        )
        messages = read(
            "select guid, dimension, name, occurrence, kind, ledger, acked_at is not null from messages"
            " where job_id = ?",
            name,
        )
        return (
            (self._ours(name), state, attempt, held, ready, dimension, *(int(value) for value in rest)),
            tuple(sorted(tuple(row) for row in activities)),
            tuple(sorted((self._ours(guid), *row[:-1], bool(row[-1])) for guid, *row in messages)),
            self._remote_rows(name),
        )


_REPORTS = ("given", "AckStep", "RenewStep", "AnswerStep", "sweep")
SAYING = ("write", "stop", "rest", "fail", "refuse", "reclaim", "deliver", "pause", "cancel", *_REPORTS)
"""The moves whose label ends with what came of them."""


def page(book: Book) -> tuple[Any, ...]:
    """Return a job of the model in the words of the rows."""
    job, lease = book.job, book.lease
    ready = 0 if job.ready_at is None else 1 if job.ready_at <= NOW else 2
    held = 0 if lease is None else 1 if lease.live else 2
    flags = (job.start_acked_at, job.cancel_at, job.completed_at)
    numbers = (job.hold is not None, job.semaphore, job.root_ledger, job.start_ledger)
    said = (job.job_id, str(job.state), job.attempt, held, ready, job.dimension)
    return (
        (*said, *(int(value) for value in numbers), *(int(flag is not None) for flag in flags)),
        tuple(
            (*each.place, each.kind, str(each.state), each.ledger, each.semaphore, each.failed)
            for each in sorted(book.activities)
        ),
        tuple(
            (
                each.guid,
                each.dimension,
                each.name,
                each.occurrence,
                each.kind,
                each.ledger,
                each.acked_at is not None,
            )
            for each in book.messages
        ),
        page_of_remotes(book),
    )
