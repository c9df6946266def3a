"""Lifecycles: the machines that the code runs on, drawn, and all their moves in a table."""

from __future__ import annotations

from typing import Any

from tallystick.core.lifecycles import MACHINES
from tallystick.dashboard.answers import Answer, HtmlPage
from tallystick.dashboard.rendering import state_kind
from tallystick.dashboard.visits import Visit
from tallystick.errors import NotFound


def lifecycles(visit: Visit) -> Answer:
    """Show one machine, and the names of the others."""
    name = visit.asked("machine") or "job"
    if name not in MACHINES:
        raise NotFound(f"there is no machine {name}; there are {', '.join(MACHINES)}")
    machine = MACHINES[name]
    shows = {
        "title": "Lifecycles",
        "machines": list(MACHINES.values()),
        "machine": machine,
        "graph": _graph(machine),
    }
    return HtmlPage("lifecycles.html", shows)


def _graph(machine: Any) -> dict[str, object]:  # noqa: ANN401 (a machine of any states)
    nodes = [
        {
            "id": state.name,
            "label": state.name,
            "sub": "begins here" if state is machine.start else "final" if state in machine.final else "",
            "kind": state_kind(state.name)
            if state in machine.final
            else "go"
            if state is machine.start
            else "wait",
        }
        for state in machine.states
    ]
    labels: dict[tuple[str, str], list[str]] = {}
    for move in machine.transitions:
        labels.setdefault((move.source.name, move.target.name), []).append(move.trigger)
    edges = [[source, target, ", ".join(words), False] for (source, target), words in labels.items()]
    return {"nodes": nodes, "edges": edges}
