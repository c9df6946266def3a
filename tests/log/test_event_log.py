"""The event log: what is acknowledged stays, what is torn is cut, what is corrupt is never skipped."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import msgspec
import pytest
import rfc8785
from hypothesis import given, strategies

from tallystick import crash
from tallystick.clock import VirtualClock
from tallystick.errors import BadInput, LogCorrupt, StorageFailed
from tallystick.ids import CountingIds, SystemIds
from tallystick.log.event import Draft, event_hash, payload_bytes
from tallystick.log.files import FileSystem
from tallystick.log.folder import Folder
from tallystick.log.lines import PIECE_CHARACTERS
from tallystick.log.reader import LogReader, Tail
from tallystick.log.writer import LogWriter, repair
from tests.log.faults import FaultyFiles

NAME = "events.ndjson"


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str
    number: int = 0
    names: list[str] = []


def writer_of(folder: Folder, tail: Tail | None = None, ids=None) -> LogWriter:
    return LogWriter(
        folder,
        NAME,
        tail or Tail(),
        run_id="r1",
        trace_id="a" * 32,
        clock=VirtualClock(),
        ids=ids or CountingIds(),
    )


def note(text: str, number: int = 0) -> Draft:
    return Draft("NOTED", Note(text, number), "b" * 16)


def read(folder: Folder):
    descriptor = folder.open_file(NAME)
    try:
        reader = LogReader(FileSystem(), descriptor, NAME)
        return [msgspec.json.decode(event.payload)["text"] for event in reader], reader.tail
    finally:
        os.close(descriptor)


@pytest.fixture
def folder(tmp_path):
    with Folder.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def log(tmp_path, folder):
    """A log with three events."""
    writer = writer_of(folder)
    for number in range(3):
        writer.append([note(f'line {number} ä\n"quoted"', number)])
    writer.close()
    return tmp_path / NAME


TEXTS = ['line 0 ä\n"quoted"', 'line 1 ä\n"quoted"', 'line 2 ä\n"quoted"']


def test_what_was_appended_is_read_back_in_order(log, folder):
    texts, tail = read(folder)
    assert texts == TEXTS
    assert tail.length == log.stat().st_size


def test_a_line_is_the_canonical_form_of_its_event_and_its_hash_is_the_ruled_one(log):
    before = ""
    for line in log.read_bytes().splitlines():
        event = json.loads(line)
        assert rfc8785.dumps(event) == line
        payload = rfc8785.dumps(event["payload"])
        assert event["prev_hash"] == before
        before = event["event_hash"]
        assert before == event_hash(
            event["event_id"], event["ts"], event["type"], payload, event["prev_hash"]
        )


def test_a_log_that_was_written_before_verifies_and_is_written_the_same_way_today(tmp_path, folder):
    """The file was written by an earlier version; its bytes and hashes are never to change."""
    before = (Path(__file__).parent / "written_before.ndjson").read_bytes()
    writer = writer_of(folder)
    writer.append([note("first ä")])
    writer.append([Draft("NOTED", {"text": "second", "number": 2}, "b" * 16, "c" * 16)])
    writer.close()
    assert folder.read(NAME) == before
    (tmp_path / NAME).write_bytes(before)
    assert read(folder)[0] == ["first ä", "second"]


@given(strategies.text(), strategies.integers(-(2**53) + 1, 2**53 - 1), strategies.lists(strategies.text()))
def test_the_quick_encoding_of_a_payload_is_canonical(text, number, names):
    value = Note(text, number, names)
    assert payload_bytes(value) == rfc8785.dumps(msgspec.to_builtins(value))


def test_a_payload_that_is_a_mapping_may_hold_any_json(folder):
    writer_of(folder).append([Draft("NOTED", {"text": "x", "ratio": 1.0, "ключ": [1e21]}, "b" * 16)])
    assert read(folder)[0] == ["x"]
    assert b'"ratio":1,' in (folder.read(NAME))


def test_half_of_a_surrogate_pair_is_refused_and_writes_nothing(folder):
    writer = writer_of(folder)
    with pytest.raises(BadInput):
        writer.append([note("\ud800")])
    assert folder.read(NAME) == b""


def test_the_end_of_the_log_cut_at_every_byte_keeps_every_line_before_it(log, folder):
    """D03. Whatever is left of the last line, the others are there and the next append is readable."""
    whole = log.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for length in range(start, len(whole)):
        log.write_bytes(whole[:length])
        texts, tail = read(folder)
        complete = length == len(whole) - 1
        assert texts == TEXTS[: 3 if complete else 2]
        kept = repair(folder, NAME, tail)
        assert (folder.read(kept) if kept else b"") == (b"" if complete else whole[start:length])
        if complete:
            tail = read(folder)[1]
        writer = writer_of(folder, tail, CountingIds("later"))
        writer.append([note("after")])
        writer.close()
        assert read(folder)[0] == [*TEXTS[: 3 if complete else 2], "after"]


@pytest.mark.parametrize(
    "padding", [b"\0" * 10, b"\0" * 5000, b"\0" * 10 + b"\n", b'{"event_id":"x\0\0\0\0"}\n']
)
def test_pages_that_were_never_written_are_a_torn_end(log, folder, padding):
    with log.open("ab") as file:
        file.write(padding)
    texts, tail = read(folder)
    assert texts == TEXTS
    assert tail.torn == padding
    repair(folder, NAME, tail)
    assert read(folder)[1].torn == b""


def test_a_hole_with_events_behind_it_is_corruption(log, folder):
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0] + b"\0" * (len(lines[1]) - 1) + b"\n" + lines[2])
    with pytest.raises(LogCorrupt) as caught:
        read(folder)
    assert caught.value.line == 2


def test_a_byte_changed_anywhere_before_the_last_line_is_corruption(log, folder):
    """D04. The hash covers id, time, type, payload and chain; the fold covers the rest (see tests/runs)."""
    whole = log.read_bytes()
    event = json.loads(whole.splitlines()[1])
    second = whole.index(b"\n") + 1
    for field in ("event_id", "ts", "type", "event_hash", "prev_hash"):
        at = whole.index(event[field].encode(), second) + 1
        log.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(LogCorrupt):
            read(folder)
    at = whole.index(b"line 1", second)
    log.write_bytes(whole[:at] + b"mine 1" + whole[at + 6 :])
    with pytest.raises(LogCorrupt):
        read(folder)


def test_a_bad_last_line_that_a_crash_cannot_leave_is_corruption(log, folder):
    whole = log.read_bytes()
    log.write_bytes(whole.replace(b"line 2", b"mine 2"))
    with pytest.raises(LogCorrupt):
        read(folder)


@pytest.mark.parametrize("order", [(1, 2), (0, 2), (1, 0, 2), (0, 1)])
def test_lines_that_are_missing_or_exchanged_break_the_chain(log, folder, order):
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[number] for number in order))
    if order == (0, 1):
        assert len(read(folder)[0]) == 2
        return
    with pytest.raises(LogCorrupt):
        read(folder)


def test_a_line_that_stands_there_twice_counts_once(log, folder):
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines, lines[1], lines[0]]))
    texts, tail = read(folder)
    assert texts == TEXTS
    assert tail.last_hash == json.loads(lines[2])["event_hash"]
    writer_of(folder, tail, CountingIds("later")).append([note("after")])
    assert read(folder)[0] == [*TEXTS, "after"]


def test_an_id_that_is_used_twice_with_other_bytes_is_corruption(folder):
    class Stuck(CountingIds):
        def many(self, count, *, after=""):
            return ["id-1"] * count

    writer_of(folder, ids=Stuck()).append([note("one"), note("two")])
    with pytest.raises(LogCorrupt, match="used before"):
        read(folder)


def test_ids_that_do_not_ascend_are_read_all_the_same(folder):
    class Falling(CountingIds):
        def many(self, count, *, after=""):
            return [f"id-{9 - number}" for number in range(count)]

    writer_of(folder, ids=Falling()).append([note(str(number)) for number in range(5)])
    assert read(folder)[0] == ["0", "1", "2", "3", "4"]


def test_ids_ascend_across_writers_even_if_the_clock_went_back(folder):
    """D05. A second process whose clock is behind still draws greater ids."""
    writer_of(folder, ids=SystemIds()).append([note("one"), note("two")])
    first = read(folder)[1].last_id
    ahead = f"ff{first[2:]}"
    drawn = SystemIds().many(3, after=ahead)
    assert [ahead, *drawn] == sorted({ahead, *drawn})
    assert {text[14] for text in drawn} == {"7"}
    assert {len(text) for text in drawn} == {36}


def test_a_log_with_ids_of_another_kind_is_continued(folder):
    writer_of(folder, ids=CountingIds("zebra")).append([note("one")])
    writer_of(folder, read(folder)[1], ids=SystemIds()).append([note("two"), note("three")])
    assert read(folder)[0] == ["one", "two", "three"]


def test_a_second_writer_notices_that_the_log_has_grown(log, folder):
    tail = read(folder)[1]
    with log.open("ab") as file:
        file.write(b"{}")
    with pytest.raises(LogCorrupt):
        writer_of(folder, tail)


def test_a_line_without_end_is_refused_before_memory_is(tmp_path, folder):
    (tmp_path / NAME).write_bytes(b'{"event_id":"' + b"x" * 3_000_000)
    with pytest.raises(LogCorrupt, match="longer"):
        read(folder)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("short", [False, True])
def test_a_write_that_fails_leaves_nothing_and_the_next_one_succeeds(tmp_path, number, short):
    """D06. A full disk: no half line, and the log is usable as soon as there is space."""
    files = FaultyFiles("write", 2, number, short=short)
    with Folder.open(tmp_path, files=files) as folder:
        writer = writer_of(folder)
        writer.append([note("one")])
        with pytest.raises(StorageFailed) as caught:
            writer.append([note("lost")])
        assert caught.value.errno == number
        writer.append([note("two")])
        assert files.fired == 1
        assert read(folder)[0] == ["one", "two"]


def test_after_a_failed_sync_the_descriptor_is_never_used_again(tmp_path):
    """D06. The page cache may lie after an error of the device: reopen, cut back, compare."""
    files = FaultyFiles("sync_data", 2, errno.EIO)
    with Folder.open(tmp_path, files=files) as folder:
        writer = writer_of(folder)
        writer.append([note("one")])
        opens = files.counts["open"]
        with pytest.raises(StorageFailed):
            writer.append([note("lost")])
        assert files.counts["open"] == opens + 1
        writer.append([note("two")])
        assert read(folder)[0] == ["one", "two"]


@pytest.mark.parametrize("also", ["truncate", "open", "fsync"])
def test_a_log_that_cannot_be_cut_back_takes_nothing_more_until_it_is_opened_again(tmp_path, also):
    class Worse(FaultyFiles):
        def _hits(self, call):
            return super()._hits(call) or (self.fired and call == also and self.counts[call] < 99)

    files = Worse("write", 2, errno.ENOSPC, short=True)
    with Folder.open(tmp_path, files=files) as folder:
        writer = writer_of(folder)
        writer.append([note("one")])
        for _ in range(2):
            with pytest.raises(StorageFailed):
                writer.append([note("lost")])
        writer.close()
    with Folder.open(tmp_path) as folder:
        tail = read(folder)[1]
        repair(folder, NAME, tail)
        writer_of(folder, tail, CountingIds("later")).append([note("two")])
        assert read(folder)[0] == ["one", "two"]


def long_batch(count: int = 3000) -> list[Draft]:
    """Return drafts whose lines fill several pieces; kinds, spans, sizes and alphabets change on the way."""
    return [
        Draft(
            ("NOTED", "SEEN")[number // 7 % 2],
            Note(f"{number} {'aäж𝄞'[number % 4]}" + "x" * (number % 50), number),
            f"{number // 100:016x}",
            "c" * 16 if number % 3 else "",
        )
        for number in range(count)
    ]


def test_a_batch_of_several_pieces_is_the_same_log_as_its_events_one_by_one(tmp_path):
    drafts, logs = long_batch(), []
    for name, batches in (("once", [drafts]), ("single", [[draft] for draft in drafts])):
        with Folder.open(tmp_path / name, create=True) as folder:
            writer = writer_of(folder)
            event_ids = [drawn for batch in batches for drawn in writer.append(batch).event_ids]
            writer.close()
            assert len(read(folder)[0]) == len(set(event_ids)) == len(drafts)
            logs.append(folder.read(NAME))
    assert logs[0] == logs[1]
    assert len(logs[0]) > 4 * PIECE_CHARACTERS


def test_a_long_batch_is_synced_once(tmp_path):
    files = FaultyFiles()
    with Folder.open(tmp_path, files=files) as folder:
        writer_of(folder).append(long_batch())
    assert files.counts["sync_data"] == 1
    assert files.counts["write"] > 4


@pytest.mark.parametrize("refused", [Draft("lower", Note("x"), "b" * 16), note("\ud800")])
def test_a_long_batch_with_one_bad_event_at_its_end_writes_nothing(folder, refused):
    with pytest.raises(BadInput):
        writer_of(folder).append([*long_batch(), refused])
    assert folder.read(NAME) == b""


@pytest.mark.parametrize("nth", [2, 4, 6])
def test_a_long_batch_that_fails_in_its_middle_leaves_nothing(tmp_path, nth):
    files = FaultyFiles("write", nth, errno.ENOSPC, short=True)
    with Folder.open(tmp_path, files=files) as folder:
        writer = writer_of(folder)
        writer.append([note("one")])
        with pytest.raises(StorageFailed):
            writer.append(long_batch())
        writer.append([note("two")])
        assert files.fired == 1
        assert read(folder)[0] == ["one", "two"]


def test_a_process_killed_in_the_middle_of_a_batch_leaves_whole_events_and_the_log_goes_on(tmp_path):
    """D01. Nothing of the batch was acknowledged; what of it is there is proven, and the chain goes on."""
    drafts = long_batch()
    for visit in (1, 3):
        with Folder.open(tmp_path / str(visit), create=True) as folder:
            child = os.fork()
            if child == 0:
                try:
                    writer = writer_of(folder)
                    writer.append([note("one")])
                    crash.arm(f"log.append.part:{visit}")
                    writer.append(drafts)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
            texts, tail = read(folder)
            assert 1 < len(texts) < len(drafts)
            repair(folder, NAME, tail)
            writer_of(folder, tail, CountingIds("later")).append([note("after")])
            assert read(folder)[0] == [*texts, "after"]


def test_after_an_append_that_was_interrupted_nothing_is_glued_to_its_half(tmp_path):
    """An interrupt from the keyboard may come between any two pieces."""

    class Interrupted(FileSystem):
        left = 3

        def write(self, descriptor, data):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            return super().write(descriptor, data)

    with Folder.open(tmp_path, files=Interrupted()) as folder:
        writer = writer_of(folder)
        with pytest.raises(KeyboardInterrupt):
            writer.append(long_batch())
        with pytest.raises(StorageFailed, match="interrupted"):
            writer.append([note("more")])
        writer.close()
        assert len(read(folder)[0]) > 100


@pytest.mark.parametrize("kind", ["", "lower", "A" * 65, "A-B", 'A"', "Ä"])
def test_the_type_of_an_event_is_a_plain_word(folder, kind):
    with pytest.raises(BadInput):
        writer_of(folder).append([Draft(kind, Note("x"), "b" * 16)])


def test_an_empty_append_writes_nothing(folder):
    assert writer_of(folder).append([]).event_ids == ()
    assert folder.read(NAME) == b""
