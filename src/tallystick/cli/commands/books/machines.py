"""`tally machines`: the lifecycles, read from the tables that enforce them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tallystick.cli.render.output import Ink, show, show_data
from tallystick.core.lifecycles import MACHINES, RUN, RUN_REWINDS, RUN_STABLE
from tallystick.core.printing import render
from tallystick.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from enum import Enum

    from tallystick.core.machine import Machine

_FORMATS = ("table", "mermaid", "json")


_EXAMPLES = """\b
Examples:
  tally machines
  tally machines job
  tally machines step --format mermaid
"""


@click.command("machines", epilog=_EXAMPLES)
@click.argument("name", required=False)
@click.option("--format", "form", type=click.Choice(_FORMATS), help="How to print it; a table unless told.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(name: str | None, form: str | None, *, as_json: bool) -> None:
    """Show every lifecycle, or all moves of the one called NAME."""
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} exclude each other.")
    chosen = [find(name)] if name else list(MACHINES.values())
    if as_json or form == "json":
        data = [as_data(machine) for machine in chosen]
        show_data(data[0] if name else data)
    elif form == "mermaid":
        show(render.mermaid(chosen[0]) if name else "\n\n".join(map(_fenced, chosen)))
    else:
        ink = Ink.for_stream(sys.stdout)
        show(moves(chosen[0], ink) if name else overview(chosen, ink))


def find(name: str) -> Machine[Enum]:
    """Return a machine by its name, or raise with the names there are."""
    if name not in MACHINES:
        names = ", ".join(MACHINES)
        raise BadInput(f"there is no machine {name!r}; there are {names}", name=name, known=list(MACHINES))
    return MACHINES[name]


def overview(machines: Sequence[Machine[Enum]], ink: Ink) -> str:
    """Return one line per machine."""
    rows = [
        (
            machine.name,
            f"{len(machine.states)} states",
            f"{len(machine.transitions)} moves",
            f"{machine.start.name} → {' | '.join(s.name for s in machine.states if s in machine.final)}",
            machine.about,
        )
        for machine in machines
    ]
    styles = (("bold", "cyan"), ("dim",), ("dim",), (), ("dim",))
    return "\n".join(aligned(rows, styles, ink))


def moves(machine: Machine[Enum], ink: Ink) -> str:
    """Return all moves of a machine, grouped by the state they start in, and what their needs mean."""
    rows = []
    for state in machine.states:
        exits = machine.exits(state)
        rows += [
            (
                state.name if number == 0 else "",
                move.trigger,
                f"→ {move.target.name}",
                f"+{move.added}" if move.added else "",
                ", ".join(need.name.lower() for need in move.needs),
            )
            for number, move in enumerate(exits)
        ]
        if not exits:
            rows.append((state.name, "", "final", "", ""))
    styles = (("bold", "cyan"), ("yellow",), (), ("green",), ("dim",))
    lines = [f"{ink(machine.name, 'bold')}: {machine.about}", "", *aligned(rows, styles, ink)]
    if legend := _legend(machine):
        lines += ["", *aligned(legend, ((), ("dim",)), ink)]
    return "\n".join(lines)


def as_data(machine: Machine[Enum]) -> dict[str, object]:
    """Return a machine as data; for a run also where it rests and where a resume goes back to."""
    data = render.as_data(machine)
    if machine.name == RUN.name:
        data["stable"] = [state.name for state in RUN.states if state in RUN_STABLE]
        data["rewinds"] = {source.name: target.name for source, target in RUN_REWINDS.items()}
    return data


def _legend(machine: Machine[Enum]) -> list[tuple[str, str]]:
    needs = dict.fromkeys(need for move in machine.transitions for need in move.needs)
    legend = [(need.name.lower(), need.value) for need in needs]
    records = sorted({move.added for move in machine.transitions if move.added})
    legend += [(f"+{record}", "not in the specification's table; docs/adr says why") for record in records]
    if machine.name == RUN.name:
        legend.append(("stable", ", ".join(state.name for state in RUN.states if state in RUN_STABLE)))
        back = [f"{source.name} → {target.name}" for source, target in RUN_REWINDS.items()]
        legend.append(("a resume goes back", ", ".join(back)))
    return legend


def aligned(rows: Sequence[Sequence[str]], styles: Sequence[Sequence[str]], ink: Ink) -> list[str]:
    """Return rows with their columns lined up and painted; a column without any text takes no room."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            ink(cell.ljust(width), *style) if cell else " " * width
            for cell, width, style in zip(row, widths, styles, strict=True)
            if width
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _fenced(machine: Machine[Enum]) -> str:
    return f"## {machine.name}\n\n```mermaid\n{render.mermaid(machine)}\n```"
