"""The limit: the rows of the budget written by plain apsw, with nothing around them; prints one line of JSON.

    python -m bench.limit '{"steps": 10, "jobs": 2048, "in_flight": 64, "folder": "..."}'

It writes what the speed budget allows a job (submit 2 rows, claim 3, step 1, return 3) into the project's
own schema, so that every CHECK, index and trigger is paid for, sixteen rows a statement as the store does,
and hashes every fact with SHA-256. Jobs go through in groups of `in_flight`: a flush for the submissions, one
for every step of the group, and one for the returns, which the claims of the next group share. There is no
fence, no lock between processes, no user's function, no waiting caller, no value to encode: whatever an
engine costs comes on top.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

import apsw

from bench.limit_jobs import seconds_from_submission, whole_groups
from bench.memory_of import resident_kib

SCHEMA = Path(__file__).parents[1] / "src" / "tallystick" / "store" / "sqlite" / "schema"
# About where the store ends up on a disk as fast as this one.
CHECKPOINT_PAGES = 1_500
ROWS_A_STATEMENT = 16
# With fewer than a flush has rows the library would prepare every statement again in every flush.
STATEMENTS_KEPT = 512
EPOCH = "0d2f0e9c-5c9f-4d2a-9d0e-0b6a3c1f7e55"
OWNER = "5f0d7a62c9b84c1e8f3a0b9d2e7c4a16"
STEP_LEDGER = 1_111_000_000_001
SUBMITTED = '{"job":"QUEUED"}'
CLAIMED = '{"job":"QUEUED>DISPATCHING>IN_PROGRESS","attempt":"LEASED>IN_PROGRESS"}'
RETURNED = '{"job":"IN_PROGRESS>SUCCEEDED","attempt":"IN_PROGRESS>COMMITTED>DONE"}'


class Statement(NamedTuple):
    """A statement that writes a list of rows, and what stands in that list for each of them."""

    text: str
    row: str

    def of(self, rows: int) -> str:
        """Return the statement for so many rows."""
        return self.text.format(", ".join([self.row] * rows))


INSERT_JOB = Statement(
    """INSERT OR FAIL INTO jobs (job_id, state, ready_at, head_n, head_hash, updated_at, handler, created_at,
                                 payload, options, request_type) VALUES {}""",
    """(?, 'QUEUED', ?, 1, ?, ?, 'ten', ?, '{"steps":10}', '{"attempts_max":3}', 'ten')""",
)
INSERT_EVENT = Statement("INSERT INTO events VALUES {}", "(?, ?, ?, ?, ?, ?, ?, ?)")
TAKE_JOB = Statement(
    """UPDATE jobs SET state = 'IN_PROGRESS', attempt = 1, attempts_total = 1, ready_at = NULL,
                       start_ledger = 1, head_n = 2, head_hash = given.column1,
                       updated_at = given.column2, rev = rev + 1
         FROM (VALUES {}) AS given
        WHERE job_id = given.column3""",
    "(?, ?, ?)",
)
INSERT_ATTEMPT = Statement(
    """INSERT INTO attempts (job_id, attempt, status, lease_id, lease_epoch, lease_expires_at, lease_owner,
                             started_at) VALUES {}""",
    "(?, 1, 'IN_PROGRESS', ?, ?, ?, ?, ?)",
)
INSERT_STEP = Statement(
    """INSERT INTO steps (job_id, name, occurrence, kind, state, ledger, n, attempt, created_at, completed_at,
                          result, prev_hash, event_hash) VALUES {}""",
    "(?, 'step', ?, 'step', 'SUCCEEDED', ?, ?, 1, ?, ?, ?, ?, ?)",
)
END_ATTEMPT = Statement(
    """UPDATE attempts SET status = 'DONE', finished_at = given.column1
         FROM (VALUES {}) AS given
        WHERE job_id = given.column2 AND unit = '' AND attempt = 1""",
    "(?, ?)",
)
END_JOB = Statement(
    """UPDATE jobs SET state = 'SUCCEEDED', result = '10', semaphore = 0, start_ledger = 111100000001,
                       start_acked_at = given.column1, completed_at = given.column1,
                       updated_at = given.column1, head_n = given.column2, head_hash = given.column3,
                       rev = rev + 1
         FROM (VALUES {}) AS given
        WHERE job_id = given.column4""",
    "(?, ?, ?, ?)",
)


class Book:
    """One database and the ends of the chains of the jobs that are in flight."""

    def __init__(self, folder: Path) -> None:
        self.connection = apsw.Connection(str(folder / "limit.db"), statementcachesize=STATEMENTS_KEPT)
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "recursive_triggers = ON",
            "wal_autocheckpoint = 0",
        ):
            self.connection.execute(f"PRAGMA {pragma}")
        for migration in sorted(SCHEMA.glob("*.sql")):
            self.connection.execute(migration.read_text("utf-8"))
        self.cursor = self.connection.cursor()
        self.heads: dict[str, tuple[int, bytes]] = {}
        self.pages = 0
        self.flushes = 0
        self.drawn = 0
        self.connection.set_wal_hook(self._on_wal)

    def group(self, size: int) -> list[str]:
        """Return identifiers for new jobs, in rising order and as long as a UUID."""
        self.drawn += size
        return [f"01900000-0000-7000-8000-{number:012x}" for number in range(self.drawn - size, self.drawn)]

    def flush(self, *writes: tuple[Statement, list[tuple[object, ...]]]) -> None:
        """Write all rows in one transaction, and checkpoint between two of them."""
        self.cursor.execute("BEGIN IMMEDIATE")
        for statement, rows in writes:
            lists = [rows[at : at + ROWS_A_STATEMENT] for at in range(0, len(rows), ROWS_A_STATEMENT)]
            for size, same in groupby(lists, key=len):
                joined = [tuple(chain.from_iterable(listed)) for listed in same]
                self.cursor.executemany(statement.of(size), joined)
        self.cursor.execute("COMMIT")
        self.flushes += 1
        if self.pages >= CHECKPOINT_PAGES:
            self.cursor.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self.pages = 0

    def fact(self, job_id: str, kind: str, at: int, attempt: int, payload: str) -> tuple[object, ...]:
        """Return the row of the next fact of a job."""
        n, head = self.heads.get(job_id, (0, b""))
        n += 1
        text = f"{job_id}\0{n}\0{kind}\0{at}\0{attempt}\0{payload}\0"
        link = hashlib.sha256(text.encode() + head).digest()
        self.heads[job_id] = n, link
        return job_id, n, kind, at, attempt, payload, head, link

    def submit(self, jobs: list[str]) -> None:
        at = now()
        facts = [self.fact(job_id, "submit", at, 0, SUBMITTED) for job_id in jobs]
        self.flush(
            (INSERT_JOB, [(fact[0], at, fact[7], at, at) for fact in facts]),
            (INSERT_EVENT, facts),
        )

    def turn_over(self, done: list[str], begun: list[str]) -> None:
        """Return one group and claim the next in one flush."""
        at = now()
        ends = [self.fact(job_id, "return", at, 1, RETURNED) for job_id in done]
        starts = [self.fact(job_id, "claim", at, 1, CLAIMED) for job_id in begun]
        self.flush(
            (END_ATTEMPT, [(at, job_id) for job_id in done]),
            (END_JOB, [(at, fact[1], fact[7], fact[0]) for fact in ends]),
            (TAKE_JOB, [(fact[7], at, fact[0]) for fact in starts]),
            (INSERT_ATTEMPT, [(job, f"lease-{job[-12:]}", EPOCH, at + 30_000, OWNER, at) for job in begun]),
            (INSERT_EVENT, ends + starts),
        )
        for job_id in done:
            del self.heads[job_id]

    def step(self, jobs: list[str], occurrence: int) -> None:
        at = now()
        result = str(occurrence - 1)
        payload = f"step\0{occurrence}\0SUCCEEDED\0{STEP_LEDGER}\0{result}\0\0"
        facts = [self.fact(job_id, "step", at, 1, payload) for job_id in jobs]
        rows = [(f[0], occurrence, STEP_LEDGER, f[1], at, at, result, f[6], f[7]) for f in facts]
        self.flush((INSERT_STEP, rows))

    def _on_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self.pages = pages
        return apsw.SQLITE_OK


def now() -> int:
    return time.time_ns() // 1_000_000


def main() -> None:
    order = json.loads(sys.argv[1])
    book = Book(Path(order["folder"]))
    seconds_from_submission(book, order, 2 * order["in_flight"])
    flushes = book.flushes
    jobs = whole_groups(order["jobs"], order["in_flight"]) * order["in_flight"]
    seconds = seconds_from_submission(book, order, jobs)
    print(
        json.dumps(
            {
                "seconds": seconds,
                "jobs": jobs,
                "flushes": book.flushes - flushes,
                "bundles": jobs * (order["steps"] + 2),
                "resident_kib": resident_kib(),
                "sqlite": apsw.sqlite_lib_version(),
            }
        )
    )


if __name__ == "__main__":
    main()
