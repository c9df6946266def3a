"""The family and the steps of a job as a graph, for the browser to lay out."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from tallystick.core.remote.listing import StepRow
from tallystick.dashboard.rendering import state_kind, state_word
from tallystick.store.api import JobRow, OpenWait

# When it began, its name in the drawing, whether it is open, and the box.
_Found: TypeAlias = tuple[int, str, bool, dict[str, object]]

NODES_MAX: Final = 120
"""How many steps, and how many children, one drawing has at most."""


class Graph(NamedTuple):
    """A drawing, and how many boxes it leaves out, as far as that is known."""

    drawn: dict[str, object]
    left_out: int


def graph(
    row: JobRow,
    parent: JobRow | None,
    steps: Sequence[StepRow],
    waits: Sequence[OpenWait],
    children: Sequence[JobRow],
    base: str,
) -> Graph:
    """Return nodes and edges: the job, its steps in the order in which they began, and its kin.

    What is open is always drawn, and then what began last.
    """
    nodes = [_job(row, base, is_self=True)]
    edges: list[tuple[str, str]] = []
    if parent is not None:
        nodes.append({**_job(parent, base), "above": True})
        edges.append((parent.job_id, row.job_id))
    known = {step.key for step in steps}
    began = [(step.created_at or 0, step.key, step.completed_at is None, _step(step)) for step in steps]
    began += [(wait.since, key, True, _wait(wait, key)) for wait in waits if (key := _key(wait)) not in known]
    before = row.job_id
    for _at, key, _is_open, node in sorted(kept := _kept(began), key=itemgetter(0, 1)):
        nodes.append(node)
        edges.append((before, key))
        before = key
    born = [(each.created_at, each.job_id, each.completed_at is None, _job(each, base)) for each in children]
    for _at, job_id, _is_open, node in sorted(drawn := _kept(born), key=itemgetter(1)):
        nodes.append(node)
        edges.append((row.job_id, job_id))
    left_out = len(began) - len(kept) + len(born) - len(drawn)
    return Graph({"nodes": nodes, "edges": edges}, left_out)


def _kept(found: list[_Found]) -> list[_Found]:
    """Return as many as are drawn: those that are open, then those that began last."""
    return sorted(found, key=itemgetter(2, 0, 1), reverse=True)[:NODES_MAX]


def _key(wait: OpenWait) -> str:
    return f"{wait.dimension}/{wait.name}#{wait.occurrence}"


def _step(step: StepRow) -> dict[str, object]:
    name = step.name if step.occurrence == 1 else f"{step.name}#{step.occurrence}"
    about = {"sub": f"{step.kind}, {state_word(step.state)}", "kind": state_kind(step.state)}
    return {"id": step.key, "label": name, **about, "open": step.completed_at is None}


def _wait(wait: OpenWait, key: str) -> dict[str, object]:
    name = wait.name if wait.occurrence == 1 else f"{wait.name}#{wait.occurrence}"
    return {"id": key, "label": name, "sub": f"{wait.kind}, open", "kind": state_kind("OPEN"), "open": True}


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
