"""When an artifact changes, exactly what rests on it is done again, always in the same order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies

from tallystick.crash import Crash
from tallystick.errors import ArtifactChanged, BadInput, RunEnded, RunError
from tallystick.runs import Pipeline
from tallystick.runs.orchestrator.start import Redo, start_or_resume
from tests.runs.worlds import around, events, fast_folder


class Stop(Crash):
    """Ends a process that is only imagined."""


def chain_of(layers: list[list[list[int]]], calls: list[str], *, stop: bool) -> Pipeline:
    """Return a pipeline of layers of nodes; a node reads artifacts of earlier nodes, by their numbers.

    Nodes of one layer that read each other's artifacts are in the same state; `stop` ends the process at the
    end.
    """
    states = [f"S{number}" for number in range(len(layers))]
    edges = dict(zip(states, [*states[1:], "LAST"], strict=True))
    pipeline = Pipeline("random", {**edges, "LAST": "DONE"})
    number = 0
    for state, layer in zip(states, layers, strict=True):
        for reads in layer:
            add_node(pipeline, state, number, reads, calls)
            number += 1

    @pipeline.node("LAST", worker="last")
    def last(work):
        if stop:
            raise Stop

    return pipeline


def add_node(pipeline: Pipeline, state: str, number: int, reads: list[int], calls: list[str]) -> None:
    inputs = [f"a{read}.txt" for read in reads]

    @pipeline.node(state, worker=f"w{number}", inputs=[*inputs, "source.txt"] if number == 0 else inputs,
                   outputs=[f"a{number}.txt"])  # fmt: skip
    def work_on(work):
        calls.append(work.worker)
        text = "|".join(work.read_text(name) for name in work.inputs)
        work.write(f"a{number}.txt", f"{number}({text})")


@strategies.composite
def graphs(draw):
    """Draw layers of nodes: each reads any earlier nodes, so the artifacts form any acyclic graph."""
    layers: list[list[list[int]]] = []
    count = 0
    for _ in range(draw(strategies.integers(1, 4))):
        layer = []
        for _ in range(draw(strategies.integers(1, 3))):
            earlier = strategies.sampled_from(range(count)) if count else strategies.nothing()
            layer.append(sorted(draw(strategies.sets(earlier, max_size=3))) if count else [])
            count += 1
        layers.append(layer)
    changed = draw(strategies.sets(strategies.integers(0, count - 1), min_size=0, max_size=3))
    return layers, sorted(changed)


def dependants(layers: list[list[list[int]]], changed: list[int]) -> set[int]:
    """Return what rests on the changed artifacts: the oracle, by the declaration alone."""
    reads = [node for layer in layers for node in layer]
    stale: set[int] = set()
    while True:
        more = {
            number
            for number, needs in enumerate(reads)
            if number not in stale and set(needs) & (set(changed) | stale)
        }
        if not more:
            return stale
        stale |= more


@settings(max_examples=60)
@given(graphs(), strategies.integers(1, 4))
def test_exactly_the_stale_set_is_done_again(graph, parallel):
    layers, changed = graph
    calls: list[str] = []
    with fast_folder() as root:
        inputs = {"source.txt": b"source"}
        with pytest.raises(Stop):
            start_or_resume(
                chain_of(layers, calls, stop=True),
                root,
                "r1",
                inputs=inputs,
                parallel=parallel,
                around=around("a"),
            )
        before = json.loads((root / "r1" / "snapshot.json").read_bytes())["artifacts_index"]
        for number in changed:
            path = root / "r1" / "artifacts" / f"a{number}.txt"
            path.write_text(path.read_text() + " edited")
        calls.clear()
        snapshot = start_or_resume(
            chain_of(layers, calls, stop=False), root, "r1", parallel=parallel, around=around("b")
        )
        assert snapshot.run_state == "DONE"
        stale = dependants(layers, changed)
        assert sorted(calls) == sorted(f"w{number}" for number in stale)
        marked = [e["payload"]["name"] for e in events(root / "r1") if e["type"] == "ARTIFACT_INVALIDATED"]
        assert sorted(marked) == sorted(f"a{number}.txt" for number in stale)
        after = json.loads((root / "r1" / "snapshot.json").read_bytes())["artifacts_index"]
        assert not any("stale" in artifact for artifact in after.values())
        untouched = set(before) - {f"a{number}.txt" for number in stale | set(changed)}
        assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}


@settings(max_examples=15)
@given(graphs())
def test_what_is_stale_is_redone_in_the_same_order_every_time(graph):
    layers, changed = graph
    stories = []
    for prefix in ("one", "two"):
        calls: list[str] = []
        with fast_folder() as root:
            with pytest.raises(Stop):
                start_or_resume(
                    chain_of(layers, calls, stop=True), root, "r1", inputs={"source.txt": b"s"}, parallel=1,
                    around=around(prefix),
                )  # fmt: skip
            for number in changed:
                (root / "r1" / "artifacts" / f"a{number}.txt").write_text("edited")
            start_or_resume(
                chain_of(layers, calls, stop=False), root, "r1", parallel=1, around=around(f"{prefix}b")
            )
            stories.append(
                [(e["type"], {k: v for k, v in e["payload"].items() if "span" not in k and "trace" not in k})
                 for e in events(root / "r1")]
            )  # fmt: skip
    assert stories[0] == stories[1]


LINE = [[[]], [[0]], [[1]], [[0]]]


def stopped(root: Path, calls: list[str], inputs: bytes = b"source") -> None:
    with pytest.raises(Stop):
        start_or_resume(
            chain_of(LINE, calls, stop=True), root, "r1", inputs={"source.txt": inputs}, around=around("a")
        )
    calls.clear()


def resumed(root: Path, calls: list[str], redo: Redo | None = None):
    return start_or_resume(
        chain_of(LINE, calls, stop=False), root, "r1", redo=redo, parallel=1, around=around("b")
    )


@pytest.fixture
def root():
    with fast_folder() as folder:
        yield folder


def test_an_input_of_the_user_that_changes_makes_everything_stale(root):
    calls: list[str] = []
    stopped(root, calls)
    (root / "r1" / "artifacts" / "source.txt").write_text("another")
    resumed(root, calls)
    assert calls == ["w0", "w1", "w2", "w3"]
    assert (root / "r1" / "artifacts" / "a3.txt").read_text() == "3(0(another))"


def test_the_run_goes_back_to_where_the_first_stale_work_is(root):
    calls: list[str] = []
    stopped(root, calls)
    (root / "r1" / "artifacts" / "a1.txt").write_text("edited")
    resumed(root, calls)
    rewind = next(e["payload"] for e in events(root / "r1") if e["type"] == "RESUME_REWIND")
    assert rewind == {"from_state": "LAST", "to_state": "S2", "visit": 1, "reason": "stale"}
    assert calls == ["w2"]


def test_a_missing_artifact_is_made_again_and_what_rests_on_it_stays_if_it_is_the_same(root):
    calls: list[str] = []
    stopped(root, calls)
    (root / "r1" / "artifacts" / "a0.txt").unlink()
    resumed(root, calls)
    assert calls == ["w0"]


def test_an_input_of_the_user_that_is_gone_is_asked_for(root):
    calls: list[str] = []
    stopped(root, calls)
    (root / "r1" / "artifacts" / "source.txt").unlink()
    with pytest.raises(RunError, match=r"source\.txt"):
        resumed(root, calls)
    (root / "r1" / "artifacts" / "source.txt").write_text("source")
    resumed(root, calls)
    assert calls == []


def test_forced_work_is_done_again_and_nothing_else_if_it_comes_out_the_same(root):
    calls: list[str] = []
    stopped(root, calls)
    resumed(root, calls, Redo(items=("w1",)))
    assert calls == ["w1"]


def test_forced_work_that_comes_out_different_takes_its_dependants_along(root):
    calls: list[str] = []
    stopped(root, calls)
    pipeline = chain_of(LINE, calls, stop=False)
    node = pipeline.nodes[1]

    def other(work):
        calls.append("w1")
        work.write("a1.txt", "different")

    pipeline.nodes[1] = type(node)(node.worker, node.state, other, node.inputs, node.outputs)
    start_or_resume(pipeline, root, "r1", redo=Redo(items=("r1:w1:1",)), parallel=1, around=around("b"))
    assert calls == ["w1", "w2"]


def test_from_a_state_on_everything_is_done_again(root):
    calls: list[str] = []
    stopped(root, calls)
    resumed(root, calls, Redo(from_state="S2"))
    assert calls == ["w2", "w3"]
    rewind = next(e["payload"] for e in events(root / "r1") if e["type"] == "RESUME_REWIND")
    assert (rewind["to_state"], rewind["reason"]) == ("S2", "asked")


@pytest.mark.parametrize(
    "redo", [Redo(items=("nobody",)), Redo(from_state="NOWHERE"), Redo(from_state="DONE")]
)
def test_a_wish_that_names_nothing_is_refused_and_the_run_stays_where_it_is(root, redo):
    calls: list[str] = []
    stopped(root, calls)
    with pytest.raises(BadInput):
        resumed(root, calls, redo)
    assert resumed(root, calls).run_state == "DONE"
    assert calls == []


def test_a_process_that_dies_between_the_marks_does_not_lose_the_rest_of_them(root):
    """Cut the log after every line of the invalidation: the next resume marks what is missing."""
    calls: list[str] = []
    stopped(root, calls)
    (root / "r1" / "artifacts" / "a0.txt").write_text("edited")
    with pytest.raises(Stop):
        start_or_resume(chain_of(LINE, [], stop=True), root, "r1", parallel=1, around=around("b"))
    lines = (root / "r1" / "events.ndjson").read_bytes().splitlines(keepends=True)
    marks = [number for number, line in enumerate(lines) if b"INVALIDATED" in line]
    for count in range(marks[0], marks[-1] + 2):
        calls.clear()
        (root / "r1" / "events.ndjson").write_bytes(b"".join(lines[:count]))
        (root / "r1" / "artifacts" / "a0.txt").write_text("edited")
        for number, text in ((1, "1(0(source))"), (2, "2(1(0(source)))"), (3, "3(0(source))")):
            (root / "r1" / "artifacts" / f"a{number}.txt").write_text(text)
        start_or_resume(chain_of(LINE, calls, stop=False), root, "r1", parallel=1, around=around(f"c{count}"))
        assert sorted(calls) == ["w1", "w2", "w3"], count


def test_the_staged_copy_of_a_recorded_artifact_is_put_in_place_and_not_taken_for_a_change(root):
    calls: list[str] = []
    stopped(root, calls)
    artifacts = root / "r1" / "artifacts"
    index = json.loads((root / "r1" / "snapshot.json").read_bytes())["artifacts_index"]
    import hashlib

    name = f"{hashlib.sha256(b'a1.txt').hexdigest()[:16]}-{index['a1.txt']['sha256']}"
    (artifacts / "a1.txt").rename(artifacts / ".staged" / name)
    (artifacts / ".staged" / "litter").write_text("x")
    resumed(root, calls)
    assert calls == []
    assert list((artifacts / ".staged").iterdir()) == []


def test_an_artifact_that_changes_while_the_run_is_on_stops_it_and_a_resume_goes_on(root):
    calls: list[str] = []
    pipeline = chain_of(LINE, calls, stop=False)
    node = pipeline.nodes[1]

    def meddle(work):
        node.function(work)
        (root / "r1" / "artifacts" / "a0.txt").write_text("edited")

    pipeline.nodes[1] = type(node)(node.worker, node.state, meddle, node.inputs, node.outputs)
    with pytest.raises(ArtifactChanged):
        start_or_resume(pipeline, root, "r1", inputs={"source.txt": b"s"}, parallel=1, around=around("a"))
    calls.clear()
    assert resumed(root, calls).run_state == "DONE"
    assert calls == ["w1", "w2", "w3"]


def test_a_forced_item_whose_record_is_cut_in_the_middle_still_takes_its_dependants_along(root):
    """Every prefix of the record of a redone item: what rests on its output is never forgotten."""
    calls: list[str] = []
    stopped(root, calls)
    pipeline = chain_of(LINE, calls, stop=True)
    node = pipeline.nodes[1]

    def other(work):
        work.write("a1.txt", "different")

    pipeline.nodes[1] = type(node)(node.worker, node.state, other, node.inputs, node.outputs)
    with pytest.raises(Stop):
        start_or_resume(pipeline, root, "r1", redo=Redo(items=("w1",)), parallel=1, around=around("b"))
    lines = (root / "r1" / "events.ndjson").read_bytes().splitlines(keepends=True)
    started = max(number for number, line in enumerate(lines) if b"w1:2" in line and b"STARTED" in line)
    finished = max(number for number, line in enumerate(lines) if b"w1:2" in line and b"FINISHED" in line)
    assert finished - started >= 4
    for count in range(started + 1, finished + 1):
        (root / "r1" / "events.ndjson").write_bytes(b"".join(lines[:count]))
        (root / "r1" / "artifacts" / "a1.txt").write_text(
            "different" if count == finished else "1(0(source))"
        )
        (root / "r1" / "artifacts" / "a2.txt").write_text("2(1(0(source)))")
        calls.clear()
        pipeline = chain_of(LINE, calls, stop=False)
        pipeline.nodes[1] = type(node)(node.worker, node.state, other, node.inputs, node.outputs)
        start_or_resume(pipeline, root, "r1", parallel=1, around=around(f"c{count}"))
        assert "w2" in calls, count
        assert (root / "r1" / "artifacts" / "a2.txt").read_text() == "2(different)"


def test_a_run_that_has_ended_well_is_not_opened_again_by_force(root):
    calls: list[str] = []
    stopped(root, calls)
    resumed(root, calls)
    with pytest.raises(RunEnded):
        resumed(root, calls, Redo(items=("w1",)))


def test_content_that_a_worker_writes_anew_leaves_nothing_staged(root):
    pipeline = Pipeline("twice", {"NEW": "DONE"})

    @pipeline.node("NEW", outputs=["out.txt"])
    def write(work):
        work.write("out.txt", "one")
        work.write("out.txt", "two")

    start_or_resume(pipeline, root, "r1", around=around())
    assert list((root / "r1" / "artifacts" / ".staged").iterdir()) == []
    assert (root / "r1" / "artifacts" / "out.txt").read_text() == "two"
