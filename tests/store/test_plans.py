"""What the hot statements read: an index each, never a whole table."""

from __future__ import annotations

from contextlib import suppress

import apsw
import pytest

from tallystick.clock import Clock
from tallystick.store.api import ClaimedJob, JobRow
from tallystick.store.sqlite.statements import sql, sql_of_rows, takes_list
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import (
    check_chain,
    claim,
    claimed,
    done,
    finish,
    step,
    submission,
)
from tests.store.sqlite_subject import SqliteSubject

NOBODY = ("j", 1, "l")
HOT = {
    "claimable": ("default", 5, 1, '["pay "]', 3),
    "levels": ("default",),
    "next_due": ("default", 5, 0),
    "claim_jobs": ("j", 0, 1, b"h", 1, 2, 1, None),
    "expired": ("e", 1, 10),
    "end_attempts": (*NOBODY, "DONE", None, 0, "e", 1, 1),
    "end_jobs": ("j", 1, "SUCCEEDED", "1", None, None, None, 1, b"h", 1, 1, 2, 1, 2),
    "release_job": ("j", 1, 1, None, None, 1, b"h", 1),
    "renew_leases": ("[]", "e", 1, 2),
    "reservations": ("t", "key", "v"),
    "records": ('{"j":0}',),
    "tries": ('{"j":0}',),
    "charged": ('{"j":0}',),
    "next_level": ("default", -1),
    "insert_message": ("g", "j", 0, "n", 1, "timer", None, 1, 0, 0, 1, 1, None),
    "picture_jobs": ('["j"]', "e", 1),
    "picture_effects": ('["j"]', "e", 1),
    "picture_keys": ('[["t","pay","k"]]',),
    "due_probes": ('["pay"]', 1, 1),
    "open_keys": ("j", 10),
    "awaited_keys": ("j", 10),
    "stuck_effects": (None, 1, 10, 10),
    "forgotten_effects": (1, 10, 10),
    "asked_at": ("j",),
    "picture_pasts": ("j",),
    "picture_open": ('["j"]',),
    "picture_activity": ('[["j",0,"n",1]]',),
    "picture_messages": ('["g"]',),
    "picture_signals": ('[["j","n"]]', 2),
    "picture_begun": ('["j"]',),
    "picture_parents": ('["j"]',),
    "picture_words": ('["j"]', "resume", "timer", "result", 1),
    "picture_children": ('["j"]',),
    "picture_remotes": ('["j"]',),
    "picture_remote": ('[["j",0,"n",1]]',),
    "picture_homes": ('["j"]',),
    "picture_directives": ('["j"]',),
    "move_remote": (*[None] * 27, "j", 0, "n", 1, 1, 1),
    "withdraw_directives": ("j", "WITHDRAWN", "ended", 1),
    "move_job": ("j", "IN_PROGRESS", 1, 0, 1, None, 1, 1, 1, 1, None, None, 2, 1, *[None] * 9, 1),
    "move_semaphore": ("j", 1, -1, 1, 0, "g", 1, 2, 1, 0, "n", 1, 1, 2),
    "move_activity": ("j", 0, "n", 1, 1, "SUCCEEDED", 1, 2, 1, 1, "1", None, 3, b"", b"h"),
    "move_message": ("g", "j", 0, "n", 1, "timer", None, 1, 1, 0, 1, 1, 1, 0),
    "move_attempts": (*NOBODY, "IN_PROGRESS", "ABORTED", "SUSPENDED", 0, 1, 1, "e", 1),
    "drop_inboxes": ("j", "g", "h", 1, 1),
    "any_unread": (),
    "finished": ('["j"]',),
    "finished_children": ('["j"]',),
    "children": ("j", 0, "gather", 1, "", 100),
    "ask_descendants": ("j", '["QUEUED"]', "CANCELLING", 1, 2, None),
    "overdue": (1, 10),
    "next_end": (),
    "waiting_queues": (),
    "queue_depth": ("default", 1, 10),
    "held": (10,),
    "held_counts": ('["PAUSED"]', 10),
    "managed_queues": ('["default"]',),
    "begun_jobs": ("emails", 1, '["pay "]', 10),
    "waiting_keys": ("emails", "k", 10),
    "waiting_of_keys": ("emails", "k", 5, 1, '["pay "]'),
    "waiting_without_key": ("emails", 5, 1, 1, 2, '["pay "]', 10),
    "claimable_chosen": ('["j"]', 3),
    "free_slots": ("emails",),
    "slots": ("emails",),
    "buckets": ("emails", '["k"]'),
    "trim_buckets": ("emails", 1),
    "begin_in": ("emails", '["j"]'),
    "key_holder": ("t", "key", "v"),
    "held_key": ("t", "key", "v", "j"),
    "replace_arguments": ("j", "h", "{}", "h", 1, 1, 2, b"h", 1),
    "outbox_depth": (1, 10),
    "jobs_tagged": ("default", "[]", None, "~", 5, "vip"),
    "move_groups": ("j", 0, "gather", 1, 1, 1, 0, 0, 2, 1),
    "given_directives": ("w", 1, 8),
    "asked_directives": ("s", 8),
    "asked_of_tenant": ("acme", "s", 8),
    "due_directives": ("webhook x", 1, 8),
    "due_steps": (1, 8),
    "protocol_ends": ('["j"]',),
    "job": ("j",),
    "facts": ("j", 0, 100),
    "step_facts": ("j", 0, 100),
    "book": ("j",),
    "books": ("j", 100),
    "attempts": ("j",),
    "interrupted": ('["j"]',),
    "dead": ("t", None, "~", 10),
    "copy_steps": ("k", "j", 0, "[]", 1),
    "move_reservation": ("j", "k"),
    "forked_before": ("j", "fork:j:i"),
    "reserve_fork": ("j", "k", "fork:j:i", "h", 1, 1),
    "insert_steps": (
        *NOBODY,
        0,
        "n",
        1,
        "step",
        "SUCCEEDED",
        1,
        None,
        None,
        None,
        1,
        1,
        3,
        b"",
        b"h",
        "e",
        1,
    ),
    "insert_fenced_events": ("j", 3, "try", 1, 1, "{}", b"", b"h", 1, "l", "e", 1),
}
# Partial indexes that hold only what is live or waiting: to walk one of them is to look at nothing else.
SMALL = (
    *("attempts_one_live", "jobs_to_claim", "jobs_held", "jobs_held_as", "messages_inbox"),
    *("outbox_to_publish", "outbox_of_service", "outbox_of_tenant", "steps_awaiting_ack", "effect_keys_open"),
)
# Lists that a statement was given or made itself.
GIVEN = (
    "SCAN known",
    "SCAN copy",
    "SCAN below",
    "SCAN lease",
    "SCAN wanted",
    "SCAN level",
    "SCAN parents",
    "SCAN given",
    "SCAN due",
    "SCAN waiting",
    "SCAN doubtful",
    "SCAN rests",
    "SCAN priorities",
    "SCAN kept",
    "SCAN counted",
    "SCAN pushed",
    "SCAN pulled",
    "SCAN (subquery-",
    "SCAN CONSTANT ROW",
    "SCAN 2 CONSTANT ROWS",
    "SCAN 16 CONSTANT ROWS",
    "SCAN 16-ROW VALUES CLAUSE",
)


def plan(subject: SqliteSubject, name: str, *, rows: int = 1) -> list[str]:
    asked = f"EXPLAIN QUERY PLAN {sql_of_rows(name, rows)}"
    return [row[3] for row in subject.store._writer.execute(asked, HOT[name] * rows)]


def scans(plan: list[str]) -> list[str]:
    """Return what is read as a whole and is neither small nor given."""
    lines = [line for line in plan if line.startswith("SCAN") and not line.startswith(GIVEN)]
    return [line for line in lines if not line.endswith(SMALL)]


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_reads_no_whole_table(subject: SqliteSubject, name: str):
    assert not scans(plan(subject, name))


@pytest.mark.parametrize("name", [name for name in HOT if takes_list(name)])
def test_sixteen_rows_are_looked_up_one_by_one(subject: SqliteSubject, name: str):
    assert not scans(plan(subject, name, rows=16))


def test_a_tag_that_nobody_has_is_looked_for_without_reading_the_jobs(subject: SqliteSubject):
    """What a search does is counted in hundreds of the machine's instructions."""
    subject.store.apply([(submission(subject.clock),) for _ in range(500)])
    subject.store.job("")  # what reads the schema comes first, and is the longer the more tables there are
    steps: list[int] = []

    def tagged() -> list[JobRow]:
        return subject.store.jobs(tenant_id="default", states=(), handler=None, after=None, limit=5, tag="x")

    tagged()  # the first one reads the schema
    subject.store._reader.set_progress_handler(lambda: bool(steps.append(1)), 100)
    assert tagged() == []
    assert len(steps) < 5


def flush(store: SqliteStore, clock: Clock) -> None:
    store.apply([(submission(clock),)])


def lend(store: SqliteStore, clock: Clock) -> None:
    with store.transaction() as transaction:
        transaction.apply((submission(clock),))


@pytest.mark.parametrize("first_write", [flush, lend])
def test_what_somebody_found_out_when_there_was_one_job_changes_no_plan(subject: SqliteSubject, first_write):
    subject.store.apply([(submission(subject.clock),), (claim(),)])
    subject.by_hand.execute("INSERT INTO effects VALUES ('theirs'); ANALYZE")
    subject.store._writer.execute("ANALYZE sqlite_schema")
    assert scans(plan(subject, "end_jobs", rows=16)), "the test proves nothing"
    another = subject.open(subject.clock)
    another.counts()
    assert ("jobs",) in subject.by_hand.execute("SELECT tbl FROM sqlite_stat1").fetchall(), "it only looked"
    first_write(another, subject.clock)
    another.close()
    subject.store._writer.execute("ANALYZE sqlite_schema")
    for name in HOT:
        assert not scans(plan(subject, name))
        assert not (takes_list(name) and scans(plan(subject, name, rows=16)))
    assert subject.by_hand.execute("SELECT tbl FROM sqlite_stat1").fetchall() == [("effects",)]


@pytest.mark.parametrize("name", HOT)
def test_a_statement_is_prepared_once_whatever_it_is_asked_about(subject: SqliteSubject, name: str):
    """SQLite prepares anew where the value of a parameter might admit a partial index, unless told not to."""
    writer, asked = subject.store._writer, 0

    def allowed(*_what: object) -> int:
        """SQLite asks for leave whenever it prepares, and never while it runs."""
        nonlocal asked
        asked += 1
        return apsw.SQLITE_OK

    writer.authorizer = allowed
    writer.execute("BEGIN")
    counted = []
    for number in range(3):
        with suppress(apsw.ConstraintError):
            list(writer.execute(sql(name), [other(value, number) for value in HOT[name]]))
        counted.append(asked)
    writer.authorizer = None
    writer.execute("ROLLBACK")
    assert 0 < counted[0] == counted[1] == counted[2]


def test_a_flush_of_many_jobs_prepares_nothing_that_an_earlier_one_has_prepared(subject: SqliteSubject):
    """The library keeps statements in a ring in which every row moves on by one: a short one loses all."""
    store, clock = subject.store, subject.clock
    kept: list[ClaimedJob] = []

    def flush() -> int:
        nonlocal kept
        before = store._writer.cache_stats()["misses"]
        ends = [(step(job, clock), finish(job, clock)) for job in kept]
        births = [(submission(clock),) for _ in range(64)]
        outcomes = store.apply([*ends, *births, (claim(64),)])
        assert not [one for one in outcomes if isinstance(one, BaseException)]
        kept = outcomes[-1]
        assert len(kept) == 64
        return store._writer.cache_stats()["misses"] - before

    first, second, *later = [flush() for _ in range(5)]
    assert first
    assert second
    assert later == [0, 0, 0]
    for job in kept:
        check_chain(store.history(job.fence.job_id))


def other(value: object, number: int) -> object:
    """Return a value of the same kind that no statement has seen yet."""
    if isinstance(value, str) and value not in ("[]", "default"):
        return value.replace("j", f"j{number}").replace("t", f"t{number}")
    return value + number if isinstance(value, int) else value


def test_a_claim_walks_the_index_of_what_is_due_in_its_order(subject: SqliteSubject):
    lines = plan(subject, "claimable")
    assert "SEARCH jobs USING INDEX jobs_to_claim (queue=? AND priority=? AND ready_at<?)" in lines
    assert not [line for line in lines if "TEMP B-TREE" in line], "sorting would read the whole backlog"


def test_a_claim_costs_the_same_at_both_ends_of_a_backlog(subject: SqliteSubject):
    """Counted in the steps of SQLite's own machine, which no busy neighbour disturbs."""
    subject.by_hand.execute("BEGIN")
    for _ in range(3_000):
        wish = submission(subject.clock)
        columns = {"handler": "pay", "payload": "{}", "created_at": 1, "updated_at": 1, "ready_at": 1}
        subject.plant_row("jobs", job_id=wish.job.job_id, state="QUEUED", **columns)
    subject.by_hand.execute("COMMIT")
    costs = []
    for _ in range(30):
        ticks = 0

        def tick() -> bool:
            nonlocal ticks
            ticks += 1
            return False

        subject.store._writer.set_progress_handler(tick, 10)
        assert len(claimed(subject.store, claim(100))) == 100
        subject.store._writer.set_progress_handler(None)
        costs.append(ticks)
    assert max(costs[-5:]) <= 1.25 * min(costs[:5])
    done(subject.store, claim(1))
