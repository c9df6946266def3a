"""Guards of the PostgreSQL store that can be taken away in a child; the others are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable

from tallystick.store.postgres import store as stores
from tallystick.store.postgres import writing
from tallystick.store.postgres.address import Address
from tallystick.store.postgres.connection import AnsweringConnection
from tallystick.store.postgres.migrations import migrate
from tallystick.store.postgres.statements import sql
from tallystick.testing.crash_sweep.mutants import nobody_reclaims, put, without_places


def steps_without_fence() -> None:
    """Let any lease, live or not, record a step."""
    _say_instead(
        "insert_steps",
        ("held.lease_epoch = $2 AND held.lease_expires_at > clock.now", "$2::text IS NOT NULL"),
        ("AND a.status = 'IN_PROGRESS'", ""),
        ("(SELECT count(*) FROM events WHERE events.job_id = held.job_id AND events.n = held.n) = 0", "true"),
    )
    _places_taken_twice()


def end_after_expiry() -> None:
    """Let an attempt end its job after its lease has run out, when nobody has reclaimed it yet."""
    live = "(held.lease_epoch = $2 AND held.lease_expires_at > clock.now) = held.live"
    _say_instead("end_jobs", (live, "$2::text IS NOT NULL"))
    nobody_reclaims()


def suspend_without_looking() -> None:
    """Open a wait without a look at what came before it; only what comes later wakes the job."""
    looked = (
        "EXISTS (SELECT 1 FROM steps WHERE job_id = $1 AND dimension = $2 AND name = $3 AND occurrence = $4)"
    )
    _say_instead("answer", ("acked_at IS NULL", f"acked_at IS NULL AND {looked}"))


def word_without_a_name() -> None:
    """Let everybody who finds a group closed leave a word of his own for the parent."""
    nameless = "CASE WHEN $1::text LIKE 'join:%' THEN $1::text || gen_random_uuid() ELSE $1::text END"
    _say_instead("insert_message", ("$1::text, job_id", f"{nameless}, job_id"))


def retries_unmarked() -> None:
    """Make a new job in the place of one that failed, and do not tell that one."""
    _say_instead("mark_retried", ("SET retried_as = $2,", "SET retried_as = nullif($2::text, $2::text),"))


MUTANTS: dict[str, Callable[[], None]] = {
    mutant.__name__: mutant
    for mutant in (
        steps_without_fence,
        end_after_expiry,
        suspend_without_looking,
        word_without_a_name,
        retries_unmarked,
    )
}


def _places_taken_twice() -> None:
    """Take the key and the guards of places out of the schema, so that they cannot help."""

    def migrate_back(connection: AnsweringConnection, address: Address, *, create: bool) -> None:
        migrate(connection, address, create=create)
        connection.execute(without_places("postgres").encode())

    put(stores, "migrate", migrate_back)


def _say_instead(name: str, *changes: tuple[str, str]) -> None:
    """Change what the store says to the server in one statement."""
    statement = sql(name).decode()
    for said, instead in changes:
        if said not in statement:
            raise LookupError(f"the statement {name} does not say {said} any more; the mutant must follow it")
        statement = statement.replace(said, instead)
    mutated = statement.encode()
    put(writing, "sql", lambda wanted: mutated if wanted == name else sql(wanted))
