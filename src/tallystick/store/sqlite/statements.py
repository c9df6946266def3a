"""The SQL of this store, one statement a file, read once; of some, more than one row a statement."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


@cache
def sql(name: str) -> str:
    """Return the statement of that name, without its promise.

    The library looks a statement up by its whole text for every row that it writes.
    """
    text = files(__package__).joinpath("statements", f"{name}.sql").read_text(encoding="utf-8")
    return " ".join(line.strip() for line in text.splitlines() if not line.lstrip().startswith("--"))


@cache
def sql_of_rows(name: str, count: int) -> str:
    """Return the statement of that name for so many rows: its list of values is there once for each."""
    head, values = sql(name).split(" VALUES ")
    taken = max(int(number) for number in re.findall(r"\?(\d+)", values))

    def of_row(row: int) -> str:
        return re.sub(r"\?(\d+)", lambda number: f"?{int(number[1]) + row * taken}", values)

    return f"{head} VALUES {', '.join(map(of_row, range(count)))}"


def migrations() -> list[tuple[int, str, str]]:
    """Return every migration as (version, name, text), in order."""
    folder = files(__package__).joinpath("schema")
    found = [
        (int(entry.name[:4]), entry.name, entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(found)
