"""One word a concept: what GLOSSARY.md says not to say is not said in the package.

The glossary has a table with the columns `word | meaning | do not say`, the last one a list separated by
commas. A bare entry (`task`) is enforced here: in identifiers that we define, in docstrings and in comments.
An entry with a condition in parentheses (`commit (of a transaction)`) is for people and is not enforced.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.tidy.tree import ROOT, SRC, comments, docstring_nodes, offences, python_files

# Phrases of the world outside that contain a banned word. Each is here for a reason that a reader accepts.
ALLOWED = {
    "durable execution": "the name of the field, which readers search for",
}


def test_the_package_says_no_word_that_the_glossary_bans():
    found = [
        line for path in python_files(SRC) for line in offences(path, said(path.read_text("utf-8"), banned()))
    ]
    assert not found, "see the table in GLOSSARY.md"


def test_the_glossary_bans_something():
    assert "execution" in banned()


@pytest.mark.parametrize(
    "source",
    [
        "class TaskState: ...",
        "def run_task(): ...",
        "run_tasks = 1",
        "def f(task): ...",
        "self.task = 1",
        '"""Begin the task."""',
        "# Two tasks at once.",
    ],
)
def test_a_banned_word_is_found_wherever_we_chose_it(source: str):
    assert list(said(source, {"task"}))


@pytest.mark.parametrize(
    "source", ["asyncio.create_task(f())", "x = 'task'", "multitasking = 1", '"""Durable task."""']
)
def test_a_word_that_we_did_not_choose_is_left_alone(source: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(ALLOWED, "durable task", "for this test")
    assert not list(said(source, {"task"}))


def test_an_entry_with_a_condition_is_for_people():
    header = "| word | meaning | do not say |\n|---|---|---|\n"
    row = "| job | one | `task`, work item, commit (of SQL) |\n\n| a | b | c |"
    assert words_of(header + row) == {"task", "work item"}


@cache
def banned() -> frozenset[str]:
    return frozenset(words_of((ROOT / "GLOSSARY.md").read_text("utf-8")))


def words_of(glossary: str) -> set[str]:
    """Return the enforced entries of the glossary's third column."""
    words: set[str] = set()
    inside = False
    for line in glossary.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif [cell.lower() for cell in cells] == ["word", "meaning", "do not say"]:
            inside = True
        elif inside and len(cells) == 3 and "---" not in cells[0]:
            words.update(entry.strip(' `*"').lower() for entry in cells[2].split(",") if "(" not in entry)
    return {word for word in words if re.fullmatch(r"[a-z][a-z -]+", word)}


def said(source: str, words: set[str] | frozenset[str]) -> Iterator[tuple[int, str]]:
    pattern = re.compile(rf"\b({'|'.join(sorted(words))})(s|es)?\b")
    for line, text in texts(ast.parse(source), source):
        for phrase in ALLOWED:
            text = text.replace(phrase, "")  # noqa: PLW2901 (the same text without what is allowed)
        yield from ((line, f"{match[0]!r} in {text.strip()[:60]!r}") for match in pattern.finditer(text))


def texts(tree: ast.Module, source: str) -> Iterator[tuple[int, str]]:
    """Return what we wrote, in lower case: comments, docstrings line by line, identifiers as words."""
    for line, comment in comments(source):
        yield line, comment.lower()
    for node in docstring_nodes(tree):
        for offset, text in enumerate(str(node.value).lower().splitlines()):
            yield node.lineno + offset, text
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, spoken(name)
            case (
                ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield node.lineno, spoken(name)


def spoken(identifier: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", identifier).lower()
