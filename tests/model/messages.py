"""One activity and its messages over a store that can write one step at a time.

This is the protocol of the fifteen digits without segments: every message has copies (a sender sends twice,
a queue delivers twice), every copy is leased, every step is a bundle of its own, and closing and completion
tasks may be one bundle or two. Beside the ledgers the state carries plain counts of what really happened, and
the ledgers are held against those counts in every state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tallystick.errors import SemaphoreUnderflow
from tests.model.rules import Rules
from tests.model.search import Violation

UNSENT, READY, LEASED, RUN_OUT, ACKED = range(5)
CLAIMED, ENTERED, PREPARED, DONE = range(4)
IDLE: tuple[int, ...] = ()
OPENING = 0
"""The first message is leg 1 of the activity; all others are leg 2."""


class Shape(NamedTuple):
    """How the messages move the semaphore, how often each is sent, and how much may go wrong."""

    deltas: tuple[int, ...]
    copies: tuple[int, ...]
    semaphore: int
    threshold: int = 0
    opens: tuple[tuple[int, ...], ...] = ()
    one_bundle: bool = True
    workers: int = 2
    crashes: int = 1
    zombies: int = 1
    repeats: int = 0
    ledger: int = 0
    late: bool = False


State = tuple[Any, ...]


class Truth(NamedTuple):
    """What really happened, counted beside the ledgers."""

    leg1: int = 0
    entries1: int = 0
    entries2: int = 0
    works: tuple[int, ...] = ()
    spawns: tuple[int, ...] = ()
    tasks: int = 0
    escalated: int = 0


class Messages:
    """All moves of one activity."""

    def __init__(self, shape: Shape, rules: Rules, flaws: frozenset[str] = frozenset()) -> None:
        self.shape, self.rules, self.flaws = shape, rules, flaws
        self.of = [m for m, copies in enumerate(shape.copies) for _ in range(copies)]
        self.opens = shape.opens or ((),) * len(shape.deltas)
        opened = {m for some in self.opens for m in some}
        self.first = [m for m in range(1, len(shape.deltas)) if m not in opened]

    def initial(self) -> State:
        shape = self.shape
        n = len(shape.deltas)
        copies = tuple((READY if m == OPENING or shape.late else UNSENT, 0) for m in self.of)
        truth = Truth(works=(0,) * n, spawns=(0,) * n)
        workers = (IDLE,) * shape.workers
        return (
            shape.ledger,
            shape.semaphore,
            (0,) * n,
            copies,
            workers,
            truth,
            (shape.crashes, shape.zombies, shape.repeats),
        )

    def final(self, state: State) -> bool:
        _ledger, _sem, _guids, copies, _workers, truth, _env = state
        if truth.escalated:
            return True
        return truth.tasks > 0 and all(status == ACKED for status, _ in copies)

    def helpful(self, label: tuple[Any, ...]) -> bool:
        return label[0] not in {"crash", "repeat"}

    def ledgers(self, state: State) -> tuple[int, ...]:
        return (state[0], *state[2])

    def successors(self, state: State) -> list[tuple[Any, State]]:
        found: list[tuple[Any, State]] = []
        ledger, sem, guids, copies, workers, truth, env = state
        if truth.escalated:
            return found
        for w, worker in enumerate(workers):
            if worker == IDLE:
                for c, (status, delivery) in enumerate(copies):
                    if status == READY:
                        after = self._copy(copies, c, (LEASED, delivery + 1))
                        busy = self._put(workers, w, (c, delivery + 1, CLAIMED))
                        found.append((("claim", w, c), (ledger, sem, guids, after, busy, truth, env)))
                continue
            found.append(self._advance(state, w, worker))
            if env[0]:
                after = (*state[:4], self._put(workers, w, IDLE), truth, (env[0] - 1, *env[1:]))
                found.append((("crash", w), after))
        for c, (status, delivery) in enumerate(copies):
            if status == LEASED:
                held = any(worker and worker[:2] == (c, delivery) for worker in workers)
                if not held or env[1]:
                    after = self._copy(copies, c, (RUN_OUT, delivery))
                    spent = (env[0], env[1] - held, env[2])
                    found.append((("expire", c), (ledger, sem, guids, after, workers, truth, spent)))
            elif status == RUN_OUT:
                after = self._copy(copies, c, (READY, delivery))
                found.append((("redeliver", c), (ledger, sem, guids, after, workers, truth, env)))
            elif status == ACKED and env[2]:
                after = self._copy(copies, c, (READY, delivery))
                spent = (env[0], env[1], env[2] - 1)
                found.append((("repeat", c), (ledger, sem, guids, after, workers, truth, spent)))
        return found

    @staticmethod
    def _copy(copies: Any, c: int, value: tuple[int, int]) -> Any:
        return (*copies[:c], value, *copies[c + 1 :])

    @staticmethod
    def _put(values: Any, w: int, value: Any) -> Any:
        return (*values[:w], value, *values[w + 1 :])

    def _advance(self, state: State, w: int, worker: Any) -> tuple[Any, State]:
        """Let a worker take its next move: read what is to do, or write what it has read."""
        c, delivery, phase = worker[:3]
        ledger, _sem, guids, copies, workers, truth, env = state
        m = self.of[c]
        if phase == ENTERED:
            step = self._next(ledger, guids[m], m)
            held = (
                ("held",) if "fence in the bundle" in self.flaws and self._holds(copies[c], delivery) else ()
            )
            busy = self._put(workers, w, (c, delivery, PREPARED, step, *held))
            return ("read", w, c, step), (*state[:4], busy, truth, env)
        holds = self._holds(copies[c], delivery)
        if "fence in the bundle" in self.flaws and phase == PREPARED:
            holds = len(worker) > 4
        if not holds and "fence" not in self.flaws:
            return ("stale", w, c), (*state[:4], self._put(workers, w, IDLE), truth, env)
        label, after = self._write(state, w, worker, m)
        true_holder = copies[c] == (LEASED, delivery)
        if not true_holder and (after[:4] != state[:4] or after[5] != truth):
            raise Violation(f"a stale report changed something: {label}")
        return label, after

    def _holds(self, copy: tuple[int, int], delivery: int) -> bool:
        """Ask the fence; a message has one attempt, and every delivery a lease of its own."""
        status, current = copy
        row = (1, f"lease-{current}") if status != UNSENT else None
        state = "IN_PROGRESS" if status in (LEASED, RUN_OUT) else "ABORTED"
        return self.rules.held(row, 1, f"lease-{delivery}", state, status == RUN_OUT)

    def _next(self, ledger: int, guid: int, m: int) -> str:
        if m == OPENING:
            return "ACKNOWLEDGE" if self.rules.leg1(ledger)[0] == "ACKNOWLEDGE" else "LEG1"
        return self.rules.step(guid)

    def _write(self, state: State, w: int, worker: Any, m: int) -> tuple[Any, State]:
        c, delivery, phase = worker[:3]
        if phase == CLAIMED:
            return self._enter(state, w, c, delivery, m)
        if phase == DONE:
            return self._acknowledge(state, w, c, "ack")
        step = worker[3]
        ledger, sem, guids, copies, workers, truth, env = state
        now = self._next(ledger, guids[m], m)
        if now != step and "marker in the bundle" not in self.flaws:
            back = self._put(workers, w, (c, delivery, ENTERED))
            return ("marked", w, c, now), (*state[:4], back, truth, env)
        dead = sem == 0 and step == "WORK" and "a closed job takes nothing" not in self.flaws
        if dead or step == "ACKNOWLEDGE":
            return self._acknowledge(state, w, c, "drop" if dead else "ack")
        after = self._step(ledger, sem, guids, copies, truth, m, step)
        if after is None:
            return self._acknowledge(state, w, c, "drop")
        back = self._put(workers, w, (c, delivery, ENTERED))
        return (step, w, c), (*after[:4], back, after[4], env)

    def _acknowledge(self, state: State, w: int, c: int, verb: str) -> tuple[Any, State]:
        ledger, sem, guids, copies, workers, truth, env = state
        after = self._copy(copies, c, (ACKED, copies[c][1]))
        return (verb, w, c), (ledger, sem, guids, after, self._put(workers, w, IDLE), truth, env)

    def _enter(self, state: State, w: int, c: int, delivery: int, m: int) -> tuple[Any, State]:
        """Count the entry before any work, in a bundle of its own."""
        ledger, sem, guids, copies, workers, truth, env = state
        if m == OPENING:
            verdict, after = self.rules.leg1(ledger)
            room = self.shape.ledger // 10**12 + truth.entries1 < 999
            truth = truth._replace(entries1=truth.entries1 + room)
            guid = 0
        else:
            verdict, after, guid = self.rules.leg2(ledger, guids[m])
            if verdict == "RUN" and not guids[m]:
                truth = truth._replace(entries2=truth.entries2 + 1)
        if verdict == "REFUSE":
            # Nothing is written: the lease that was given for nothing is forgotten, too.
            back = self._copy(copies, c, (READY, copies[c][1] - 1))
            return ("refuse", w, c), (ledger, sem, guids, back, self._put(workers, w, IDLE), truth, env)
        if verdict == "ESCALATE":
            return ("escalate", w, c), (*state[:5], truth._replace(escalated=1), env)
        if m != OPENING and verdict == "RUN" and self._nothing_left(truth, guids, m):
            raise Violation(f"message {m} has nothing left to do and runs")
        phase = DONE if verdict == "ACKNOWLEDGE" else ENTERED
        if "acknowledge after the work" in self.flaws:
            copies = self._copy(copies, c, (ACKED, copies[c][1]))
        guids = self._put(guids, m, guid)
        busy = self._put(workers, w, (c, delivery, phase))
        return ("enter", w, c, verdict), (after, sem, guids, copies, busy, truth, env)

    def _nothing_left(self, truth: Truth, guids: Any, m: int) -> bool:
        done = truth.works[m] and truth.spawns[m]
        return bool(done and (truth.tasks or not self.rules.closed_job(guids[m])))

    def _step(self, ledger: int, sem: int, guids: Any, copies: Any, truth: Truth, m: int, step: str) -> Any:
        """Do one step of a message and set its markers; None when the semaphore refuses it."""
        rules, guid = self.rules, guids[m]
        if step == "LEG1":
            ledger = rules.complete_leg1(ledger)
            copies = self._publish(copies, self.first)
            return ledger, sem, guids, copies, truth._replace(leg1=truth.leg1 + 1)
        if step == "WORK":
            if sem == 0:
                raise Violation(f"message {m} does its work for a job that has ended")
            works = self._put(truth.works, m, truth.works[m] + 1)
            guids = self._put(guids, m, rules.mark_work(guid))
            return rules.mark_activity(ledger, "work"), sem, guids, copies, truth._replace(works=works)
        if step == "CHILDREN":
            try:
                sem, hit = rules.count(sem, self.shape.deltas[m], self.shape.threshold)
            except SemaphoreUnderflow:
                return None
            guid = rules.mark_children(guid, hit if "closer digit in the bundle" not in self.flaws else False)
            spawns = self._put(truth.spawns, m, truth.spawns[m] + 1)
            truth, ledger = truth._replace(spawns=spawns), rules.mark_activity(ledger, "children")
            copies = self._publish(copies, self.opens[m])
            guids = self._put(guids, m, guid)
            by_count = "completion by the closer" in self.flaws and sem == self.shape.threshold
            if not self.shape.one_bundle or not (rules.step(guid) == "TASKS" or by_count):
                return ledger, sem, guids, copies, truth
        if not rules.closed_job(guids[m]):
            return ledger, sem, guids, copies, truth._replace(tasks=truth.tasks + 1)
        guids = self._put(guids, m, rules.mark_tasks(guids[m]))
        return rules.mark_activity(ledger, "tasks"), sem, guids, copies, truth._replace(tasks=truth.tasks + 1)

    def _publish(self, copies: Any, messages: Any) -> Any:
        return tuple(
            (READY, delivery) if status == UNSENT and self.of[c] in messages else (status, delivery)
            for c, (status, delivery) in enumerate(copies)
        )

    def check(self, state: State) -> None:
        """Hold the ledgers against what really happened."""
        ledger, sem, guids, copies, _workers, truth, _env = state
        shape, rules = self.shape, self.rules
        if truth.leg1 > 1 or max(truth.works) > 1 or max(truth.spawns) > 1 or truth.tasks > 1:
            raise Violation(f"a step ran twice: {truth}")
        if truth.entries2 and not truth.leg1:
            raise Violation("leg 2 was entered before leg 1 was complete")
        if any(spawned > worked for spawned, worked in zip(truth.spawns, truth.works, strict=True)):
            raise Violation(f"step 2 ran before step 1: {truth}")
        entries = truth.entries1 * 10**12 + truth.leg1 * 10**11 + truth.entries2
        marks = any(truth.works) * 10**10 + any(truth.spawns) * 10**9 + bool(truth.tasks) * 10**8
        if ledger - shape.ledger != entries + marks:
            raise Violation(f"the activity ledger {ledger:015d} does not say what happened: {truth}")
        closers = [m for m, guid in enumerate(guids) if rules.closed_job(guid)]
        if len(closers) > 1:
            raise Violation(f"messages {closers} both closed the job")
        for m, guid in enumerate(guids):
            said = (rules.work_done(guid), rules.children_spawned(guid), rules.tasks_done(guid))
            true = (truth.works[m], truth.spawns[m], truth.tasks if m in closers else 0)
            if said != true:
                raise Violation(f"the ledger of message {m} is {guid:015d}, and {true} happened")
        moved = sum(delta for delta, done in zip(shape.deltas, truth.spawns, strict=True) if done)
        if sem != shape.semaphore + moved or sem < 0:
            raise Violation(f"the semaphore is {sem} after the deltas {moved}")
        if truth.leg1 > 0 and truth.escalated and not shape.ledger % 10**8:
            raise Violation("a completed leg 1 escalated")
        if all(status == ACKED for status, _ in copies) and not truth.tasks:
            raise Violation("every message is acknowledged and nobody did the completion tasks")
