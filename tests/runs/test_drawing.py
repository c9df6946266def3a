"""The drawing of a pipeline: every state and move is there, and the text is safe to embed."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from tallystick.runs import Pipeline
from tallystick.runs.definition.drawing import mermaid, svg
from tallystick.runs.publishing import publishing

GRAPH = publishing().graph
SVG = "{http://www.w3.org/2000/svg}"


def test_mermaid_names_every_move_and_the_current_state():
    text = mermaid(GRAPH, ["CREATED", "CLONED_INPUTS"])
    assert "VALIDATING --> FIXING : not_ok" in text
    assert "class CLONED_INPUTS current" in text
    assert "class CREATED visited" in text
    assert "FAILED" not in text


def test_a_failed_run_shows_the_move_that_failed_it():
    assert "CREATED --> FAILED" in mermaid(GRAPH, ["CREATED", "FAILED"])


def test_the_svg_is_well_formed_and_no_box_covers_another():
    root = ET.fromstring(svg(GRAPH, ["CREATED"], "a <title> & more"))
    boxes = [(float(box.get("x")), float(box.get("y"))) for box in root.iter(f"{SVG}rect")]
    names = [text.text for text in root.iter(f"{SVG}text") if text.get("class") is None]
    assert len(boxes) == len(set(boxes)) == 13
    assert set(names) == set(publishing().states) - {"FAILED", "CANCELLED"}
    assert all(x + 168 <= float(root.get("width")) for x, _ in boxes)
    assert all(y + 34 <= float(root.get("height")) for _, y in boxes)


def test_loops_and_branches_have_a_layout_too():
    graph = Pipeline(
        "p", {"A": {"x": "B", "y": "C"}, "B": "D", "C": "D", "D": {"again": "A", "ok": "DONE"}}
    ).graph
    root = ET.fromstring(svg(graph))
    assert len(list(root.iter(f"{SVG}rect"))) == 5
    rows = {text.text: float(text.get("y")) for text in root.iter(f"{SVG}text") if text.get("class") is None}
    assert rows["A"] < rows["B"] == rows["C"] < rows["D"] < rows["DONE"]


def test_what_a_terminal_would_obey_is_drawn_as_a_mark_and_the_svg_stays_well_formed():
    outcome = "a\x1b[31m\n\u202e\x9b\ud800"
    graph = Pipeline("p", {"A": {outcome: "B", "<b>": "DONE"}, "B": "DONE"}).graph
    marked = "a\ufffd[31m\ufffd\ufffd\ufffd\ufffd"
    text = mermaid(graph)
    assert f"    A --> B : {marked}\n" in text
    assert all(line.isprintable() for line in text.splitlines())
    drawn = ET.fromstring(svg(graph, title="run\x1b\ud800").encode())
    assert {text.text for text in drawn.iter(f"{SVG}text") if text.get("class")} == {marked, "<b>"}
    assert drawn.get("aria-label") == "run\ufffd\ufffd"
