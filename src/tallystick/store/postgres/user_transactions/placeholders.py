"""`:name`, the placeholder that both stores know, in the words of psycopg.

A statement with `%(name)s` is psycopg's own and stays as it is. In one with `:name` a percent sign is one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# What is passed over as it stands: texts and names in quotes, texts in dollars, and the rest of a line.
_QUOTED: Final = (
    r"[eE]'(?:[^'\\]|\\.|'')*'"
    r"|'(?:[^']|'')*'"
    r'|"(?:[^"]|"")*"'
    r"|\$(?P<tag>(?:[A-Za-z_\x80-\uffff]\w*)?)\$.*?\$(?P=tag)\$"
    r"|--[^\n]*"
)
_PIECE: Final = re.compile(
    rf"(?P<kept>{_QUOTED})"
    r"|(?P<remark>/\*)"
    r"|(?P<psycopg>%\(\w+\)[sbt])"
    r"|(?P<kept_colons>::|:=)"
    # Not behind a word or a bracket: that is the end of a slice.
    r"|(?<![\w\])\"':]):(?P<name>[A-Za-z_]\w*)",
    re.DOTALL,
)
_REMARK_BOUND: Final = re.compile(r"/\*|\*/")


@lru_cache(maxsize=256)
def as_psycopg(sql: str) -> str:
    """Return a statement whose parameters have names, with `%(name)s` for each `:name`.

    >>> as_psycopg("SELECT :a::int, ':b', 5 % 2 -- :c")
    "SELECT %(a)s::int, ':b', 5 %% 2 -- :c"
    >>> as_psycopg("SELECT %(a)s, ':b'")
    "SELECT %(a)s, ':b'"
    """
    made: list[str] = []
    names = place = 0
    while (found := _PIECE.search(sql, place)) is not None:
        if found["psycopg"]:
            return sql
        begin, end = found.span()
        if found["remark"]:
            end = _end_of_remark(sql, end)
        piece = sql[begin:end]
        if found["name"]:
            names += 1
            made += [_literal(sql[place:begin]), f"%({found['name']})s"]
        else:
            made += [_literal(sql[place:begin]), _literal(piece)]
        place = end
    return "".join([*made, _literal(sql[place:])]) if names else sql


def _literal(text: str) -> str:
    return text.replace("%", "%%")


def _end_of_remark(sql: str, place: int) -> int:
    """Return where a remark ends; remarks may stand in remarks."""
    depth = 1
    while depth and (bound := _REMARK_BOUND.search(sql, place)) is not None:
        depth += 1 if bound[0] == "/*" else -1
        place = bound.end()
    return len(sql) if depth else place
