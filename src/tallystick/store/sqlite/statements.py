"""The SQL of this store, one statement a file, read once; of some, more than one row a statement."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

# The values of one row, in a list that could hold more.
_VALUES: Final = re.compile(r"(?<=VALUES )\([^()]*\)")


@cache
def sql(name: str) -> str:
    """Return the statement of that name, without its promise.

    The library looks a statement up by its whole text for every row that it writes.
    """
    text = files(__package__).joinpath("statements", f"{name}.sql").read_text(encoding="utf-8")
    return " ".join(line.strip() for line in text.splitlines() if not line.lstrip().startswith("--"))


@cache
def takes_list(name: str) -> bool:
    """Tell whether the statement of that name writes a list of rows: all its parameters are values of one."""
    return "?" in sql(name) and "?" not in _VALUES.sub("", sql(name), count=1)


@cache
def sql_of_rows(name: str, count: int) -> str:
    """Return the statement of that name for so many rows: its values are there once for each."""
    text = sql(name)
    if count == 1:
        return text
    values = _VALUES.search(text)
    assert values is not None, f"{name} takes no list"
    taken = max(int(number) for number in re.findall(r"\?(\d+)", values[0]))

    def of_row(row: int) -> str:
        return re.sub(r"\?(\d+)", lambda number: f"?{int(number[1]) + row * taken}", values[0])

    return text[: values.start()] + ", ".join(map(of_row, range(count))) + text[values.end() :]


def migrations() -> list[tuple[int, str, str]]:
    """Return every migration as (version, name, text), in order."""
    folder = files(__package__).joinpath("schema")
    found = [
        (int(entry.name[:4]), entry.name, entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(found)


def tables() -> list[str]:
    """Return the names of our tables: others in the same file are the user's."""
    return re.findall(r"\bTABLE (\w+) \(", "".join(text for _version, _name, text in migrations()))
