"""One trial: a fresh file, processes that die or are stopped, others that finish, and a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from tallystick.clock import SystemClock
from tests.crash.sweep import books, facts, oracle, roles
from tests.crash.sweep.oracle import Finding, Wrong
from tests.crash.sweep.place import Place
from tests.crash.sweep.processes import Child, Line
from tests.crash.sweep.roles import BOOKED_KIND, KEYED_KIND, Duty
from tests.patience import let_time_pass

USUAL: Final = (
    *("order", KEYED_KIND, "crawl", "moody", "refused", facts.TICK, "slow", BOOKED_KIND, "order", "crawl"),
)

WAITING: Final = (
    *("approval", "family", "twins", "rounds", "patient", "stubborn", "hasty"),
    *("nap", "brittle", "draft", "clan", "overtime"),
)

# What the first worker submits while it works.
_DIRECT: Final = {USUAL: ("order", "crawl"), WAITING: ("family", "rounds")}
_ROUNDS_MAX = 10
_TEND_SECONDS = 0.05
_HANG_SECONDS = 20.0
_HELD_SECONDS = 20.0
_LOG_CHARACTERS = 2000


class Kind(StrEnum):
    """What a trial does to its processes."""

    CRASH = "crash"
    FLEETING = "fleeting"
    POISON = "poison"
    WAITING = "waiting"
    ZOMBIE = "zombie"


class Stage(StrEnum):
    """Which process is armed; those of the jobs that wait have names of their own."""

    SUBMIT = "submit"
    WORK = "work"
    RECOVER = "recover"
    FLEETING = "come and go"
    ZOMBIE = "zombie"
    SUBMIT_WAITING = "submit of waiting jobs"
    WORK_WAITING = "work on waiting jobs"
    RECOVER_WAITING = "recovery of waiting jobs"
    SEND = "send"


class Relief(StrEnum):
    """Who takes over from a stopped process before it runs again."""

    FINISHED = "another process, which has finished"
    BEGUN = "another process, which is in the same step"
    NOBODY = "nobody: its lease has only run out"
    BLOCKED = "another process, which waits for the lock that it holds"
    SWEPT = "another process, whose sweep has read that its lease is over"


_STAGES: Final = {
    Kind.ZOMBIE: (Stage.RECOVER, Stage.RECOVER),
    Kind.WAITING: (Stage.WORK_WAITING, Stage.RECOVER_WAITING),
}
_FIRST_WORKERS: Final = (Stage.WORK, Stage.WORK_WAITING)

# Not a point: the process is killed from outside, that many milliseconds after it was started.
ANYWHERE: Final = "anywhere"


class Arm(NamedTuple):
    """The process of that stage dies at the k-th visit of a point."""

    stage: Stage
    point: str
    visit: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What happens in a trial."""

    kind: Kind = Kind.CRASH
    arms: tuple[Arm, ...] = ()
    jobs: tuple[str, ...] = USUAL
    beside: bool = False
    hold: str = ""
    relief: Relief = Relief.FINISHED
    mutant: str = ""
    seconds: float = 30.0
    leave_ms: int = 0
    count: bool = False

    def __str__(self) -> str:
        """Say the case in one line, so that a failure can be repeated."""
        arms = " then ".join(f"{arm.stage} {arm.point}:{arm.visit}" for arm in self.arms)
        extras = [f"held at {self.hold} for {self.relief}"] if self.hold else []
        extras += ["beside another worker"] if self.beside else []
        extras += [f"leaving after {self.leave_ms} ms"] if self.leave_ms else []
        extras += [f"with {self.mutant}"] if self.mutant else []
        return " ".join([self.kind, arms, *extras]).strip()


@dataclass(slots=True)
class Verdict:
    """What came of a trial."""

    kills: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    visits: dict[str, dict[str, int]] = field(default_factory=dict)
    refused: int = 0
    stopped: bool = False

    def text(self) -> str:
        """Return the verdict as a line."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Verdict:
        """Read a verdict from its line."""
        verdict = cls(**json.loads(text))
        verdict.findings = [Finding(Wrong(wrong), what) for wrong, what in verdict.findings]
        return verdict


class Trial:
    """The course of one case."""

    def __init__(self, case: Case, place: Place) -> None:
        """Prepare a trial in a folder of its own."""
        self._case = case
        self._place = place
        self._arms = list(case.arms)
        self._children: list[Child] = []
        self._sender: Child | None = None
        self.verdict = Verdict()

    def run(self) -> Verdict:
        """Let it happen, and judge the books at the end."""
        try:
            if self._case.kind is Kind.FLEETING:
                self._repeat(Stage.FLEETING, Stage.FLEETING, self._coming_and_going)
            else:
                self._submit()
                if set(self._case.jobs) & set(WAITING):
                    self._sender = self._start(Stage.SEND, self._sending)
                if self._case.kind is Kind.ZOMBIE:
                    self._stop_and_take_over()
                self._work()
                self._dismiss()
        finally:
            for child in self._children:
                child.end()
        self._judge(finished=True)
        self._add_the_log()
        return self.verdict

    def _submit(self) -> None:
        def submit(line: Line, duty: Duty) -> int:
            return roles.submit(self._place, line, duty, self._case.jobs, len(self._children))

        stage = Stage.SUBMIT_WAITING if self._case.kind is Kind.WAITING else Stage.SUBMIT
        self._repeat(stage, stage, submit)

    def _work(self) -> None:
        """Let workers work, one after the other as they die, until one of them sees everything done."""
        case = self._case
        first, later = _STAGES.get(case.kind, (Stage.WORK, Stage.RECOVER))
        helper: Child | None = None
        if case.beside or case.kind is Kind.POISON:
            queues = tuple(queue for queue in facts.QUEUES if queue != "poison")
            helper = self._start(None, self._working, queues=queues)
        self._repeat(first, later, self._working, alone=helper is None)
        if helper is not None:
            self._ended(helper, None)

    def _dismiss(self) -> None:
        """Wait until the sender has seen that everything is done."""
        if self._sender is not None:
            self._ended(self._sender, Stage.SEND, alone=False)
            self._sender = None

    def _repeat(
        self, first: Stage, later: Stage, body: Callable[[Line, Duty], int], *, alone: bool = True
    ) -> None:
        stage = first
        for _round in range(_ROUNDS_MAX):
            child = self._start(stage, body)
            if self._ended(child, stage, alone=alone):
                return
            stage = later
        self._find(Wrong.STUCK, f"not done after {_ROUNDS_MAX} processes")

    def _stop_and_take_over(self) -> None:
        """Stop a worker in the middle of a step, let its lease run out, take over, and let it go on."""
        case = self._case
        zombie = self._start(Stage.ZOMBIE, self._working, hold=case.hold)
        held = zombie.listen(_HELD_SECONDS) == "held"
        if case.relief is Relief.BLOCKED:
            self.verdict.stopped = held and zombie.stop()
        else:
            self.verdict.stopped = held and zombie.stop_outside_transactions(self._place.is_quiet)
        if not self.verdict.stopped:
            self._ended(zombie, Stage.ZOMBIE)
            return
        other: Child | None = None
        match case.relief:
            case Relief.FINISHED:
                self._ended(self._start(None, self._working), None, alone=False)
            case Relief.BEGUN:
                other = self._start(None, self._working, hold=case.hold)
                other.listen(_HELD_SECONDS)
            case Relief.BLOCKED:
                other = self._start(None, self._working)
                let_time_pass(self._place.lease_ms * 1.7 / 1000)
            case Relief.SWEPT:
                raise ValueError("a flush is held where nobody is stopped; choose another relief")
            case Relief.NOBODY:
                let_time_pass(self._place.lease_ms * 1.7 / 1000)
        zombie.revive()
        zombie.go_on()
        if case.relief is Relief.BEGUN:
            self._await_report(zombie)
        if other is not None:
            other.go_on()
            self._ended(other, None, alone=False)
        self._ended(zombie, Stage.ZOMBIE)

    def _await_report(self, zombie: Child) -> None:
        """Wait until the store has taken or refused what a process that was held had to report."""
        clock = SystemClock()
        until = clock.monotonic() + _HELD_SECONDS
        while not self._place.marked(roles.reported(zombie.pid)) and clock.monotonic() < until:
            if zombie.wait(self._place.look_seconds) is not None:
                return

    def _working(self, line: Line, duty: Duty) -> int:
        return roles.work(self._place, line, duty)

    def _coming_and_going(self, line: Line, duty: Duty) -> int:
        return roles.come_and_go(self._place, line, duty)

    def _sending(self, line: Line, duty: Duty) -> int:
        return roles.send(self._place, line, duty)

    def _start(
        self,
        stage: Stage | None,
        body: Callable[[Line, Duty], int],
        *,
        queues: tuple[str, ...] = facts.QUEUES,
        hold: str = "",
    ) -> Child:
        """Fork a process, armed if its stage is the next one to die."""
        case = self._case
        arm = self._arms.pop(0) if self._arms and self._arms[0].stage == stage else None
        leaves = stage in _FIRST_WORKERS and case.leave_ms
        armed = f"{arm.point}:{arm.visit}" if arm else ""
        duty = Duty(
            arm=armed if arm and arm.point != ANYWHERE else "",
            hold=hold or (case.hold if case.kind is Kind.CRASH else ""),
            mutant=case.mutant,
            count=case.count and arm is None,
            queues=queues,
            submits=_DIRECT.get(case.jobs, ()) if stage in _FIRST_WORKERS else (),
            seconds=case.leave_ms / 1000 if leaves else case.seconds,
            grace=0.01 if leaves else 5.0,
        )
        child = Child(lambda line: body(line, duty), self._place.log, armed)
        if arm and arm.point == ANYWHERE and child.wait(arm.visit / 1000) is None:
            child.kill()
        self._children.append(child)
        return child

    def _ended(self, child: Child, stage: Stage | None, *, alone: bool = True) -> bool:
        """Wait for a process; tell whether it did all it should. A death at its point is what we wanted."""
        status = self._outcome(child)
        if status is None:
            child.end()
            self._find(Wrong.STUCK, f"the process of {stage or 'the helper'} hangs")
            return True
        if child.killed and child.armed:
            self.verdict.kills.append(child.armed)
            if alone:
                self._judge(finished=False)
            return False
        if stage is not None and child.last_words:
            self.verdict.visits[stage] = json.loads(child.last_words)
        left = status == facts.EXIT_UNFINISHED and stage in _FIRST_WORKERS and self._case.leave_ms
        if status == facts.EXIT_POISONED or left:
            return False
        if status not in {0, facts.EXIT_UNFINISHED}:
            self._find(Wrong.BROKEN, f"the process of {stage or 'the helper'} ended with status {status}")
        return True

    def _outcome(self, child: Child) -> int | None:
        """Wait for a process, and meanwhile replace the sender when it dies."""
        clock = SystemClock()
        until = clock.monotonic() + self._case.seconds + _HANG_SECONDS
        while child.wait(_TEND_SECONDS) is None and clock.monotonic() < until:
            sender = self._sender
            if sender is not None and sender is not child and sender.wait(0) is not None:
                done = self._ended(sender, Stage.SEND, alone=False)
                self._sender = None if done else self._start(Stage.SEND, self._sending)
        return child.status

    def _judge(self, *, finished: bool) -> None:
        """Judge the books; a sender that is at work holds still outside of transactions while we look."""
        sender = self._sender
        held = (
            sender is not None
            and sender.status is None
            and sender.stop_outside_transactions(self._place.is_quiet)
        )
        found = books.read(self._place)
        offset = wall_minus_boot_ms(self._place)
        self.verdict.findings += oracle.judge(
            self._place, found, finished=finished, wall_minus_boot_ms=offset
        )
        if sender is not None and held:
            sender.revive()
        self.verdict.refused = sum(found.stale.values())

    def _add_the_log(self) -> None:
        """Add to the first finding what the processes said last: the place may be gone when it is read."""
        if self.verdict.findings and self._place.log.exists():
            wrong, text = self.verdict.findings[0]
            said = self._place.log.read_text("utf-8")[-_LOG_CHARACTERS:].strip()
            self.verdict.findings[0] = Finding(wrong, f"{text}\n{said}" if said else text)

    def _find(self, wrong: Wrong, text: str) -> None:
        self.verdict.findings.append(Finding(wrong, text))


def wall_minus_boot_ms(place: Place) -> int:
    """Return how far the clock of facts is ahead of the clock of leases; on a server both are one.

    A process that is put aside between its looks at the two sees too small a difference, so the largest
    of several is right.
    """
    clock = SystemClock()
    return 0 if place.server else max(clock.wall_ms() - clock.boot_ms() for _ in range(9))


def run(case: Case, place: Place) -> Verdict:
    """Run one case in a folder of its own."""
    verdict = Trial(case, place).run()
    if place.server and not verdict.findings:
        from tests.crash.sweep import postgres_books

        postgres_books.drop(place)
    return verdict
