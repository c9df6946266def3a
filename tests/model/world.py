"""What a small world may do, and how its script becomes the bundles that an engine writes."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallystick.clock import Clock, VirtualClock
from tallystick.core.chain import Chain
from tallystick.core.verbs.holds import Hold
from tallystick.engine.failure import Failure
from tallystick.engine.segment import GroupShape, Segment
from tallystick.engine.submission import Submission
from tallystick.store.api import AskRemotes, Bundle, ClaimedJob, Fence, Group, Wait, Wake
from tests.model import remote_steps

TIMER_MS = 10**12
GATHER = Group(0, "gather", 1)
CLOCK = VirtualClock(0, 0)
WAITS = ("wait", "any", "join", "gather", "remote", "remotes")


class Sent(NamedTuple):
    """What may arrive for the first job, and the name of the wait that it is meant for."""

    kind: str
    name: str


class Shape(NamedTuple):
    """A small world: what the workflow does, what may arrive, and how much may go wrong."""

    script: tuple[tuple[Any, ...], ...]
    messages: tuple[Sent, ...] = ()
    children: int = 0
    threshold: int = 0
    fail_fast: bool = False
    child_fails: bool = False
    workers: int = 2
    crashes: int = 1
    zombies: int = 1
    cancels: int = 0
    cancels_children: bool = False
    pauses: int = 0
    deliveries: int = 1
    budget: int = 2
    skew: bool = False
    commits: bool = False
    refuses: bool = False
    deadline: bool = False
    # How often a remote step is asked for.
    asked: int = 2

    def script_of(self, j: int) -> tuple[tuple[Any, ...], ...]:
        """Return what a job does; children do nothing but end."""
        return (("return",),) if j else self.script

    def dimension(self, place: int) -> int:
        return sum(op[0] == "again" for op in self.script[:place])

    def occurrence(self, place: int, name: str) -> int:
        """Return which wait of this name a place is, in its turn."""
        start = max((at + 1 for at in range(place) if self.script[at][0] == "again"), default=0)
        named = [op for op in self.script[start : place + 1] if op[0] in ("wait", "any", "remote", "remotes")]
        return sum(name in op[1:] for op in named)

    def resumes_at(self, j: int, place: int) -> int:
        """Return where a segment begins: spawning leaves no record, so a replay does it again."""
        script = self.script_of(j)
        while place and script[place - 1][0] == "spawn":
            place -= 1
        return place

    def waits_at(self, place: int, due_at: int | None = None) -> tuple[Wait, ...]:
        """Return what the script waits for at a place; a wait that is `timed` has a timer."""
        op = self.script[place]
        if op[0] in ("join", "gather"):
            return (Wait("group", *GATHER[1:], None),)
        names = [name for name in op[1:] if name != "timed"]
        due_at = due_at if "timed" in op else None
        if op[0] in ("remote", "remotes", "ask"):
            turn, before = self.dimension(place), int(op[0] == "ask")
            return tuple(
                remote_steps.as_wait(name, self.occurrence(place, name) + before, turn, self.asked)
                for name in names
            )
        return tuple(Wait("wait", name, self.occurrence(place, name), due_at) for name in names)


class Run(NamedTuple):
    """What a worker knows of the segment that it runs; all of it is lost in a crash."""

    j: int
    attempt: int
    place: int
    phase: int
    driver: str
    wake: Wake | None
    told: bool
    called: bool = False


def job_id(name: str, j: int) -> str:
    return name if j == 0 else GATHER.child_id(name, j - 1)


def parent_of(name: str, j: int) -> tuple[str, str] | None:
    return (name, str(GATHER)) if j else None


def segment_of(name: str, shape: Shape, run: Run) -> Segment:
    """Return the segment that a worker runs, as an engine would have it after the claim."""
    mine = job_id(name, run.j)
    dimension = 0 if run.j else shape.dimension(run.place)
    about = (Fence(mine, run.attempt, lease_of(run.attempt)), "flow", "", "{}", "{}", dimension, None, 0)
    claimed = ClaimedJob(*about, Chain(mine), (), (), 0)
    parent = parent_of(name, run.j)
    return Segment(
        claimed._replace(driver=run.driver, parent=parent, cancelling=run.told, wake=run.wake), CLOCK
    )


def lease_of(attempt: int) -> str:
    return f"lease-{attempt}"


def written_by(segment: Segment, name: str, shape: Shape, run: Run, clock: Clock = CLOCK) -> Bundle:
    """Return the bundle that a segment writes for the call at its place."""
    op = shape.script_of(run.j)[run.place]
    if op[0] in ("tx", "effect"):
        return (segment.step_succeeded("tx", f"s{run.place}", 1, '"r"', 0),)
    if op[0] == "ask":
        claimed = segment.claimed
        return (AskRemotes(segment.fence, claimed.chain, claimed.dimension, shape.waits_at(run.place)),)
    if op[0] == "spawn":
        return _births(segment, name, shape, *(op[1:] or (0, shape.children)))
    if op[0] in WAITS:
        waits = shape.waits_at(run.place, clock.boot_ms() + TIMER_MS)
        foretold = segment.foretold(waits[0]) if len(waits) == 1 else None
        if foretold is not None:
            segment.take(waits[0], foretold)
            return segment.decided()
        births = _births(segment, name, shape, 0, shape.children) if op[0] == "gather" else ()
        return segment.awaiting(*waits, asked=run.told, after=births)
    return segment.turned("{}") if op[0] == "again" else segment.returned('"ok"')


def _births(segment: Segment, name: str, shape: Shape, start: int, stop: int) -> Bundle:
    some = [
        Submission(handler="flow", payload="{}", queue=f"{name}-{child + 1}", attempts_max=shape.budget)
        for child in range(start, stop)
    ]
    group = GroupShape(shape.children, shape.threshold, shape.fail_fast)
    return segment.spawning(GATHER, some, start, group)


FAILURE = Failure(type="E", message="no", code="E")


def ended_by(segment: Segment, verb: str) -> Bundle:
    """Return the bundle of a segment that stops, is put away, is refused or fails instead of going on."""
    if verb == "stop":
        return segment.cancelled_by_request()
    if verb == "refuse":
        return segment.held(Hold.REFUSED, "refused")
    return segment.put_away() if verb == "rest" else segment.failed(FAILURE)


def guid_of(name: str, m: int) -> str:
    return f"{name}:signal-{m}"
