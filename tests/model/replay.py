"""A trace of the model, played on a real store: every move is a bundle, every outcome and row is compared.

A trace is the list of labels of a walk, written on one line (`claim 0 0; run 0 0; write 0 0 suspended`). The
store is driven through its primitives with a clock that the test owns. It is given as a subject with `store`,
`clock` and `read`, so that any other store can be replayed on.
"""

from __future__ import annotations

import random
from typing import Any

from tallystick.core.holds import Hold, Resumed
from tallystick.core.lifecycles import JobState
from tallystick.engine.failure import Failure
from tallystick.engine.segment import GroupShape, Segment
from tallystick.engine.submission import Submission, submit_job
from tallystick.engine.sweep import reclaim
from tallystick.errors import StaleLease
from tallystick.store.api import (
    Answer,
    Bundle,
    CancelJob,
    ClaimJobs,
    Deliver,
    EndJob,
    Group,
    HoldJob,
    RenewLeases,
    ResumeJob,
    Wait,
)
from tests.model.jobs import Jobs
from tests.model.search import spoken
from tests.model.world import ABSENT, ACKED, INBOX, OPEN, SET, STATES, SUCCEEDED, Shape

LEASE_MS = 1_000_000
TIMER_MS = 10**12
GRACE_MS = 10**15
DELIVERED = {"WAKE": "WOKE", "KEEP": "KEPT", "KNOWN": "KNOWN", "DROP": "DROPPED"}
GROUP_STATES = {"IN_PROGRESS": OPEN, "SUCCEEDED": 2, "CANCELLED": 3}


# Trouble is chosen less often, so that most traces get somewhere.
TROUBLE = {"crash", "cancel", "expire", "grace", "pause"}


class Differs(AssertionError):
    """The store did not do what the model did."""


def walk(model: Jobs, seed: int, length: int = 60) -> list[tuple[Any, Any]]:
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


class Replay:
    """One trace on one store; the jobs are its own, so many traces share a file."""

    def __init__(self, subject: Any, shape: Shape, name: str) -> None:
        self.subject, self.shape, self.name = subject, shape, name
        self.store, self.clock = subject.store, subject.clock
        self.segments: dict[int, Segment] = {}
        self.places: dict[int, int] = {}
        self.looks: dict[int, Any] = {}
        self.leases: dict[int, tuple[Any, int]] = {}
        submission = Submission(handler="flow", payload="{}", queue=f"{name}-0", attempts_max=shape.budget)
        self._do(submit_job(submission, name, self.clock.wall_ms()))

    def job_id(self, j: int) -> str:
        return self.name if j == 0 else f"{self.name}.0.1.{j - 1:08d}"

    def play(self, steps: list[tuple[Any, Any]], look_every: int = 1) -> None:
        """Make every move and compare its outcome; compare the rows at every so many, and at the last."""
        before = None
        for n, (label, state) in enumerate(steps):
            self.clock.advance(1)
            said = self._move(label, before)
            expected = self._expected(label, state, before)
            books = abstraction(self.shape, state)
            looks = n % look_every == 0 or n + 1 == len(steps)
            rows = self.rows() if looks else books
            if said != expected or rows != books:
                raise Differs(
                    f"move {n + 1}, {spoken(label)}: the model says {expected}, the store {said}\n"
                    f"model {books}\nstore {rows}\ntrace {told(steps[: n + 1])}"
                )
            before = state

    def _expected(self, label: Any, state: Any, before: Any) -> Any:
        verb = label[0]
        if verb == "deliver":
            ended = state[0][0].state >= SUCCEEDED and label[2] in ("DROP", "KNOWN")
            due = before and abstraction(self.shape, before)[0][0][3] == 1
            if due and label[2] == "WAKE":
                return "KEPT"  # it is stored, and the job was due already
            return "ended" if ended else DELIVERED[label[2]]
        if verb in ("write", "stop", "rest", "fail", "reclaim"):
            answer = label[3]
            return answer if answer in ("stale", "suspended", "held") or answer.startswith("took") else "done"
        if verb == "pause":
            return label[2]
        if verb == "cancel":
            return {"ASK": "CANCELLING", "END": "CANCELLED"}[label[2]]
        return "done"

    def _move(self, label: Any, before: Any) -> Any:
        return getattr(self, f"_{label[0]}")(label, before)

    def _do(self, *bundle: Any) -> Any:
        (outcome,) = self.store.apply([bundle])
        if isinstance(outcome, BaseException) and not isinstance(outcome, StaleLease):
            raise outcome
        return outcome

    # One method a label.

    def _claim(self, label: Any, before: Any) -> str:
        _, w, j = label
        lease = f"{self.name}-{j}-{len(self.leases)}-{self.clock.wall_ms()}"
        request = ClaimJobs(
            f"w{w}", (f"{self.name}-{j}",), frozenset({("flow", "")}), 1, LEASE_MS, lambda: lease
        )
        claimed = self._do(request)
        if not claimed:
            return "nothing to claim"
        segment = self.segments[w] = Segment(claimed[0], self.clock)
        self.leases[j] = (segment.fence, self.clock.boot_ms() + LEASE_MS)
        place = before[0][j].place if before else 0
        self.places[w] = place - (place > 0 and self._script(j)[place - 1][0] == "spawn")
        return "done"

    def _run(self, label: Any, before: Any) -> str:
        return "done"

    def _script(self, j: int) -> Any:
        return self.shape.child_script if j else self.shape.script

    def _write(self, label: Any, before: Any) -> str:
        _, w, j, *_ = label
        segment, place = self.segments[w], self.places[w]
        op = self._script(j)[place]
        self.places[w] = place + 1
        outcome = self._do(*self._bundle(segment, j, place, op))
        if isinstance(outcome, StaleLease):
            return "stale"
        if isinstance(outcome, Hold):
            self._do(*segment.put_away())
            return "held"
        if op[0] in ("wait", "join"):
            return "suspended" if outcome is None else f"took {self._number(outcome)}"
        return "done"

    def _bundle(self, segment: Segment, j: int, place: int, op: Any) -> Any:
        if op[0] == "tx":
            return (segment.step_succeeded("tx", f"s{place}", 1, '"r"'),)
        if op[0] == "spawn":
            some = [
                Submission(
                    handler="flow", payload="{}", queue=f"{self.name}-{child}", attempts_max=self.shape.budget
                )
                for child in range(1, self.shape.children + 1)
            ]
            shape = GroupShape(self.shape.children, self.shape.threshold, self.shape.fail_fast)
            return segment.spawning(Group(0, "gather", 1), some, 0, shape)
        if op[0] == "join":
            return _heedless(segment.awaiting(Wait("group", "gather", 1, None)))
        if op[0] == "wait":
            timed = any(m.kind == "timer" and m.answers == place for m in self.shape.messages)
            due_at = self.clock.boot_ms() + TIMER_MS if timed else None
            return _heedless(segment.awaiting(Wait("wait", op[1], self._occurrence(place), due_at)))
        if op[0] == "again":
            return segment.turned("{}")
        return segment.returned('"ok"')

    def _occurrence(self, place: int) -> int:
        script = self.shape.script
        start = max((at + 1 for at in range(place) if script[at][0] == "again"), default=0)
        return sum(script[at] == script[place] for at in range(start, place + 1))

    def _dimension(self, place: int) -> int:
        return sum(op[0] == "again" for op in self.shape.script[:place])

    def _stop(self, label: Any, before: Any) -> str:
        return self._last(label, self.segments[label[1]].cancelled_by_request())

    def _rest(self, label: Any, before: Any) -> str:
        return self._last(label, self.segments[label[1]].put_away())

    def _pause(self, label: Any, before: Any) -> str:
        return self._do(HoldJob(self.name, Hold.PAUSED, "a pause")).name

    def _resume(self, label: Any, before: Any) -> str:
        assert self._do(ResumeJob(self.name)) is Resumed.FREE
        return "done"

    def _fail(self, label: Any, before: Any) -> str:
        failure = Failure(type="E", message="no", code="E")
        return self._last(label, self.segments[label[1]].failed(failure))

    def _last(self, label: Any, bundle: Any) -> str:
        return "stale" if isinstance(self._do(*bundle), StaleLease) else "done"

    def _crash(self, label: Any, before: Any) -> str:
        self.segments.pop(label[1], None)
        return "done"

    def _expire(self, label: Any, before: Any) -> str:
        """Let one lease run out and no other: those are renewed first, as their holders would."""
        _fence, end = self.leases[label[1]]
        self._pass(max(0, end - self.clock.boot_ms()), but=label[1])
        return "done"

    def _pass(self, ms: int, but: int | None = None) -> None:
        for j, (fence, end) in list(self.leases.items()):
            live = j != but and end > self.clock.boot_ms()
            if live and self._do(RenewLeases((fence,), ms + LEASE_MS)):
                self.leases[j] = (fence, self.clock.boot_ms() + ms + LEASE_MS)
        self.clock.advance(ms)

    def _look(self, label: Any, before: Any) -> str:
        _, w, j = label
        found = [row for row in self.store.expired(10_000) if row.fence.job_id == self.job_id(j)]
        if not found:
            return "nothing has expired"
        self.looks[w] = reclaim(found[0], self.clock.wall_ms())
        return "done"

    def _reclaim(self, label: Any, before: Any) -> str:
        return self._last(label, self.looks.pop(label[1]))

    def _deliver(self, label: Any, before: Any) -> str:
        m = label[1]
        name = self.shape.messages[m].answers
        sent = Deliver(self._guid(m), self.name, "signal", name, '"x"')
        outcome = self._do(sent).name
        final = self.store.job(self.name).state in (
            JobState.SUCCEEDED,
            JobState.FAILED_FINAL,
            JobState.CANCELLED,
        )
        return "ended" if final and outcome in ("DROPPED", "KNOWN") else outcome

    def _fire(self, label: Any, before: Any) -> str:
        self._pass(TIMER_MS)
        return "done"

    def _cancel(self, label: Any, before: Any) -> str:
        return str(self._do(CancelJob(self.name, GRACE_MS)))

    def _grace(self, label: Any, before: Any) -> str:
        self._do(CancelJob(self.name, 0, force=True))
        return "done"

    # What the rows say, in the words of the model.

    def _guid(self, m: int) -> str:
        message = self.shape.messages[m]
        if message.kind == "signal":
            return f"{self.name}:signal-{m}"
        if message.kind == "join":
            return f"join:{self.name}:0:gather#1"
        place = int(message.answers)
        if message.kind == "again":
            return f"again:{self.name}:{self._dimension(place) + 1}"
        wait = self.shape.script[place]
        return f"{self.name}:{self._dimension(place)}:{wait[1]}#{self._occurrence(place)}:timer"

    def _number(self, answer: Answer | EndJob) -> int:
        return next(m for m in range(len(self.shape.messages)) if self._guid(m) == answer.guid)

    def rows(self) -> tuple[Any, ...]:
        read = self.subject.read
        jobs = tuple(self._job_rows(read, j) for j in range(self.shape.children + 1))
        return (
            jobs,
            self._group_row(read),
            tuple(self._message_row(read, m) for m in range(len(self.shape.messages))),
        )

    def _job_rows(self, read: Any, j: int) -> tuple[Any, ...]:
        found = read(
            "select state, attempt, ready_at, semaphore, start_ledger, start_acked_at is not null,"
            " hold is not null"
            " from jobs where job_id = ?",
            self.job_id(j),
        )
        if not found:
            return ("QUEUED", 0, 0, 0, 1, 0, False, 0, 0, False)
        state, attempt, ready_at, semaphore, start, acked, hold = found[0]
        ready = 0 if ready_at is None else 1 if ready_at <= self.clock.wall_ms() else 2
        live = read(
            "select lease_expires_at from attempts where job_id = ? and status = 'IN_PROGRESS'",
            self.job_id(j),
        )
        held = 0 if not live else 1 if live[0][0] > self.clock.boot_ms() else 2
        ((records, waits),) = read(
            "select count(n), count(case when completed_at is null and kind <> 'group' then 1 end)"
            " from steps where job_id = ?",
            self.job_id(j),
        )
        books = (digits(start), bool(acked), records, waits, bool(hold))
        return state, attempt, held, ready, semaphore, *books

    def _group_row(self, read: Any) -> tuple[Any, ...]:
        found = read(
            "select state, ledger, semaphore, failed from steps where job_id = ? and kind = 'group'",
            self.name,
        )
        if not found:
            return (0, 0, 0, 0)
        state, ledger, semaphore, failed = found[0]
        return GROUP_STATES[state], ledger, semaphore, failed

    def _message_row(self, read: Any, m: int) -> tuple[Any, ...]:
        found = read("select acked_at is not null, ledger from messages where guid = ?", self._guid(m))
        if not found or (found[0][0] and not found[0][1]):
            return (0, 0)
        return 2 if found[0][0] else 1, digits(found[0][1])


def digits(ledger: int) -> int:
    """Return the markers of a message, and whether it was entered; which entry it was is not compared."""
    return ledger // 10**8 * 10 + (ledger % 10**8 > 0)


def abstraction(shape: Shape, state: Any) -> tuple[Any, ...]:
    """Return a state of the model in the words of the rows."""
    jobs, group, messages, _order, _workers, _env = state
    timers = {m.answers: n for n, m in enumerate(shape.messages) if m.kind == "timer"}
    books = []
    for j, job in enumerate(jobs):
        script = shape.child_script if j else shape.script
        ready = job.ready
        if ready == 2 and messages[timers[job.place]][0] == INBOX:
            ready = 1
        recorded = sum(op[0] in ("tx", "wait", "join") for op in script[: job.place])
        books.append(
            (
                STATES[job.state],
                job.attempt,
                job.live,
                ready,
                job.semaphore,
                digits(job.start),
                bool(job.acked),
                recorded,
                int(job.wait > 0),
                bool(job.hold),
            )
        )
    said = []
    for status, ledger in messages:
        gone = status == ABSENT or (status == ACKED and not ledger)
        said.append((0, 0) if gone else (1 if status in (SET, INBOX) else 2, digits(ledger)))
    return tuple(books), (group.state, group.ledger, group.semaphore, group.failed), tuple(said)


def _heedless(bundle: Bundle) -> Bundle:
    """Return a wait of a function that goes on waiting although it was asked to end, as the model's does."""
    return (*bundle[:-1], bundle[-1]._replace(asked=True))
