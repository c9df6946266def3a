"""A pipeline that cannot work is refused when it is declared, with a sentence that says why."""

from __future__ import annotations

import pytest

from tallystick.crash import Crash
from tallystick.errors import PipelineUnsound
from tallystick.runs import Node, Pipeline
from tallystick.runs.definition.patterns import matches, overlap


def nothing(work):
    """Do nothing."""


@pytest.mark.parametrize(
    ("edges", "options", "why"),
    [
        ({}, {}, "no edges"),
        ({"A": "B", "B": "A"}, {}, "never finish"),
        ({"A": "A"}, {}, "never finish"),
        ({"A": "DONE", "B": "DONE"}, {}, "cannot be reached"),
        ({"A": "FAILED"}, {}, "never finish"),
        ({"A": "DONE", "FAILED": "A"}, {}, "FAILED is final"),
        ({"a": "DONE"}, {}, "cannot be a state"),
        ({"A": "DONE"}, {"stable": ["B"]}, "stable names B"),
        ({"A": "B", "B": "DONE"}, {"rewinds": {"B": "A"}}, "not declared stable"),
        ({"A": "B", "B": "DONE"}, {"rewinds": {"DONE": "A"}, "stable": ["A"]}, "rewinds names DONE"),
        ({"A": "B", "B": "DONE"}, {"limits": {"X": 1}}, "limits names X"),
        ({"A": "B", "B": "DONE"}, {"limits": {"B": -1}}, "negative"),
    ],
)
def test_an_unsound_graph_is_refused(edges, options, why):
    with pytest.raises(PipelineUnsound, match=why):
        Pipeline("p", edges, **options)


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (Node("w", "NOWHERE", nothing), "not a state"),
        (Node("w", "DONE", nothing), "not a state"),
        (Node("", "A", nothing), "cannot be a worker"),
        (Node("first", "A", nothing), "two workers"),
        (Node("w", "A", nothing, outputs=("first.txt",)), "both make"),
        (Node("w", "B", nothing, outputs=("*.txt",)), "both make"),
        (Node("w", "A", nothing, outputs=("../x",)), "cannot be"),
        (Node("w", "A", nothing, inputs=("/etc/passwd",)), "cannot be"),
        (Node("w", "A", nothing, outputs=("{scope}.md",)), "no scopes"),
        (Node("w", "A", nothing, tries=0), "at least one try"),
        (
            Node("w", "A", nothing, inputs=("first.txt", "loop.txt"), outputs=("back.txt",)),
            "wait for each other",
        ),
    ],
)
def test_a_node_that_cannot_work_is_refused_and_not_added(node, why):
    pipeline = Pipeline("p", {"A": "B", "B": "DONE"})
    pipeline.add(Node("first", "A", nothing, inputs=("back.txt?",), outputs=("first.txt",)))
    with pytest.raises(PipelineUnsound, match=why):
        pipeline.add(node)
    assert [known.worker for known in pipeline.nodes] == ["first"]


def test_a_decorated_function_stays_a_plain_function():
    pipeline = Pipeline("p", {"A": "DONE"})

    @pipeline.node("A")
    def my_worker(work):
        return work

    assert my_worker("x") == "x"
    assert pipeline.nodes[0].worker == "my-worker"


def test_run_starts_resumes_repeats_and_tells(tmp_path):
    told = []
    pipeline = Pipeline("p", {"A": {"on": "B"}, "B": "DONE"})

    class Stop(Crash):
        pass

    @pipeline.node("A", outputs=["a.txt"])
    def first(work):
        work.write("a.txt", f"attempt {work.attempt}")
        return "on"

    @pipeline.node("B", inputs=["a.txt"], worker="second")
    def second(work):
        if work.read_text("a.txt") == "attempt 1":
            raise Stop

    with pytest.raises(Stop):
        pipeline.run(tmp_path, "r1", parallel=1)
    snapshot = pipeline.run(tmp_path, "r1", force=["first"], listeners=[told.append])
    assert (snapshot.run_state, snapshot.artifacts_index["a.txt"].writer_worker) == ("DONE", "first")
    assert told[-1].view.state == "DONE"
    assert pipeline.run(tmp_path, "r1").run_state == "DONE"


def test_failed_and_cancelled_belong_to_every_pipeline():
    graph = Pipeline("p", {"A": ["B"], "B": {"good": "DONE", "bad": "A"}}).graph
    assert graph.final == ["DONE", "FAILED", "CANCELLED"]
    moves = {(edge.source, edge.target) for edge in graph.edges}
    assert moves == {
        ("A", "B"),
        ("A", "FAILED"),
        ("A", "CANCELLED"),
        ("B", "DONE"),
        ("B", "A"),
        ("B", "FAILED"),
        ("B", "CANCELLED"),
    }


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("a.txt", "a.txt", True),
        ("a.txt", "b.txt", False),
        ("*.txt", "a.txt", True),
        ("*.txt", "a.md", False),
        ("a*", "*b", True),
        ("d/*.md", "d/{scope}.md", True),
        ("d/*", "d/e/f", False),
        ("*", "a/b", False),
        ("a.txt?", "a.txt", True),
        ("x*y", "x*z", False),
        ("*a*", "*b*", True),
        ("", "", True),
    ],
)
def test_two_patterns_overlap_when_some_name_fits_both(one, other, both):
    assert overlap(one, other) is both
    assert overlap(other, one) is both


def test_a_star_stays_within_one_part():
    assert matches("d/*.md", "d/x.md")
    assert not matches("d/*.md", "d/x/y.md")
    assert not matches("d/*.md", "d/x_md")
