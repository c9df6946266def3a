"""The family and the steps of a job as a graph, for the browser to lay out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.core.remote.listing import StepRow
from tallystick.dashboard.rendering import state_kind, state_word
from tallystick.store.api import JobRow

NODES_MAX: Final = 120


def graph(
    row: JobRow, parent: JobRow | None, steps: Sequence[StepRow], children: Sequence[JobRow], base: str
) -> dict[str, object]:
    """Return nodes and edges: the job, its steps in the order in which they began, and its kin."""
    nodes = [_job(row, base, is_self=True)]
    edges: list[tuple[str, str]] = []
    if parent is not None:
        nodes.append(_job(parent, base))
        edges.append((parent.job_id, row.job_id))
    before = row.job_id
    for step in sorted(steps, key=lambda each: (each.created_at or 0, each.key))[:NODES_MAX]:
        name = step.name if step.occurrence == 1 else f"{step.name}#{step.occurrence}"
        about = {"sub": f"{step.kind}, {state_word(step.state)}", "kind": state_kind(step.state)}
        nodes.append({"id": step.key, "label": name, **about, "open": step.completed_at is None})
        edges.append((before, step.key))
        before = step.key
    for child in children[:NODES_MAX]:
        nodes.append(_job(child, base))
        edges.append((row.job_id, child.job_id))
    return {"nodes": nodes, "edges": edges}


def _job(row: JobRow, base: str, *, is_self: bool = False) -> dict[str, object]:
    return {
        "id": row.job_id,
        "label": row.handler,
        "sub": f"{'this job' if is_self else 'job'}, {state_word(row.state)}",
        "kind": state_kind(row.state),
        "open": row.completed_at is None,
        "href": f"{base}/jobs/{row.job_id}",
        "self": is_self,
    }
