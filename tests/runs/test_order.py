"""The log has one order, whoever is faster; who is faster than its turn does not work twice for it."""

from __future__ import annotations

import errno
import threading

import pytest

from tallystick.crash import Crash
from tallystick.errors import RunFailed, StorageFailed
from tallystick.runs.definition.pipeline import Pipeline
from tallystick.runs.log.inspection import load, verify
from tallystick.runs.orchestrator.start import Redo, start_or_resume
from tallystick.runs.workers.artifacts import ArtifactFiles
from tallystick.runs.workers.receipts import PREFIX, Receipts
from tests.runs.worlds import KilledRuns, around, events, fast_folder, history

SCOPES = ["a", "b", "c", "d", "e"]


@pytest.fixture
def root():
    with fast_folder() as folder:
        yield folder


class Stop(Crash):
    """Ends the process without a trace, as far as the run can tell."""


def fan(behave, tries=1):
    """Return a pipeline of two nodes that run together and a third that reads what one of them makes."""
    pipeline = Pipeline("fan", {"NEW": "WORKING", "WORKING": "DONE"})

    @pipeline.node("NEW", outputs=["words.txt"])
    def fetch(work):
        work.write("words.txt", "some words")

    @pipeline.node("WORKING", inputs=["words.txt"], outputs=["count/{scope}.txt"], scopes=SCOPES, tries=tries)
    def count(work):
        work.read("words.txt")
        work.open_issue("counting", "info", "counted", issue_id=f"by-{work.scope}")
        behave(work)
        work.write(f"count/{work.scope}.txt", work.scope)

    @pipeline.node("WORKING", outputs=["side.txt"], tries=tries)
    def side(work):
        behave(work)
        work.write("side.txt", "x")

    @pipeline.node("WORKING", inputs=["side.txt"], outputs=["after.txt"], tries=tries)
    def after(work):
        behave(work)
        work.write("after.txt", "x")

    return pipeline


class Finish:
    """Lets workers end in an order of the test's choice: `waits` says who ends only after whom."""

    def __init__(self, waits, fails=()):
        self.waits = waits
        self.fails = list(fails)
        self.ended = {name: threading.Event() for name in [*SCOPES, "side", "after"]}

    def __call__(self, work):
        name = work.scope or work.worker
        for other in self.waits.get(name, ()):
            assert self.ended[other].wait(20)
        self.ended[name].set()
        if name in self.fails:
            self.fails.remove(name)
            raise ValueError(name)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("fails", [(), ("a",), ("b", "side")])
def test_the_order_of_the_log_does_not_depend_on_who_is_faster(fails):
    stories = set()
    for waits in ({}, {"a": "bc"}, {"a": "c", "b": "c"}, {"b": "c", "c": "d"}, {"d": "e", "e": ["side"]}):
        with fast_folder() as root:
            start_or_resume(fan(Finish(waits, fails), tries=2), root, "r1", parallel=3, around=around())
            stories.add((tuple(history(root / "r1")), (root / "r1" / "snapshot.json").read_bytes()))
    assert len(stories) == 1


def test_work_is_begun_as_it_was_queued_and_recorded_as_it_was_begun(root):
    start_or_resume(fan(Finish({"a": "bc"})), root, "r1", parallel=3, around=around())
    order = {
        kind: [e["payload"]["work_item_id"] for e in events(root / "r1") if e["type"] == kind]
        for kind in ("WORK_ITEM_QUEUED", "WORK_ITEM_STARTED", "WORK_ITEM_FINISHED")
    }
    assert len({tuple(names) for names in order.values()}) == 1


@pytest.mark.timeout(60)
def test_a_failure_is_recorded_in_its_turn_and_what_was_begun_before_it_is_finished():
    stories = set()
    for waits in ({}, {"a": "b"}):
        with fast_folder() as root:
            with pytest.raises(RunFailed):
                start_or_resume(fan(Finish(waits, "b")), root, "r1", parallel=2, around=around())
            stories.add(tuple(history(root / "r1")))
    assert len(stories) == 1


def test_once_a_failure_is_final_no_other_attempt_begins(root):
    with pytest.raises(RunFailed):
        start_or_resume(
            fan(Finish({}, ["a", "a", "after"]), tries=2), root, "r1", parallel=2, around=around()
        )
    items = {item.work_item_id: item.status for item in load(root, "r1")[0].items.values()}
    assert items["r1:count:2:a"] == items["r1:after:1"] == "failed"
    assert items["r1:after:2"] == "skipped"
    assert set(items.values()) == {"finished", "failed", "skipped"}


def stopped(root, monkeypatch, calls):
    """Stop a run whose worker `a` is at work while `b` and `c` have returned before their turn."""
    kept, both = [], threading.Event()
    keep = Receipts.keep

    def noticed(self, work, *rest):
        keep(self, work, *rest)
        kept.append(work.scope)
        if len(kept) == 2:
            both.set()

    def behave(work):
        calls.append(work.scope or work.worker)
        if work.scope == "a":
            assert both.wait(20)
            raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(Receipts, "keep", noticed)
        with pytest.raises(Stop):
            start_or_resume(fan(behave), root, "r1", parallel=3, around=around("x"))
    assert sorted(kept) == ["b", "c"]
    assert sorted(calls) == ["a", "b", "c"]
    calls.clear()
    return root / "r1" / "artifacts"


def resumed(root, calls, **options):
    pipeline = fan(lambda work: calls.append(work.scope or work.worker))
    start_or_resume(pipeline, root, "r1", parallel=3, around=around("y"), **options)
    assert verify(root, "r1").notes == verify(root, "r1").problems == []
    assert list((root / "r1" / "artifacts" / ".staged").iterdir()) == []


@pytest.mark.timeout(60)
def test_who_returned_before_its_turn_is_not_called_again(root, monkeypatch):
    """The receipt becomes the record: same order, same span, same issues as without the stop."""
    calls = []
    with fast_folder() as undisturbed:
        start_or_resume(fan(Finish({})), undisturbed, "r1", parallel=3, around=around())
        story = history(undisturbed / "r1")
        snapshot = (undisturbed / "r1" / "snapshot.json").read_bytes()
    artifacts = stopped(root, monkeypatch, calls)
    assert len(list((artifacts / ".staged").glob(f"{PREFIX}*"))) == 2
    resumed(root, calls)
    assert sorted(calls) == ["a", "after", "d", "e", "side"]
    assert history(root / "r1") == story
    assert (root / "r1" / "snapshot.json").read_bytes() == snapshot
    spans = {e["span_id"] for e in events(root / "r1") if ":count:1:b" in str(e["payload"])}
    assert len(spans) == 2, "its queueing under the span of the run, the rest under its own"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("trouble", ["input changed", "content gone", "unreadable", "forced", "from"])
def test_a_receipt_that_no_longer_fits_is_not_believed(root, monkeypatch, trouble):
    calls, options = [], {}
    artifacts = stopped(root, monkeypatch, calls)
    receipts = list((artifacts / ".staged").glob(f"{PREFIX}*"))
    match trouble:
        case "input changed":
            (artifacts / "words.txt").write_text("other words")
        case "content gone":
            for path in (artifacts / ".staged").iterdir():
                if path not in receipts:
                    path.unlink()
        case "unreadable":
            for path in receipts:
                path.write_bytes(path.read_bytes()[:-7])
        case "forced":
            options = {"redo": Redo(items=("fetch",))}
        case "from":
            options = {"redo": Redo(from_state="WORKING")}
    resumed(root, calls, **options)
    assert sorted(set(calls) - {"fetch"}) == ["a", "after", "b", "c", "d", "e", "side"]


@pytest.mark.timeout(60)
def test_a_receipt_that_cannot_be_written_stops_the_run_and_a_resume_ends_the_same(root, monkeypatch):
    """D06. Trouble with the disk is never the failure of the run."""
    tried, calls = threading.Event(), []

    def full(self, name, data):
        tried.set()
        raise StorageFailed.of("write", name, OSError(errno.ENOSPC, "no space"))

    def behave(work):
        if work.scope == "a":
            assert tried.wait(20)

    with monkeypatch.context() as patched:
        patched.setattr(ArtifactFiles, "put_beside", full)
        with pytest.raises(StorageFailed):
            start_or_resume(fan(behave), root, "r1", parallel=3, around=around("x"))
    with fast_folder() as undisturbed:
        start_or_resume(fan(Finish({})), undisturbed, "r1", parallel=3, around=around())
        resumed(root, calls)
        assert history(root / "r1") == history(undisturbed / "r1")


@pytest.fixture(scope="module")
def killed():
    process = KilledRuns()
    yield process
    process.close()


@pytest.fixture(scope="module")
def reference(killed):
    with fast_folder() as root:
        assert killed.run(root, parallel=3, out_of_turn=True) == 0
        yield (root / "r1" / "snapshot.json").read_bytes(), history(root / "r1")


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "point",
    [
        "receipt.keep.before",
        "receipt.keep.done",
        "log.append.written",
        "log.append.synced",
        "folder.replace.synced",
        "folder.replace.renamed",
        "artifact.stage.synced",
        "artifact.name.done",
    ],
)
def test_parallel_work_out_of_turn_killed_anywhere_ends_with_the_same_snapshot_and_order(
    killed, reference, point
):
    """Two drafts return before the first: the same bytes and the same order.

    Every visit of the points of a receipt, and every third of the others: with one worker at a time all of
    them are visited elsewhere.
    """
    visit, stride = 1, 1 if point.startswith("receipt") else 3
    while True:
        with fast_folder() as root:
            status = killed.run(root, crash=f"{point}:{visit}", parallel=3, out_of_turn=True)
            if status == 0:
                break
            assert status == -9
            assert killed.run(root, parallel=3, out_of_turn=True) == 0
            assert (root / "r1" / "snapshot.json").read_bytes() == reference[0]
            assert history(root / "r1") == reference[1]
        visit += stride
    assert visit > 1, "the point was never reached, so this test proved nothing"
