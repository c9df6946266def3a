"""Statements: written once where both databases say the same, and said to each in its own words.

A statement is a file. Its head says what it promises, and declares what its text uses:

    -- takes: job_id text, limit int    the parameters, in the order in which they are given
    -- row: (:job_id, :n)               one row of a statement that writes many
    -- each: Fence, reason text         what stands in one row of a list that is given as JSON

A named row among the parameters is all of its fields, and `NewJob[]` a list for each of them. In the text

    :limit                  is a parameter
    IN :jobs, FROM :jobs    is a list, and its rows (`wanted.value`)
    @takes, @rows           are the names of all parameters, and the rows; @given is a table of them
    @names(JobRow, j)       are the columns of a named row, of table `j` if it is named
    @fields(NewJob, r)      are its fields, where they are not columns yet; @typed(NewJob) with their types
    @values(NewJob)         are its parameters
    @read(StoredEvent, r)   are its fields out of `r`, a JSON array, and @each(r) all that the head declares
    @part(suspect, j)       is a piece of SQL about table `j`, from the folder `parts`
    @is(claimable, state)   asks for the states of a job that may be claimed, and @is(held, status) for those
                            of an attempt that has not ended
    @indexed(steps_open)    is the index that SQLite must take

A file without `takes` numbers its parameters itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Final, NamedTuple

from tallystick.core.lifecycles import ATTEMPT
from tallystick.core.verbs.claiming import CLAIMABLE
from tallystick.store.sql.shapes import column, fields

_TAKES: Final = "-- takes:"
_ROW: Final = "-- row:"
_EACH: Final = "-- each:"
_MORE: Final = "--   "
_STATES: Final = {
    "claimable": CLAIMABLE,
    "held": tuple(state for state in ATTEMPT.states if state not in ATTEMPT.final),
}


class Dialect(NamedTuple):
    """How a database wants to be told: its folder, a parameter, a list, an index, one of few words."""

    package: str
    parameter: Callable[[int, str], str]
    lists: tuple[tuple[str, str], ...]
    indexed: str
    one_of: Callable[[str, list[str]], str]


class Source(NamedTuple):
    """A statement as it is written."""

    takes: dict[str, str]
    row: str
    each: str
    text: str

    def said(self, dialect: Dialect, rows: int = 1) -> str:
        """Return the text for a database; one that writes lists, for so many rows."""
        columns = ", ".join(f"column{place} AS {name}" for place, name in enumerate(self.takes, start=1))
        given = f"(SELECT {columns} FROM (VALUES @rows)) AS given"  # noqa: S608 (names of our own)
        text = self.text.replace("@takes", ", ".join(self.takes)).replace("@given", given)
        text = text.replace("@each(r)", _each(self.each))
        text = _numbered(_parts(text, self.takes, dialect), self.takes, dialect)
        if not self.row:
            return text
        row, size = _parts(self.row, self.takes, dialect), len(self.takes)
        values = (_numbered(row, self.takes, dialect, size * number) for number in range(rows))
        return text.replace("@rows", ", ".join(values))


@cache
def find(dialect: Dialect, name: str) -> Source:
    """Return the statement of that name: the one that this database has for itself, or the common one."""
    return parse(_file(dialect, "statements", name))


def _file(dialect: Dialect, folder: str, name: str) -> str:
    own = files(dialect.package).joinpath(folder, f"{name}.sql")
    common = files(__package__).joinpath(folder, f"{name}.sql")
    return (own if own.is_file() else common).read_text(encoding="utf-8")


def migrations(dialect: Dialect) -> list[tuple[int, str, str]]:
    """Return every migration of a database as (version, name, text), in order."""
    found = [
        (int(entry.name.partition("_")[0]), entry.name, entry.read_text(encoding="utf-8"))
        for entry in files(dialect.package).joinpath("schema").iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(found)


def parse(file: str) -> Source:
    r"""Return a statement with its declarations read; without its promise, which is for people.

    >>> parse("-- one: a fact.\n-- takes: n int\nSELECT @names(Record)\n  FROM steps WHERE n = :n")
    Source(takes={'n': 'int'}, row='', each='', text='SELECT @names(Record) FROM steps WHERE n = :n')
    """
    declared = {_TAKES: "", _ROW: "", _EACH: ""}
    lines, about = [], ""
    for line in file.splitlines():
        mark = line[: line.find(":") + 1]
        if mark in declared:
            about = mark
            declared[about] = line.removeprefix(about).strip()
        elif about and line.startswith(_MORE):
            declared[about] += f" {line.removeprefix(_MORE).strip()}"
        elif line.lstrip().startswith("--"):
            about = ""
        else:
            lines.append(line.strip())
    return Source(dict(_taken(declared[_TAKES])), declared[_ROW], declared[_EACH], " ".join(lines))


def _taken(declared: str) -> Iterator[tuple[str, str]]:
    for entry in filter(None, declared.split(", ")):
        name, _, kind = entry.partition(" ")
        if name[0].islower():
            yield name, kind
        else:
            shape, many = name.removesuffix("[]"), "[]" if name.endswith("[]") else ""
            yield from ((field, kind + many) for field, kind in fields(shape).items())


def _each(declared: str) -> str:
    """Return how the parts of a JSON array are read: a named row is an array of its own."""
    said = []
    for place, entry in enumerate(declared.split(", ")):
        name, _, kind = entry.partition(" ")
        said.append(_read("", place, name, kind, "r") if kind else f"@read({name}, r -> {place})")
    return ", ".join(said)


def _parts(text: str, takes: Mapping[str, str], dialect: Dialect) -> list[str | int]:
    """Return a text with its columns written out, in parts: a number stands for a parameter."""
    expanded = _expanded(text, dialect)
    if not takes:
        return [expanded]
    numbers = {name: number for number, name in enumerate(takes, start=1)}
    parts: list[str | int] = []
    for before, part in pairwise(["", *expanded.split(":")]):
        name = _word(part) if parts and before and not before[-1].isalnum() else ""
        if not name:
            parts.append(part if not parts else f":{part}")
            continue
        is_list = takes[name] == "list"
        found = [words for words in dialect.lists if is_list and before.endswith(words[0])]
        if found:
            ((where, instead),) = found
            parts[-1] = str(parts[-1]).removesuffix(where) + instead.format(numbers[name])
        else:
            parts.append(numbers[name])
        parts.append(part.removeprefix(name))
    return parts


def _numbered(parts: list[str | int], takes: Mapping[str, str], dialect: Dialect, offset: int = 0) -> str:
    """Return the text with its parameters numbered from behind `offset`."""
    kinds = list(takes.values())
    return "".join(
        part if isinstance(part, str) else dialect.parameter(offset + part, kinds[part - 1]) for part in parts
    )


def _word(text: str) -> str:
    """Return the name that a text begins with, if it does.

    >>> _word("job_id, n"), _word("' || name")
    ('job_id', '')
    """
    end = next((at for at, letter in enumerate(text) if not (letter.isalnum() or letter == "_")), len(text))
    return text[:end] if text[:1].isalpha() else ""


def _expanded(text: str, dialect: Dialect) -> str:
    first, *rest = text.split("@")
    said = [first]
    for part in rest:
        word = _word(part)
        if word not in _COLUMNS and word not in ("indexed", "part", "is"):
            said.append(f"@{part}")
            continue
        given, _, after = part.removeprefix(f"{word}(").partition(")")
        shape, _, about = given.partition(", ")
        if word == "indexed":
            said.append(dialect.indexed.format(shape) + after)
        elif word == "is":
            said.append(dialect.one_of(about, [f"'{state}'" for state in _STATES[shape]]) + after)
        elif word == "part":
            piece = parse(_file(dialect, "parts", shape)).text.replace("@job", about)
            said.append(_expanded(piece, dialect) + after)
        else:
            named = enumerate(fields(shape).items())
            each = (_COLUMNS[word](shape, place, field, kind, about) for place, (field, kind) in named)
            said.append(", ".join(each) + after)
    return "".join(said)


def _names(shape: str, _place: int, field: str, _kind: str, table: str) -> str:
    return f"{table}.{column(shape, field)}" if table else column(shape, field)


def _fields(_shape: str, _place: int, field: str, _kind: str, table: str) -> str:
    return f"{table}.{field}" if table else field


def _values(_shape: str, _place: int, field: str, _kind: str, _about: str) -> str:
    return f":{field}"


def _typed(_shape: str, _place: int, field: str, kind: str, _about: str) -> str:
    return f"{field} {kind}"


def _read(_shape: str, place: int, field: str, kind: str, row: str) -> str:
    value = f"{row} ->> {place}"
    if kind == "jsonb":
        return f"{row} -> {place} AS {field}"
    if kind == "bytea":
        return f"decode({value}, 'base64') AS {field}"
    return f"{value} AS {field}" if kind == "text" else f"({value})::{kind} AS {field}"


_COLUMNS: Final = {"names": _names, "fields": _fields, "values": _values, "typed": _typed, "read": _read}
