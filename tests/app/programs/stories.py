"""Short stories of jobs, one for each kind: a process plays one from where it stands, or dies in it.

python -m tests.app.programs.stories: every line of its input is one process, a fork of this one. It says at
which day the process comes (what an earlier one held has run out by then), which job of which kind it is
about, and at which visit of which crash point it is killed. All that happens in a story may happen again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from tallystick import (
    ChildrenFailed,
    Job,
    Retry,
    StepFailed,
    Tally,
    Tx,
    again,
    aio,
    crash,
    current,
    gather,
    sleep,
    wait,
)
from tallystick.testing.stepping import SteppedWorker, VirtualClock, reclaim
from tests.fork_server import serve

CHILDREN = "children"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SOON = Retry(3, first="1ms")


class Scene(NamedTuple):
    """What a story happens with."""

    app: Tally
    clock: VirtualClock
    job: Job[Any]

    def work(self) -> None:
        """Work until nothing is due."""
        SteppedWorker(self.app, self.clock).work_all()

    def work_as_a_family(self) -> None:
        """Work until nothing is due; children go first."""
        children = SteppedWorker(self.app, self.clock, queues=(CHILDREN,))
        others = SteppedWorker(self.app, self.clock)
        while True:
            children.work_all()
            if others.work() == "idle":
                return

    def say(self, name: str) -> None:
        """Send a signal, which may have been sent."""
        self.job.send(name, True, id=name)


class Story(NamedTuple):
    """Which workflow is submitted, and what happens then."""

    workflow: str
    happens: Callable[[Scene], None] = Scene.work
    argument: tuple[Any, ...] = ()


def _declare_steps(app: Tally) -> None:
    @app.step(retry=SOON)
    def stumble() -> int:
        if current().try_number < 3:
            raise ValueError("not yet")
        return 1

    @app.step(retry=SOON)
    def never() -> int:
        raise ValueError("never")

    @app.tx
    def book(db: Tx) -> int:
        return 1

    @app.step
    def more() -> int:
        return 2

    @app.workflow
    def tries() -> None:
        stumble()
        book()
        try:
            never()
        except StepFailed:
            return

    @app.workflow
    def fails() -> None:
        more()
        raise ValueError("no")

    @app.workflow
    def forked() -> int:
        return stumble() + more()

    @app.workflow
    def turns(n: int) -> int:
        more()
        return again(n + 1) if n < 5 else n


def _declare_waits(app: Tally) -> None:
    @app.step
    def work() -> int:
        return 1

    @app.workflow
    def waits() -> None:
        wait("go", bool)
        work()

    @app.workflow
    def waits_again() -> None:
        wait("go", bool)
        work()
        wait("on", bool)

    @app.workflow
    def timed() -> None:
        wait("go", bool, timeout="10h")

    @app.workflow
    def sleeps() -> None:
        sleep("10h")

    @app.workflow
    def early() -> None:
        wait("early", bool)
        wait("go", bool, timeout="100d")

    @app.workflow
    async def both() -> None:
        await asyncio.gather(aio.wait("a", bool), aio.wait("b", bool))


def _declare_groups(app: Tally) -> None:
    @app.workflow(queue=CHILDREN)
    def child(n: int) -> int:
        if n < 0:
            raise ValueError("negative")
        return n

    @app.workflow
    def three() -> int:
        return sum(gather(*(child.child(n) for n in range(3))))

    @app.workflow
    def enough() -> int:
        return len(gather(*(child.child(n) for n in range(2)), enough=1))

    @app.workflow
    def first_failure() -> int:
        try:
            gather(child.child(-1), child.child(2), fail_fast=True)
        except ChildrenFailed:
            return 1
        return 0


def declare(app: Tally) -> Tally:
    """Declare the workflows of all stories."""
    _declare_steps(app)
    _declare_waits(app)
    _declare_groups(app)
    return app


def _answered(*names: str) -> Callable[[Scene], None]:
    def happens(scene: Scene) -> None:
        scene.work()
        for name in names:
            scene.say(name)
            scene.work()

    return happens


def _in_time(scene: Scene) -> None:
    scene.work()
    scene.clock.advance(10 * HOUR_MS)
    scene.work()


def _too_early(scene: Scene) -> None:
    scene.say("early")
    _answered("go")(scene)


def _forked(scene: Scene) -> None:
    scene.work()
    scene.job.fork(at="more", id=f"fork-{scene.job.id}")
    scene.work()


def _cancelled(scene: Scene) -> None:
    scene.job.cancel()
    scene.work()


def _cancelled_waiting(scene: Scene) -> None:
    scene.work()
    _cancelled(scene)


STORIES = {
    "tries": Story("tries"),
    "a failed job": Story("fails"),
    "wait": Story("waits", _answered("go")),
    "wait and wait": Story("waits_again", _answered("go", "on")),
    "timeout": Story("timed", _in_time),
    "sleep": Story("sleeps", _in_time),
    "early signal, late timer": Story("early", _too_early),
    "two waits": Story("both", _answered("a", "b")),
    "group": Story("three", Scene.work_as_a_family),
    "enough": Story("enough", Scene.work_as_a_family),
    "first failure": Story("first_failure", Scene.work_as_a_family),
    "five turns": Story("turns", argument=(0,)),
    "cancelled before it began": Story("waits", _cancelled),
    "cancelled while it waits": Story("waits", _cancelled_waiting),
    "fork": Story("forked", _forked),
}


def play(command: dict[str, Any]) -> int:
    """Take over what was lost, and play the story of a job to its end, or until the process is killed."""
    story = STORIES[command["kind"]]
    clock = VirtualClock()
    clock.advance(command["days"] * DAY_MS)
    app = declare(Tally(command["url"], clock=clock))
    scene = Scene(app, clock, app.job(command["job"]))
    reclaim(app)
    crash.arm(command["dies_at"])
    story.happens(scene)
    crash.arm("")
    app.close()
    return 0


if __name__ == "__main__":
    serve(play)
