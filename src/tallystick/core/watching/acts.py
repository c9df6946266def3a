"""Acts: what people did to jobs, queues and schedules, and who did it.

Nothing is decided by these rows. A job that runs writes its own history, and queues and schedules have none:
so an act whose author is named is kept here, in the bundle that does it.

Acts are a chain over the whole store, like the log of removals. When the job of an act is removed by right,
what was said is taken out of its line; the line keeps its place, with a hash of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from tallystick.core.audit.removals import LogEnd
from tallystick.core.chain import GENESIS, line_hash

PERSON: Final = "a person"
"""The author of an act that was not named."""


class About(StrEnum):
    """What an act is about."""

    JOB = "job"
    QUEUE = "queue"
    SCHEDULE = "schedule"


class NoteAct(NamedTuple):
    """Keep what a person does by the rest of the bundle, if that is written."""

    about: About
    name: str
    verb: str
    who: str
    told: str = ""


class Act(NamedTuple):
    """An act as it is kept, in the order of `seq`; `told` is what else was said, in words."""

    seq: int
    at: int
    about: str
    name: str
    verb: str
    who: str
    told: str


class ActRow(NamedTuple):
    """An act as its table keeps it, with its place in the chain; hashes are hexadecimal."""

    seq: int
    at: int
    about: str
    name: str
    verb: str
    who: str
    told: str
    said_hash: str
    prev_hash: str
    event_hash: str

    @property
    def said(self) -> tuple[str, str, str]:
        """Return what goes when the job of this act is removed."""
        return (self.verb, self.who, self.told)

    @property
    def made_said_hash(self) -> str:
        """Return the hash that stands for what was said."""
        return line_hash(self.said, GENESIS.hex())

    @property
    def made_hash(self) -> str:
        """Return the hash that this line must have."""
        return line_hash((*self[:4], self.said_hash), self.prev_hash)


_GONE: Final = ("", "", "")


def line_of(act: NoteAct, end: LogEnd, at: int) -> ActRow:
    """Return the line of an act behind the end of the chain.

    >>> line = line_of(NoteAct(About.JOB, "j1", "pause", "ann"), LogEnd(), 9)
    >>> list(judge_acts([line], LogEnd(), lambda _job: False))
    []
    >>> list(judge_acts([line._replace(who="bob")], LogEnd(), lambda _job: False))
    [('j1', 'act 1 was changed after it was written')]
    """
    said = (act.verb, act.who, act.told)
    bare = ActRow(end.seq + 1, at, act.about.value, act.name, *said, "", end.event_hash, "")
    hashed = bare._replace(said_hash=bare.made_said_hash)
    return hashed._replace(event_hash=hashed.made_hash)


def judge_acts(
    lines: Iterable[ActRow], end: LogEnd, is_removed: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """Say what is wrong with the acts behind `end`: the job of a line if it is about one, and the words."""
    for line in lines:
        job_id = line.name if line.about == About.JOB else ""
        if line.seq != end.seq + 1:
            yield job_id, f"act {end.seq + 1} is missing"
        elif line.prev_hash != end.event_hash:
            yield job_id, f"act {line.seq} does not follow the one before it"
        if not _is_whole(line):
            yield job_id, f"act {line.seq} was changed after it was written"
        elif line.said == _GONE and not (job_id and is_removed(job_id)):
            yield job_id, f"act {line.seq} says nothing, and no removal of its job is noted"
        end = LogEnd(line.seq, line.event_hash)


def _is_whole(line: ActRow) -> bool:
    """Tell whether a line is as it was written, or as a removal leaves it."""
    try:
        is_same = line.made_hash == line.event_hash
    except ValueError:
        return False
    return is_same and (line.said == _GONE or line.said_hash == line.made_said_hash)
