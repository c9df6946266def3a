"""Verbs in rounds: each runs as far as its answers reach, and what all of them ask next travels together.

A verb that reads before it writes asks one statement after the other; alone it costs a round trip for every
answer that it needs. Here all verbs of a batch run up to the first answer that they do not have, all their
statements go to the server in one pipeline, and then every verb is run again from its beginning and given the
answers that are there. So any number of verbs takes as many round trips as the longest of them needs answers
in turn. What a verb does not look at costs no round trip at all.

This is sound because a verb is a function of its request and its answers (`tallystick.store.writing`), and
because verbs whose work on a row must not be mixed are never in the same rounds: see `rounds_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar

from tallystick.store.api import Bundle, CancelJob, ClaimJobs, Deliver, EndJob, ForkJob
from tallystick.store.postgres.connection import Answered, Talk

T = TypeVar("T")


class Unanswered(BaseException):
    """A verb looks at an answer that is still to come; nothing but its rounds may catch this."""


class Later:
    """A statement of a verb, and its answer once there is one."""

    def __init__(self, query: bytes, params: Sequence[object]) -> None:
        self.query = query
        self.params = params
        self.sent: Answered | None = None
        self.answered = False
        self._rows: list[tuple[Any, ...]] | None = None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows of the answer; a verb that runs again reads them again."""
        if self._rows is None:
            self._rows = self._answer().fetchall()
        return self._rows

    @property
    def rowcount(self) -> int:
        """Return how many rows were changed."""
        return self._answer().rowcount

    def _answer(self) -> Answered:
        if self.sent is None or not self.answered:
            raise Unanswered
        return self.sent


class Part(Generic[T]):
    """One verb, what it has asked so far, and what came of it."""

    def __init__(self, verb: Callable[[Talk], T]) -> None:
        self._verb = verb
        self._asked: list[Later] = []
        self._place = 0
        self._sent = 0
        self.value: T | None = None
        self.done = False

    def execute(self, query: bytes, params: Sequence[object] = ()) -> Answered:
        """Ask a statement, or return the answer that it had when it was asked before."""
        if self._place == len(self._asked):
            self._asked.append(Later(query, params))
        asked = self._asked[self._place]
        assert asked.query == query, "a verb asks the same in the same order when it runs again"
        self._place += 1
        return asked

    def pipeline(self) -> AbstractContextManager[object]:
        """Do nothing: everything travels together already."""
        return nullcontext()

    def run(self) -> None:
        """Run the verb from its beginning, as far as its answers reach."""
        self._place = 0
        try:
            self.value = self._verb(self)
        except Unanswered:
            return
        self.done = True

    def unsent(self) -> list[Later]:
        """Return what was asked since the last round."""
        fresh = self._asked[self._sent :]
        self._sent = len(self._asked)
        return fresh


def in_rounds(talk: Talk, verbs: Iterable[Callable[[Talk], T]]) -> list[T]:
    """Run verbs side by side and return their values; an error of the server is that of all of them."""
    parts = [Part(verb) for verb in verbs]
    while True:
        for part in parts:
            if not part.done:
                part.run()
        asked = [later for part in parts for later in part.unsent()]
        if not asked:
            return [part.value for part in parts]  # type: ignore[misc]  # all are done, nothing left to ask
        with talk.pipeline():
            for later in asked:
                later.sent = talk.execute(later.query, later.params)
        for later in asked:
            later.answered = True


def runs_once(bundle: Bundle) -> bool:
    """Tell whether a bundle is not run again: a claim draws its leases, a fork hashes all its records."""
    return any(isinstance(primitive, (ClaimJobs, ForkJob)) for primitive in bundle)


def rounds_of(
    batch: Sequence[Bundle], indexes: Iterable[int], parents: Mapping[str, str | None]
) -> list[list[int]]:
    """Divide bundles among rounds: none works on a job that is another's own; `parents` of what is cancelled.

    Many may tell one job something at once: signals, and children that end. What they do there is to count
    and to leave words, one after the other in the order of the batch, and each looks only at its own.
    """
    rounds: list[tuple[list[int], set[str], set[str]]] = []
    for index in indexes:
        own, told = _touched(batch[index], parents)
        # Never before a round that it is at odds with, so that what belongs to one job keeps its order.
        first = max(
            (
                number
                for number, (_members, theirs, hears) in enumerate(rounds, start=1)
                if own & (theirs | hears) or told & theirs
            ),
            default=0,
        )
        if first == len(rounds):
            rounds.append(([], set(), set()))
        members, theirs, hears = rounds[first]
        members.append(index)
        theirs |= own
        hears |= told
    return [members for members, _theirs, _hears in rounds]


def cancelled_jobs(batch: Sequence[Bundle], indexes: Iterable[int]) -> list[str]:
    """Return the jobs whose parents must be known before the bundles are divided."""
    return [
        primitive.job_id
        for index in indexes
        for primitive in batch[index]
        if isinstance(primitive, CancelJob)
    ]


def _touched(bundle: Bundle, parents: Mapping[str, str | None]) -> tuple[set[str], set[str]]:
    """Return the jobs that a bundle works on, and those that it only tells something."""
    own: set[str] = set()
    told: set[str] = set()
    for primitive in bundle:
        fence = getattr(primitive, "fence", None)
        job_id = str(fence.job_id if fence is not None else getattr(primitive, "job_id", ""))
        (told if isinstance(primitive, Deliver) else own).add(job_id)
        if isinstance(primitive, EndJob) and primitive.parent is not None:
            told.add(primitive.parent[0])
        parent = parents.get(job_id)
        if parent is not None:
            told.add(parent)
    return own, told - own
