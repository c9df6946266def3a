"""A damaged folder: what a crash explains is repaired, what it does not explain fails the run on record."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import pytest

from tallystick import crash
from tallystick.errors import FolderUnsafe, RunBusy, RunEnded, RunError, RunNotFound, SnapshotInvalid
from tallystick.runs import Pipeline
from tallystick.runs.log.inspection import load, replay_bytes, verify
from tallystick.runs.orchestrator.start import open_run, start_or_resume
from tests.runs.worlds import KilledRuns, around, events, fast_folder, history, proven_events


def three_nodes() -> Pipeline:
    pipeline = Pipeline("three", {"NEW": "FETCHED", "FETCHED": "WRITTEN", "WRITTEN": "DONE"})

    @pipeline.node("NEW", outputs=["raw.txt"])
    def fetch(work):
        work.write("raw.txt", "words")

    @pipeline.node("FETCHED", inputs=["raw.txt"], outputs=["report.txt"])
    def write(work):
        work.write("report.txt", work.read_text("raw.txt").upper())

    @pipeline.node("WRITTEN", inputs=["report.txt"])
    def send(work):
        work.open_issue("send", "info", "sent")

    return pipeline


class Stop(crash.Crash):
    """Ends a process that is only imagined."""


def stopped_run(root, run_id="r1", at="send"):
    """Leave a run behind whose process ended while a worker was at it."""
    pipeline = three_nodes()

    def stop(work):
        raise Stop

    pipeline.nodes[:] = [
        type(node)(
            node.worker, node.state, stop if node.worker == at else node.function, node.inputs, node.outputs
        )
        for node in pipeline.nodes
    ]
    with pytest.raises(Stop):
        start_or_resume(pipeline, root, run_id, parallel=1, around=around("first"))
    return root / run_id


@pytest.fixture
def root():
    with fast_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def reference():
    with fast_folder() as folder:
        start_or_resume(three_nodes(), folder, "r1", parallel=1, around=around())
        yield (folder / "r1" / "snapshot.json").read_bytes(), history(folder / "r1")


def resume(root, prefix="second"):
    return start_or_resume(three_nodes(), root, "r1", parallel=1, around=around(prefix))


def test_the_last_line_cut_at_every_byte_is_repaired_recorded_and_resumed(root, reference):
    """Every byte: the torn bytes are kept, a record names their file, and the run ends as it should."""
    run = stopped_run(root)
    whole = (run / "events.ndjson").read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    copy = root / "copy"
    for length in range(start, len(whole) + 1):
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        shutil.copytree(run, copy / "r1")
        (copy / "r1" / "events.ndjson").write_bytes(whole[:length])
        resume(copy)
        assert (copy / "r1" / "snapshot.json").read_bytes() == reference[0]
        assert history(copy / "r1") == reference[1]
        torn = [event for event in events(copy / "r1") if event["type"] == "RESUME_TAIL_REPAIRED"]
        if start < length < len(whole) - 1:
            kept = torn[0]["payload"]["kept_as"]
            assert (copy / "r1" / kept).read_bytes() == whole[start:length]
        elif length == len(whole) - 1:
            assert [event["payload"] for event in torn] == [{"action": "newline", "bytes": 1}]
        else:
            assert torn == []
        assert verify(copy, "r1").sound


def test_a_log_cut_at_the_end_of_any_line_is_resumed_to_the_same_end(root, reference):
    """What a lost page of the disk can leave of a batch: any prefix of whole lines."""
    run = stopped_run(root)
    lines = (run / "events.ndjson").read_bytes().splitlines(keepends=True)
    for count in range(1, len(lines)):
        copy = root / f"copy-{count}"
        copy.mkdir()
        shutil.copytree(run, copy / "r1")
        (copy / "r1" / "events.ndjson").write_bytes(b"".join(lines[:count]))
        resume(copy)
        assert (copy / "r1" / "snapshot.json").read_bytes() == reference[0]
        assert history(copy / "r1") == reference[1]


def test_a_run_whose_first_line_is_torn_has_not_begun_and_begins(root, reference):
    run = stopped_run(root)
    first = (run / "events.ndjson").read_bytes().splitlines()[0]
    shutil.rmtree(run)
    run.mkdir()
    (run / "events.ndjson").write_bytes(first[:40])
    with pytest.raises(RunNotFound):
        load(root, "r1")
    resume(root)
    assert (run / "snapshot.json").read_bytes() == reference[0]


def corrupt_middle(lines):
    lines[3] = (
        lines[3].replace(b'"attempt":', b'"atempt":') if b"attempt" in lines[3] else lines[3][:20] + b"\n"
    )


def broken_chain(lines):
    del lines[2]


def other_payload(lines):
    at = next(number for number, line in enumerate(lines) if b"ARTIFACT_WRITTEN" in line)
    lines[at] = lines[at].replace(b"raw.txt", b"war.txt")


def not_json(lines):
    lines[1] = b"\xff\xfe{]\n"


def other_span(lines):
    old = json.loads(lines[4])["span_id"].encode()
    lines[4] = lines[4].replace(b'"span_id":"' + old, b'"span_id":"' + bytes([old[0] ^ 1]) + old[1:])


def other_trace(lines):
    old = json.loads(lines[4])["trace_id"].encode()
    lines[4] = lines[4].replace(old, old[::-1])


def other_run(lines):
    lines[2] = lines[2].replace(b'"run_id":"r1"', b'"run_id":"r2"')


def blank_line(lines):
    lines.insert(2, b"\n")


DAMAGES = [
    corrupt_middle, broken_chain, other_payload, not_json, other_span, other_trace, other_run, blank_line,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_that_no_crash_explains_fails_the_run_with_a_blocker(root, damage):
    """The corrupt log is set aside untouched; a new one says what it was, what is wrong, and FAILED."""
    run = stopped_run(root)
    lines = (run / "events.ndjson").read_bytes().splitlines(keepends=True)
    damage(lines)
    corrupt = b"".join(lines)
    (run / "events.ndjson").write_bytes(corrupt)
    assert not verify(root, "r1").sound
    with pytest.raises(SnapshotInvalid):
        resume(root)
    aside = sorted(run.glob("events.ndjson.corrupt-*"))
    assert [path.read_bytes() for path in aside] == [corrupt]
    created, issue, moved = events(run)
    assert [event["type"] for event in (created, issue, moved)] == [
        "RUN_CREATED", "ISSUE_OPENED", "RUN_STATE_CHANGED",
    ]  # fmt: skip
    assert created["payload"]["previous_log_sha256"] == hashlib.sha256(corrupt).hexdigest()
    assert (issue["payload"]["severity"], issue["payload"]["error_code"]) == ("blocker", "SnapshotInvalid")
    assert moved["payload"]["to_state"] == "FAILED"
    snapshot = json.loads((run / "snapshot.json").read_bytes())
    assert (snapshot["run_state"], snapshot["issues"][0]["error_code"]) == ("FAILED", "SnapshotInvalid")
    assert verify(root, "r1").sound
    with pytest.raises(RunEnded):
        resume(root, "third")


def test_a_log_that_becomes_corrupt_again_is_set_aside_beside_the_first(root):
    run = stopped_run(root)
    digests = []
    for prefix in ("second", "third"):
        log = run / "events.ndjson"
        log.write_bytes(log.read_bytes().replace(b"RUN_CREATED", b"RUN_CREATET"))
        digests.append(hashlib.sha256(log.read_bytes()).hexdigest())
        with pytest.raises(SnapshotInvalid):
            resume(root, prefix)
        assert events(run)[0]["payload"]["previous_log_sha256"] == digests[-1]
    found = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(run.glob("*.corrupt-*"))]
    assert found == digests


def test_a_flipped_bit_anywhere_before_the_last_line_never_goes_unnoticed(root):
    """D04. Every field of every line is held by a hash, by the fold, or by both."""
    run = stopped_run(root)
    log = run / "events.ndjson"
    whole = log.read_bytes()
    end = whole.rindex(b"\n", 0, -1)
    for at in range(0, end, 7):
        log.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 7)]) + whole[at + 1 :])
        assert not verify(root, "r1").sound, whole[max(0, at - 20) : at + 20]


@pytest.mark.parametrize("kept", ["snapshot", "invalid snapshot", "other snapshot"])
def test_a_snapshot_without_a_log_fails_the_run(root, kept):
    run = stopped_run(root)
    (run / "events.ndjson").unlink()
    if kept == "invalid snapshot":
        (run / "snapshot.json").write_text("{")
    if kept == "other snapshot":
        text = (run / "snapshot.json").read_text().replace('"run_id": "r1"', '"run_id": "r2"')
        (run / "snapshot.json").write_text(text)
    with pytest.raises(SnapshotInvalid):
        resume(root)
    assert json.loads((run / "snapshot.json").read_bytes())["run_state"] == "FAILED"
    assert events(run)[1]["payload"]["issue_id"] == "SnapshotInvalid"


def test_a_kill_between_setting_the_log_aside_and_the_new_log_is_finished_by_the_next_resume():
    killed = KilledRuns()
    try:
        with fast_folder() as root:
            assert killed.run(root, crash="log.append.synced:9") == -9
            log = root / "r1" / "events.ndjson"
            lines = log.read_bytes().splitlines(keepends=True)
            log.write_bytes(b"".join([*lines[:2], *lines[3:]]))
            digest = hashlib.sha256(log.read_bytes()).hexdigest()
            assert killed.run(root, crash="recovery.set_aside") == -9
            assert not log.exists()
            assert killed.run(root, crash="log.append.written") == -9
            lines = log.read_bytes().splitlines(keepends=True)
            log.write_bytes(lines[0])
            assert killed.run(root) == 3
            created = events(root / "r1")[0]
            assert created["payload"]["previous_log_sha256"] == digest
            assert json.loads((root / "r1" / "snapshot.json").read_bytes())["run_state"] == "FAILED"
    finally:
        killed.close()
    assert "recovery.set_aside" in crash.points()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("FETCHED", "NEW"),
        lambda text: text.replace('"run_id": "r1"', '"run_id": "r2"'),
        lambda text: text[:50],
        lambda text: text.replace("  ", " "),
        lambda text: "",
        lambda text: text.replace("work_items", "werk_items"),
        None,
    ],
    ids=["behind", "of another run", "torn", "other spelling", "empty", "wrong field", "missing"],
)
def test_a_snapshot_that_is_not_what_the_log_says_is_made_again(root, reference, spoil):
    """D09. The log wins, whatever the snapshot says."""
    run = stopped_run(root)
    if spoil is None:
        (run / "snapshot.json").unlink()
    else:
        (run / "snapshot.json").write_text(spoil((run / "snapshot.json").read_text()))
    with open_run(root, "r1", around=around("look")):
        assert (run / "snapshot.json").read_bytes() == replay_bytes(root, "r1")
    resume(root)
    assert (run / "snapshot.json").read_bytes() == reference[0]


def test_a_log_of_another_run_is_not_taken(root):
    stopped_run(root, "r2")
    (root / "r1").mkdir()
    shutil.copy(root / "r2" / "events.ndjson", root / "r1" / "events.ndjson")
    with pytest.raises(SnapshotInvalid):
        resume(root)


def test_a_second_process_is_refused_at_once_and_changes_nothing(root):
    """D08. One writer a folder."""
    run = stopped_run(root)
    with open_run(root, "r1", around=around("holder")):
        before = (run / "events.ndjson").read_bytes()
        with pytest.raises(RunBusy):
            resume(root)
        assert (run / "events.ndjson").read_bytes() == before


@pytest.mark.parametrize("name", ["events.ndjson", "snapshot.json", "artifacts"])
def test_a_link_in_place_of_a_file_of_the_run_is_refused(root, name):
    """D07."""
    run = stopped_run(root)
    (run / name).rename(root / "elsewhere")
    (run / name).symlink_to(root / "elsewhere")
    with pytest.raises(FolderUnsafe):
        resume(root)


@pytest.mark.parametrize("run_id", ["../r1", "", ".", "a/b", "r1\n", "x" * 200, "r\0"])
def test_a_run_id_that_leads_out_is_refused_before_anything_is_made(root, run_id):
    with pytest.raises(Exception, match="cannot be a run id"):
        start_or_resume(three_nodes(), root, run_id)
    assert list(root.iterdir()) == []


def test_a_run_does_not_go_on_with_another_graph(root):
    stopped_run(root)
    other = Pipeline("three", {"NEW": "FETCHED", "FETCHED": "DONE"})
    with pytest.raises(RunError, match="another graph"):
        start_or_resume(other, root, "r1", around=around("other"))


def test_everything_in_the_folder_belongs_to_its_owner_alone(root):
    before = os.umask(0)
    try:
        resume(root)
    finally:
        os.umask(before)
    for path in (root / "r1").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_reading_a_run_changes_nothing(root):
    run = stopped_run(root)
    (run / "snapshot.json").write_text("{")
    with (run / "events.ndjson").open("ab") as file:
        file.write(b'{"torn')
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert load(root, "r1")[0].state == "WRITTEN"
    verify(root, "r1")
    replay_bytes(root, "r1")
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_the_reader_accepts_every_line_of_a_finished_run(root):
    resume(root)
    assert proven_events(root / "r1") == len(events(root / "r1"))


def test_removing_files_from_the_folder_does_not_let_a_second_writer_in(root):
    """The lock is the folder's own: there is no lock file that somebody could tidy away."""
    run = stopped_run(root)
    with open_run(root, "r1", around=around("holder")):
        for path in run.glob(".*"):
            path.unlink()
        with pytest.raises(RunBusy):
            resume(root)


def test_a_log_of_a_newer_version_is_refused_and_left_alone(root):
    """Nothing is wrong with an event that only a later version knows, so nothing is set aside."""
    run = stopped_run(root)
    from tallystick.log.event import Draft
    from tallystick.log.folder import Folder
    from tallystick.log.writer import LogWriter

    _, tail = load(root, "r1")
    last = events(run)[-1]
    with Folder.open(run) as folder:
        writer = LogWriter(
            folder,
            "events.ndjson",
            tail,
            run_id="r1",
            trace_id=last["trace_id"],
            clock=around().clock,
            ids=around("newer").ids,
        )
        writer.append([Draft("RUN_IMPROVED", {"how": "much"}, last["span_id"])])
        writer.close()
    before = (run / "events.ndjson").read_bytes()
    with pytest.raises(RunError, match="newer version"):
        resume(root)
    assert (run / "events.ndjson").read_bytes() == before
