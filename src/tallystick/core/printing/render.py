"""A machine or a ledger as text for other tools: Markdown, Mermaid, SQL, JSON Schema.

Every page, diagram and constraint is printed from the table that the code runs on, so none of them can say
something else. Nothing here writes a file.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from tallystick.core.digits import DIGITS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from enum import Enum

    from tallystick.core.digits import Field
    from tallystick.core.ledger.promises import Promise
    from tallystick.core.machine import Machine, S, Transition


def markdown_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    r"""Return a Markdown table whose columns also line up as plain text.

    >>> print(markdown_table(("from", "to"), [("A", "LONGER"), ("B|C", "D")]))
    | from | to     |
    | ---- | ------ |
    | A    | LONGER |
    | B\|C | D      |
    """
    lines = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def markdown(machine: Machine[S]) -> str:
    """Return every transition of a machine as a Markdown table."""
    rows = [
        (
            f"`{move.source.name}`",
            f"`{move.trigger}`",
            f"`{move.target.name}`",
            "; ".join(need.value for need in move.needs),
            move.added,
        )
        for move in machine.transitions
    ]
    return markdown_table(("from", "trigger", "to", "needs, in the same transaction", "added by"), rows)


def markdown_grid(machine: Machine[S]) -> str:
    """Return the state by trigger grid of a machine; an empty cell is a move that is refused."""
    rows = []
    for state in machine.states:
        moves = {move.trigger: f"`{move.target.name}`" for move in machine.exits(state)}
        rows.append((f"`{state.name}`", *(moves.get(trigger, "") for trigger in machine.triggers)))
    return markdown_table(("", *machine.triggers), rows)


def mermaid(machine: Machine[S]) -> str:
    """Return a Mermaid state diagram; an added edge names its decision record."""
    lines = ["stateDiagram-v2", f"    [*] --> {machine.start.name}"]
    lines += [
        f"    {move.source.name} --> {move.target.name} : {_label(move)}" for move in machine.transitions
    ]
    lines += [f"    {state.name} --> [*]" for state in machine.states if state in machine.final]
    return "\n".join(lines)


def sql_check(machine: Machine[S], column: str = "state") -> str:
    """Return the constraint that lets a column hold this machine's states and nothing else."""
    return f"CHECK ({column} IN ({', '.join(_sql_literal(state) for state in machine.states)}))"


def json_schema(machine: Machine[S]) -> dict[str, object]:
    """Return the JSON Schema of this machine's states: their names, or their codes where those are stored."""
    coded = isinstance(machine.start, IntEnum)
    schema: dict[str, object] = {
        "title": f"{machine.name} state",
        "description": machine.about,
        "type": "integer" if coded else "string",
        "enum": [state.value for state in machine.states],
    }
    if coded:
        schema["description"] = f"{machine.about} ({_codes(machine)})"
    return schema


def as_data(machine: Machine[S]) -> dict[str, object]:
    """Return a machine as plain data, the way `--json` shows it."""
    return {
        "name": machine.name,
        "about": machine.about,
        "start": machine.start.name,
        "final": [state.name for state in machine.states if state in machine.final],
        "states": [{"name": state.name, "stored_as": state.value} for state in machine.states],
        "triggers": list(machine.triggers),
        "transitions": [
            {
                "from": move.source.name,
                "trigger": move.trigger,
                "to": move.target.name,
                "needs": [{"name": need.name, "meaning": need.value} for need in move.needs],
                "added_by": move.added or None,
            }
            for move in machine.transitions
        ],
    }


def rewinds(machine: Machine[S], stable: Collection[S], rewound: Mapping[S, S]) -> str:
    """Return where a resume goes back to, as a Markdown table, and below it the states it may rest in."""
    rows = [(f"`{source.name}`", f"`{target.name}`") for source, target in rewound.items()]
    resting = ", ".join(f"`{state.name}`" for state in machine.states if state in stable)
    return f"{markdown_table(('interrupted in', 'resumes from'), rows)}\n\nStable states: {resting}."


def positions(field: Field) -> str:
    """Return which of the fifteen positions a field takes, counted from the left, from 1.

    >>> from tallystick.core.digits import ActivityLedger
    >>> [positions(field) for field in ActivityLedger.FIELDS]
    ['1-3', '4', '5', '6', '7', '8-15']
    """
    last = DIGITS + 1 - len(str(field.weight))
    return str(last) if field.span == 1 else f"{last - field.span + 1}-{last}"


def digit_map(fields: Iterable[Field]) -> str:
    """Return the digit map of a ledger as a Markdown table."""
    rows = [
        (positions(field), f"{field.weight:,}", f"`{field.name}`", f"0..{field.top:,}", field.meaning)
        for field in fields
    ]
    return markdown_table(("position", "weight", "field", "range", "meaning"), rows)


def promise_table(promises: Iterable[Promise]) -> str:
    """Return what each promise writes as a Markdown table: one row per bundle, the ledgers after it."""
    rows = []
    for promise in promises:
        for number, bundle in enumerate(promise.bundles):
            first = number == 0
            rows.append(
                (
                    f"`{promise.name}`" if first else "",
                    promise.keeps if first else "",
                    bundle.when,
                    "" if bundle.activity is None else f"`{bundle.activity.text}`",
                    "" if bundle.guid is None else f"`{bundle.guid.text}`",
                    promise.message if first else "",
                )
            )
    return markdown_table(
        ("promise", "it keeps", "bundle", "activity ledger", "GUID ledger", "message"), rows
    )


def _label(move: Transition[S]) -> str:
    return f"{move.trigger} ({move.added})" if move.added else move.trigger


def _sql_literal(state: Enum) -> str:
    return str(state.value) if isinstance(state, IntEnum) else f"'{state.value}'"


def _codes(machine: Machine[S]) -> str:
    return ", ".join(f"{state.value} {state.name}" for state in machine.states)
