"""A worker never stalls: every interleaving of a small world is tried, and each gap is shown to matter.

Work is durable before somebody says so; a look reads at one moment and is answered at a later one; a slot
decides whether to ask at one moment and is free at a later one. If nothing more is on its way and a slot is
free, then nothing that it could run is left.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tallystick.worker.claim_demand import ClaimDemand, Look

SLOTS = 2


class Broken(Exception):
    """A state that must not be."""


@dataclass(frozen=True, slots=True)
class World:
    """What is in the queue, on its way, and running; what may still happen to it is bounded."""

    lookout: tuple[Any, ...]
    ordinary: int = 0
    suspects: int = 0
    unsaid: int = 0
    to_come: tuple[str, ...] = ()
    failures: int = 0
    needless: int = 0
    # A look, and what it has read: ordinary jobs and suspects, or None before it has.
    out: tuple[tuple[Look, tuple[int, int] | None], ...] = ()
    running: int = 0
    running_suspects: int = 0
    suspects_over: int = 0
    leaving: int = 0


def frozen(lookout: ClaimDemand) -> tuple[Any, ...]:
    return tuple(getattr(lookout, name) for name in ClaimDemand.__slots__)


class Search:
    """All states that can be reached with one kind of lookout."""

    def __init__(self, kind: type[ClaimDemand]) -> None:
        self.kind = kind

    def thawed(self, world: World) -> ClaimDemand:
        lookout = self.kind(SLOTS)
        for name, value in zip(ClaimDemand.__slots__, world.lookout, strict=True):
            setattr(lookout, name, value)
        return lookout

    def did(self, world: World, act: Callable[[ClaimDemand], Look | None], **changes: Any) -> World:
        """Return the world after something was done to the lookout; a look that is due is made."""
        lookout = self.thawed(world)
        look = act(lookout)
        after = replace(world, lookout=frozen(lookout), **changes)
        return after if look is None else replace(after, out=(*after.out, (look, None)))

    def next(self, world: World) -> Iterator[World]:
        yield from self.outside(world)
        yield from self.looks(world)
        yield from self.slots(world)

    def outside(self, world: World) -> Iterator[World]:
        if world.to_come:
            kind, *rest = world.to_come
            more = {kind: getattr(world, kind) + 1}
            yield replace(world, **more, unsaid=world.unsaid + 1, to_come=tuple(rest))
        if world.unsaid:
            yield self.did(world, lambda lookout: lookout.say(), unsaid=world.unsaid - 1)
        if world.needless:
            yield self.did(world, lambda lookout: lookout.say(), needless=world.needless - 1)
        if self.thawed(world).failed:
            yield self.did(world, lambda lookout: lookout.say())

    def looks(self, world: World) -> Iterator[World]:
        for index, (look, read) in enumerate(world.out):
            others = world.out[:index] + world.out[index + 1 :]
            if read is None:
                suspects = min(world.suspects, int(look.suspects))
                found = (min(world.ordinary, look.slots - suspects), suspects)
                left = {"ordinary": world.ordinary - found[0], "suspects": world.suspects - suspects}
                yield replace(world, out=(*others, (look, found)), **left)
                if world.failures:
                    yield self.failed(replace(world, out=others, failures=world.failures - 1), look)
            else:
                yield self.answered(replace(world, out=others), look, read)

    def failed(self, world: World, look: Look) -> World:
        lookout = self.thawed(world)
        lookout.unanswered(look)
        return replace(world, lookout=frozen(lookout))

    def answered(self, world: World, look: Look, read: tuple[int, int]) -> World:
        running = {
            "running": world.running + read[0],
            "running_suspects": world.running_suspects + read[1],
        }
        return self.did(
            world, lambda lookout: lookout.answered(look, sum(read), suspect=bool(read[1])), **running
        )

    def slots(self, world: World) -> Iterator[World]:
        if world.running:
            yield self.ended(replace(world, running=world.running - 1))
        if world.running_suspects:
            over = {"suspects_over": world.suspects_over + 1}
            yield self.ended(replace(world, running_suspects=world.running_suspects - 1, **over))
        if world.suspects_over:
            changes = {"suspects_over": world.suspects_over - 1}
            yield self.did(world, lambda lookout: lookout.suspect_ended(), **changes)
        if world.leaving:
            yield self.did(world, lambda lookout: lookout.give_back(), leaving=world.leaving - 1)

    def ended(self, world: World) -> World:
        """The slot of a job that has ended asks for the next, or will be free."""
        if self.thawed(world).wanted:
            return self.did(world, lambda lookout: lookout.go_on(1))
        return replace(world, leaving=world.leaving + 1)

    def check(self, world: World) -> None:
        lookout = self.thawed(world)
        taken = world.running + world.running_suspects + world.leaving
        if lookout.free + taken + sum(look.slots for look, _ in world.out) != SLOTS:
            raise Broken("a slot was lost or found")
        if world.running_suspects + sum(read[1] for _, read in world.out if read) > 1:
            raise Broken("two suspects at once")
        on_its_way = world.out or world.unsaid or world.leaving or world.suspects_over or lookout.failed
        runnable = world.ordinary or (world.suspects and not world.running_suspects)
        if runnable and lookout.free and not on_its_way:
            raise Broken("a stall: work, a free slot, and nobody looks")

    def everything(self, start: World) -> int:
        """Check every state, and that none comes back: a worker that has nothing to do does nothing."""
        open_: list[tuple[World, Iterator[World]]] = []
        above: set[World] = set()
        done: set[World] = set()

        def enter(world: World) -> None:
            self.check(world)
            above.add(world)
            open_.append((world, self.next(world)))

        enter(start)
        while open_:
            world, following = open_[-1]
            child = next(following, None)
            if child is None:
                open_.pop()
                above.discard(world)
                done.add(world)
            elif child in above:
                raise Broken("looks for ever")
            elif child not in done:
                enter(child)
        return len(done)


def searched(kind: type[ClaimDemand], *to_come: str, failures: int = 0, needless: int = 0) -> int:
    lookout = kind(SLOTS)
    lookout.shut = False
    start = World(frozen(lookout), to_come=to_come, failures=failures, needless=needless)
    return Search(kind).everything(start)


WORLDS = [
    (("ordinary", "ordinary", "ordinary"), {"failures": 1, "needless": 1}),
    (("suspects", "suspects", "suspects"), {"needless": 1}),
    (("suspects", "ordinary", "suspects"), {"failures": 1}),
    (("ordinary", "suspects", "ordinary"), {"needless": 1}),
]


@pytest.mark.parametrize(("to_come", "bounds"), WORLDS)
@pytest.mark.slow
def test_whatever_the_order_a_free_slot_finds_what_it_can_run_and_then_rests(to_come, bounds):
    assert searched(ClaimDemand, *to_come, **bounds) > 500


class AnswersForWhatWasSaidMeanwhile(ClaimDemand):
    def answered(self, look, found, *, suspect):
        return super().answered(look._replace(began=self._said), found, suspect=suspect)


class BelievesAFullLook(ClaimDemand):
    def answered(self, look, found, *, suspect):
        self._looked = max(self._looked, look.began)
        return super().answered(look, found, suspect=suspect)


class DoesNotLookAgain(ClaimDemand):
    def answered(self, look, found, *, suspect):
        before = copy.copy(self)
        again = super().answered(look, found, suspect=suspect)
        if again is not None:
            self.free, self._sharing, self._suspect_out = self.free + again.slots, False, before._suspect_out


class ForgetsWhoSpokeDuringALook(ClaimDemand):
    def say(self):
        return None if self._sharing else super().say()


class LeavesWithoutListening(ClaimDemand):
    def give_back(self, slots=1):
        self.free += slots


class AnswersForSuspectsItMayNotBring(ClaimDemand):
    def answered(self, look, found, *, suspect):
        if found < look.slots:
            self._looked_for_suspects = max(self._looked_for_suspects, look.began)
        return super().answered(look, found, suspect=suspect)


class ForgetsTheOtherSuspects(ClaimDemand):
    def suspect_ended(self):
        self._suspect_out = False


class BringsSuspectsWithoutEnd(ClaimDemand):
    def go_on(self, slots):
        return super().go_on(slots)._replace(suspects=True)


class TakesAFailureForNothing(ClaimDemand):
    def unanswered(self, look):
        super().unanswered(look)
        self.failed = False
        self._looked = self._looked_for_suspects = look.began


class NeverRests(ClaimDemand):
    @property
    def wanted(self):
        return True


GAPS = [
    AnswersForWhatWasSaidMeanwhile,
    BelievesAFullLook,
    DoesNotLookAgain,
    ForgetsWhoSpokeDuringALook,
    LeavesWithoutListening,
    AnswersForSuspectsItMayNotBring,
    ForgetsTheOtherSuspects,
    BringsSuspectsWithoutEnd,
    TakesAFailureForNothing,
    NeverRests,
]


@pytest.mark.parametrize("kind", GAPS)
@pytest.mark.slow
def test_every_gap_is_found(kind):
    with pytest.raises(Broken):
        sum(searched(kind, *to_come, **bounds) for to_come, bounds in reversed(WORLDS))
