"""The tables hold every field of the model, and refuse by themselves what the rules refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import apsw
import pytest

from tallystick.clock import VirtualClock
from tallystick.core.lifecycles import MACHINES
from tallystick.core.printing import sql_rules
from tallystick.store.sqlite.statements import migrations
from tallystick.store.sqlite.store import SqliteStore
from tests.old_files import sqlite_file

NOW = 1_700_000_000_000

# Specification 001, field by field; partition and row keys are the keys of the tables here.
SPECIFIED = {
    "jobs": "job_id tenant_id request_type protocol_id mode doc_id state idempotency_key idempotency_hash "
    "current_step_id current_step_index attempts_total created_at updated_at completed_at error_code "
    "error_message correlation_id traceparent",
    "steps": "job_id step_index step_id step_type service state attempt_no lease_id lease_expires_at "
    "input_ref workspace_ref output_ref payload resolved_mode lane routing_key_used decision_source "
    "decision_reason last_error_code last_error_message created_at updated_at completed_at",
    "outbox": "outbox_id tenant_id job_id step_id attempt_no lease_id state topic partition payload "
    "resolved_mode lane routing_key_used decision_source decision_reason created_at sent_at updated_at",
    "events": "job_id n type payload at",
}
# What our own model adds.
ADDED = {
    "jobs": "kind handler version queue priority ready_at hold hold_reason semaphore dimension parent_job_id "
    "parent_step cancel_at deadline_at rev input_ref output_ref schema_version canon_version payload options "
    "result error start_ledger start_redeliveries start_acked_at head_n head_hash tags retry_of retried_as "
    "detached",
    "attempts": "job_id unit attempt exec_id lease_id lease_owner lease_epoch lease_expires_at status reason "
    "charged guid started_at finished_at",
    "steps": "dimension name occurrence kind ledger result error notes n attempt prev_hash event_hash "
    "semaphore threshold failed rev",
    "messages": "guid job_id dimension name occurrence kind payload due_at ledger redeliveries created_at "
    "arrived acked_at",
    "job_tags": "tag job_id",
    "api_keys": "kid tenant_id scopes services secret_hash created_at expires_at revoked_at",
    "job_values": "job_id name value rev attempt changed_at",
    "events": "attempt prev_hash event_hash",
    "outbox": "tries next_try_at rev",
    "idempotency": "tenant_id scope value job_id content_hash canon_version created_at",
    "stale_reports": "at job_id attempt lease_id report",
    "pruned": "seq job_id whole dimension last_n head_hash born_at at who prev_hash event_hash",
}

JOB = {"handler": "pay", "payload": "{}", "created_at": NOW, "updated_at": NOW}
LEASE = {"lease_id": "l", "lease_epoch": "e", "lease_expires_at": 1, "lease_owner": "w"}
STEP = {"job_id": "j", "created_at": NOW}
MESSAGE = {"job_id": "j", "name": "n", "created_at": NOW}
EVENT = {
    "job_id": "j",
    "type": "t",
    "at": 1,
    "attempt": 0,
    "payload": "{}",
    "prev_hash": b"",
    "event_hash": b"h",
}
OUTBOX = {"tenant_id": "t", "job_id": "j", "step_id": "s", "attempt_no": 1, "lease_id": "l", "topic": "x"}
OUTBOX |= {"payload": "{}", "created_at": NOW, "updated_at": NOW}
RESERVATION = {"tenant_id": "t", "job_id": "j", "content_hash": "h", "canon_version": 1, "created_at": NOW}

EVERY_KIND = [
    *(
        ("jobs", JOB | {"job_id": f"k-{kind}", "state": "QUEUED", "kind": kind})
        for kind in ("workflow", "protocol", "map")
    ),
    *(
        ("jobs", JOB | {"job_id": f"h-{hold}", "state": "QUEUED", "hold": hold})
        for hold in ("PAUSED", "IN_DOUBT", "MISMATCH", "RESTORED", "SUSPEND_SWALLOWED", "REFUSED")
    ),
    ("attempts", LEASE | {"job_id": "j", "attempt": 1, "status": "LEASED"}),
    ("attempts", LEASE | {"job_id": "j", "attempt": 1, "status": "COMMITTED", "unit": "charge#1"}),
    ("attempts", LEASE | {"job_id": "j", "attempt": 2, "status": "ABORTED", "reason": "CANCELLED"}),
    *(
        ("steps", STEP | {"name": kind, "kind": kind, "state": "IN_PROGRESS"})
        for kind in ("step", "tx", "effect", "remote", "wait", "sleep", "group", "protocol")
    ),
    *(
        ("messages", MESSAGE | {"guid": kind, "kind": kind})
        for kind in ("start", "signal", "timer", "child", "result", "resume")
    ),
    ("events", EVENT | {"n": 1}),
    ("outbox", OUTBOX | {"outbox_id": "o", "state": "PENDING"}),
    *(("idempotency", RESERVATION | {"scope": scope, "value": "v"}) for scope in ("key", "content")),
    ("stale_reports", {"at": NOW, "job_id": "j", "attempt": 1, "lease_id": "l", "report": "EndJob"}),
]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[apsw.Connection]:
    store = SqliteStore(tmp_path / "shop.db", VirtualClock())
    connection = apsw.Connection(str(tmp_path / "shop.db"))
    connection.execute("PRAGMA recursive_triggers = ON")
    connection.execute("PRAGMA synchronous = OFF")
    yield connection
    connection.close()
    store.close()


def put(database: apsw.Connection, table: str, verb: str = "INSERT", **columns: object) -> None:
    if table == "attempts":  # none without its job
        put(database, "jobs", "INSERT OR IGNORE", **JOB, job_id=columns["job_id"], state="QUEUED")
    places = ", ".join("?" for _ in columns)
    database.execute(f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({places})", tuple(columns.values()))


def columns_of(database: apsw.Connection, table: str) -> set[str]:
    return {row[1] for row in database.execute(f"PRAGMA table_xinfo({table})")}


@pytest.mark.parametrize("table", sorted(SPECIFIED.keys() | ADDED.keys()))
def test_every_field_of_the_model_is_a_column(database: apsw.Connection, table: str):
    wanted = {*SPECIFIED.get(table, "").split(), *ADDED.get(table, "").split()}
    assert wanted <= columns_of(database, table)


def test_every_table_is_strict(database: apsw.Connection):
    listed = list(database.execute("PRAGMA table_list"))
    ours = {row[1]: row[5] for row in listed if row[2] == "table" and not row[1].startswith("sqlite_")}
    assert ours.keys() >= SPECIFIED.keys() | ADDED.keys()
    assert set(ours.values()) == {1}


@pytest.mark.parametrize(
    ("table", "row"), EVERY_KIND, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_row_of_every_kind_can_be_inserted(database: apsw.Connection, table: str, row: dict[str, object]):
    put(database, table, **row)
    names = ", ".join(row)
    assert list(database.execute(f"SELECT {names} FROM {table}")) == [tuple(row.values())]


def test_every_column_of_every_table_takes_a_value_at_once(database: apsw.Connection):
    """A full row: what the protocol, groups and routing will need is there from the first schema."""
    for table, least in (
        ("jobs", JOB | {"job_id": "j", "state": "QUEUED", "tags": '["x"]'}),
        ("attempts", LEASE | {"job_id": "j", "attempt": 1, "status": "LEASED"}),
        ("steps", STEP | {"name": "s", "kind": "protocol", "state": "PENDING"}),
        ("messages", MESSAGE | {"guid": "g", "kind": "result"}),
        ("outbox", OUTBOX | {"outbox_id": "o", "state": "PENDING"}),
    ):
        full = dict(least)
        never = {
            "completed_at",
            "hold",
            "sent_at",
            "reason",
            "pruned_at",
            "exec_id",
            "step_id",
            "n",
            "hook_due",
        }
        for row in database.execute(f"PRAGMA table_xinfo({table})"):
            name, kind = row[1], row[2]
            if name not in never and name not in full:
                full[name] = {"INTEGER": 1, "TEXT": "x", "BLOB": b"x"}[kind] if name != "kind" else "workflow"
        put(database, table, **full)
        assert list(database.execute(f"SELECT {', '.join(full)} FROM {table}")) == [tuple(full.values())]


def test_names_of_steps_and_attempts_are_derived(database: apsw.Connection):
    put(database, "steps", **STEP, name="charge", occurrence=2, kind="step", state="PENDING")
    put(database, "attempts", **LEASE, job_id="j", unit="charge#2", attempt=3, status="LEASED")
    assert database.execute("SELECT step_id FROM steps").get == "charge#2"
    assert database.execute("SELECT exec_id FROM attempts").get == "j:charge#2:3"


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("jobs", JOB | {"job_id": "j", "state": "ASLEEP"}),
        ("jobs", JOB | {"job_id": "j", "state": "SUCCEEDED", "completed_at": 1}),
        ("jobs", JOB | {"job_id": "j", "state": "QUEUED", "completed_at": 1}),
        ("jobs", JOB | {"job_id": "j", "state": "QUEUED", "hold": "MAYBE"}),
        ("jobs", JOB | {"job_id": "j", "state": "QUEUED", "priority": 10}),
        ("jobs", JOB | {"job_id": "j", "state": "QUEUED", "semaphore": -1}),
        ("jobs", JOB | {"job_id": "j", "state": "QUEUED", "start_ledger": 200_000_000_000}),
        ("jobs", JOB | {"job_id": "j", "state": "QUEUED", "start_ledger": 1_000_000_000_000}),
        ("jobs", JOB | {"job_id": "j", "state": "QUEUED", "start_ledger": "1e12"}),
        ("jobs", JOB | {"job_id": "j", "state": "QUEUED", "start_ledger": 1.5}),
        ("jobs", JOB | {"job_id": "j", "state": "QUEUED", "kind": "other"}),
        ("attempts", LEASE | {"job_id": "j", "attempt": 0, "status": "LEASED"}),
        ("attempts", LEASE | {"job_id": "j", "attempt": 1, "status": "RUNNING"}),
        ("attempts", LEASE | {"job_id": "j", "attempt": 1, "status": "ABORTED"}),
        ("attempts", LEASE | {"job_id": "j", "attempt": 1, "status": "LEASED", "charged": 2}),
        ("steps", STEP | {"name": "s", "kind": "step", "state": "DONE"}),
        ("steps", STEP | {"name": "s", "kind": "step", "state": "SUCCEEDED"}),
        ("steps", STEP | {"name": "s", "kind": "what", "state": "PENDING"}),
        ("steps", STEP | {"name": "s", "kind": "step", "state": "PENDING", "ledger": 10**15}),
        ("steps", STEP | {"name": "s", "kind": "step", "state": "PENDING", "ledger": -1}),
        ("steps", STEP | {"name": "s", "kind": "step", "state": "PENDING", "ledger": 2 * 10**10}),
        ("steps", STEP | {"name": "s", "kind": "step", "state": "PENDING", "semaphore": -1}),
        ("steps", STEP | {"name": "s", "kind": "step", "state": "PENDING", "occurrence": 0}),
        ("messages", MESSAGE | {"guid": "g", "kind": "letter"}),
        ("messages", MESSAGE | {"guid": "g", "kind": "signal", "ledger": 10**12}),
        ("messages", MESSAGE | {"guid": "g", "kind": "signal", "ledger": 3 * 10**9}),
        ("messages", MESSAGE | {"guid": "g", "kind": "signal", "redeliveries": -1}),
        ("events", EVENT | {"n": 0}),
        ("outbox", OUTBOX | {"outbox_id": "o", "state": "SENT", "sent_at": 1}),
        ("outbox", OUTBOX | {"outbox_id": "o", "state": "PENDING", "sent_at": 1}),
        ("idempotency", RESERVATION | {"scope": "other", "value": "v"}),
    ],
)
def test_a_state_a_digit_or_a_number_out_of_range_is_refused(database, table: str, row: dict[str, object]):
    with pytest.raises(apsw.ConstraintError):
        put(database, table, **row)


def test_one_live_and_one_committed_attempt_a_unit(database: apsw.Connection):
    for first in ("LEASED", "IN_PROGRESS", "COMMITTED"):
        put(database, "attempts", **LEASE, job_id=first, attempt=1, status=first)
        for status in ("LEASED", "IN_PROGRESS", "COMMITTED"):
            with pytest.raises(apsw.ConstraintError, match="UNIQUE"):
                put(database, "attempts", **LEASE, job_id=first, attempt=2, status=status)
    put(database, "attempts", **LEASE, job_id="j", unit="charge#1", attempt=1, status="LEASED")


def test_no_condition_is_a_list_of_three(database: apsw.Connection):
    """Of such a list SQLite makes a table for every row that it asks; of words joined by OR it does not."""
    said = [text for (text,) in database.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
    assert [text for text in said if re.search(r"IN \(('\w+', ){2,}'\w+'\)", text)] == []


def test_one_step_of_a_protocol_job_is_in_progress(database: apsw.Connection):
    put(database, "steps", **STEP, name="a", kind="protocol", state="IN_PROGRESS")
    with pytest.raises(apsw.ConstraintError):
        put(database, "steps", **STEP, name="b", kind="protocol", state="IN_PROGRESS")
    for name in ("c", "d"):
        put(database, "steps", **STEP, name=name, kind="step", state="IN_PROGRESS")


LIFECYCLES = {
    "jobs": ("job", "state", "job_id", JOB),
    "attempts": ("attempt", "status", "job_id", LEASE | {"attempt": 1}),
    "steps": ("step", "state", "job_id", {"name": "s", "kind": "step", "created_at": NOW}),
    "outbox": ("outbox", "state", "outbox_id", OUTBOX),
}


@pytest.mark.parametrize("table", LIFECYCLES)
def test_by_hand_a_state_moves_only_as_its_lifecycle_lists(database: apsw.Connection, table: str):
    """Every pair of states: the listed ones pass, all others are refused, and a final row moves nowhere."""
    machine_name, column, key, least = LIFECYCLES[table]
    machine = MACHINES[machine_name]
    legal = {(before.value, after.value) for before, after in machine.stored_moves}
    final = {state.value for state in machine.final}
    states = [state.value for state in machine.states]
    for number, (before, after) in enumerate(product(states, states)):
        name = f"row-{number}"
        if not walk(database, table, column, key, least, name, before, machine):
            continue
        changes = {column: after} | extra(table, after)
        setting = ", ".join(f"{place} = ?" for place in changes)
        move = (f"UPDATE {table} SET {setting} WHERE {key} = ?", (*changes.values(), name))
        if before in final or (before != after and (before, after) not in legal):
            with pytest.raises(apsw.ConstraintError, match=r"FINAL|ILLEGAL_TRANSITION"):
                database.execute(*move)
        else:
            database.execute(*move)


def walk(database, table, column, key, least, name, goal, machine) -> bool:
    """Bring a new row into a state by moves that the lifecycle lists."""
    start = machine.start.value
    put(database, table, **(least | {key: name, column: start}))
    legal = {(before.value, after.value) for before, after in machine.stored_moves if before != after}
    paths = {start: []}
    queue = [start]
    while queue:
        here = queue.pop(0)
        for before, after in legal:
            if before == here and after not in paths:
                paths[after] = [*paths[here], after]
                queue.append(after)
    if goal not in paths:
        return False
    for state in paths[goal]:
        changes = {column: state} | extra(table, state)
        setting = ", ".join(f"{place} = ?" for place in changes)
        database.execute(f"UPDATE {table} SET {setting} WHERE {key} = ?", (*changes.values(), name))
    return True


def extra(table: str, state: str) -> dict[str, object]:
    """Return what a row must carry in a state for its CHECKs."""
    if table in {"jobs", "steps"}:
        return {"completed_at": NOW if state in {"SUCCEEDED", "FAILED_FINAL", "CANCELLED"} else None}
    if table == "attempts":
        return {"reason": "ERROR" if state == "ABORTED" else None}
    return {"sent_at": NOW if state == "SENT" else None}


def test_what_has_ended_cannot_be_changed_by_hand(database: apsw.Connection):
    put(database, "jobs", **JOB, job_id="j", state="IN_PROGRESS")
    database.execute("UPDATE jobs SET state = 'SUCCEEDED', completed_at = 1, result = '1'")
    put(database, "steps", **STEP, name="s", kind="step", state="SUCCEEDED", completed_at=1)
    put(database, "events", **EVENT, n=1)
    for statement in (
        "UPDATE jobs SET result = '2'",
        "UPDATE jobs SET semaphore = 5",
        "UPDATE jobs SET attempt = 7",
        "UPDATE jobs SET job_id = 'k'",
        "UPDATE OR IGNORE jobs SET result = '2'",
        "UPDATE OR REPLACE jobs SET payload = '2'",
        "UPDATE steps SET result = '2'",
        "UPDATE steps SET ledger = ledger + 1",
        "UPDATE events SET payload = '2'",
        "UPDATE events SET n = 2",
    ):
        with pytest.raises(apsw.ConstraintError, match="FINAL"):
            database.execute(statement)
    with pytest.raises(apsw.ConstraintError, match="ready_at IS NULL OR completed_at IS NULL"):
        database.execute("UPDATE jobs SET ready_at = 1")


@pytest.mark.parametrize(
    ("table", "column", "row"),
    [
        ("jobs", "start_ledger", JOB | {"job_id": "j", "state": "QUEUED"}),
        ("steps", "ledger", STEP | {"name": "s", "kind": "wait", "state": "IN_PROGRESS"}),
        ("messages", "ledger", MESSAGE | {"guid": "g", "kind": "signal"}),
    ],
)
def test_a_ledger_never_decreases(database: apsw.Connection, table: str, column: str, row: dict[str, object]):
    put(database, table, **row, **{column: 2})
    database.execute(f"UPDATE {table} SET {column} = 3")
    with pytest.raises(apsw.ConstraintError, match="LEDGER"):
        database.execute(f"UPDATE {table} SET {column} = 2")


@pytest.mark.parametrize("ended", [False, True])
def test_the_books_of_a_job_cannot_be_deleted_or_replaced(database: apsw.Connection, ended: bool):
    put(database, "jobs", **JOB, job_id="j", state="IN_PROGRESS")
    rows = {
        "attempts": LEASE | {"job_id": "j", "attempt": 1, "status": "IN_PROGRESS"},
        "steps": STEP | {"name": "s", "kind": "step", "state": "SUCCEEDED", "completed_at": 1},
        "messages": MESSAGE | {"guid": "g", "kind": "signal"},
        "events": EVENT | {"n": 1},
    }
    for table, row in rows.items():
        put(database, table, **row)
    if ended:
        database.execute("UPDATE jobs SET state = 'SUCCEEDED', completed_at = 1")
    job = JOB | {"job_id": "j", "state": "QUEUED"}
    for table, row in (rows | {"jobs": job}).items():
        with pytest.raises(apsw.ConstraintError, match="DELETE"):
            database.execute(f"DELETE FROM {table}")
        for verb in ("INSERT OR REPLACE", "REPLACE"):
            with pytest.raises(apsw.ConstraintError, match="DELETE"):
                put(database, table, verb, **row)
        put(database, table, "INSERT OR IGNORE", **row)
        assert database.execute(f"SELECT count(*) FROM {table}").get == 1


def test_every_connection_of_the_store_arms_the_triggers_against_replacement(tmp_path: Path):
    store = SqliteStore(tmp_path / "shop.db", VirtualClock())
    with store.transaction() as transaction:
        columns = "(job_id, n, type, at, attempt, payload, prev_hash, event_hash)"
        row = "VALUES ('j', 1, 't', 1, 0, '{}', x'', x'00')"
        put_job = "INSERT INTO jobs (job_id, state, handler, payload, created_at, updated_at)"
        transaction.execute(f"{put_job} VALUES ('j', 'QUEUED', 'h', '{{}}', 1, 1)")
        transaction.execute(f"INSERT INTO events {columns} {row}")
        with pytest.raises(apsw.ConstraintError, match="DELETE"):
            transaction.execute(f"INSERT OR REPLACE INTO events {columns} {row}")
    store.close()


def test_a_live_job_cannot_be_marked_for_removal(database: apsw.Connection):
    put(database, "jobs", **JOB, job_id="j", state="QUEUED")
    with pytest.raises(apsw.ConstraintError):
        database.execute("UPDATE jobs SET pruned_at = 1")


def test_a_final_job_may_learn_its_successor_and_be_pruned_with_its_books(database: apsw.Connection):
    put(database, "jobs", **JOB, job_id="j", state="IN_PROGRESS")
    put(database, "events", **EVENT, n=1)
    database.execute("UPDATE jobs SET state = 'SUCCEEDED', completed_at = 1")
    database.execute("UPDATE jobs SET retried_as = 'k'")
    database.execute("UPDATE jobs SET pruned_at = 1")
    database.execute("DELETE FROM events")
    database.execute("DELETE FROM jobs")
    assert list(database.execute("SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM events)")) == [
        (0, 0)
    ]


def test_the_parts_of_the_schema_that_follow_from_the_rules_are_current():
    texts = {name: text for _version, name, text in migrations()}
    for name, text in texts.items():
        assert sql_rules.refresh(text) == text, f"{name} is stale: write it again with sql_rules.refresh"
    assert "-- rule:" in texts["0004_ledgers.sql"]


def test_an_old_file_comes_to_the_schema_of_a_new_one(tmp_path: Path):
    """The one is migrated from what an older revision has made, the other is printed from the description."""
    (tmp_path / "old").mkdir()
    paths = [sqlite_file(tmp_path / "old"), tmp_path / "new.db"]
    old, new = (shape_of(path) for path in paths)
    assert new == {key: parts for key, parts in old.items() if key[2] not in ("effects", "sqlite_stat1")}


def shape_of(path: Path) -> dict[tuple[str, str, str], object]:
    """Return what a file consists of once it was opened: of a table, its columns and checks in any order."""
    SqliteStore(path, VirtualClock()).close()
    connection = apsw.Connection(str(path))
    rows = list(
        connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    )
    connection.close()
    return {
        (kind, name, table): sorted(filter(None, parts_of(sql))) if kind == "table" else words_of(sql)
        for kind, name, table, sql in rows
    }


def words_of(sql: str) -> str:
    lines = (line.partition("--")[0] for line in sql.splitlines())
    return " ".join(" ".join(lines).split()).replace("( ", "(").replace(" )", ")")


def parts_of(sql: str) -> Iterator[str]:
    """Give the columns of a table, its keys, and each of its checks wherever it stands."""
    text = words_of(sql)
    while "CHECK (" in text:
        before, _, rest = text.partition("CHECK (")
        depth, end = 1, 0
        while depth:
            depth += {"(": 1, ")": -1}.get(rest[end], 0)
            end += 1
        yield rest[: end - 1]
        text = before + rest[end:]
    start, _, body = text.partition("(")
    yield start
    depth, part = 0, ""
    for letter in body:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            yield " ".join(part.split())
            part = ""
        else:
            part += letter
    yield " ".join(part.rpartition(")")[0].split())
    yield part.rpartition(")")[2].strip()
