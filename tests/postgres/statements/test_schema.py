"""The tables refuse by themselves what the rules refuse; migrations take turns; a small role is enough."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import psycopg
import pytest
from psycopg import sql

from tallystick.clock import SystemClock
from tallystick.core.lifecycles import MACHINES
from tallystick.core.printing import sql_rules
from tallystick.errors import StoreMissing, StoreReadOnly, StoreTooNew
from tallystick.store.opening import open_store
from tallystick.store.postgres.statements import migrations
from tallystick.store.postgres.store import PostgresStore
from tallystick.testing.conformance.drafts import claim, claimed, done, finish, held_job, step, submission
from tests.old_files import restore_postgres
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject, fresh_schema
from tests.store.test_schema import ADDED, SPECIFIED

CLOCK = SystemClock()
NOW = 1_700_000_000_000
STORED = {"job": ("jobs", "state"), "attempt": ("attempts", "status"), "step": ("steps", "state")}
JOB = {"job_id": "j", "handler": "pay", "payload": "{}", "created_at": NOW, "updated_at": NOW}
LEASE = {
    "job_id": "j",
    "attempt": 1,
    "lease_id": "l",
    "lease_epoch": "e",
    "lease_expires_at": 1,
    "lease_owner": "w",
}
STEP = {"job_id": "j", "name": "s", "kind": "step", "created_at": NOW}
PLANTED = {"jobs": JOB, "attempts": LEASE, "steps": STEP}


def test_the_rules_in_the_schema_are_those_of_the_code() -> None:
    for _version, name, text in migrations():
        assert sql_rules.refresh(text.decode()) == text.decode(), f"{name}: run sql_rules.refresh over it"


def test_every_field_of_the_model_has_its_column(subject: PostgresSubject) -> None:
    computed = {"attempts": {"exec_id"}, "steps": {"step_id"}}
    for table in ADDED:
        wanted = set(ADDED[table].split()) | set(SPECIFIED.get(table, "").split())
        subject.by_hand.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table)))
        query = (
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
        )
        found = {name for (name,) in subject.by_hand.execute(query, [subject.schema, table])}
        assert wanted - found - computed.get(table, set()) == set(), table


def test_an_attempt_and_a_step_have_the_names_of_the_specifications(subject: PostgresSubject) -> None:
    held = held_job(subject.store, subject.clock)
    done(subject.store, step(held, subject.clock))
    query = "SELECT a.exec_id, s.step_id FROM attempts AS a CROSS JOIN steps AS s"
    assert subject.by_hand.execute(query).fetchall() == [(f"{held.fence.job_id}::1", "charge#1")]


@pytest.mark.parametrize("machine", STORED)
def test_a_move_that_no_lifecycle_lists_is_refused_even_by_hand(
    subject: PostgresSubject, machine: str
) -> None:
    table, column = STORED[machine]
    rules = MACHINES[machine]
    legal = {(before.value, after.value) for before, after in rules.stored_moves}
    final = {state.value for state in rules.final}
    # Rows are planted in any state, past the triggers; the moves go through them.
    for before, after in product((state.value for state in rules.states), repeat=2):
        with subject.by_hand.transaction(force_rollback=True):
            subject.by_hand.execute("SET LOCAL session_replication_role = replica")
            subject.plant_row(table, **PLANTED[table], **_row(machine, column, before))
            if machine == "attempt":  # a key that is changed to itself is looked up in this transaction
                subject.plant_row("jobs", **PLANTED["jobs"], **_row("job", "state", "IN_PROGRESS"))
            subject.by_hand.execute("SET LOCAL session_replication_role = origin")
            changed = {**_row(machine, column, after)}
            query = sql.SQL("UPDATE {} SET {}").format(
                sql.Identifier(table),
                sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in changed),
            )
            allowed = before not in final and (before == after or (before, after) in legal)
            try:
                with subject.by_hand.transaction():
                    subject.by_hand.execute(query, list(changed.values()))
                refused = ""
            except psycopg.IntegrityError as error:
                refused = str(error).partition(":")[0]
            expected = "FINAL" if before in final else "ILLEGAL_TRANSITION"
            assert refused == ("" if allowed else expected), (before, after)


def _row(machine: str, column: str, state: str) -> dict[str, object]:
    row: dict[str, object] = {column: state}
    final = state in {ending.value for ending in MACHINES[machine].final}
    if machine == "attempt":
        row["reason"] = "ERROR" if state == "ABORTED" else None
    else:
        row["completed_at"] = NOW if final else None
    return row


def test_ledgers_never_decrease_and_facts_never_change(subject: PostgresSubject) -> None:
    held = held_job(subject.store, subject.clock)
    for statement in (
        "UPDATE jobs SET start_ledger = 0",
        "UPDATE events SET payload = '{}'",
        "DELETE FROM events",
        "DELETE FROM jobs",
        "DELETE FROM attempts",
        "TRUNCATE events",
        "UPDATE jobs SET start_ledger = 20000000000",
        "UPDATE jobs SET semaphore = -1",
    ):
        with pytest.raises(psycopg.IntegrityError):
            subject.by_hand.execute(statement.encode())
    done(subject.store, finish(held, subject.clock))
    subject.by_hand.execute("UPDATE jobs SET pruned_at = 1")
    for table in ("events", "attempts", "jobs"):
        subject.by_hand.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
    assert subject.rows("jobs") == []


def test_of_many_processes_that_open_an_empty_database_one_makes_the_schema(server: Server) -> None:
    url = server.url(schema=fresh_schema())
    with ThreadPoolExecutor(6) as threads:
        stores = list(threads.map(lambda _: PostgresStore(url, CLOCK), range(6)))
    for store in stores:
        done(store, submission(CLOCK))
        store.close()


def test_a_missing_schema_is_not_made_by_those_who_only_look(server: Server) -> None:
    url = server.url(schema=fresh_schema())
    with pytest.raises(StoreMissing):
        open_store(url, CLOCK, create=False)


def test_a_newer_schema_is_refused(subject: PostgresSubject) -> None:
    subject.by_hand.execute("INSERT INTO tallystick_migrations (version, name) VALUES (99, 'later')")
    with pytest.raises(StoreTooNew, match="99"):
        subject.open(CLOCK)


def test_an_old_database_comes_to_the_schema_of_a_new_one(server: Server) -> None:
    """The one is migrated from what an older revision has made, the other is printed from the description."""
    old, new = fresh_schema(), fresh_schema()
    PostgresStore(restore_postgres(server, old), CLOCK).close()
    PostgresStore(server.url(schema=new), CLOCK).close()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        migrated, printed = _shape(connection, old), _shape(connection, new)
    assert printed == [row for row in migrated if "effects" not in str(row)]


def _shape(connection: psycopg.Connection, schema: str) -> list[tuple[object, ...]]:
    query = """
    SELECT 'column', table_name, column_name, data_type, coalesce(column_default, ''), is_nullable
      FROM information_schema.columns WHERE table_schema = %(schema)s
    UNION ALL
    SELECT 'index', tablename, indexname, replace(indexdef, %(schema)s, ''), '', ''
      FROM pg_indexes WHERE schemaname = %(schema)s
    UNION ALL
    SELECT 'trigger', c.relname, t.tgname, replace(pg_get_triggerdef(t.oid), %(schema)s, ''), '', ''
      FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
     WHERE c.relnamespace = %(schema)s::regnamespace AND NOT t.tgisinternal
    UNION ALL
    SELECT 'check', c.relname, k.conname, pg_get_constraintdef(k.oid), '', ''
      FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid
     WHERE c.relnamespace = %(schema)s::regnamespace
    UNION ALL
    SELECT 'view', viewname, '', definition, '', '' FROM pg_views WHERE schemaname = %(schema)s
    UNION ALL
    SELECT 'function', proname, '', pg_get_functiondef(oid), '', ''
      FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
    UNION ALL
    SELECT 'options', relname, '', reloptions::text, '', ''
      FROM pg_class WHERE relnamespace = %(schema)s::regnamespace AND relkind = 'r'
     ORDER BY 1, 2, 3
    """
    found = connection.execute(query, {"schema": schema}).fetchall()
    # A restored check has lost the parentheses that mean nothing.
    said = [tuple(str(cell).replace(schema, "") for cell in row) for row in found]
    return [
        tuple(cell.replace("(", "").replace(")", "") for cell in row) if row[0] == "check" else row
        for row in said
    ]


def test_a_role_that_may_only_work_is_enough_for_everything_but_migrations(subject: PostgresSubject) -> None:
    """The rights that the guide lists, and none more."""
    role = f"worker_{subject.schema}"
    for statement in (
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {subject.schema} TO {role}",
        f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {subject.schema} TO {role}",
        f"GRANT DELETE ON {subject.schema}.stale_reports TO {role}",
    ):
        subject.by_hand.execute(statement.encode())
    url = subject.url.replace("tally@", f"{role}@")
    store = PostgresStore(url, CLOCK)
    done(store, submission(CLOCK, key="k"))
    (held,) = claimed(store, claim())
    done(store, step(held, CLOCK), finish(held, CLOCK))
    late = store.apply([(step(held, CLOCK),)])
    assert isinstance(late[0], BaseException)
    store.close()
    with pytest.raises(StoreReadOnly, match="role"):
        PostgresStore(url.replace(f"schema={subject.schema}", f"schema={fresh_schema()}"), CLOCK)
