"""Runs: the pipelines of a folder, each with the graph of its states and its artifacts."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import Any, Final

from tallystick.dashboard.answers import Answer, Attached, HtmlPage
from tallystick.dashboard.visits import Visit
from tallystick.errors import NotFound
from tallystick.runs.definition.drawing import visible_edges
from tallystick.runs.log import inspection, recovery
from tallystick.runs.workers.artifacts import ArtifactFiles

RUNS_MAX: Final = 200
ITEMS_MAX: Final = 200
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")


def runs(visit: Visit) -> Answer:
    """List the runs of the folder."""
    found = [] if visit.runs_root is None else list(islice(inspection.states(visit.runs_root), RUNS_MAX))
    return HtmlPage("runs.html", {"title": "Runs", "runs": found, "root": visit.runs_root})


def run(visit: Visit) -> Answer:
    """Show one run."""
    run_id = visit.part("run_id")
    view, _tail = inspection.load(_root(visit), run_id)
    snapshot = view.snapshot()
    shows = {
        "title": f"Run {run_id}",
        "run_id": run_id,
        "run_state": snapshot.run_state,
        "items": snapshot.work_items[-ITEMS_MAX:],
        "artifacts": list(islice(snapshot.artifacts_index.items(), ITEMS_MAX)),
        "issues": snapshot.issues[:ITEMS_MAX],
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
            "kind": "go" if name == now else "good" if name in path else "off",
            "self": name == now,
        }
        for name in names
    ]
    drawn = [
        [edge.source, edge.target, edge.when or "", (edge.source, edge.target) in walked] for edge in edges
    ]
    return {"nodes": nodes, "edges": drawn}
