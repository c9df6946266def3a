"""The subject of most tests here: one store on one real file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.sqlite_subject import SqliteSubject


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[SqliteSubject]:
    made = SqliteSubject(tmp_path / "shop.db")
    yield made
    made.close()
