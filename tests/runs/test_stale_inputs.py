"""What is stale is handed to nobody: its maker works first, or the run goes without it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tallystick.crash import Crash
from tallystick.errors import RunFailed
from tallystick.log.folder import Folder
from tallystick.runs import Pipeline
from tallystick.runs.log import recovery
from tallystick.runs.log.events import EventType
from tallystick.runs.log.fold import RunView
from tallystick.runs.log.inspection import verify
from tallystick.runs.orchestrator.start import Redo, start_or_resume
from tallystick.runs.toy import toy_publishing
from tests.runs.worlds import around, events, fast_folder


class Stop(Crash):
    """Ends a process that is only imagined."""


def stop(work):
    raise Stop


@pytest.fixture
def root():
    with fast_folder() as folder:
        yield folder


def stopping_at(pipeline: Pipeline, worker: str) -> Pipeline:
    """Return the pipeline with a worker whose process dies."""
    pipeline.nodes[:] = [
        replace(node, function=stop) if node.worker == worker else node for node in pipeline.nodes
    ]
    return pipeline


def stale_inputs(run: Path) -> list[tuple[str, str]]:
    """Return every (work item, input) that was stale when the work began, by the log alone."""
    view = RunView(run.name)
    found: list[tuple[str, str]] = []
    with Folder.open(run) as folder:
        for event in recovery.events(folder):
            view.replay(event)
            if event.type in {EventType.WORK_ITEM_STARTED, EventType.RESUME_WORK_ITEM}:
                item_id = json.loads(bytes(event.payload))["work_item_id"]
                reads = view.items[item_id].inputs
                found += [(item_id, name) for name in reads if view.artifacts[name].stale]
    return found


def started(run: Path, worker: str) -> list[list[str]]:
    """Return what each attempt of a worker had in hand when it began."""
    return [
        event["payload"]["inputs"]
        for event in events(run)
        if event["type"] == "WORK_ITEM_STARTED" and f":{worker}:" in event["payload"]["work_item_id"]
    ]


def test_a_patch_of_the_old_draft_is_not_handed_to_the_validator(root):
    with pytest.raises(Stop):
        start_or_resume(stopping_at(toy_publishing(), "opener"), root, "r1", around=around("a"))
    (root / "r1" / "artifacts" / "drafts" / "intro.md").write_text("# another intro\n")
    snapshot = start_or_resume(toy_publishing(), root, "r1", around=around("b"))
    assert stale_inputs(root / "r1") == []
    assert started(root / "r1", "validator") == [
        ["linked.md"],
        ["linked.md", "patch.json"],
        ["linked.md"],
        ["linked.md", "patch.json"],
    ]
    assert snapshot.run_state == "DONE"
    assert [name for name, artifact in snapshot.artifacts_index.items() if artifact.stale] == []
    assert [issue.status for issue in snapshot.issues] == ["RESOLVED"]
    assert "another intro" in (root / "r1" / "artifacts" / "linked.md").read_text()


@pytest.mark.parametrize("fixes", [0, 1, 2])
def test_a_loop_of_fixes_that_is_walked_again_leaves_nothing_stale_and_nothing_undone(root, fixes):
    with pytest.raises(Stop):
        start_or_resume(stopping_at(toy_publishing(fixes), "closer"), root, "r1", around=around("a"))
    (root / "r1" / "artifacts" / "drafts" / "intro.md").write_text("# another intro\n")
    with pytest.raises(Stop):
        start_or_resume(stopping_at(toy_publishing(fixes), "closer"), root, "r1", around=around("b"))
    before = len(events(root / "r1"))
    snapshot = start_or_resume(toy_publishing(fixes), root, "r1", around=around("c"))
    assert snapshot.run_state == "DONE"
    assert stale_inputs(root / "r1") == []
    assert "another intro" in (root / "r1" / "artifacts" / "linked.md").read_text()
    # The third process finds nothing to do but the last work.
    again = [event["payload"]["work_item_id"] for event in events(root / "r1")[before:]
             if event["type"] in {"WORK_ITEM_STARTED", "RESUME_WORK_ITEM"}]  # fmt: skip
    assert again == ["r1:closer:1"]


def dying_at(turn: int) -> Pipeline:
    """Return the toy pipeline with two fixes, whose process dies when it calls its n-th worker."""
    pipeline = toy_publishing(2)
    calls = count(1)

    def dying(function):
        def call(work):
            if next(calls) == turn:
                raise Stop
            return function(work)

        return call

    pipeline.nodes[:] = [replace(node, function=dying(node.function)) for node in pipeline.nodes]
    return pipeline


@pytest.mark.parametrize("turn", range(5, 16))
def test_wherever_a_run_stops_a_changed_draft_reaches_its_end_and_nothing_stale_does(root, turn):
    with pytest.raises(Stop):
        start_or_resume(dying_at(turn), root, "r1", parallel=1, around=around("a"))
    draft = root / "r1" / "artifacts" / "drafts" / "intro.md"
    edited = draft.exists()
    if edited:
        draft.write_text("# another intro\n")
    snapshot = start_or_resume(toy_publishing(2), root, "r1", parallel=1, around=around("b"))
    assert snapshot.run_state == "DONE"
    assert stale_inputs(root / "r1") == []
    assert not [name for name, artifact in snapshot.artifacts_index.items() if artifact.stale]
    assert ("another intro" in (root / "r1" / "artifacts" / "linked.md").read_text()) == edited
    assert verify(root, "r1").notes == []


def test_work_that_read_an_earlier_content_of_a_name_does_not_rest_on_the_last_one(root):
    """The fixer read the report of the first check; the user edits the report of the second."""
    with pytest.raises(Stop):
        start_or_resume(stopping_at(toy_publishing(), "closer"), root, "r1", around=around("a"))
    report = root / "r1" / "artifacts" / "report.json"
    report.write_text('{"ok":"by hand"}')
    before = len(events(root / "r1"))
    start_or_resume(toy_publishing(), root, "r1", around=around("b"))
    started = [event["payload"]["work_item_id"] for event in events(root / "r1")[before:]
               if event["type"] in {"WORK_ITEM_STARTED", "RESUME_WORK_ITEM"}]  # fmt: skip
    assert started == ["r1:opener:2", "r1:closer:1"]
    assert report.read_text() == '{"ok":"by hand"}'


def test_work_that_is_forced_takes_no_stale_patch_along(root):
    with pytest.raises(Stop):
        start_or_resume(stopping_at(toy_publishing(), "opener"), root, "r1", around=around("a"))
    snapshot = start_or_resume(
        toy_publishing(), root, "r1", redo=Redo(from_state="LINKING"), around=around("b")
    )
    assert stale_inputs(root / "r1") == []
    assert snapshot.run_state == "DONE"


def lists(*, last=lambda work: None) -> Pipeline:
    """Return a pipeline that makes a file of every word of its input and puts them together."""
    pipeline = Pipeline("lists", {"NEW": "PUT", "PUT": "LAST", "LAST": "DONE"})

    @pipeline.node("NEW", inputs=["words.txt"], outputs=["words/*.txt"])
    def split(work):
        for word in work.read_text("words.txt").split():
            work.write(f"words/{word}.txt", word)

    @pipeline.node("PUT", inputs=["words/*.txt"], outputs=["all.txt"])
    def put(work):
        work.write("all.txt", " ".join(work.read_text(name) for name in work.inputs))

    pipeline.node("LAST", worker="last")(last)
    return pipeline


def test_a_part_that_is_not_made_again_is_left_out_of_the_whole(root):
    with pytest.raises(Stop):
        start_or_resume(lists(last=stop), root, "r1", inputs={"words.txt": b"a b c"}, around=around("a"))
    (root / "r1" / "artifacts" / "words.txt").write_text("a c")
    snapshot = start_or_resume(lists(), root, "r1", around=around("b"))
    assert (root / "r1" / "artifacts" / "all.txt").read_text() == "a c"
    assert snapshot.artifacts_index["words/b.txt"].stale
    assert "artifact words/b.txt is stale; no work of the run makes it any more" in verify(root, "r1").notes


def test_interrupted_work_that_goes_on_with_other_inputs_rests_on_those(root):
    with pytest.raises(Stop):
        start_or_resume(
            stopping_at(lists(), "put"), root, "r1", inputs={"words.txt": b"a b"}, around=around("a")
        )
    (root / "r1" / "artifacts" / "words.txt").write_text("a c")
    with pytest.raises(Stop):
        start_or_resume(lists(last=stop), root, "r1", around=around("b"))
    (root / "r1" / "artifacts" / "words" / "c.txt").write_text("changed")
    snapshot = start_or_resume(lists(), root, "r1", around=around("c"))
    assert (root / "r1" / "artifacts" / "all.txt").read_text() == "a changed"
    assert [item.inputs for item in snapshot.work_items if item.worker == "put"] == [
        ["words/a.txt", "words/c.txt"],
        ["words/a.txt", "words/c.txt"],
    ]
    assert stale_inputs(root / "r1") == []


def mended(*, last) -> Pipeline:
    """Return a pipeline whose last work needs what only one of its two ways makes."""
    pipeline = Pipeline("mended", {"CHECK": {"ok": "LAST", "not_ok": "FIX"}, "FIX": "LAST", "LAST": "DONE"})

    @pipeline.node("CHECK", inputs=["text.txt"], outputs=["report.txt"])
    def check(work):
        work.write("report.txt", work.read_text("text.txt"))
        return work.read_text("text.txt") == "good"

    @pipeline.node("FIX", inputs=["report.txt"], outputs=["patch.txt"])
    def fix(work):
        work.write("patch.txt", f"mend {work.read_text('report.txt')}")

    pipeline.node("LAST", worker="last", inputs=["patch.txt"])(last)
    return pipeline


def test_work_that_needs_a_stale_artifact_fails_the_run_rather_than_use_it(root):
    with pytest.raises(Stop):
        start_or_resume(mended(last=stop), root, "r1", inputs={"text.txt": b"bad"}, around=around("a"))
    (root / "r1" / "artifacts" / "text.txt").write_text("good")
    calls: list[str] = []
    with pytest.raises(RunFailed, match=r"last needs the artifact patch\.txt, which is stale"):
        start_or_resume(mended(last=lambda work: calls.append("last")), root, "r1", around=around("b"))
    assert calls == []
