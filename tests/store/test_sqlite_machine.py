"""The SQLite store and a tiny model of it agree, whatever happens in whatever order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from tallystick.testing.conformance.machine import StoreMachine
from tests.store.sqlite_subject import SqliteSubject


@contextmanager
def empty_store() -> Iterator[SqliteSubject]:
    with tempfile.TemporaryDirectory() as folder:
        subject = SqliteSubject(Path(folder, "shop.db"))
        yield subject
        subject.close()


class SqliteMachine(StoreMachine):
    opening = staticmethod(empty_store)

    def store_ms(self) -> int:
        return super().store_ms() + self.store._time.lag()  # type: ignore[attr-defined]  # SQLite's own


TestSqliteMachine = pytest.mark.slow(SqliteMachine.TestCase)
TestSqliteMachine.settings = settings(max_examples=60, stateful_step_count=40)
