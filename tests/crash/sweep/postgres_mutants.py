"""Guards of the PostgreSQL store that can be taken away in a child; the others are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable

from tallystick.store.postgres import store as stores
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import AnsweringConnection
from tallystick.store.postgres.server.migrations import migrate
from tallystick.store.postgres.statements import DIALECT
from tests.crash.sweep.mutants import leave_out, nobody_reclaims, put, without_places


def steps_without_fence() -> None:
    """Let any lease, live or not, record a step."""
    leave_out(DIALECT, "insert_steps", r"held\.lease_epoch = .*? > clock\.now", instead=":epoch IS NOT NULL")
    leave_out(DIALECT, "insert_steps", r"AND a\.status = 'IN_PROGRESS'")
    leave_out(DIALECT, "insert_steps", r"\(SELECT e\.n FROM events .*?\) IS NULL", instead="true")
    _places_taken_twice()


def end_after_expiry() -> None:
    """Let an attempt end its job after its lease has run out, when nobody has reclaimed it yet."""
    live = r"a\.lease_epoch = .*? > clock\.now"
    leave_out(DIALECT, "end_jobs", live, instead=":epoch IS NOT NULL")
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
