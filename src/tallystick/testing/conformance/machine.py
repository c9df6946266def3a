"""A state machine that drives a store against a model small enough to be believed.

Several workers, some of them long replaced, report in any order and in common flushes, while clocks jump
and machines restart. After every move the rows must be what the model says, and every chain must verify.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tallystick.core.ledger.decisions import Reclaim
from tallystick.errors import StaleLease
from tallystick.store.api import ClaimedJob, Existing, Fence, Primitive, RenewLeases
from tallystick.testing.conformance.drafts import (
    bundles,
    check_chain,
    claim,
    claimed,
    done,
    fail,
    failed_try,
    finish,
    outcome_of,
    reclaim,
    release,
    step,
    submission,
)
from tallystick.testing.conformance.subject import Subject

REPORTS = ("step", "try", "release", "release later", "hold", "finish", "fail")
MOMENTS = (1, 199, 200, 1_000)
# How many attempts a job may lose in a row, where its options do not say.
BUDGET = 3


@dataclass(slots=True)
class ModelJob:
    """What must be true of one job."""

    priority: int
    made_at: int
    ready_at: int | None
    state: str = "QUEUED"
    hold: str | None = None
    attempt: int = 0
    lost: int = 0
    spent: int = 0
    facts: int = 1
    steps: int = 0
    live: Fence | None = None
    ends: tuple[str, int] = field(default=("", 0))

    @property
    def suspect(self) -> bool:
        """Tell whether it must not be claimed beside another suspect."""
        return self.lost > 1 or (self.lost > 0 and self.spent + 1 >= BUDGET)


class StoreMachine(RuleBasedStateMachine):
    """Submit, claim, report, renew, expire and reclaim, in every order."""

    opening: ClassVar[Callable[[], AbstractContextManager[Subject]]]
    """How to get an empty store; set it in a subclass."""

    def __init__(self) -> None:
        """Begin with an empty store and an empty model."""
        super().__init__()
        self._lent = type(self).opening()
        self.subject = self._lent.__enter__()
        self.store, self.clock = self.subject.store, self.subject.clock
        self.jobs: dict[str, ModelJob] = {}
        self.keys: dict[str, str] = {}
        self.holders: list[ClaimedJob] = []
        self.stale = 0

    def store_ms(self) -> int:
        """Return the time by the store's clock, after something was written."""
        return self.clock.wall_ms()

    def teardown(self) -> None:
        """Close the store."""
        self._lent.__exit__(None, None, None)

    @rule(
        key=st.sampled_from(["", "", "a", "b"]), delay=st.sampled_from([0, 500]), priority=st.integers(4, 6)
    )
    def submit(self, key: str, delay: int, priority: int) -> None:
        ready_at = self.clock.wall_ms() + delay
        wish = submission(self.clock, key=key, priority=priority, ready_at=ready_at)
        answer = done(self.store, wish)
        if key in self.keys:
            assert isinstance(answer, Existing)
            assert answer.job_id == self.keys[key]
            return
        assert answer is None
        self.jobs[wish.job.job_id] = ModelJob(priority, self.store_ms(), self.store_ms() + delay)
        if key:
            self.keys[key] = wish.job.job_id

    @rule(limit=st.integers(1, 3), lease_ms=st.sampled_from([200, 1_000]))
    def take(self, limit: int, lease_ms: int) -> None:
        found = claimed(self.store, claim(limit, lease_ms=lease_ms))
        now = self.store_ms()
        waiting = [(job.priority, job.ready_at, job_id) for job_id, job in self.jobs.items()]
        first = sorted(
            (priority, at, job_id) for priority, at, job_id in waiting if at is not None and at <= now
        )
        suspects = [job_id for _, _, job_id in first if self.jobs[job_id].suspect]
        expected = [job_id for _, _, job_id in first if job_id not in suspects[1:]][:limit]
        taken = [self.jobs[held.fence.job_id] for held in found]
        assert [held.fence.job_id for held in found] == expected
        for held, job in zip(found, taken, strict=True):
            job.state, job.ready_at, job.live = "IN_PROGRESS", None, held.fence
            job.attempt += 1
            job.facts += 1
            job.ends = (self.clock.epoch(), self.clock.boot_ms() + lease_ms)
            assert (held.fence.attempt, held.chain.n, len(held.records)) == (
                job.attempt,
                job.facts,
                job.steps,
            )
            self.holders.append(held)

    @precondition(lambda self: self.holders)
    @rule(wishes=st.lists(st.tuples(st.sampled_from(REPORTS), st.integers(0, 99)), min_size=1, max_size=6))
    def report(self, wishes: list[tuple[str, int]]) -> None:
        """Let several workers, one per job, report in one flush."""
        chosen: dict[str, tuple[str, ClaimedJob]] = {}
        for what, number in wishes:
            held = self.holders[number % len(self.holders)]
            chosen.setdefault(held.fence.job_id, (what, held))
        primitives = [self._primitive(what, held) for what, held in chosen.values()]
        outcomes = self.store.apply(bundles(*primitives))
        for (what, held), outcome in zip(chosen.values(), outcomes, strict=True):
            if self._may_write(held.fence):
                assert outcome is None
                self._expect(what, self.jobs[held.fence.job_id])
            else:
                assert isinstance(outcome, StaleLease)
                self.stale += 1

    @precondition(lambda self: self.holders)
    @rule(lease_ms=st.sampled_from([200, 1_000]))
    def renew(self, lease_ms: int) -> None:
        fences = tuple(held.fence for held in self.holders)
        held = {fence for fence in fences if self._may_write(fence)}
        assert outcome_of(self.store, RenewLeases(fences, lease_ms)) == held
        for fence in held:
            self.jobs[fence.job_id].ends = (self.clock.epoch(), self.clock.boot_ms() + lease_ms)

    @rule()
    def sweep(self) -> None:
        """Reclaim what has expired, and only that."""
        lost = {job.live for job in self.jobs.values() if job.live and not self._may_write(job.live)}
        expired = self.store.expired(100)
        assert {attempt.fence for attempt in expired} == lost
        for attempt in expired:
            verdict = done(self.store, reclaim(attempt))
            job = self.jobs[attempt.fence.job_id]
            job.live, job.lost, job.spent = None, job.lost + 1, job.spent + 1
            job.facts += 1
            if job.spent < BUDGET:
                assert verdict is Reclaim.RETRY
                job.ready_at = min(job.made_at, self.store_ms())
            else:
                assert verdict is Reclaim.FAIL
                job.state, job.ready_at, job.hold = "FAILED_FINAL", None, None

    @rule(ms=st.sampled_from(MOMENTS))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule(ms=st.sampled_from([-5_000, 5_000]))
    def jump(self, ms: int) -> None:
        self.clock.jump_wall(ms)

    @rule()
    def reboot(self) -> None:
        self.clock.reboot()

    @invariant()
    def rows_are_what_the_model_says(self) -> None:
        rows = {row.job_id: row for row in self.subject.jobs()}
        assert rows.keys() == self.jobs.keys()
        for job_id, job in self.jobs.items():
            row = rows[job_id]
            assert (row.state, row.attempt, row.ready_at, row.hold) == (
                job.state,
                job.attempt,
                job.ready_at,
                job.hold,
            )
            assert row.semaphore == (row.completed_at is None)
            history = self.store.history(job_id)
            assert len(history) == job.facts
            check_chain(history)
        live = {row.job_id for row in self.subject.attempts() if row.status == "IN_PROGRESS"}
        assert live == {job_id for job_id, job in self.jobs.items() if job.live}
        assert len(self.subject.stale_reports()) == self.stale

    def _may_write(self, fence: Fence) -> bool:
        job = self.jobs[fence.job_id]
        epoch, ends_at = job.ends
        return job.live == fence and epoch == self.clock.epoch() and self.clock.boot_ms() < ends_at

    def _primitive(self, what: str, held: ClaimedJob) -> Primitive:
        if what == "step":
            return step(held, self.clock, occurrence=self.jobs[held.fence.job_id].steps + 1)
        if what == "try":
            return failed_try(held, self.clock)
        if what in ("finish", "fail"):
            return finish(held, self.clock) if what == "finish" else fail(held, self.clock)
        hold = "PAUSED" if what == "hold" else None
        return release(held, self.clock, delay_ms=500 if what == "release later" else 0, hold=hold)

    def _expect(self, what: str, job: ModelJob) -> None:
        job.facts += 1
        if what == "step":
            job.steps += 1
            job.lost = job.spent = 0
        elif what != "try":
            job.live = None
            job.spent += 1
        now = self.store_ms()
        job.ready_at = {"release": now, "release later": now + 500}.get(what)
        job.hold = "PAUSED" if what == "hold" else None
        job.state = {"finish": "SUCCEEDED", "fail": "FAILED_FINAL"}.get(what, "IN_PROGRESS")
