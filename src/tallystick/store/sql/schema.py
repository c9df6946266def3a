"""The tables, checks and guards of both databases, printed from one description.

New files and databases are made by what is printed here; older ones come to the same by the migrations, and a
test compares the two. `docs/schema.md` has the prints for people to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from tallystick.core.printing.sql_rules import one_of, rule

Database: TypeAlias = Literal["sqlite", "postgres"]

_TYPES: Final[dict[Database, dict[str, str]]] = {
    "sqlite": {"NAME": "TEXT", "INT": "INTEGER", "HASH": "BLOB"},
    "postgres": {"NAME": 'TEXT COLLATE "C"', "INT": "BIGINT", "HASH": "BYTEA"},
}
_MINE: Final[dict[Database, str]] = {"sqlite": "S|", "postgres": "P|"}
_MARKS: Final = ("S|", "P|", "#|")
_RULE: Final = "rule:"
_ONE_OF: Final = "(one of: "


@cache
def schema(database: Database) -> str:
    """Return the whole schema as a database runs it."""
    return "\n".join(_lines(database)) + "\n"


def _lines(database: Database) -> Iterator[str]:
    before = ""
    for line in files(__package__).joinpath("schema.sql").read_text(encoding="utf-8").splitlines():
        mine = line.removeprefix(_MINE[database])
        if mine.startswith(_MARKS) or not (mine or before):
            continue
        before = mine
        word, *about = mine.split() or [""]
        if word == _RULE:
            indent = mine[: len(mine) - len(mine.lstrip())]
            yield from (indent + printed for printed in rule(database, *about).splitlines())
        else:
            yield _checked(database, _typed(database, mine))


def _typed(database: Database, line: str) -> str:
    """Return the line of a column with the type that this database knows."""
    _name, kind, *_rest = [*line.split(), "", ""]
    kind = kind.rstrip(",")
    return line.replace(f" {kind}", f" {_TYPES[database][kind]}", 1) if kind in _TYPES[database] else line


def _checked(database: Database, line: str) -> str:
    """Return a line with its list of words as a condition."""
    if _ONE_OF not in line:
        return line
    start, _, rest = line.partition(_ONE_OF)
    listed, _, end = rest.partition(")")
    column, *words = listed.split()
    return f"{start}({one_of(database, column, words)}){end}"
