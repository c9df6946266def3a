"""Acts: what people did to jobs, queues and schedules, and who did it.

Nothing is decided by these rows. A job that runs writes its own history, and queues and schedules have none:
so an act whose author is named is kept here, in the bundle that does it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

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
