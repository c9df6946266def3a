"""Rows of all benchmarks as a table for people."""

from __future__ import annotations

from typing import Any

HEAD = ("", "ours", "against", "theirs", "unit", "ratio", "goal", "of limit", "goal", "syncs/s")


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table, and below it what was missed."""
    lines = [HEAD, *(line_of(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    left = {0, 2, 4}
    for number, line in enumerate(lines):
        cells = [
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
        if not number:
            print("  ".join("-" * width for width in widths))
    missed = list(dict.fromkeys(text for row in rows for text in missed_by(row)))
    print()
    if missed:
        print("goals missed:")
        for text in missed:
            print(f"  {text}")
    else:
        print("all goals met")


def line_of(row: dict[str, Any]) -> tuple[str, ...]:
    syncs = row.get("syncs_per_second")
    return (
        row["name"],
        number(row["ours"]),
        row["peer_name"] or "-",
        number(row["peer"]),
        row["unit"],
        "-" if row["ratio"] is None else f"{row['ratio']:.2f}x",
        verdict(row, "goal", "met"),
        "-" if row["of_limit"] is None else f"{row['of_limit']:.0%}",
        verdict(row, "goal_of_limit", "met_of_limit"),
        f"{min(syncs):,.0f}-{max(syncs):,.0f}" if syncs else "-",
    )


def verdict(row: dict[str, Any], goal: str, met: str) -> str:
    if row.get(goal) is None:
        return "-"
    return f"{row[goal]} {'ok' if row[met] else 'MISSED'}"


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"


def missed_by(row: dict[str, Any]) -> list[str]:
    against = f" against {row['peer_name']}" if row["peer_name"] else ""
    texts = []
    if row.get("met") is False:
        reached = number(row["ours"]) + f" {row['unit']}" if row["ratio"] is None else f"{row['ratio']:.2f}x"
        texts.append(f"{row['name']}{against}: {reached}, the goal is {row['goal']}")
    if row.get("met_of_limit") is False:
        texts.append(f"{row['name']}: {row['of_limit']:.0%} of the limit, the goal is {row['goal_of_limit']}")
    return texts
