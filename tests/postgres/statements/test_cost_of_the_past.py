"""Waiting, waking, claiming and turning read what is open: neither the past nor what waits for others."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any

import psycopg
import pytest

from tallystick import Tally
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.statements import sql
from tests.postgres.server import Server, make_server
from tests.postgres.statements.moves import move_of
from tests.postgres.statements.test_plans import CLAIM
from tests.postgres.subject import PostgresSubject

PAST = 3_000
# A job that has turned so often, each time with a wait and a step, and waits again. Its inbox has signals for
# that wait and as many for others.
FILL = f"""
INSERT INTO jobs (job_id, state, handler, payload, created_at, updated_at, ready_at, attempt, dimension,
                  semaphore, start_ledger, start_acked_at)
VALUES ('j', 'IN_PROGRESS', 'pay', '{{}}', 1, 1, 5, {PAST + 1}, {PAST}, 1, 11000000001, 1);
INSERT INTO attempts (job_id, attempt, status, reason, lease_id, lease_owner, lease_epoch, lease_expires_at,
                      guid)
SELECT 'j', n, 'ABORTED', 'SUSPENDED', 'l', 'w', 'e', 1, 'g' || n FROM generate_series(1, {PAST}) AS n;
INSERT INTO attempts (job_id, attempt, status, reason, charged, lease_id, lease_owner, lease_epoch,
                      lease_expires_at)
VALUES ('j', {PAST + 1}, 'ABORTED', 'EXPIRED', 1, 'l', 'w', 'e', 1);
INSERT INTO steps (job_id, dimension, name, kind, state, ledger, n, attempt, created_at, completed_at,
                   event_hash, prev_hash)
SELECT 'j', n - 1, name, kind, 'SUCCEEDED', 1111000000001, n * 5 + place, n, 1, 1, '', ''
  FROM generate_series(1, {PAST}) AS n
 CROSS JOIN (VALUES ('go', 'wait', 0), ('work', 'step', 1)) AS made (name, kind, place);
INSERT INTO steps (job_id, dimension, name, kind, state, ledger, attempt, created_at)
VALUES ('j', {PAST}, 'go', 'wait', 'IN_PROGRESS', 1100000000000, {PAST}, 1);
INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
SELECT 'j', n * 5 + place, kind, 1, n, '{{}}', '', ''
  FROM generate_series(1, {PAST}) AS n
 CROSS JOIN (VALUES ('claim', 2), ('try', 3), ('again', 4)) AS made (kind, place);
INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, created_at, arrived, acked_at, ledger)
SELECT 'over' || kind || n, 'j', n, name, 1, kind, 1, 1, 1, 11000000001
  FROM generate_series(1, {PAST}) AS n
 CROSS JOIN (VALUES ('go', 'signal'), ('again', 'resume'), ('go', 'timer')) AS made (name, kind);
INSERT INTO messages (guid, job_id, name, kind, created_at, arrived)
SELECT 'waits' || name || n, 'j', name, 'signal', n, n * 2 + place
  FROM generate_series(1, {PAST}) AS n CROSS JOIN (VALUES ('other', 0), ('go', 1)) AS made (name, place);
INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, due_at, created_at, arrived)
VALUES ('j:{PAST}:go#1:timer', 'j', {PAST}, 'go', 1, 'timer', 9, 1, 1);
"""
# Messages that waited and were taken: the index of those that wait stays as large as it was.
BLOAT = """
INSERT INTO messages (guid, job_id, name, kind, created_at, arrived)
SELECT 'gone' || n, 'gone', 'go', 'signal', n, n FROM generate_series(1, 30000) AS n;
DELETE FROM messages WHERE job_id = 'gone';
"""
PLACE = ("j", PAST, "go", 1)
TIMER = f"j:{PAST}:go#1:timer"
JOB = {
    "job_id": "j",
    "before": 1,
    "hit": False,
    "state": "IN_PROGRESS",
    "attempt": PAST + 1,
    "dimension": PAST,
}
JOB |= {"semaphore": 2, "root_ledger": 0, "start_ledger": 11000000001, "rev": 2}
WAIT = {
    "job_id": "j",
    "dimension": PAST,
    "name": "go",
    "occurrence": 1,
    "before": 1,
    "hit": False,
    "kind": "wait",
}
WAIT |= {"state": "IN_PROGRESS", "ledger": 1100000000001, "rev": 2, "attempt": PAST}
WORD = {"guid": "waitsgo1", "before": 0, "job_id": "j", "dimension": PAST, "name": "go", "occurrence": 1}
WORD |= {"kind": "signal", "ledger": 1, "redeliveries": 0, "created_at": 1, "arrived": 3}
READS: dict[str, tuple[object, ...]] = {
    "lock_pictures": (["j"], ["j"]),
    "picture_jobs": (["j"], ["j"]),
    "picture_leases": (["j"], ["j"], "e", "1"),
    "picture_open": (["j"],),
    "picture_messages": (["waitsgo1", TIMER], ["j"], []),
    "picture_entered": (["waitsgo1", TIMER], []),
    "picture_groups": (json.dumps([PLACE]), ["j"]),
    "picture_signals": ('[["j", "go", 8]]',),
    "picture_children": ('["j", "k"]',),
    "picture_ends": (["j"],),
    "picture_drivers": (["j"], "10"),
    "move": move_of(JOB, WAIT, WORD),
    "has_signal": ("j", '["go"]', 10**10),
    "drop_inboxes": ('[["j", "", "", false]]', "10"),
    "tries": (f'[["j", {PAST}]]',),
    "records": (f'[["j", {PAST}]]',),
    "chain_head": ("j",),
    "picture_pasts": (["j"],),
    "lock_expired": (f'[["j", {PAST}, "l", ""]]',),
    "claim_jobs": CLAIM,
}
# A few lookups, and of each a few rows.
ROWS_MAX = 60


def rows_read(plan: dict[str, Any]) -> int:
    """Return how many rows a plan has read from tables and indexes, those it did not want too."""
    loops = plan.get("Actual Loops", 0)
    parts = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    own = sum(plan.get(part, 0) for part in parts) * loops if "Scan" in plan["Node Type"] else 0
    return int(own) + sum(rows_read(inner) for inner in plan.get("Plans", ()))


@pytest.mark.parametrize("bloat", [False, True], ids=["fresh", "bloated"])
@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
def test_a_job_with_a_long_past_reads_as_little_as_one_without(
    subject: PostgresSubject, mode: str, analysed: bool, bloat: bool
) -> None:
    with psycopg.connect(
        subject.dsn,
        autocommit=True,
        options=parse_address(subject.url).settings,
        cursor_factory=psycopg.RawCursor,
    ) as planner:
        for filling in (BLOAT, "VACUUM messages", FILL) if bloat else (FILL,):
            planner.execute("SET session_replication_role = replica")
            planner.execute(filling.encode(), prepare=False)
        planner.execute("RESET session_replication_role")
        if analysed:
            planner.execute("ANALYZE jobs, attempts, steps, events, messages")
        planner.execute(f"SET plan_cache_mode = {mode}".encode())
        read: dict[str, int] = {}
        for name, parameters in READS.items():
            with planner.transaction(force_rollback=True):
                asked = b"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + sql(name)
                (((plan,),),) = planner.execute(asked, parameters).fetchall()
            read[name] = rows_read(plan["Plan"])
    assert not {name: rows for name, rows in read.items() if rows > ROWS_MAX}


RECORDS = 2_000
# A job with so many records in one turn, among those of others.
FILL_RECORDS = """
INSERT INTO jobs (job_id, state, handler, payload, created_at, updated_at, attempt, semaphore, start_ledger,
                  start_acked_at, completed_at, result)
SELECT job_id, 'SUCCEEDED', 'pay', '{{}}', 1, 1, 1, 0, 111100000001, 1, 1, '1'
  FROM (VALUES ('a'), ('j'), ('z')) AS made (job_id);
INSERT INTO steps (job_id, dimension, name, occurrence, kind, state, ledger, n, attempt, created_at,
                   completed_at, result, event_hash, prev_hash)
SELECT job_id, 0, 'work', n, 'step', 'SUCCEEDED', 1111000000001, n + 2, 1, 1, 1, '1', '', ''
  FROM generate_series(1, {records}) AS n CROSS JOIN (VALUES ('a'), ('j'), ('z')) AS made (job_id);
INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
SELECT job_id, n, type, 1, 1, '{{}}', '', ''
  FROM (VALUES ('submit', 1), ('claim', 2), ('return', {records} + 3)) AS told (type, n)
 CROSS JOIN (VALUES ('a'), ('j'), ('z')) AS made (job_id);
"""


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("analysed", [False, True], ids=["never analysed", "analysed"])
def test_a_fork_reads_each_record_once(subject: PostgresSubject, mode: str, analysed: bool) -> None:
    with psycopg.connect(
        subject.dsn,
        autocommit=True,
        options=parse_address(subject.url).settings,
        cursor_factory=psycopg.RawCursor,
    ) as planner:
        planner.execute("SET session_replication_role = replica")
        planner.execute(FILL_RECORDS.format(records=RECORDS).encode(), prepare=False)
        if analysed:
            planner.execute("ANALYZE jobs, steps")
        planner.execute(f"SET plan_cache_mode = {mode}".encode())
        copies = [["work", n, n + 1, "00", "00"] for n in range(1, RECORDS)]
        with planner.transaction(force_rollback=True):
            asked = b"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + sql("copy_steps")
            (((plan,),),) = planner.execute(asked, ("f", "j", "0", json.dumps(copies), "1")).fetchall()
    # The list of what is copied, and each record of this job; those of others are not looked at.
    assert rows_read(plan["Plan"]) <= 2 * RECORDS + ROWS_MAX


@pytest.mark.long
def test_a_fork_of_fifty_thousand_steps_takes_less_than_a_second() -> None:
    """By the clocks of the two processors that it keeps busy: other programs use this machine too."""
    records = 50_000
    server = make_server(fsync=False)
    app = Tally(server.url(schema="shop"))
    try:
        app.workflow(name="pay")(_pay)
        app.runtime()
        with psycopg.connect(server.dsn, autocommit=True, options="-c search_path=shop") as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(FILL_RECORDS.format(records=records).encode(), prepare=False)
        took = []
        for _ in range(5):
            began = process_time() + _used_by(server)
            fork = app.job("j").fork(at=f"work#{records}")
            took.append(process_time() + _used_by(server) - began)
            assert len(fork.history()) == records
        assert min(took) < 1, took
    finally:
        app.close()
        server.remove()


def _used_by(server: Server) -> float:
    """Return how many seconds of a processor the processes of a server have had."""
    postmaster = (server.data / "postmaster.pid").read_text().splitlines()[0]
    used = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            about = stat.read_text().rpartition(")")[2].split()
            used += (int(about[11]) + int(about[12])) * (about[1] == postmaster)
    return used / os.sysconf("SC_CLK_TCK")


def _pay() -> int:
    return 1
