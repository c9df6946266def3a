"""Whatever fails, the trail is complete: WORK_ITEM_FAILED, RUN_STATE_CHANGED to FAILED, a final snapshot."""

from __future__ import annotations

import dataclasses
import json
import threading
from asyncio import CancelledError

import pytest

from tallystick.crash import Crash
from tallystick.errors import BadInput, RunEnded, RunFailed, SnapshotInvalid, TallyError
from tallystick.runs import Pipeline
from tallystick.runs.log.inspection import replay_bytes, verify
from tallystick.runs.orchestrator.start import request_cancel, start_or_resume
from tallystick.runs.toy import toy_publishing
from tests.runs.worlds import around, events, fast_folder

WORKERS = [node.worker for node in toy_publishing().nodes]


@pytest.fixture
def root():
    with fast_folder() as folder:
        yield folder


def with_function(pipeline: Pipeline, worker: str, function) -> Pipeline:
    pipeline.nodes[:] = [
        dataclasses.replace(node, function=function) if node.worker == worker else node
        for node in pipeline.nodes
    ]
    return pipeline


def complete_trail(root, run_id="r1", state="FAILED"):
    run = root / run_id
    snapshot = json.loads((run / "snapshot.json").read_bytes())
    assert snapshot["run_state"] == state
    assert {item["status"] for item in snapshot["work_items"]} <= {"finished", "failed", "skipped"}
    assert (run / "snapshot.json").read_bytes() == replay_bytes(root, run_id)
    assert verify(root, run_id).sound
    assert events(run)[-1]["payload"]["to_state"] == state
    return snapshot


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("parallel", [1, 3])
def test_a_worker_that_raises_fails_the_run_with_a_complete_trail(root, worker, parallel):
    def explode(work):
        raise ValueError("boom \x1b[31m\ud800 " + "x" * 10_000)

    pipeline = with_function(toy_publishing(), worker, explode)
    with pytest.raises(RunFailed) as caught:
        start_or_resume(pipeline, root, "r1", parallel=parallel, around=around())
    assert isinstance(caught.value.__cause__, ValueError)
    snapshot = complete_trail(root)
    failed = [item for item in snapshot["work_items"] if item["status"] == "failed"]
    assert {item["worker"] for item in failed} == {worker}
    assert failed[0]["error"]["type"] == "ValueError"
    assert len(failed[0]["error"]["message"].encode()) <= 2048
    blockers = [issue for issue in snapshot["issues"] if issue["severity"] == "blocker"]
    assert [issue["error_code"] for issue in blockers] == ["RUN_FAILED"]
    with pytest.raises(RunEnded):
        start_or_resume(toy_publishing(), root, "r1", around=around("again"))


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (lambda work: work.write("inputs/brief.txt", "") or 7, "returned a int"),
        (lambda work: None, "without making"),
        (lambda work: work.write("undeclared.txt", "x"), "does not declare"),
        (lambda work: work.write("inputs/brief.txt", 5), "text or bytes, not as int"),
        (lambda work: work.write("inputs/brief.txt", [1, 2]), "text or bytes, not as list"),
        (lambda work: work.write("inputs/brief.txt", None), "text or bytes, not as NoneType"),
        (lambda work: work.write("../out.txt", "x"), "cannot be"),
        (lambda work: work.read("plan.json"), "has no input"),
        (lambda work: work.open_issue("gate", "error", "no code"), "error_code"),
        (lambda work: work.open_issue("gate", "terrible", "x"), "not a severity"),
    ],
)
def test_a_worker_that_breaks_the_rules_fails_like_one_that_raises(root, function, word):
    with pytest.raises(RunFailed, match=word):
        start_or_resume(with_function(toy_publishing(), "cloner", function), root, "r1", around=around())
    complete_trail(root)


@pytest.mark.parametrize("data", ["tea\n", b"tea\n", bytearray(b"tea\n"), memoryview(b"tea\n")], ids=type)
def test_text_and_every_kind_of_bytes_are_written_as_they_are(root, data):
    pipeline = Pipeline("writer", {"NEW": "DONE"})
    pipeline.node("NEW", outputs=["x.txt"], worker="write")(lambda work: work.write("x.txt", data))
    start_or_resume(pipeline, root, "r1", around=around())
    assert (root / "r1" / "artifacts" / "x.txt").read_bytes() == b"tea\n"


def test_an_error_of_the_orchestrator_itself_leaves_a_complete_trail(root):
    pipeline = toy_publishing()
    pipeline.nodes[:] = [
        dataclasses.replace(node, scopes=lambda work: 1 / 0) if node.worker == "drafter" else node
        for node in pipeline.nodes
    ]
    with pytest.raises(RunFailed) as caught:
        start_or_resume(pipeline, root, "r1", around=around())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    complete_trail(root)


def test_an_outcome_that_leads_nowhere_fails_the_run(root):
    def undecided(work):
        work.write_json("report.json", {})
        return "maybe"

    with pytest.raises(RunFailed, match="must return one of: ok, not_ok"):
        start_or_resume(with_function(toy_publishing(), "validator", undecided), root, "r1", around=around())
    complete_trail(root)


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_n_fixes_are_allowed_and_the_next_failure_is_final(root, allowed):
    with pytest.raises(RunFailed, match="FIXING was entered"):
        start_or_resume(toy_publishing(99, allowed), root, "r1", around=around())
    snapshot = complete_trail(root)
    assert sum(item["worker"] == "fixer" for item in snapshot["work_items"]) == allowed
    assert sum(item["worker"] == "validator" for item in snapshot["work_items"]) == allowed + 1
    moves = [e["payload"] for e in events(root / "r1") if e["type"] == "RUN_STATE_CHANGED"]
    assert (moves[-1]["from_state"], moves[-1]["to_state"]) == ("VALIDATING", "FAILED")


def test_exactly_as_many_fixes_as_are_allowed_are_enough(root):
    assert start_or_resume(toy_publishing(2, 2), root, "r1", around=around()).run_state == "DONE"


def test_a_worker_with_tries_left_gets_another_attempt(root):
    seen = []

    def second_time_lucky(work):
        seen.append(work.work_item_id)
        if work.attempt < 3:
            raise OSError("not yet")
        work.write("inputs/brief.txt", "intro\n")

    pipeline = with_function(toy_publishing(), "cloner", second_time_lucky)
    pipeline.nodes[0] = dataclasses.replace(pipeline.nodes[0], tries=3)
    assert start_or_resume(pipeline, root, "r1", around=around()).run_state == "DONE"
    assert seen == ["r1:cloner:1", "r1:cloner:2", "r1:cloner:3"]


def fan(function, *, names=("a", "b", "c", "d")) -> Pipeline:
    pipeline = Pipeline("fan", {"NEW": "DONE"})
    pipeline.node("NEW", scopes=names, outputs=["out/{scope}.txt"], worker="each")(function)
    return pipeline


@pytest.mark.timeout(30)
def test_work_items_run_at_the_same_time_where_the_graph_allows(root):
    """Four items wait for each other: they can only finish if they run together."""
    together = threading.Barrier(4, timeout=10)

    def meet(work):
        together.wait()
        work.write(f"out/{work.scope}.txt", work.scope)

    assert start_or_resume(fan(meet), root, "r1", parallel=4, around=around()).run_state == "DONE"


@pytest.mark.timeout(30)
def test_nodes_of_one_state_run_together_unless_one_reads_what_another_makes(root):
    together = threading.Barrier(2, timeout=10)
    order = []
    pipeline = Pipeline("diamond", {"NEW": "DONE"})

    def maker(name):
        def make(work):
            together.wait()
            order.append(name)
            work.write(f"{name}.txt", name)

        return make

    pipeline.node("NEW", inputs=["left.txt", "right.txt"], worker="join")(lambda work: order.append("join"))
    pipeline.node("NEW", outputs=["left.txt"], worker="left")(maker("left"))
    pipeline.node("NEW", outputs=["right.txt"], worker="right")(maker("right"))
    start_or_resume(pipeline, root, "r1", parallel=4, around=around())
    assert sorted(order[:2]) == ["left", "right"]
    assert order[2] == "join"


@pytest.mark.timeout(30)
def test_what_runs_beside_a_failure_is_finished_and_what_waits_is_skipped(root):
    failing = threading.Event()

    def one_fails(work):
        if work.scope == "a":
            failing.set()
            raise ValueError("a")
        failing.wait(10)
        work.write(f"out/{work.scope}.txt", "x")

    with pytest.raises(RunFailed):
        start_or_resume(fan(one_fails), root, "r1", parallel=2, around=around())
    statuses = {i["scope_key"]: i["status"] for i in complete_trail(root)["work_items"]}
    assert statuses["a"] == "failed"
    assert statuses["d"] == "skipped"
    assert set(statuses.values()) == {"failed", "finished", "skipped"}


@pytest.mark.parametrize("escape", [SystemExit(), SystemExit(3), GeneratorExit(), CancelledError()], ids=repr)
@pytest.mark.parametrize("parallel", [1, 3])
def test_what_a_worker_raises_past_exception_fails_the_run_with_a_complete_trail(root, escape, parallel):
    def leave(work):
        raise escape

    with pytest.raises(RunFailed, match=type(escape).__name__) as caught:
        start_or_resume(
            with_function(toy_publishing(), "linker", leave), root, "r1", parallel=parallel, around=around()
        )
    assert caught.value.__cause__ is escape
    failed = [item for item in complete_trail(root)["work_items"] if item["status"] == "failed"]
    assert {item["error"]["type"] for item in failed} == {type(escape).__name__}


def test_an_interrupt_is_no_failure_and_the_run_goes_on_when_it_is_resumed(root):
    def interrupted(work):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start_or_resume(
            with_function(toy_publishing(), "linker", interrupted), root, "r1", around=around("a")
        )
    assert start_or_resume(toy_publishing(), root, "r1", around=around("b")).run_state == "DONE"


def test_a_worker_that_exits_before_its_turn_to_be_recorded_fails_the_run_too(root):
    left = threading.Event()

    def behave(work):
        if work.scope == "b":
            left.set()
            raise SystemExit
        assert left.wait(20)
        work.write(f"out/{work.scope}.txt", "x")

    with pytest.raises(RunFailed, match="SystemExit"):
        start_or_resume(fan(behave), root, "r1", parallel=2, around=around())
    statuses = {item["scope_key"]: item["status"] for item in complete_trail(root)["work_items"]}
    assert (statuses["a"], statuses["b"]) == ("finished", "failed")


def test_scopes_that_exit_fail_the_run_and_not_the_program(root):
    pipeline = Pipeline("leaver", {"NEW": "DONE"})

    def leave(work):
        raise SystemExit

    pipeline.node("NEW", scopes=leave, worker="read")(lambda work: None)
    with pytest.raises(RunFailed, match=r"the scopes of read raised SystemExit\(\)"):
        start_or_resume(pipeline, root, "r1", around=around())
    complete_trail(root)


def test_a_run_that_nobody_works_on_is_cancelled_at_once(root):
    class Stop(Crash):
        pass

    def stop(work):
        raise Stop

    with pytest.raises(Stop):
        start_or_resume(with_function(toy_publishing(), "linker", stop), root, "r1", around=around("a"))
    assert request_cancel(root, "r1", around=around("b")) == ("CANCELLED", True)
    complete_trail(root, state="CANCELLED")
    assert request_cancel(root, "r1", around=around("c")) == ("CANCELLED", True)
    assert not (root / "r1" / "cancel.requested").exists()
    with pytest.raises(RunEnded):
        start_or_resume(toy_publishing(), root, "r1", around=around("d"))


def test_a_run_that_is_worked_on_stops_after_its_current_work(root):
    seen = []

    def asked(work):
        assert not work.cancelled
        assert request_cancel(root, "r1", around=around("b")) == ("CREATED", False)
        assert work.cancelled
        work.write("inputs/brief.txt", "intro\n")

    pipeline = with_function(toy_publishing(), "cloner", asked)
    snapshot = start_or_resume(
        with_function(pipeline, "ingester", seen.append), root, "r1", parallel=1, around=around()
    )
    assert snapshot.run_state == "CANCELLED"
    assert seen == []
    complete_trail(root, state="CANCELLED")


def needy() -> Pipeline:
    pipeline = Pipeline("needy", {"NEW": "DONE"})
    pipeline.node("NEW", inputs=["brief.txt"], worker="read")(lambda work: None)
    return pipeline


def test_an_input_that_nobody_supplies_is_asked_for_before_the_run_begins(root):
    with pytest.raises(BadInput, match=r"brief\.txt"):
        start_or_resume(needy(), root, "r1", around=around())
    with pytest.raises(BadInput, match="no node"):
        start_or_resume(needy(), root, "r1", inputs={"brief.txt": b"", "other.txt": b""}, around=around())
    assert (
        start_or_resume(needy(), root, "r1", inputs={"brief.txt": b"x"}, around=around()).run_state == "DONE"
    )


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "needs the input"),
        ({"inputs": {"brief.txt": b"", "other.txt": b""}}, "no node"),
        ({"inputs": {"brief.txt": b"", "../other.txt": b""}}, "cannot be"),
        ({"inputs": {"brief.txt": "words"}}, "must be bytes, not str"),
        ({"inputs": {"brief.txt": b""}, "parallel": 0}, "at least 1"),
    ],
)
def test_a_run_that_is_refused_before_it_begins_leaves_nothing_behind(root, options, word):
    with pytest.raises(TallyError, match=word):
        start_or_resume(needy(), root / "runs", "r1", around=around(), **options)
    assert list(root.iterdir()) == []


def test_a_run_whose_log_is_lost_says_so_and_does_not_ask_for_its_input(root):
    start_or_resume(needy(), root, "r1", inputs={"brief.txt": b"x"}, around=around())
    (root / "r1" / "events.ndjson").unlink()
    with pytest.raises(SnapshotInvalid):
        start_or_resume(needy(), root, "r1", around=around("b"))


def test_an_issue_goes_from_open_over_in_progress_to_resolved_in_the_log_and_in_the_snapshot(root):
    pipeline = Pipeline("issues", {"NEW": "MENDING", "MENDING": "DONE"})

    @pipeline.node("NEW")
    def find(work):
        work.open_issue("links", "warn", "a link leads nowhere", issue_id="link")

    @pipeline.node("MENDING")
    def mend(work):
        work.take_issue("link")
        work.resolve_issue("link")

    snapshot = start_or_resume(pipeline, root, "r1", around=around())
    assert [issue.status for issue in snapshot.issues] == ["RESOLVED"]
    told = [event["payload"]["status"] for event in events(root / "r1") if "ISSUE" in event["type"]]
    assert told == ["OPEN", "IN_PROGRESS", "RESOLVED"]
