"""Orders of seven messages on real stores: some thousands of the 823,543 that are tried in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallystick.testing.conformance.promises.protocol_ways import SAMPLE, STRIDE, ProtocolOrders, sample
from tests.postgres.subject import PostgresSubject
from tests.store.sqlite_subject import SqliteSubject

# How many on each store; a server takes longer.
COUNTS = {"sqlite": 3_000, "postgres": 1_000}
PARTS = 4


@pytest.fixture(params=COUNTS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def subject(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made: Any = (
        SqliteSubject(tmp_path / "books.db")
        if kind == "sqlite"
        else PostgresSubject(request.getfixturevalue("server"))
    )
    yield made
    made.close()


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_thousands_of_orders_end_in_one_result_at_most(subject: Any, kind: str, part: int):
    orders, tried = ProtocolOrders(), sample(COUNTS[kind], SAMPLE * STRIDE)[part::PARTS]
    for said in tried:
        orders.come(subject, said)
    assert len({*tried}) == COUNTS[kind] // PARTS
