"""The primitives of control: to hold a job, to let it go on, and to begin a new one from its records."""

from __future__ import annotations

from typing import NamedTuple

from tallystick.core.json_forms.canonical import content_hash
from tallystick.core.verbs.holds import Hold
from tallystick.errors import NotFound


class OfTenant(NamedTuple):
    """Refuse the rest of the bundle with `NotFound` unless the job belongs to this tenant; write nothing.

    It stands before what a client says to a job: whose the job is, is judged where that is written.
    """

    job_id: str
    tenant_id: str

    def judge(self, owner: str | None) -> None:
        """Raise `NotFound` for the job of another tenant, as for one that is not there (None)."""
        if owner != self.tenant_id:
            raise NotFound(f"there is no job {self.job_id}", job_id=self.job_id)


class HoldJob(NamedTuple):
    """Keep a job from being claimed until it is resumed; the outcome is a `Held`.

    With no live attempt the flag and a fact are durable together. With one only the flag is written: its
    holder is the author of the job's facts, learns of the flag, and stops with a fact of its own. A job that
    is held, is being cancelled or has ended stays as it is. So does, with `since`, one that has gone on: it
    is held only if that attempt was its last and has ended.
    """

    job_id: str
    hold: Hold
    why: str
    since: int | None = None
    # Who holds it, for the fact that tells of it; so in the others.
    by: str = ""


class ResumeJob(NamedTuple):
    """Take the hold from a job, whatever kind it is; the outcome is a `Resumed`.

    With no live attempt a fact is durable together with it. When the job is due it can be claimed at once.
    """

    job_id: str
    by: str = ""


class ForkJob(NamedTuple):
    """Begin a new job with the arguments of another, and with copies of what it recorded before `point`.

    The new job, its first fact, the copies (each a fact of the new chain, with its origin) and values drawn
    before them are one bundle. `point` is a step's name and occurrence; None keeps every record. With
    `fresh_keys` its effects have keys of their own. Nothing of
    the other job changes, except with `retry`: then it must have failed, learns which job took its place,
    and its reservation belongs to that job. A second retry writes nothing and is answered with the first.
    With an `id` so is a second fork of this job under it, if it asks for the same; if not, it is refused with
    `IdempotencyConflict`. The outcome is a `Forked`; an unknown point is refused with `NoSuchStep`, and a
    retry of a job that has not failed with `NotFailed`.
    """

    job_id: str
    new_id: str
    point: tuple[str, int] | None
    retry: bool = False
    version: str | None = None
    id: str | None = None
    # Of a protocol job: the lease of the attempt that the new one begins with.
    lease_id: str = ""
    fresh_keys: bool = False
    by: str = ""

    @property
    def content_hash(self) -> str:
        """Return what two forks under one id must have in common."""
        about = {"fork_of": self.job_id, "at": self.point, "version": self.version}
        return content_hash({**about, "fresh_keys": True} if self.fresh_keys else about)

    @property
    def key(self) -> str | None:
        """Return what is reserved for a fork with an id, apart from the forks of other jobs."""
        return None if self.id is None else f"fork:{self.job_id}:{self.id}"


class Forked(NamedTuple):
    """The job that goes on from another's records; `created` is False when it was there before."""

    job_id: str
    created: bool
    copied: int
