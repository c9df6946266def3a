"""The SQL of this store, one statement a file, read once and never assembled."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def sql(name: str) -> bytes:
    """Return the statement of that name, in the bytes that go to the server."""
    return files(__package__).joinpath("statements", f"{name}.sql").read_bytes()


def name_of(statement: bytes) -> str:
    """Return the name of a statement of ours, with which its text begins; of another one, the text."""
    head = statement.partition(b":")[0].removeprefix(b"-- ")
    return head.decode(errors="replace")


def migrations() -> list[tuple[int, str, bytes]]:
    """Return every migration as (version, name, text), in order."""
    folder = files(__package__).joinpath("schema")
    found = [
        (int(entry.name[:4]), entry.name, entry.read_bytes())
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(found)
