"""Draw a pipeline with the state it is in: Mermaid text, or an SVG with a small layered layout of its own.

Every state can also end FAILED or CANCELLED; those moves are drawn only when the run took one of them. Names
and labels come from a log that others may have written: what is not visible is drawn as a replacement mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Final

from tallystick.runs.definition.pipeline import ENDS
from tallystick.runs.log.events import EdgeRecord, GraphRecord

BOX_WIDTH: Final = 168
BOX_HEIGHT: Final = 34
ROW_HEIGHT: Final = 74
COLUMN_WIDTH: Final = 220
MARGIN: Final = 40

_STYLE: Final = """
  text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #1f2937; text-anchor: middle; }
  .label { font-size: 11px; fill: #6b7280; }
  rect { fill: #f9fafb; stroke: #9ca3af; rx: 8px; }
  .visited rect { fill: #dcfce7; stroke: #16a34a; }
  .current rect { fill: #fde68a; stroke: #b45309; stroke-width: 2.5; }
  .failed rect { fill: #fecaca; stroke: #b91c1c; stroke-width: 2.5; }
  path { fill: none; stroke: #9ca3af; stroke-width: 1.4; }
  .walked { stroke: #16a34a; stroke-width: 2; }
  @media (prefers-color-scheme: dark) { .label, path { fill: #9ca3af; } path { fill: none; } }
"""

_ARROW: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" style="fill:#6b7280;stroke:none"/>'
    "</marker></defs>"
)


def visible_edges(graph: GraphRecord, path: Sequence[str]) -> list[EdgeRecord]:
    """Return the moves worth drawing: all but the common ends, and those of the ends that the run took."""
    walked = set(pairwise(path))
    return [edge for edge in graph.edges if edge.target not in ENDS or (edge.source, edge.target) in walked]


def mermaid(graph: GraphRecord, path: Sequence[str] = ()) -> str:
    """Return a Mermaid state diagram; the last state of the path is the current one."""
    lines = ["stateDiagram-v2", f"    [*] --> {graph.start}"]
    edges = visible_edges(graph, path)
    for edge in edges:
        label = f" : {edge.when}" if edge.when else ""
        lines.append(f"    {edge.source} --> {edge.target}{label}")
    drawn = {edge.target for edge in edges}
    lines += [f"    {state} --> [*]" for state in graph.final if state in drawn]
    if path:
        lines += ["    classDef visited fill:#dcfce7", "    classDef current fill:#fde68a,stroke-width:3px"]
        visited = sorted(set(path[:-1]) - {path[-1]})
        if visited:
            lines.append(f"    class {','.join(visited)} visited")
        lines.append(f"    class {path[-1]} current")
    return "\n".join(map(_visible, lines)) + "\n"


def svg(graph: GraphRecord, path: Sequence[str] = (), title: str = "") -> str:
    """Return the same as an SVG document that needs nothing from outside."""
    edges = visible_edges(graph, path)
    places = _layout(graph, edges)
    walked = set(pairwise(path))
    width = MARGIN * 2 + max(x for x, _ in places.values()) + BOX_WIDTH + 60
    height = MARGIN * 2 + max(y for _, y in places.values()) + BOX_HEIGHT
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    label = _escaped(title or "pipeline")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">',
        f"<style>{_STYLE}</style>",
        _ARROW,
    ]
    parts += [_edge(edge, places, (edge.source, edge.target) in walked) for edge in edges]
    parts += [_box(state, place, path) for state, place in places.items()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _visible(text: str) -> str:
    """Return a line that a terminal prints and does not obey."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _escaped(text: str) -> str:
    """Return a text for an XML document, which may not even quote most control characters."""
    return escape(_visible(text))


def _layout(graph: GraphRecord, edges: Sequence[EdgeRecord]) -> dict[str, tuple[int, int]]:
    """Return the upper left corner of every box: one row per layer, moves that lead back do not count."""
    rows: dict[str, int] = {graph.start: 0}
    forward = _forward(graph.start, edges)
    for _ in range(len(forward) + 1):
        changed = False
        for edge in forward:
            if edge.source in rows and rows.get(edge.target, -1) <= rows[edge.source]:
                rows[edge.target] = rows[edge.source] + 1
                changed = True
        if not changed:
            break
    columns: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for state, row in rows.items():
        column = columns.get(row, 0)
        columns[row] = column + 1
        places[state] = (MARGIN + column * COLUMN_WIDTH, MARGIN + row * ROW_HEIGHT)
    return places


def _forward(start: str, edges: Sequence[EdgeRecord]) -> list[EdgeRecord]:
    """Return the edges that do not lead back to a state from which one came (depth first from the start)."""
    back: set[int] = set()
    done: set[str] = set()
    stack: list[tuple[str, list[int]]] = [(start, _exits(start, edges))]
    while stack:
        state, rest = stack[-1]
        if not rest:
            done.add(state)
            stack.pop()
            continue
        number = rest.pop(0)
        target = edges[number].target
        if any(target == entered for entered, _ in stack):
            back.add(number)
        elif target not in done:
            stack.append((target, _exits(target, edges)))
    return [edge for number, edge in enumerate(edges) if number not in back]


def _exits(state: str, edges: Sequence[EdgeRecord]) -> list[int]:
    return [number for number, edge in enumerate(edges) if edge.source == state]


def _edge(edge: EdgeRecord, places: dict[str, tuple[int, int]], walked: bool) -> str:  # noqa: FBT001 (drawn or not)
    (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
    if y2 - y1 == ROW_HEIGHT:
        sx, sy, tx, ty = x1 + BOX_WIDTH // 2, y1 + BOX_HEIGHT, x2 + BOX_WIDTH // 2, y2
        line = f"M{sx},{sy} C{sx},{sy + 20} {tx},{ty - 20} {tx},{ty - 2}"
        label_x, label_y = (sx + tx) // 2 + 24, (sy + ty) // 2 + 4
    else:
        # Moves that skip a row or lead back leave and arrive at the side, so that they cross no box.
        sx, sy, tx, ty = x1 + BOX_WIDTH, y1 + BOX_HEIGHT // 2, x2 + BOX_WIDTH, y2 + BOX_HEIGHT // 2
        bend = max(sx, tx) + 36
        line = f"M{sx},{sy} C{bend},{sy} {bend},{ty} {tx + 2},{ty}"
        label_x, label_y = bend, (sy + ty) // 2
    style = ' class="walked"' if walked else ""
    text = (
        f'<text class="label" x="{label_x}" y="{label_y}">{_escaped(edge.when)}</text>' if edge.when else ""
    )
    return f'<path{style} d="{line}" marker-end="url(#tip)"/>{text}'


def _box(state: str, place: tuple[int, int], path: Sequence[str]) -> str:
    x, y = place
    style = "visited" if state in path else "state"
    if path and state == path[-1]:
        style = "failed" if state in ENDS else "current"
    return (
        f'<g class="{style}"><rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}"/>'
        f'<text x="{x + BOX_WIDTH // 2}" y="{y + 22}">{_escaped(state)}</text></g>'
    )
