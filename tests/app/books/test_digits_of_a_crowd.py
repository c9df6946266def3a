"""The digits of a group of 1,200 through deaths at every commit of its parent and kind of its children's."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Self

import pytest

from tallystick import Tally
from tallystick.testing.stepping import VirtualClock
from tests.app import digits_by_hand as expected
from tests.app.crowd_books import books_of
from tests.app.programs import crowd
from tests.app.programs.crowd import Part

# How the commits of `digits_by_hand.CROWD` are made, each the last one of its process.
STORY = {
    "claimed": Part("parent", "", "claim"),
    "500 are born": Part("parent", "", "run"),
    "500 claimed": Part("children", "500", "claim"),
    "500 end early": Part("children", "500", "run"),
    "born again": Part("parent", "", "run"),
    "1,000 are born": Part("parent", "", "run", visit=2),
    "200 end early": Part("children", "200", "run"),
    "all are born": Part("parent", "", "run", visit=3),
    "one claimed": Part("children", "1", "claim"),
    "one ends": Part("children", "1", "run"),
    "one cancelled": Part("cancel", "the last child", "run"),
    "497 end": Part("children", "497", "run"),
    "the last ends": Part("children", "1", "run"),
    "parent joins": Part("parent", "", "claim"),
    "parent returns": Part("parent", "", "run"),
}


class Stage:
    """A store with a parent, and processes that come one after the other, an hour apart."""

    def __init__(self, url: str, many: int, bundle: int) -> None:
        self.app = Tally(url, clock=VirtualClock())
        self.many = many
        self._parent = crowd.declare(self.app)
        self.job = self._parent.submit(many)
        self._hours = 0
        self._forks = subprocess.Popen(
            [sys.executable, "-m", crowd.__name__, url, str(bundle)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._forks.communicate()
        self.app.close()

    def begin_anew(self) -> None:
        self.job = self._parent.submit(self.many)

    def books(self) -> str:
        return books_of(self.app, self.job.id, many=self.many)

    def last_child(self) -> str:
        with self.app.connect() as db:
            ((found,),) = db.execute(f"select max(job_id) from jobs where parent_job_id = '{self.job.id}'")
        return found

    def play(self, part: Part) -> int:
        """Let a process take its part, and return how it ended."""
        if part.role == "cancel":
            part = part._replace(about=self.last_child())
        self._hours += 1
        self._forks.stdin.write(f"{json.dumps((self._hours, *part))}\n")
        self._forks.stdin.flush()
        return int(self._forks.stdout.readline())


@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", pytest.param("postgres", marks=pytest.mark.long)], indirect=True)
def test_deaths_at_every_commit_of_a_parent_of_1200_and_at_every_kind_of_commit_of_its_children(url):
    lines = [line.split() for line in expected.CROWD.strip().splitlines()]
    by_hand = {" ".join(line[:-10]): " ".join(line[-10:]) for line in lines}
    with Stage(url, 1_200, 500) as stage:
        seen = {"submitted": stage.books()}
        assert seen["submitted"] == by_hand["submitted"]
        for name, part in STORY.items():
            for side, word in (("before", "before"), ("after", "behind")):
                assert stage.play(part._replace(side=side)) == -signal.SIGKILL, (name, side)
                seen[f"{word}: {name}"] = stage.books()
                assert seen[f"{word}: {name}"] == by_hand[f"{word}: {name}"], f"{word}: {name}"
        assert list(seen) == list(by_hand)
        assert stage.job.result(0) == 3


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("many", "bundle", "together", "at_least"), [(1_200, 500, 400, 11), (12, 5, 1, 29)])
def test_one_death_at_each_commit_of_a_whole_story(url, many, bundle, together, at_least):
    """The process dies once, at any of its commits, and another does what is left."""
    everything = Part("all", str(together), "claim")
    with Stage(url, many, bundle) as stage:
        for side in ("before", "after"):
            commits = 1
            while stage.play(everything._replace(side=side, visit=commits)) == -signal.SIGKILL:
                was_cut = "001000000000000" in stage.books().split()
                assert stage.play(everything._replace(phase="")) == 0
                ended = expected.CROWD_CUT if was_cut else expected.CROWD_ENDED
                assert stage.books() == ended[many], (side, commits)
                assert stage.job.result(0) == 2
                stage.begin_anew()
                commits += 1
            assert stage.books() == expected.CROWD_ENDED[many]
            assert commits > at_least
            stage.begin_anew()
