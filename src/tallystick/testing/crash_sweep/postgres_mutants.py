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
        ("(SELECT e.n FROM events AS e WHERE e.job_id = request.job_id AND e.n = request.n) IS NULL", "true"),
    )
    _places_taken_twice()


def end_after_expiry() -> None:
    """Let an attempt end its job after its lease has run out, when nobody has reclaimed it yet."""
    live = "a.lease_epoch = $2 AND a.lease_expires_at > clock.now"
    _say_instead("end_jobs", (live, "$2::text IS NOT NULL"))
    nobody_reclaims()


MUTANTS: dict[str, Callable[[], None]] = {
    mutant.__name__: mutant for mutant in (steps_without_fence, end_after_expiry)
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
