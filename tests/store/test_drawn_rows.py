"""The random rows that verbs are tried on are rows that a real file lets stand: every check of the schema."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest

from tallystick.clock import VirtualClock
from tallystick.core.pictures import Picture, Pictures
from tallystick.store.sqlite.store import SqliteStore
from tests.core.legal_rows import Chance, drawn_pictures

EXAMPLES = range(0, 12_000, 8)


@pytest.fixture
def file(tmp_path) -> Iterator[apsw.Connection]:
    path = tmp_path / "tally.db"
    SqliteStore(path, VirtualClock()).close()
    connection = apsw.Connection(str(path))
    # What a row may be born as is another question: these have a history behind them.
    births = "select name from sqlite_schema where type = 'trigger' and name like '%_births'"
    for (name,) in list(connection.execute(births)):
        connection.execute(f"drop trigger {name}")
    yield connection
    connection.close()


def insert(file: apsw.Connection, table: str, **columns: object) -> None:
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    file.execute(f"insert into {table} ({names}) values ({marks})", tuple(columns.values()))


def plant(file: apsw.Connection, picture: Picture) -> None:
    job = picture.job._asdict()
    del job["inbox_end"], job["inbox_at"]
    job["error_code"] = job.pop("code")
    insert(file, "jobs", **job, updated_at=1, created_at=1, handler="flow", payload="{}")
    if picture.lease is not None:
        about = {"attempt": picture.lease.attempt, "status": picture.lease.status, "guid": picture.lease.guid}
        lease = {"lease_id": "lease", "lease_epoch": "e", "lease_expires_at": 1, "lease_owner": "w"}
        insert(file, "attempts", job_id=picture.job.job_id, **about, **lease)
    for activity in picture.activities.values():
        row = activity._asdict()
        row["payload"] = row.pop("mode")
        ended = activity.state in ("SUCCEEDED", "FAILED_FINAL", "CANCELLED")
        insert(file, "steps", **row, created_at=1, completed_at=1 if ended else None)
    for message in picture.messages.values():
        insert(file, "messages", **message._asdict())


def rows_of(pictures: Pictures) -> int:
    return sum(1 + len(each.activities) + len(each.messages) for each in pictures.values())


def test_a_real_file_lets_every_row_stand_that_is_drawn(file):
    planted = 0
    for number in EXAMPLES:
        pictures = drawn_pictures(Chance(number))
        file.execute("begin")
        for picture in pictures.values():
            plant(file, picture)
        file.execute("rollback")
        planted += rows_of(pictures)
    assert planted > 5_000


def test_a_file_refuses_what_is_not_drawn(file):
    """Otherwise the checks would not be there, and any row would do."""
    for wrong in ({"semaphore": -1}, {"root_ledger": 1_200_000_000_000}, {"start_ledger": 1_000_000_000_000}):
        picture = drawn_pictures(Chance(0))["j"]
        picture.job = picture.job._replace(**wrong)
        file.execute("begin")
        with pytest.raises(apsw.ConstraintError):
            plant(file, picture)
        file.execute("rollback")
