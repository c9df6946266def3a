"""The books as they are on disk: every row that the oracle looks at, read once, by plain SQL.

Those of SQLite are read from a copy of the files, so that looking changes nothing: opening the original would
already recover its log. Those on a server are read in one transaction that sees one moment.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from tests.crash.sweep import facts
from tests.crash.sweep.place import Place
from tests.crash.sweep.statements import sql


class JobBook(NamedTuple):
    """A row of jobs."""

    job_id: str
    state: str
    handler: str
    label: str
    result: str | None
    error_code: str | None
    semaphore: int
    start_ledger: int
    attempt: int
    ready_at: int | None
    hold: str | None
    completed_at: int | None
    key: str | None
    head_n: int
    head_hash: bytes
    parent: str | None
    parent_step: str | None
    dimension: int
    start_acked_at: int | None
    root_ledger: int

    @property
    def start(self) -> MessageBook:
        """Return what began the job, which has no row of its own."""
        about = (self.job_id, "start", self.start_ledger, 0, "start", 1, "start", None, 0, None)
        return MessageBook(*about, self.start_acked_at)

    @property
    def escalated(self) -> bool:
        """Tell whether it ended because a ledger could count no further entry."""
        return (self.state, self.error_code) == ("FAILED_FINAL", "LEDGER_CEILING")

    @property
    def final(self) -> bool:
        """Tell whether the job has ended."""
        return self.state in facts.FINAL_STATES


class AttemptBook(NamedTuple):
    """A row of attempts."""

    job_id: str
    attempt: int
    status: str
    reason: str | None
    charged: int
    finished_at: int | None
    lease_expires_at: int
    lease_id: str
    guid: str

    @property
    def made(self) -> bool:
        """Tell whether anybody claimed it; a job that nobody runs is cancelled by an attempt never made."""
        return self.lease_id != "cancel"


class StepBook(NamedTuple):
    """A row of steps that is its own event."""

    job_id: str
    n: int
    kind: str
    at: int
    attempt: int
    name: str
    occurrence: int
    state: str
    ledger: int
    result: str | None
    error: str | None
    notes: str | None
    prev_hash: bytes
    event_hash: bytes
    dimension: int
    # Of a group: how many of its children need not end well, and how it is closed.
    threshold: int | None
    mode: str | None

    @property
    def effect(self) -> str:
        """Return the name under which the user's table knows it: a later turn of its job has its own."""
        return f"{self.name}@{self.dimension}" if self.dimension else self.name

    @property
    def payloads(self) -> set[str]:
        """Return the texts that the hash of such a row may cover.

        After its end a wait or a group may learn that its obligation is counted, and what follows is done.
        """
        ledgers = {self.ledger}
        for place in (6, 7) if self.kind in {"wait", "sleep", "group"} else ():
            ledgers |= {each - 10 ** (15 - place) for each in ledgers if f"{each:015d}"[place - 1] == "1"}
        after = {"result": self.result, "error": self.error, "notes": self.notes}
        known = {name: json.loads(text) for name, text in after.items() if text is not None}
        about = {"form": 1, "step": self.name, "occurrence": self.occurrence, "state": self.state}
        if self.kind == "group":
            closed = json.dumps([self.threshold, self.mode], separators=(",", ":")).encode()
            known["row"] = f"1:{sha256(closed).hexdigest()}"
        return {
            json.dumps({**about, "ledger": ledger, **known}, separators=(",", ":"), ensure_ascii=False)
            for ledger in ledgers
        }


class EventBook(NamedTuple):
    """A row of events."""

    job_id: str
    n: int
    kind: str
    at: int
    attempt: int
    payload: str
    prev_hash: bytes
    event_hash: bytes

    @property
    def payloads(self) -> set[str]:
        """Return the one text that its hash may cover."""
        return {self.payload}


class ActivityBook(NamedTuple):
    """A row of steps that waits or has waited: for a signal, for a while, or for a group of children."""

    job_id: str
    dimension: int
    name: str
    occurrence: int
    kind: str
    state: str
    ledger: int
    result: str | None
    semaphore: int | None
    threshold: int | None
    failed: int | None
    fail_fast: int
    n: int | None

    @property
    def place(self) -> tuple[int, str, int | None]:
        """Return where messages that name this activity say they belong."""
        return self.dimension, self.name, self.occurrence

    @property
    def open(self) -> bool:
        """Tell whether it still waits."""
        return self.state == "IN_PROGRESS"

    def __str__(self) -> str:
        return f"the {self.kind} {self.name}#{self.occurrence}"


class MessageBook(NamedTuple):
    """A row of messages."""

    job_id: str
    guid: str
    ledger: int
    dimension: int
    name: str
    occurrence: int | None
    kind: str
    payload: str | None
    created_at: int
    due_at: int | None
    acked_at: int | None

    @property
    def place(self) -> tuple[int, str, int | None]:
        """Return the activity that this message names."""
        return self.dimension, self.name, self.occurrence

    @property
    def digits(self) -> str:
        """Return all fifteen."""
        return f"{self.ledger:015d}"

    @property
    def entry(self) -> int:
        """Return which entry of its activity it was; 0 if it never entered."""
        return self.ledger % 10**8

    @property
    def taken(self) -> bool:
        """Tell whether its work is durable."""
        return self.digits[4] == "1"

    @property
    def closes(self) -> bool:
        """Tell whether it closed what it entered."""
        return self.digits[3] == "1"

    @property
    def of_root(self) -> bool:
        """Tell whether it enters the job itself."""
        return self.kind == "start" or (self.kind == "resume" and self.name in (facts.AGAIN, facts.CANCEL))


class Trim(NamedTuple):
    """How many turns of a job are gone, and the place and hash of their last fact."""

    turns: int = 0
    last_n: int = 0
    head: bytes = b""


class Books:
    """All tables, read once."""

    def trim_of(self, job_id: str) -> Trim:
        """Return what of a job is trimmed."""
        return self.trimmed.get(job_id, Trim())

    def __init__(self, rows: Callable[[str], list[tuple[Any, ...]]]) -> None:
        """Read everything; `rows` runs the statement of a name."""
        self.integrity = [row[0] for row in rows("integrity")]
        empty = not rows("has_books")[0][0]
        self.jobs = [] if empty else [JobBook(*row) for row in rows("jobs")]
        self.attempts: dict[str, list[AttemptBook]] = defaultdict(list)
        self.steps: dict[str, list[StepBook]] = defaultdict(list)
        self.events: dict[str, list[EventBook]] = defaultdict(list)
        for attempt in () if empty else rows("attempts"):
            self.attempts[attempt[0]].append(AttemptBook(*attempt))
        for step in () if empty else rows("steps"):
            self.steps[step[0]].append(StepBook(*step))
        for event in () if empty else rows("events"):
            self.events[event[0]].append(EventBook(*event))
        self.reservations = dict(() if empty else rows("reservations"))
        self.activities: dict[str, list[ActivityBook]] = defaultdict(list)
        self.messages: dict[str, list[MessageBook]] = defaultdict(list)
        for activity in () if empty else rows("activities"):
            self.activities[activity[0]].append(ActivityBook(*activity))
        for message in () if empty else rows("messages"):
            self.messages[message[0]].append(MessageBook(*message))
        self.forks: dict[str, tuple[str | None, str | None]] = {}
        for job_id, retry_of, retried_as in () if empty else rows("forks"):
            self.forks[job_id] = (retry_of, retried_as)
        self.copies = [] if empty else rows("copies")
        self.trimmed: dict[str, Trim] = {}
        for job_id, dimension, last_n, head_hash in () if empty else rows("trimmed"):
            self.trimmed[job_id] = Trim(dimension + 1, last_n, bytes.fromhex(head_hash))
        self.stale = {} if empty else {(job, attempt): count for job, attempt, count in rows("stale_reports")}
        self.effects: dict[tuple[str, str], tuple[int, str]] = {}
        if not empty and rows("has_effects")[0][0]:
            self.effects = {
                (label, effect): (count, token) for label, effect, count, token in rows("effects")
            }


def read(place: Place) -> Books:
    """Read the books of a trial."""
    if place.server:
        from tests.crash.sweep import postgres_books

        return postgres_books.read(place, Books)
    with tempfile.TemporaryDirectory(dir=place.folder) as folder:
        for suffix in ("", "-wal"):
            source = place.database.with_name(place.database.name + suffix)
            if source.exists():
                shutil.copyfile(source, Path(folder, f"copy.db{suffix}"))
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        with closing(apsw.Connection(str(Path(folder, "copy.db")), flags=flags)) as connection:
            return Books(lambda name: list(connection.execute(sql(name))))
