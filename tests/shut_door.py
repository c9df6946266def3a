"""A store that cannot write for a while: real errors of its own, for as long as a test wants."""

from __future__ import annotations

import psycopg

from tallystick import Tally
from tallystick.store.sqlite.store import SqliteStore

# Asked by the server before every statement that writes to our tables; a full disk is an error of the store.
_DOOR = """
CREATE TABLE shut_doors (n bigint);
CREATE FUNCTION door() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM {schema}.shut_doors) THEN
    RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full';
  END IF;
  RETURN NULL;
END $$;
"""
_HINGE = "CREATE TRIGGER door BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION {schema}.door()"


class Door:
    """Lets writes through, or makes the database refuse every one of them."""

    def __init__(self, app: Tally, dsn: str = "", schema: str = "") -> None:
        self._store = app.runtime().store
        self._by_hand: psycopg.Connection[tuple[object, ...]] | None = None
        if isinstance(self._store, SqliteStore):
            return
        self._by_hand = psycopg.connect(dsn, autocommit=True, options=f"-c search_path={schema}")
        self._by_hand.execute(_DOOR.format(schema=schema))
        for table in ("jobs", "attempts", "steps", "events", "messages"):
            self._by_hand.execute(_HINGE.format(table=table, schema=schema))

    def shut(self) -> None:
        """Let nothing be written from now on."""
        if self._by_hand is not None:
            self._by_hand.execute("INSERT INTO shut_doors VALUES (1)")
        else:
            self._sqlite("ON")

    def open(self) -> None:
        """Let everything be written again."""
        if self._by_hand is not None:
            self._by_hand.execute("DELETE FROM shut_doors")
        else:
            self._sqlite("OFF")

    def close(self) -> None:
        if self._by_hand is not None:
            self._by_hand.close()

    def _sqlite(self, value: str) -> None:
        assert isinstance(self._store, SqliteStore)
        with self._store._writing:
            self._store._writer.execute(f"PRAGMA query_only = {value}")
