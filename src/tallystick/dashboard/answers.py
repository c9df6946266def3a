"""What the handler of a page answers with."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias


class HtmlPage(NamedTuple):
    """A template with what it shows."""

    template: str
    shows: dict[str, Any]


class Go(NamedTuple):
    """Something was done: go to a page, which says so."""

    address: str
    said: str = ""


class Attached(NamedTuple):
    """A file that a browser keeps and never shows."""

    name: str
    body: bytes


Answer: TypeAlias = HtmlPage | Go | Attached
