"""The limit on PostgreSQL: the rows of the budget in plain set-based statements; prints one line of JSON.

    python -m bench.on_postgres.limit '{"case": "bulk", "jobs": 10000, "size": 1000, "dsn": "..."}'

It writes what the speed budget allows a job (submit 2 rows, claim 3, step 1, return 3) into the
project's own schema, so that every CHECK, index and trigger is paid for, and hashes every fact. A batch
is one transaction and one round trip. There is no fence, no lock, no search for work, no user's
function, no waiting caller: whatever an engine costs comes on top. `queue` leaves the submissions out of
the time, `bulk` measures nothing else.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace

import msgspec

from bench.limit_jobs import seconds_from_submission, seconds_of, whole_groups
from bench.on_postgres.answering import answer
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.server.connection import connect
from tallystick.store.postgres.server.migrations import migrate
from tallystick.store.postgres.server.wire import hashes, texts

STEP_LEDGER = 1_111_000_000_001
SUBMITTED = '{"job":"QUEUED"}'
CLAIMED = '{"job":"QUEUED>DISPATCHING>IN_PROGRESS","attempt":"LEASED>IN_PROGRESS"}'
RETURNED = '{"job":"IN_PROGRESS>SUCCEEDED","attempt":"IN_PROGRESS>COMMITTED>DONE"}'

# Two columns that differ from job to job, as arrays: nothing less can be sent.
INSERT_JOBS = b"""
WITH request AS MATERIALIZED (
  SELECT * FROM unnest($1::text[], $2::bytea[]) AS listed (job_id, event_hash)
), born AS (
  INSERT INTO jobs (job_id, state, ready_at, head_n, head_hash, updated_at, handler, created_at, payload,
                    options, request_type)
  SELECT job_id, 'QUEUED', $3::bigint, 1, event_hash, $3::bigint, 'ten', $3::bigint, '{"steps":10}',
         '{"attempts_max":3}', 'ten'
    FROM request
)
INSERT INTO events
SELECT job_id, 1, 'submit', $3::bigint, 0, $4::text, '', event_hash FROM request"""
INSERT_EVENTS = b"""
INSERT INTO events
SELECT r ->> 0, (r ->> 1)::bigint, r ->> 2, (r ->> 3)::bigint, (r ->> 4)::bigint, r ->> 5,
       decode(r ->> 6, 'hex'), decode(r ->> 7, 'hex')
  FROM jsonb_array_elements($1::jsonb) AS r"""
TAKE_JOBS = b"""
UPDATE jobs
   SET state = 'IN_PROGRESS', attempt = 1, attempts_total = 1, ready_at = NULL, start_ledger = 1, head_n = 2,
       head_hash = decode(r ->> 2, 'hex'), updated_at = (r ->> 1)::bigint, rev = rev + 1
  FROM (SELECT r, j.job_at
          FROM jsonb_array_elements($1::jsonb) AS r
         CROSS JOIN LATERAL (SELECT j.ctid AS job_at FROM jobs AS j WHERE j.job_id = r ->> 0 OFFSET 0) AS j
       ) AS seen
 WHERE jobs.ctid = seen.job_at"""
INSERT_ATTEMPTS = b"""
INSERT INTO attempts (job_id, attempt, status, lease_id, lease_epoch, lease_expires_at, lease_owner,
                      started_at)
SELECT r ->> 0, 1, 'IN_PROGRESS', 'lease', 'postgres', (r ->> 1)::bigint + 30000, 'owner', (r ->> 1)::bigint
  FROM jsonb_array_elements($1::jsonb) AS r"""
INSERT_STEPS = b"""
INSERT INTO steps (job_id, name, occurrence, kind, state, ledger, n, attempt, created_at, completed_at,
                   result, prev_hash, event_hash)
SELECT r ->> 0, 'step', (r ->> 1)::bigint, 'step', 'SUCCEEDED', 1111000000001, (r ->> 2)::bigint, 1,
       (r ->> 3)::bigint, (r ->> 3)::bigint, r ->> 4, decode(r ->> 5, 'hex'), decode(r ->> 6, 'hex')
  FROM jsonb_array_elements($1::jsonb) AS r"""
END_ATTEMPTS = b"""
UPDATE attempts
   SET status = 'DONE', finished_at = seen.at
  FROM (SELECT (r ->> 1)::bigint AS at, a.attempt_at
          FROM jsonb_array_elements($1::jsonb) AS r
         CROSS JOIN LATERAL (
               SELECT a.ctid AS attempt_at
                 FROM attempts AS a
                WHERE a.job_id = r ->> 0 AND a.unit = '' AND a.attempt = 1
               OFFSET 0) AS a) AS seen
 WHERE attempts.ctid = seen.attempt_at"""
END_JOBS = b"""
UPDATE jobs
   SET state = 'SUCCEEDED', result = '10', semaphore = 0, start_ledger = 111100000001,
       start_acked_at = (r ->> 1)::bigint, completed_at = (r ->> 1)::bigint,
       updated_at = (r ->> 1)::bigint, head_n = (r ->> 3)::bigint,
       head_hash = decode(r ->> 2, 'hex'), rev = rev + 1
  FROM (SELECT r, j.job_at
          FROM jsonb_array_elements($1::jsonb) AS r
         CROSS JOIN LATERAL (SELECT j.ctid AS job_at FROM jobs AS j WHERE j.job_id = r ->> 0 OFFSET 0) AS j
       ) AS seen
 WHERE jobs.ctid = seen.job_at"""

Write = tuple[bytes, list[tuple[object, ...]]]
_encode = msgspec.json.Encoder().encode


class Book:
    """One connection and the ends of the chains of the jobs that are in flight."""

    def __init__(self, dsn: str) -> None:
        address = parse_address(dsn)
        with connect(address, plain=True) as connection:
            migrate(connection, address, create=True)
        self.connection = connect(replace(address, answer_ms=600_000))
        self.heads: dict[str, tuple[int, str]] = {}
        self.drawn = 0

    def group(self, size: int) -> list[str]:
        """Return identifiers for new jobs, in rising order and as long as a UUID."""
        self.drawn += size
        return [f"01900000-0000-7000-8000-{number:012x}" for number in range(self.drawn - size, self.drawn)]

    def flush(self, *writes: Write) -> None:
        """Write all rows in one transaction and one round trip."""
        with self.connection.pipeline():
            self.connection.execute(b"BEGIN")
            for statement, rows in writes:
                if rows:
                    self.connection.execute(statement, (_encode(rows).decode(),))
            self.connection.execute(b"COMMIT")

    def fact(self, job_id: str, kind: str, at: int, attempt: int, payload: str) -> tuple[object, ...]:
        """Return the row of the next fact of a job."""
        n, head = self.heads.get(job_id, (0, ""))
        n += 1
        text = f"{job_id}\0{n}\0{kind}\0{at}\0{attempt}\0{payload}\0"
        link = hashlib.sha256(text.encode() + bytes.fromhex(head)).hexdigest()
        self.heads[job_id] = n, link
        return job_id, n, kind, at, attempt, payload, head, link

    def submit(self, jobs: list[str]) -> None:
        at = now()
        links = [bytes.fromhex(str(self.fact(job_id, "submit", at, 0, SUBMITTED)[7])) for job_id in jobs]
        with self.connection.pipeline():
            self.connection.execute(b"BEGIN")
            self.connection.execute(INSERT_JOBS, (texts(jobs), hashes(links), at, SUBMITTED))
            self.connection.execute(b"COMMIT")

    def turn_over(self, done: list[str], begun: list[str]) -> None:
        """Return one group and claim the next in one flush."""
        at = now()
        ends = [self.fact(job_id, "return", at, 1, RETURNED) for job_id in done]
        starts = [self.fact(job_id, "claim", at, 1, CLAIMED) for job_id in begun]
        self.flush(
            (END_ATTEMPTS, [(job_id, at) for job_id in done]),
            (END_JOBS, [(fact[0], at, fact[7], fact[1]) for fact in ends]),
            (TAKE_JOBS, [(fact[0], at, fact[7]) for fact in starts]),
            (INSERT_ATTEMPTS, [(job_id, at) for job_id in begun]),
            (INSERT_EVENTS, ends + starts),
        )
        for job_id in done:
            del self.heads[job_id]

    def step(self, jobs: list[str], occurrence: int) -> None:
        at = now()
        result = str(occurrence - 1)
        payload = f"step\0{occurrence}\0SUCCEEDED\0{STEP_LEDGER}\0{result}\0\0"
        facts = [self.fact(job_id, "step", at, 1, payload) for job_id in jobs]
        self.flush((INSERT_STEPS, [(f[0], occurrence, f[1], at, result, f[6], f[7]) for f in facts]))


def now() -> int:
    return time.time_ns() // 1_000_000


def throughput(order: dict) -> dict:
    book = Book(order["dsn"])
    seconds_from_submission(book, order, 2 * order["in_flight"])
    jobs = whole_groups(order["jobs"], order["in_flight"]) * order["in_flight"]
    return {"seconds": seconds_from_submission(book, order, jobs), "jobs": jobs}


def queue(order: dict) -> dict:
    book = Book(order["dsn"])
    seconds_from_submission(book, order, 2 * order["in_flight"])
    groups = [book.group(order["in_flight"]) for _ in range(whole_groups(order["jobs"], order["in_flight"]))]
    for group in groups:
        book.submit(group)
    seconds = seconds_of(book, groups, order["steps"])
    return {"seconds": seconds, "jobs": len(groups) * order["in_flight"]}


def bulk(order: dict) -> dict:
    book = Book(order["dsn"])
    book.submit(book.group(order["size"]))
    lists = whole_groups(order["jobs"], order["size"])
    begun = time.perf_counter()
    for _ in range(lists):
        book.submit(book.group(order["size"]))
    return {"seconds": time.perf_counter() - begun, "jobs": lists * order["size"]}


if __name__ == "__main__":
    answer({"async": throughput, "sync": throughput, "queue": queue, "bulk": bulk})
