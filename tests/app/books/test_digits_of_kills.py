"""The digits of jobs of every kind, with a kill at every commit in turn: what is left, what comes of it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tallystick import Tally
from tallystick.testing.stepping import VirtualClock, check_books
from tests.app import digits_by_hand as expected
from tests.app.programs import stories
from tests.app.story_books import Ledgers, ledgers_of
from tests.fork_server import ForkServer

# Where each store commits what is ours; on a server a tx has a connection of its own.
POINTS = {"sqlite": ("sqlite.commit",), "postgres": ("postgres.commit", "postgres.tx_commit")}
# Which kinds are killed on a server in every run of the suite; all of them are in the long one.
IN_SUITE = ("tries", "wait", "cancelled while it waits")
_CHILD = dict(zip(("queued", "claimed", "ended"), expected.CHILD, strict=False))


def by_hand(kind: str) -> list[Ledgers]:
    """Return every ledger as it is after each commit, from what each commit writes."""
    states = [_read(expected.SUBMITTED)]
    for line in expected.COMMITS[kind].strip().splitlines():
        states.append(states[-1] | _read(line.partition(": ")[2]))
    return states


def _read(line: str) -> Ledgers:
    found: Ledgers = {}
    for part in line.split(", "):
        name, _, digits = part.rpartition(" ")
        if digits in _CHILD:
            found[f"{name} root"], found[f"{name} start"] = _CHILD[digits]
        else:
            assert len(digits) == 15
            found[name] = digits
    return found


class Theatre:
    """A store in which one story after the other is played, each by processes that come days apart."""

    def __init__(self, url: str, kind: str, forks: ForkServer) -> None:
        self.app = stories.declare(Tally(url, clock=VirtualClock()))
        self._forks = forks
        self._url, self._kind = url, kind
        self._days = 0
        self.job = ""

    def begin(self) -> None:
        story = stories.STORIES[self._kind]
        self.job = self.app.workflows[story.workflow, ""].submit(*story.argument).id

    def play(self, dies_at: str = "") -> int:
        """Let a process play the story from where it stands, and return how that process ended."""
        self._days += 1
        return self._forks.run(url=self._url, kind=self._kind, job=self.job, days=self._days, dies_at=dies_at)

    def ledgers(self) -> Ledgers:
        return ledgers_of(self.app, self.job)


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    server = ForkServer(stories.__name__)
    yield server
    server.close()


def killed(theatre: Theatre, point: str, states: list[Ledgers]) -> list[tuple[int, int]]:
    """Kill a process at each visit of a point, let another one end the story, and return what was left.

    What was left is told by the commits that it is of: in front of the commit, and behind it.
    """
    left: list[tuple[int, int]] = []
    while True:
        visit = len(left) + 1
        found = []
        for side in ("before", "after"):
            theatre.begin()
            if theatre.play(f"{point}.{side}:{visit}") != -signal.SIGKILL:
                assert theatre.ledgers() == states[-1]
                return left
            found.append(number(theatre.ledgers(), states, (point, side, visit)))
            assert theatre.play() == 0
            assert theatre.ledgers() == states[-1], (point, side, visit)
        left.append((found[0], found[1]))


def number(found: Ledgers, states: list[Ledgers], where: object) -> int:
    """Return which commit by hand has left these ledgers."""
    assert found in states, f"{where}: no commit by hand leaves {found}"
    return states.index(found)


def on_a_server(kind: str) -> object:
    return pytest.param("postgres", kind, marks=() if kind in IN_SUITE else pytest.mark.long)


CASES = [*(("sqlite", kind) for kind in expected.COMMITS), *map(on_a_server, expected.COMMITS)]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("url", "kind"), CASES, indirect=["url"])
def test_a_kill_at_every_commit_leaves_the_digits_by_hand_and_so_does_the_end(url, kind, forks):
    store = url.partition(":")[0].replace("postgresql", "postgres")
    states = by_hand(kind)
    theatre = Theatre(url, kind, forks)
    try:
        reached = set()
        for point in POINTS[store]:
            left = killed(theatre, point, states)
            reached |= {after for _before, after in left}
            for before, after in left:
                assert after - before in (0, 1), f"{point} writes more than one commit by hand: {left}"
            behind = [0, *(after for _before, after in left)]
            if len(POINTS[store]) == 1:
                assert all(before == last for (before, _), last in zip(left, behind, strict=False)), left
            assert all(last <= after for last, after in pairwise(behind)), left
        assert reached - {0} == set(range(1, len(states))), "a commit by hand was never killed behind"
        assert check_books(theatre.app) == []
    finally:
        theatre.app.close()


def test_every_story_has_its_digits():
    assert list(stories.STORIES) == list(expected.COMMITS)
