"""Where the jobs without a key of a queue with limits are looked for, among all those that have one.

Jobs with a key have an index by key. Those without one stand in the index of all that may be claimed, and may
stand behind a hundred thousand with keys. So a look goes past `WINDOW` of them and no more: one window begins
where such a job was seen last, and another one walks over the whole queue, from look to look. Every job is in
one of these windows after as many looks as the queue is long in windows. What is remembered is a hint of this
process: when nothing is known, a look begins at the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tallystick.core.queues.admitting import Waiting

WINDOW: Final = 256
"""How many jobs one look goes past, at one priority."""

Place: TypeAlias = tuple[int, Any]
"""Where a job stands in the queue: when it became due, and what orders those of one instant in the index."""

START: Final[Place] = (-1, "")


class Passed(NamedTuple):
    """A job that a window goes past; `fits` if it has no key, has not begun, and may be claimed."""

    job_id: str
    first: bool
    fits: bool
    place: Place


class Walk:
    """The two places of one queue and priority from which windows begin.

    >>> queue = [Passed(f"job {at}", True, at in (300, 700), (at, at)) for at in range(1_000)]
    >>> walk = Walk()
    >>> def window(at): return [job for job in queue if job.place >= at][:WINDOW]
    >>> def look(): return [job.place[0] for job in walk.jobs(window)]
    >>> [look() for _ in range(4)]
    [[], [300], [300, 700], [300]]
    """

    def __init__(self) -> None:
        """Begin at the beginning."""
        self._seen_at = START
        self._walked_to = START
        self._end = START

    @property
    def starts(self) -> list[Place]:
        """Return where the windows of the next look begin."""
        return list(dict.fromkeys((self._seen_at, self._walked_to)))

    def jobs(self, window: Callable[[Place], Iterable[Passed]]) -> Iterator[Passed]:
        """Give the jobs without a key that a look finds; `window` returns what stands from a place on."""
        start, given = self._seen_at, set[str]()
        for job in self._counted(window(start)):
            if job.fits:
                if not given:
                    self._seen_at = job.place
                given.add(job.job_id)
                yield job
        if not given:
            self._seen_at = self._end
        if start == START == self._end:
            return
        for job in self._counted(window(self._walked_to)):
            if job.fits and job.job_id not in given:
                if not given or job.place < self._seen_at:
                    self._seen_at = job.place
                given.add(job.job_id)
                yield job
        self._walked_to = self._end

    def _counted(self, passed: Iterable[Passed]) -> Iterator[Passed]:
        """Give what a window goes past, and note where the next one begins: at its end, or anew."""
        self._end = START
        for count, job in enumerate(passed, start=1):
            if count == WINDOW:
                self._end = job.place
            yield job


class Walks(dict[tuple[str, int], Walk]):
    """The walks of a process, by queue and priority; and whose turn it was among the jobs that have begun."""

    def __init__(self) -> None:
        """Know of nothing."""
        super().__init__()
        self._served: dict[str, str] = {}

    def served(self, queue: str) -> str | None:
        """Return the key of a job that had begun, if such a one was claimed last."""
        return self._served.get(queue)

    def note(self, queue: str, chosen: Sequence[Waiting]) -> None:
        """Remember of what was chosen the last job that had begun; if all begin now, that there is none."""
        begun = [job.limit_key for job in chosen if not job.first]
        if begun:
            self._served[queue] = begun[-1]
        elif chosen:
            self._served.pop(queue, None)

    def __missing__(self, at: tuple[str, int]) -> Walk:
        """Begin one."""
        self[at] = Walk()
        return self[at]
