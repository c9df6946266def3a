"""The truth about a job: its head and its steps, in one partition, written in one transaction.

The head says besides the job itself which version it is (`n`), the directive that is not out, the end of the
hash chain, when a sweep must look (`armed`), and what else is to be written for this version (`redo`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from tallystick.core.lifecycles import JOB, JobState, StepState
from tallystick.core.pictures import Message
from tallystick.core.remote.requests import NewProtocolJob
from tallystick.core.remote.rows import OutboxRow, ProtocolJob, ProtocolPicture, ProtocolStep
from tallystick.core.verbs.protocol.directives import directive_of
from tallystick.store.api import StoredEvent
from tallystick.store.azure import keys
from tallystick.store.azure.entities import packed, read_as, read_written, unpacked, written
from tallystick.store.azure.keys import Place
from tallystick.store.azure.requests import Row, Values

ABANDONED: Final = "ABANDONED"
"""The state of a head that keeps others from making a job whose submission was left: no job has it."""


class HeadRedo(msgspec.Struct, array_like=True):
    """What is to be written for one version of a job besides its truth, each in any number of times."""

    made: tuple[object, ...] | None = None
    moved: tuple[object, ...] | None = None
    fact: tuple[object, ...] | None = None
    ready: Place | None = None
    gone: Place | None = None
    # Whether the row that says when to look is written again, if it should be there and is not.
    mends: bool = False


class Head(NamedTuple):
    """The job, and what its store needs to know."""

    job: ProtocolJob
    about: NewProtocolJob
    n: int
    month: str
    created_at: int
    updated_at: int
    facts: int
    chain: str
    armed: str
    # What reads the row that says when to look: relays to an endpoint, a remote worker, or the sweep alone.
    reader: str
    by: str
    former: str | None = None
    pending: OutboxRow | None = None
    message: Message | None = None
    redo: HeadRedo = HeadRedo()

    @property
    def is_final(self) -> bool:
        """Tell whether the job has ended."""
        return JobState(self.job.state) in JOB.final

    @property
    def partition(self) -> str:
        """Return the partition of the copy of the job, and of its directives."""
        return keys.key(self.job.tenant_id, self.month)


class KeptStep(NamedTuple):
    """A step with what its row says besides."""

    step: ProtocolStep
    created_at: int
    updated_at: int
    message: Message | None = None
    etag: str = ""


class Seen(NamedTuple):
    """A job as it was read or written, with the tags of its rows; `copy_n` is how far its copy has come."""

    head: Head
    steps: tuple[KeptStep, ...]
    etag: str = ""
    copy_n: int = 0
    copy_etag: str | None = None
    # The tag of the row in the outbox of the directive that is not out, if it is known.
    outbox_etag: str | None = None

    @property
    def picture(self) -> ProtocolPicture:
        """Return what a decision looks at."""
        head, steps = self.head, tuple(kept.step for kept in self.steps)
        return ProtocolPicture(head.job, steps, whole_directive(head.job, steps, head.pending))

    def index_of(self, step_id: str) -> int:
        """Return the place of a step in its protocol."""
        return next(kept.step.step_index for kept in self.steps if kept.step.step_id == step_id)


def whole_directive(
    job: ProtocolJob, steps: tuple[ProtocolStep, ...], row: OutboxRow | None
) -> OutboxRow | None:
    """Return a directive with what it says, which follows from its job and step until it is out."""
    if row is None:
        return None
    step = next(step for step in steps if step.step_id == row.step_id)
    return row._replace(payload=directive_of(job, step, row))


def wake(picture: ProtocolPicture) -> int | None:
    """Return the instant at which the sweep or a relay has something to do for a job."""
    step, row = picture.active, picture.pending
    if step is None:
        return None
    if step.state == StepState.DISPATCHING and row is not None and not row.is_pulled:
        return row.next_try_at
    return step.lease_expires_at


def reader_of(picture: ProtocolPicture, taken_by: str | None, before: str) -> str:
    """Return who besides the sweep looks for the row that says when to look at a job.

    The relays to the endpoint of a directive that is not out, or the remote worker that was given one and has
    not acknowledged it: it is known when it was given it, and remembered from `before`.
    """
    step, row = picture.active, picture.pending
    if row is not None and not row.is_pulled:
        return keys.relay_to(row.via)
    if step is None or step.state != StepState.AWAITING_ACK:
        return ""
    if taken_by is not None:
        return keys.given_to(taken_by)
    return before if before.startswith(keys.WORKERS) else ""


# --- rows


def head_values(head: Head) -> Values:
    """Return the head as a row."""
    pending = head.pending
    return packed(
        {
            **head.job._asdict(),
            **head.about._asdict(),
            **{name: getattr(head, name) for name in _PLAIN},
            "pending": written(pending and pending._replace(payload="")),
            "message": written(head.message),
            "redo": written(head.redo),
        }
    )


_PLAIN: Final = (
    "n",
    "month",
    "created_at",
    "updated_at",
    "facts",
    "chain",
    "armed",
    "reader",
    "by",
    "former",
)


def read_head(values: Values) -> Head | None:
    """Return the head of a row; None for one that only keeps its place."""
    found = unpacked(values)
    if found["state"] == ABANDONED:
        return None
    return Head(
        job=read_as(ProtocolJob, values),
        about=read_as(NewProtocolJob, values),
        **{name: found.get(name) for name in _PLAIN},  # type: ignore[arg-type]  # as the row has them
        pending=read_written(OutboxRow, found.get("pending")),
        message=read_written(Message, found.get("message")),
        redo=msgspec.json.decode(found["redo"], type=HeadRedo),
    )


def step_values(kept: KeptStep) -> Values:
    """Return a step as a row."""
    about = {"created_at": kept.created_at, "updated_at": kept.updated_at}
    return packed({**kept.step._asdict(), **about, "message": written(kept.message)})


def read_step(row: Row) -> KeptStep:
    """Return the step of a row."""
    found = unpacked(row.values)
    message = read_written(Message, found.get("message"))
    step = read_as(ProtocolStep, row.values)
    return KeptStep(step, found["created_at"], found["updated_at"], message, row.etag)


def read_job(rows: list[Row]) -> Seen | None:
    """Return a job from the rows of its partition; None if it is not there."""
    if not rows or rows[0].rk != keys.HEAD:
        return None
    first, *steps = rows
    head = read_head(first.values)
    return None if head is None else Seen(head, tuple(map(read_step, steps)), first.etag)


def copy_values(head: Head) -> Values:
    """Return the copy of a job by which it is listed."""
    about = {"n": head.n, "created_at": head.created_at, "updated_at": head.updated_at}
    return packed({**head.job._asdict(), **head.about._asdict(), **about})


def outbox_values(row: OutboxRow, updated_at: int) -> Values:
    """Return a directive as a row."""
    return packed({**row._asdict(), "updated_at": updated_at})


def fact_values(fact: tuple[object, ...]) -> Values:
    """Return a fact as a row."""
    return packed(dict(zip(StoredEvent._fields, fact, strict=True)))  # type: ignore[arg-type]  # texts and numbers


def read_fact(values: Values) -> StoredEvent:
    """Return the fact of a row."""
    fact = read_as(StoredEvent, values)
    prev_hash, event_hash = (bytes.fromhex(str(values[name])) for name in ("prev_hash", "event_hash"))
    return fact._replace(prev_hash=prev_hash, event_hash=event_hash)
