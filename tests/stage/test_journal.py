"""The journal: a torn tail is cut at any byte, a changed byte anywhere else is corruption."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tallystick.core.chain import SHORT_GENESIS
from tallystick.errors import JournalBusy, JournalCorrupt, JournalError, JournalMismatch
from tallystick.stage import CommitBatch, Stage, WindowLimits, audit, read_journal
from tallystick.stage.journal.format import MAGIC, Batched, JournalLine, JournalOpened, lines, seal
from tallystick.stage.journal.journal import Journal, read_standing
from tallystick.stage.outcome import FAIL, SUCCESS


def row(value: object, key: str = "k", attempts: int = 1) -> tuple[int, int, str, msgspec.Raw]:
    return int(SUCCESS), attempts, key, msgspec.Raw(msgspec.json.encode(value))


def written(path: Path, *records: object) -> Path:
    chain, data = SHORT_GENESIS, MAGIC
    for record in records:
        line, chain = seal(record, chain)
        data += line
    path.write_bytes(data)
    return path


def test_what_was_appended_is_read_back(tmp_path: Path):
    journal = Journal(tmp_path / "j", "s", 5)
    journal.append_batch(0, [row("a"), row([1, 2])], 2)
    journal.note_delivered(2)
    journal.append_batch(2, [(int(FAIL), 3, "k", msgspec.Raw(b'["OSError","gone"]'))], 5)
    journal.close(5, complete=True)
    found = list(read_journal(tmp_path / "j"))
    assert [(one.seq, one.value, one.attempts) for one in found] == [
        (0, "a", 1),
        (1, [1, 2], 1),
        (2, None, 3),
    ]
    assert found[2].failure == ("OSError", "gone")
    books = audit(tmp_path / "j")
    assert books.ok
    assert books.standing.complete
    assert "books agree" in str(books)


def test_a_journal_that_was_written_before_verifies_and_is_written_the_same_way_today(tmp_path: Path):
    """The file was written by an earlier version; its bytes and digests are never to change."""
    before = Path(__file__).parent / "written_before.journal"
    journal = Journal(tmp_path / "j", "s", 5)
    journal.append_batch(0, [row("a"), row([1, 2])], 2)
    journal.note_delivered(2)
    journal.append_batch(2, [(int(FAIL), 3, "k", msgspec.Raw(b'["OSError","gone"]'))], 5)
    journal.close(5, complete=True)
    assert (tmp_path / "j").read_bytes() == before.read_bytes()
    assert audit(before).ok
    assert [one.value for one in read_journal(before)] == ["a", [1, 2], None]


def test_the_journal_is_for_its_owner_only(tmp_path: Path):
    Journal(tmp_path / "j", "s", 0).close(0, complete=True)
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


def test_two_stages_cannot_have_one_journal(tmp_path: Path):
    journal = Journal(tmp_path / "j", "s", 0)
    with pytest.raises(JournalBusy):
        Journal(tmp_path / "j", "s", 0)
    journal.abandon()
    Journal(tmp_path / "j", "s", 0).abandon()


def test_a_journal_belongs_to_one_stage(tmp_path: Path):
    Journal(tmp_path / "j", "hash", 0).abandon()
    with pytest.raises(JournalMismatch):
        Journal(tmp_path / "j", "copy", 0)


@pytest.mark.parametrize("content", [b"precious notes\n", b"tallystick stage journal 2\nx", b"\0"])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path, content: bytes):
    (tmp_path / "j").write_bytes(content)
    with pytest.raises(JournalCorrupt):
        Journal(tmp_path / "j", "s", 0)
    assert (tmp_path / "j").read_bytes() == content


def small_run(path: Path, computed: list[int], commits: list[tuple[int, list[object]]] | None = None) -> None:
    """Run a stage of six items whose commit function keeps what it was given."""

    def double(item: int) -> int:
        computed.append(item)
        return item * 2

    def keep(batch) -> None:
        if commits is not None:
            commits.append((batch.first, [outcome.value for outcome in batch.outcomes]))

    summary = Stage(double, commit=keep, journal=path, workers=1, name="double").run(range(10, 16))
    assert summary.complete


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.long)])
def test_a_tail_torn_at_any_byte_is_cut_and_noted_and_nothing_durable_is_computed_again(
    tmp_path: Path, every: int
):
    """Prefixes of a journal of two runs are resumed from; the good lines of it are kept as they are.

    In every run those that end at a line or beside it, and each seventh; all of them in the long tests.
    """
    original = tmp_path / "original"
    first = Journal(original, "double", 1)
    keys = _keys_of(range(10, 16))
    first.append_batch(0, [row(20, keys[0]), row(22, keys[1])], 2)
    first.note_delivered(2)
    first.append_batch(2, [row(24, keys[2])], 3)
    first.abandon()
    content = original.read_bytes()
    ends = [0, len(MAGIC)]
    with original.open("rb") as file:
        ends += [line.end for line in lines(original, file) if isinstance(line, JournalLine)]
    torn_at = tmp_path / "torn"
    beside = {end + step for end in ends for step in (-1, 0, 1)} & {*range(len(content) + 1)}
    for length in sorted(beside | {*range(0, len(content) + 1, every)}):
        torn_at.write_bytes(content[:length])
        good = max(end for end in ends if end <= length)
        durable = {ends[-2]: 2, ends[-1]: 3}.get(good, 0)
        computed: list[int] = []
        small_run(torn_at, computed)
        assert computed == list(range(10 + durable, 16)), length
        assert [one.value for one in read_journal(torn_at)] == [20, 22, 24, 26, 28, 30]
        books = audit(torn_at)
        assert books.ok
        cuts = [(cut.offset, cut.bytes) for cut in books.standing.cuts]
        torn_bytes = length - (good if length >= len(MAGIC) else 0)
        assert cuts == ([(length - torn_bytes, torn_bytes)] if torn_bytes else []), length


def _keys_of(items) -> list[str]:
    from tallystick.stage.lanes.compute import key_of

    return [key_of(item) for item in items]


def test_a_byte_changed_before_the_last_line_is_corruption_wherever_it_is(tmp_path: Path):
    path = tmp_path / "j"
    small_run(path, [])
    content = path.read_bytes()
    last_line = content.rstrip(b"\n").rfind(b"\n") + 1
    for offset in range(0, last_line, 3):
        damaged = bytearray(content)
        damaged[offset] ^= 0x01
        path.write_bytes(damaged)
        with pytest.raises(JournalCorrupt):
            Journal(path, "double", 0)
        assert path.read_bytes() == damaged, "a corrupt journal is evidence and stays as it is"


def test_dropped_doubled_or_swapped_lines_are_corruption(tmp_path: Path):
    path = tmp_path / "j"
    journal = Journal(path, "s", 0)
    for number in range(4):
        journal.append_batch(number, [row(number)], number + 1)
    journal.close(4, complete=True)
    head, *body = path.read_bytes().splitlines(keepends=True)
    for wrong in (
        [body[0], *body[2:]],
        [body[0], body[1], *body[1:]],
        [body[0], body[2], body[1], *body[3:]],
        body[1:],
    ):
        path.write_bytes(b"".join([head, *wrong]))
        with pytest.raises(JournalCorrupt):
            read_standing(path)


def test_the_same_outcome_again_is_ignored_and_another_one_is_corruption(tmp_path: Path):
    opened = JournalOpened("s", 1, 0, 0)
    batch = Batched(0, 0, 2, [row("a"), row("b")])
    again = written(
        tmp_path / "again",
        opened,
        batch,
        Batched(0, 0, 2, [row("a"), row("b")]),
        Batched(2, 0, 3, [row("c")]),
    )
    assert read_standing(again).next == 3
    assert [one.value for one in read_journal(again)] == ["a", "b", "c"]
    for second in (
        Batched(0, 0, 2, [row("a"), row("x")]),
        Batched(1, 0, 2, [row("b", attempts=2)]),
        Batched(1, 0, 2, [row("b"), row("c")]),
        Batched(5, 0, 2, [row("f")]),
    ):
        conflict = written(tmp_path / "conflict", opened, batch, second)
        with pytest.raises(JournalCorrupt) as caught:
            read_standing(conflict)
        assert "seq" in str(caught.value)


@pytest.mark.parametrize(
    "record",
    [JournalOpened("s", 3, 0, 0), JournalOpened("s", 2, 7, 0), Batched(0, 9, 1, [row(1)])],
    ids=lambda r: type(r).__name__,
)
def test_a_line_that_cannot_follow_is_corruption(tmp_path: Path, record: object):
    with pytest.raises(JournalCorrupt):
        read_standing(written(tmp_path / "j", JournalOpened("s", 1, 0, 0), record))


def test_a_full_disk_ends_the_stage_with_a_journal_that_can_be_resumed(tmp_path: Path):
    """ENOSPC by a file size limit, in a process of its own."""
    path = tmp_path / "j"
    script = f"""
import resource, signal, sys
from tallystick.stage import Stage
from tallystick.errors import JournalError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def value(item): return "x" * 100
resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
try:
    Stage(value, journal={str(path)!r}, workers=1).run(range(500))
except JournalError as error:
    sys.exit(error.exit_code)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert done.returncode == JournalError.exit_code
    before = read_standing(path)
    assert before.torn is None or before.torn.bytes
    assert before.next < 500

    def value(item: int) -> str:
        return "x" * 100

    summary = Stage(value, journal=path, workers=1, name="value").run(range(500))
    assert summary.resumed == before.next
    assert summary.complete
    assert len(list(read_journal(path))) == 500


def test_a_failed_sync_commits_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "j"
    journal = Journal(path, "s", 0)
    before = path.read_bytes()

    def fails(_file: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(JournalError):
        journal.append_batch(0, [row(1)], 1)
    assert path.read_bytes() == before
    assert journal.standing.next == 0
    journal.abandon()


def lose(path: Path, how: str) -> None:
    if how == "moved":
        path.rename(path.with_name("elsewhere"))
    elif how == "its folder removed":
        shutil.rmtree(path.parent)
    else:
        path.unlink()
    if how == "replaced":
        path.write_bytes(b"")


@pytest.mark.parametrize("how", ["removed", "replaced", "moved", "its folder removed"])
@pytest.mark.parametrize("lost_at", [0, 5], ids=["the first batch", "the last batch"])
def test_a_journal_that_is_lost_under_a_stage_ends_it_and_is_never_called_complete(
    tmp_path: Path, how: str, lost_at: int
):
    path = tmp_path / "books" / "j"
    path.parent.mkdir()
    handed: list[int] = []

    def commit(batch: CommitBatch) -> None:
        handed.append(batch.first)
        if batch.first <= lost_at < batch.end:
            lose(path, how)

    stage = Stage(abs, commit=commit, journal=path, workers=1, windows=WindowLimits(count=1))
    with pytest.raises(JournalError, match="removed or replaced"):
        stage.run(range(6))
    assert not stage.summary.complete
    assert handed[-1] <= lost_at


def test_a_function_may_go_to_another_folder_while_the_journal_has_a_relative_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)

    def wander(item: int) -> int:
        os.chdir(tmp_path / "other")
        return item

    assert Stage(wander, journal="j").run(range(3)).complete
    assert len(list(read_journal(tmp_path / "j"))) == 3
