"""The world of a queue with limits: two workers, some jobs with and without keys, and a clock.

What may be claimed is decided by core (`choose`, `book`), in turns as the stores give them. The promises are
said a second time, without buckets: from the ages of first claims, and from who runs. Instants are told from
now, so that the same situation at another time is the same state.
"""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any, NamedTuple

from tallystick.core.queues import admitting
from tallystick.core.queues.rows import Limits, QueueTurn, interval_us
from tallystick.store.sql.queueing.managed import key_pages
from tests.model.search import Violation

WORKERS = ("w1", "w2")
DUE, RUNNING, LOST, WAITS, ENDED = "due", "running", "lost", "waits", "ended"


class Shape(NamedTuple):
    """A small world: the keys of its jobs, the limits of their queue, and how much may happen."""

    keys: tuple[str, ...]
    limits: Limits
    crashes: int = 0
    waits: int = 0
    pauses: int = 0
    step_us: int = 500_000


class Job(NamedTuple):
    """A job, who has it, and whether it was claimed before."""

    phase: str = DUE
    owner: str = ""
    began: bool = False


class State(NamedTuple):
    """Everything; `begun` are the ages and keys of first claims, and buckets are full after so long."""

    jobs: tuple[Job, ...]
    turn: QueueTurn
    full_us: tuple[tuple[str, int], ...]
    begun: tuple[tuple[int, str], ...]
    paused: bool
    crashes: int
    waits: int
    pauses: int


class QueueWorld:
    """All that can happen in a queue."""

    def __init__(self, shape: Shape, rules: ModuleType = admitting) -> None:
        self._shape = shape
        self._rules = rules

    def initial(self) -> State:
        jobs = (Job(),) * len(self._shape.keys)
        about = (self._shape.crashes, self._shape.waits, self._shape.pauses)
        return State(jobs, QueueTurn(), (), (), False, *about)

    def successors(self, state: State) -> list[tuple[str, State]]:
        found = [*self._claims(state)]
        if state.turn.full_us or state.full_us:
            found.append(("tick", self._later(state)))
        if state.paused:
            found.append(("resume", state._replace(paused=False)))
        elif state.pauses:
            found.append(("pause", state._replace(paused=True, pauses=state.pauses - 1)))
        for j, job in enumerate(state.jobs):
            if job.phase == RUNNING:
                found.append((f"end {j}", self._moved(state, j, ENDED)))
                if state.crashes:
                    lost = self._moved(state, j, LOST)
                    found.append((f"lose {j}", lost._replace(crashes=state.crashes - 1)))
                if state.waits:
                    waits = self._moved(state, j, WAITS)
                    found.append((f"wait {j}", waits._replace(waits=state.waits - 1)))
            elif job.phase in (LOST, WAITS):
                found.append((f"again {j}", self._moved(state, j, DUE)))
        return found

    def _later(self, state: State) -> State:
        step = self._shape.step_us
        turn = state.turn._replace(full_us=max(0, state.turn.full_us - step))
        full_us = tuple((key, at - step) for key, at in state.full_us if at > step)
        return state._replace(
            turn=turn, full_us=full_us, begun=tuple((age + step, key) for age, key in state.begun)
        )

    def _moved(self, state: State, j: int, phase: str) -> State:
        # A slot that is held stays with the worker that had it last.
        job = state.jobs[j]._replace(phase=phase)
        if phase == ENDED or not self._shape.limits.hold_slots:
            job = job._replace(owner="")
        return state._replace(jobs=(*state.jobs[:j], job, *state.jobs[j + 1 :]))

    def _claims(self, state: State) -> list[tuple[str, State]]:
        if state.paused:
            return []
        found = []
        for worker, wanted in itertools.product(WORKERS, (1, len(state.jobs))):
            after = self._claimed(state, worker, wanted)
            if after is not None:
                found.append((f"claim {worker} {wanted}", after))
        return found

    def _claimed(self, state: State, worker: str, wanted: int) -> State | None:
        rules, keys = self._rules, self._shape.keys
        slots = [
            rules.Slot(str(j), keys[j], job.owner) for j, job in enumerate(state.jobs) if self._has_slot(job)
        ]
        picture = rules.QueuePicture(self._shape.limits, slots, state.turn, dict(state.full_us), 0)
        due = [(j, job) for j, job in enumerate(state.jobs) if job.phase == DUE]
        begun = [rules.Waiting(str(j), keys[j], False, 0) for j, job in due if job.began]
        new = [rules.Waiting(str(j), keys[j], True, 0) for j, job in due if not job.began]
        waiting = sorted({job.limit_key for job in new} - {rules.NO_KEY})

        def behind(after: str, limit: int) -> list[str]:
            return [key for key in waiting if key > after][:limit]

        order = [key for page in key_pages(behind, state.turn.turn, wanted, 100) for key in page]
        lines = [rules.DueOfKey(key, [job for job in new if job.limit_key == key]) for key in order]
        chosen = rules.choose(picture, begun, lines, wanted, worker)
        self._judge_choice(state, chosen, order, worker, wanted)
        if not chosen:
            return None
        turn, charged = rules.book(picture, chosen)
        jobs = list(state.jobs)
        for each in chosen:
            jobs[int(each.job_id)] = Job(RUNNING, worker, began=True)
        full_us = tuple(sorted((dict(state.full_us) | charged).items()))
        firsts = tuple((0, each.limit_key) for each in chosen if each.first)
        return state._replace(jobs=tuple(jobs), turn=turn, full_us=full_us, begun=state.begun + firsts)

    def _has_slot(self, job: Job) -> bool:
        return job.phase == RUNNING or (self._shape.limits.hold_slots and job.began and job.phase != ENDED)

    # What is promised, said without buckets.

    def _judge_choice(
        self, state: State, chosen: list[Any], order: list[str], worker: str, wanted: int
    ) -> None:
        """Hold a choice against the promises: nothing waits that may run, and keys take turns."""
        names = [each.job_id for each in chosen]
        if len(names) != len(set(names)) or len(names) > wanted:
            raise Violation(f"{names} were chosen where {wanted} were wanted")
        firsts = [each.limit_key for each in chosen if each.first]
        if firsts and len(chosen) == 1 and wanted == 1:
            able = [key for key in order if self._has_able(state, key, worker)]
            if able[0] != firsts[0]:
                raise Violation(f"the key {firsts[0]!r} was served before {able[0]!r}, whose turn it was")
        if not chosen:
            left = [j for j in range(len(state.jobs)) if self._may_run(state, j, worker)]
            if left:
                raise Violation(f"job {left[0]} may run, and {worker} was given nothing")

    def _has_able(self, state: State, key: str, worker: str) -> bool:
        new = [j for j, job in enumerate(state.jobs) if (job.phase, job.began) == (DUE, False)]
        return any(self._shape.keys[j] == key and self._may_begin(state, j, worker) for j in new)

    def _may_run(self, state: State, j: int, worker: str) -> bool:
        job = state.jobs[j]
        if job.phase != DUE:
            return False
        return self._may_go_on(state, j, worker) if job.began else self._may_begin(state, j, worker)

    def _may_go_on(self, state: State, j: int, worker: str) -> bool:
        after = self._with(state, j, worker)
        return not self._excess(after)

    def _may_begin(self, state: State, j: int, worker: str) -> bool:
        after = self._with(state, j, worker)
        return not self._excess(after._replace(begun=(*state.begun, (0, self._shape.keys[j]))))

    def _with(self, state: State, j: int, worker: str) -> State:
        jobs = (*state.jobs[:j], Job(RUNNING, worker, began=True), *state.jobs[j + 1 :])
        return state._replace(jobs=jobs)

    def _excess(self, state: State) -> str:
        """Return which promise is broken, if one is."""
        limits, keys = self._shape.limits, self._shape.keys
        slots = [(keys[j], job.owner) for j, job in enumerate(state.jobs) if self._has_slot(job)]
        if limits.concurrency is not None and len(slots) > limits.concurrency:
            return f"{len(slots)} slots are taken of {limits.concurrency}"
        for key in {key for key, _owner in slots if key}:
            if limits.per_key is not None and sum(each == key for each, _owner in slots) > limits.per_key:
                return f"the key {key} has more than {limits.per_key} slots"
        for worker in WORKERS:
            mine = sum(owner == worker for _key, owner in slots)
            if limits.worker_concurrency is not None and mine > limits.worker_concurrency:
                return f"{worker} has more than {limits.worker_concurrency} slots"
        if limits.rate is not None and self._too_fast([age for age, _key in state.begun], limits.rate):
            return f"more began than {limits.rate} lets"
        for key in {key for _age, key in state.begun if key}:
            began = [age for age, each in state.begun if each == key]
            if limits.key_rate is not None and self._too_fast(began, limits.key_rate):
                return f"more of the key {key} began than {limits.key_rate} lets"
        return ""

    def _too_fast(self, began: list[int], rate: str) -> bool:
        each, burst = interval_us(rate), self._shape.limits.burst
        return any(
            last - first + 1 > burst + (began[first] - began[last]) // each
            for first in range(len(began))
            for last in range(first, len(began))
        )

    def check(self, state: State) -> None:
        if wrong := self._excess(state):
            raise Violation(wrong)
        if any(key == self._rules.NO_KEY for key, _at in state.full_us):
            raise Violation("jobs without a key have a bucket")

    def final(self, state: State) -> bool:
        return all(job.phase == ENDED for job in state.jobs)

    def ledgers(self, _state: State) -> tuple[int, ...]:
        return ()

    def helpful(self, label: str) -> bool:
        return not label.startswith(("lose", "pause"))
