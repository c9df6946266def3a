"""The schema: created or brought up to date by one process at a time, while others work."""

from __future__ import annotations

import psycopg

from tallystick import crash
from tallystick.errors import StoreMissing, StoreTooNew
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import AnsweringConnection, translated
from tallystick.store.postgres.statements import migrations, sql
from tallystick.store.sql.schema import schema

_DAY_SECONDS = 86_400.0

BEFORE_MIGRATE = crash.declare("postgres.migrate.before", "a new schema is about to be written")
AFTER_MIGRATE = crash.declare("postgres.migrate.after", "a new schema is durable")


def migrate(connection: AnsweringConnection, address: Address, *, create: bool) -> None:
    """Bring the schema up to date in one transaction; refuse a newer one, and a missing one unless asked.

    A role without the right to change anything can open a schema that is up to date: nothing is written then.
    """
    steps = migrations()
    newest = steps[-1][0]
    try:
        found = _version(connection, address)
        if found == newest:
            return
        if not found and not create:
            raise StoreMissing(
                f"{address.url} has no jobs of Tallystick yet; submit a job or start a worker to create them",
                url=address.url,
                path=address.url,
            )
        connection.answer_seconds = _DAY_SECONDS  # it takes as long as it takes
        with connection.transaction():
            connection.execute(sql("migration_settings"), (address.schema,))
            connection.execute(sql("migration_lock"), (address.schema,))
            crash.point(BEFORE_MIGRATE)
            connection.execute(sql("create_schema"))
            done = _version(connection, address)
            later = [step for step in steps if step[0] > done]
            for version, name, text in (
                later if done else [(newest, "schema.sql", schema("postgres").encode())]
            ):
                connection.execute(text, prepare=False)
                connection.execute(sql("note_migration"), (str(version), name))
        crash.point(AFTER_MIGRATE)
    except psycopg.Error as error:
        raise translated(error, address) from error


def _version(connection: AnsweringConnection, address: Address) -> int:
    with connection.transaction():
        ((ours,),) = connection.execute(sql("has_migrations"), (address.schema,)).fetchall()
        if not ours:
            return 0
        connection.execute(sql("migration_settings"), (address.schema,))
        ((version,),) = connection.execute(sql("schema_version")).fetchall()
    refuse_newer(version, address)
    return int(version)


def refuse_newer(version: int, address: Address) -> None:
    """Refuse to write what would not fit the rules of a newer version, which has changed the schema."""
    if version > _newest():
        raise StoreTooNew(
            f"{address.url} has schema {version}, this Tallystick knows up to {_newest()}; "
            "upgrade the package and start this process again",
            url=address.url,
        )


def _newest() -> int:
    return migrations()[-1][0]
