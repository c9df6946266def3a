"""Runs: the pipelines of a folder, each with the graph of its states and its artifacts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from tallystick.dashboard.answers import Answer, Attached, HtmlPage
from tallystick.dashboard.visits import Visit, quoted
from tallystick.errors import NotFound
from tallystick.runs.definition.drawing import visible_edges
from tallystick.runs.definition.pipeline import CANCELLED, FAILED
from tallystick.runs.log import inspection, recovery
from tallystick.runs.workers.artifacts import ArtifactFiles

RUNS_MAX: Final = 200
ITEMS_MAX: Final = 200
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_DIGITS: Final = 9
# States that mean the same in every pipeline.
_COMMON: Final = {FAILED: "bad", CANCELLED: "off", inspection.UNKNOWN: "warn"}


class RunPart(NamedTuple):
    """A part of a long list: its rows, where they begin, how many there are, the next part, and the first."""

    rows: list[Any]
    first: int
    total: int
    rest: str | None
    start: str | None


def runs(visit: Visit) -> Answer:
    """List the runs of the folder, a page at a time, by their names."""
    found = []
    if visit.runs_root is not None:
        found = inspection.states(visit.runs_root, after=visit.asked("after") or "", limit=RUNS_MAX + 1)
    rows = [(run_id, state, _kind(state, _ends(visit, run_id, state))) for run_id, state in found[:RUNS_MAX]]
    more = visit.at("runs", after=rows[-1][0]) if len(found) > RUNS_MAX else None
    shows = {"title": "Runs", "runs": rows, "more": more, "root": visit.runs_root}
    return HtmlPage("runs.html", {**shows, "is_first": visit.asked("after") is None})


def run(visit: Visit) -> Answer:
    """Show one run."""
    run_id = visit.part("run_id")
    view, _tail = inspection.load(_root(visit), run_id)
    snapshot = view.snapshot()
    shows = {
        "title": f"Run {run_id}",
        "run_id": run_id,
        "run_state": snapshot.run_state,
        "run_kind": _kind(snapshot.run_state, view.graph.final),
        "work": _part(visit, "work", snapshot.work_items),
        "artifacts": _part(visit, "artifacts", list(snapshot.artifacts_index.items())),
        "issues": _part(visit, "issues", snapshot.issues),
        "graph": _graph(view.graph, list(view.path)),
    }
    return HtmlPage("run.html", shows)


def artifact(visit: Visit) -> Answer:
    """Give an artifact of a run as a file."""
    run_id, name = visit.part("run_id"), visit.part("name")
    view, _tail = inspection.load(_root(visit), run_id)
    found = view.snapshot().artifacts_index.get(name)
    if found is None:
        raise NotFound(f"run {run_id} has no artifact {name}", run_id=run_id)
    with recovery.opened(_root(visit), run_id, create=False) as folder:
        files = ArtifactFiles(folder, create=False)
        try:
            body = files.read(name, found)
        finally:
            files.close()
    return Attached(_UNSAFE.sub("_", name), body)


def _part(visit: Visit, name: str, everything: Sequence[Any]) -> RunPart:
    """Return the part of a long list that the address asks for."""
    asked = visit.asked(name) or "0"
    first = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) <= _DIGITS else 0
    rows = everything[first : first + ITEMS_MAX]
    address = f"runs/{quoted(visit.part('run_id'))}"
    rest = visit.at(address, **{name: first + ITEMS_MAX}) if first + ITEMS_MAX < len(everything) else None
    return RunPart(list(rows), first, len(everything), rest, visit.at(address) if first else None)


def _ends(visit: Visit, run_id: str, state: str) -> Sequence[str]:
    """Return the states in which a run ends: a pipeline has its own names for them, which its log knows."""
    return [] if state in _COMMON else inspection.ends(_root(visit), run_id)


def _kind(state: str, ends: Sequence[str]) -> str:
    """Return the kind of a state, which gives it its colour: an end of the pipeline's own is a good one."""
    return _COMMON.get(state) or ("good" if state in ends else "go")


def _root(visit: Visit) -> str:
    if visit.runs_root is None:
        raise NotFound("this server was not told where the runs are: tally serve APP --runs FOLDER")
    return visit.runs_root


def _graph(graph: Any, path: list[str]) -> dict[str, object]:  # noqa: ANN401 (the graph of a run's log)
    """Return the states and moves of a run, the ones that it took marked, for the browser to lay out."""
    walked = set(pairwise(path))
    edges = visible_edges(graph, path)
    names = dict.fromkeys([graph.start, *(name for edge in edges for name in (edge.source, edge.target))])
    now = path[-1] if path else graph.start
    nodes = [
        {
            "id": name,
            "label": name,
            "sub": "now" if name == now else "",
            "kind": _kind(name, graph.final) if name == now else "good" if name in path else "off",
            "self": name == now,
        }
        for name in names
    ]
    drawn = [
        [edge.source, edge.target, edge.when or "", (edge.source, edge.target) in walked] for edge in edges
    ]
    return {"nodes": nodes, "edges": drawn}
