"""Q04: a claim costs the same whatever has piled up, and no hot statement reads a whole table."""

from __future__ import annotations

import re

import psycopg
import pytest

from tallystick.defaults import PRIORITY
from tallystick.store.api import Await, Fact, TakeAnswer, Wait
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.statements import sql
from tallystick.testing.conformance.drafts import claim, claimed, done, finish, held_job
from tests.postgres.subject import PostgresSubject

BACKLOG = 20_000
FILL = """
INSERT INTO jobs (job_id, state, handler, payload, created_at, updated_at, ready_at)
SELECT 'job-' || lpad(n::text, 9, '0'), 'QUEUED', 'pay', '{}', 1, 1, n FROM generate_series(1, %s) AS n
"""
CLAIM = (
    ["default"],
    ["pay "],
    "16",
    [str(n) for n in range(16)],
    "w",
    "30000",
    "e",
    "10",
    "1000000000",
    "1",
    "0",
    "2",
    "1",
    "3",
    "{}",
    "{}",
    "",
    None,
)
STEP = '[["job-000000001",1,"l",0,"s",1,"step","SUCCEEDED",1111000000001,"1",null,null,1,3,"00","00"]]'


@pytest.fixture
def planner(subject: PostgresSubject):
    settings = parse_address(subject.url).settings
    with psycopg.connect(
        subject.dsn, autocommit=True, options=settings, cursor_factory=psycopg.RawCursor
    ) as connection:
        yield connection


def explained(connection, name: str, parameters: tuple[object, ...], how: str = "") -> str:
    with connection.transaction(force_rollback=True):
        rows = connection.execute(f"EXPLAIN (COSTS OFF{how}) ".encode() + sql(name), parameters).fetchall()
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("jobs", [0, BACKLOG])
def test_a_claim_reads_one_stretch_of_one_index(
    subject: PostgresSubject, planner, mode: str, jobs: int
) -> None:
    """On a table that was never analysed, and with a plan made for whatever parameters."""
    subject.by_hand.execute("SELECT set_config('session_replication_role', 'replica', false)")
    subject.by_hand.execute(FILL, [jobs])
    planner.execute(f"SET plan_cache_mode = {mode}".encode())
    plan = explained(planner, "claim_jobs", CLAIM, ", ANALYZE, TIMING OFF, SUMMARY OFF")
    assert "Seq Scan" not in plan
    assert "Index Scan using jobs_to_claim" in plan
    read = re.search(r"Index Scan using jobs_to_claim on jobs j \(actual rows=(\d+) loops=(\d+)\)", plan)
    assert read is not None
    assert int(read[1]) * int(read[2]) <= 32, "a claim of 16 reads about 16 rows, not the backlog"


@pytest.mark.parametrize("name", ["insert_steps", "end_jobs", "end_attempts", "insert_fenced_events"])
def test_a_report_finds_its_rows_by_their_keys(planner, name: str) -> None:
    parameters = (
        ("[]", "e", "1") if name in ("insert_steps", "insert_fenced_events") else ("[]", "e", "1", "1")
    )
    digits = ("1", "2", "1", "2") if name == "end_jobs" else ()
    plan = explained(planner, name, (*parameters, *digits))
    assert "Seq Scan" not in plan
    assert "Hash" not in plan
    assert re.search(
        r"Index Scan using attempts_(pkey|one_live) on attempts a(_1)?\n *Index Cond: \(\(job_id = ", plan
    )


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("analysed", [True, False])
def test_a_tag_that_nobody_has_is_looked_for_without_reading_the_jobs(
    subject: PostgresSubject, planner, mode: str, analysed: bool
) -> None:
    subject.by_hand.execute(FILL, [2_000])
    subject.by_hand.execute(
        "INSERT INTO job_tags SELECT 'vip', job_id FROM jobs WHERE job_id > 'job-000001000'"
    )
    if analysed:
        subject.by_hand.execute("ANALYZE jobs, job_tags")
    planner.execute(f"SET plan_cache_mode = {mode}".encode())
    planner.execute(b"PREPARE tagged (text, text, text, text, text, text) AS " + sql("jobs_tagged"))
    for tag, found in (("nobody", 0), ("vip", 5)):
        asked = f"EXECUTE tagged ('default', '[]', NULL, '~', '5', '{tag}')"
        rows = planner.execute(f"EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) {asked}".encode())
        plan = "\n".join(line for (line,) in rows)
        assert "Seq Scan" not in plan
        assert re.search(rf"using job_tags_pkey on job_tags tagged \(actual rows={found} loops=1\)", plan)
        read = [int(rows) * int(loops) for rows, loops in re.findall(r"rows=(\d+) loops=(\d+)", plan)]
        assert max(read) == found
        assert "Removed" not in plan


def test_a_sweep_looks_only_at_what_runs(planner) -> None:
    plan = explained(planner, "expired", ("e", "1", "10"))
    assert "Index Scan using attempts_one_live" in plan


def test_the_next_due_job_is_found_without_reading_the_others(subject: PostgresSubject, planner) -> None:
    subject.by_hand.execute(FILL, [2_000])
    plan = explained(planner, "next_due", (["default"], 0, None), ", ANALYZE, TIMING OFF, SUMMARY OFF")
    assert "Seq Scan" not in plan
    assert "jobs_to_claim" in plan
    assert "rows=2000" not in plan


def test_the_connection_that_writes_plans_each_statement_once(subject: PostgresSubject) -> None:
    """To plan the search of a claim takes longer than the search, and every statement has one plan anyway."""
    store, clock = subject.store, subject.clock
    for _ in range(3):
        held = held_job(store, clock)
        fact = Fact(held.chain, "suspend", clock.wall_ms(), held.fence.attempt, "{}")
        nap = Wait("sleep", "nap", 1, clock.wall_ms() + 5)
        done(store, Await(held.fence, held.driver, held.dimension, (nap,), fact))
        clock.advance(10)
        (woken,) = claimed(store, claim())
        take = TakeAnswer(woken.fence, woken.chain, 0, nap, woken.wake, clock.wall_ms())
        done(store, take, finish(woken, clock)._replace(driver=woken.driver))
    wire = store._flush._wire
    assert wire is not None
    counted = wire.connection.execute(b"SELECT generic_plans, custom_plans FROM pg_prepared_statements")
    plans = counted.fetchall()
    assert len(plans) > 10
    assert {custom for _generic, custom in plans} == {0}


KEYED = """
INSERT INTO jobs (job_id, state, queue, limit_key, handler, payload, created_at, updated_at, ready_at)
SELECT 'job-' || lpad(n::text, 9, '0'), 'QUEUED', 'emails', 'k' || lpad(mod(n, %s)::text, 6, '0'),
       'pay', '{}', 1, 1, n
  FROM generate_series(1, %s) AS n
"""


@pytest.mark.parametrize(
    ("jobs", "keys"), [(20_000, 200), pytest.param(1_000_000, 10_000, marks=pytest.mark.long)]
)
def test_a_claim_by_limits_steps_from_key_to_key_and_reads_no_backlog(
    subject: PostgresSubject, planner, jobs: int, keys: int
) -> None:
    subject.by_hand.execute("SELECT set_config('session_replication_role', 'replica', false)")
    subject.by_hand.execute(KEYED, [keys, jobs])
    planner.execute(b"SET plan_cache_mode = force_generic_plan")
    how = ", ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF"
    wanted = [f"k{n:06}" for n in range(1, 25)]
    looks = {
        "waiting_keys": ("emails", "k000100", 24),
        "waiting_of_keys": ("emails", wanted, "1000000000", ["pay "], 16),
        "begun_jobs": ("emails", "1000000000", ["pay "], 1_000),
        # Two windows: one from the beginning, one from the middle of the queue.
        "waiting_without_key": (
            "emails",
            [PRIORITY, PRIORITY],
            [-1, jobs // 2],
            ["", f"job-{jobs // 2:09}"],
            "1000000000",
            ["pay "],
            256,
        ),
    }
    for name, parameters in looks.items():
        plan = explained(planner, name, parameters, how)
        assert "Seq Scan" not in plan, plan
        pages = max(int(number) for number in re.findall(r"shared hit=(\d+)", plan))
        assert pages < 6_000, f"{name} touched {pages} pages\n{plan}"
