"""A few seconds of `make power-loss`, with a fixed seed, and what its images are made of."""

from __future__ import annotations

import random
from pathlib import Path

import apsw
import pytest

from tests.power_loss.disk import Disk, Loss
from tests.power_loss.recorder import Note, Remove, Sync, Truncate, Write, recording
from tests.power_loss.run import Run

SECONDS = 6.0


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_whatever_the_disk_keeps_everything_acknowledged_is_there():
    tally = Run(SECONDS, "in the suite").go()
    assert not tally.invalid
    assert tally.clean, [str(tally), *tally.shown]


def after(*notes: Note) -> Disk:
    disk = Disk()
    for note in notes:
        disk.take(note)
    return disk


def found(disk: Disk, loss: Loss, tries: int = 60) -> set[tuple[tuple[str, bytes], ...]]:
    chance = random.Random(1)
    return {tuple(sorted(disk.image(loss, chance).items())) for _ in range(tries)}


def test_what_was_synced_is_there_whatever_the_disk_does():
    disk = after(Write("db", 0, b"one"), Sync("db", 1))
    assert not disk.owes
    assert all(found(disk, loss) == {(("db", b"one"),)} for loss in Loss)


def test_a_sync_covers_what_was_written_before_it_began():
    disk = after(Write("db", 0, b"one"), Write("db", 0, b"two"), Sync("db", 1))
    assert found(disk, Loss.DROPPED) == {(("db", b"one"),)}
    assert found(disk, Loss.PREFIX) == {(("db", b"one"),), (("db", b"two"),)}


def test_a_sync_of_one_file_is_none_of_another():
    disk = after(Write("db", 0, b"one"), Write("wal", 0, b"two"), Sync("db", 2))
    assert found(disk, Loss.DROPPED) == {(("db", b"one"),)}


def test_a_torn_write_is_there_up_to_a_sector_and_a_random_one_in_any_of_them():
    sectors = [bytes([letter]) * 512 for letter in b"abc"]
    disk = after(Sync("db", 0), Write("db", 0, b"".join(sectors)))
    whole = b"".join(sectors)
    torn = {content for ((_, content),) in found(disk, Loss.TORN)}
    assert torn == {b"", whole[:512], whole[:1024]} | ({whole} & torn)
    scattered = {content for ((_, content),) in found(disk, Loss.RANDOM)}
    assert bytes(512) + sectors[1] in scattered
    assert whole in scattered


def test_a_removed_file_may_come_back_until_its_folder_is_synced():
    journal = (Write("journal", 0, b"old"), Sync("journal", 1), Remove("journal", synced=False))
    assert found(after(*journal), Loss.DROPPED) == {(("journal", b"old"),)}
    assert found(after(*journal, Write("wal", 0, b"new"), Sync("wal", 4)), Loss.DROPPED) == {
        (("wal", b"new"),)
    }
    assert found(after(*journal[:2], Remove("journal", synced=True)), Loss.DROPPED) == {()}


def test_a_truncation_may_be_lost_too():
    disk = after(Write("db", 0, b"longer"), Sync("db", 1), Truncate("db", 4))
    assert found(disk, Loss.PREFIX) == {(("db", b"longer"),), (("db", b"long"),)}


def test_the_recorder_notes_what_sqlite_writes_and_syncs(tmp_path: Path):
    path = tmp_path / "a.db"
    with recording() as recorder:
        connection = apsw.Connection(str(path))
        connection.execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (x)"
        ).fetchall()
        begun = len(recorder.notes)
        connection.execute("INSERT INTO t VALUES (1)")
        written = recorder.notes[begun:]
        connection.close()
    assert {type(note) for note in written} == {Write, Sync}
    assert isinstance(written[-1], Sync), "a commit returns when its log is synced"
    assert Remove("a.db-wal", synced=False) in recorder.notes
