"""Pages and the texts of the package are in plain English.

No pronoun of a person for a machine, no "a" where "per" is meant. CONTRIBUTING.md has the rules and
examples. Bodies of decision records, and texts of triggers, which old files keep, are history.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, SRC, comments, offences, parsed, project_files, python_files, short

PAGES = [path for path in project_files() if path.suffix == ".md"]
TEXTS = [page for page in PAGES if page.parent != ROOT / "docs" / "adr" and page.name != "CONTRIBUTING.md"]
RECORDS = [page for page in PAGES if page.parent == ROOT / "docs" / "adr"]
MACHINE = re.compile(
    r"\b(whoever|whomever|somebody|nobody|himself|belongs into|is no content)\b", re.IGNORECASE
)
# Pages may speak of a person; the code of the package rarely does, and then it says user, person or operator.
IN_CODE = re.compile(r"\b(whom|anybody|everybody|his|him|he|she|her)\b", re.IGNORECASE)
SQL_COMMENT = re.compile(r"^(?:[SP]\||#\|)?\s*(?:--|#\|)(.*)$")
# "One row a key", "one recorded answer a job", "sixteen a statement"; "once a second" is English.
COUNT = (
    r"(?<![Ii]n )(?<!the )(?:[Oo]ne|two|three|four|five|six|seven|eight|nine|ten|sixteen|twenty"
    r"|hundreds?|thousands?|once|twice|\d+(?:,\d{3})*)"
)
NOT_COUNTED = (
    "after|and|are|as|at|before|by|each|ends|every|for|from|has|have|holds|if|in|into|is|means|not|of|on|or|over|per|print"
    "|queued|shares?|than|that|the|to|under|was|what|when|where|which|while|with|within|without|worth"
)
UNIT = (
    "artifact|attempt|batch|bundle|call|child|command|event|fact|file|flush|folder|item|job|key|kind|layer|line|look"
    "|loop|machine|module|process|queue|question|request|role|row|run|signal|slot|statement|step|subcommand|tenant|thread|tick|turn"
    "|wait|worker"
)
A_FOR_PER = re.compile(
    rf"\b(?:{COUNT}(?: (?!(?:{NOT_COUNTED})\b)[A-Za-z]+){{0,2}}"
    rf"|(?:times|µs|ms|bundle|row|statement|page|thread|connection)s?) an? (?:{UNIT})\b"
)


def offending(text: str, *also: re.Pattern[str]) -> list[str]:
    """Return what a colleague would not say."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [match.group() for pattern in (MACHINE, A_FOR_PER, *also) for match in pattern.finditer(prose)]


@pytest.mark.parametrize("page", TEXTS, ids=short)
def test_a_page_is_in_plain_english(page):
    assert not offending(page.read_text("utf-8"))


def test_the_titles_of_records_are_in_plain_english():
    titles = {short(page): page.read_text("utf-8").splitlines()[0].lstrip("# 0123456789") for page in RECORDS}
    assert not {page: found for page, title in titles.items() if (found := offending(title))}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Return the comments and the sentences of a file of the package, each with its line."""
    source = path.read_text("utf-8")
    if path.suffix == ".sql":
        for line, text in enumerate(source.splitlines(), start=1):
            if (comment := SQL_COMMENT.match(text)) is not None:
                yield line, comment.group(1)
        return
    yield from comments(source)
    for node in ast.walk(parsed(path)):
        # One word alone is a name or a value, not a sentence.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def test_the_texts_of_the_package_are_in_plain_english():
    files = [
        *python_files(SRC),
        *(path for path in project_files() if path.suffix == ".sql" and SRC in path.parents),
    ]
    found: list[str] = []
    for path in files:
        source = path.read_text("utf-8")
        # Taking a file apart is slow, and hardly any has such a word.
        if any(pattern.search(source) for pattern in (MACHINE, A_FOR_PER, IN_CODE)):
            words = ((line, word) for line, text in texts(path) for word in offending(text, IN_CODE))
            found += offences(path, words)
    assert not found, "\n".join(found)


def test_what_a_colleague_would_not_say_is_found():
    assert offending("Whoever comes first reads one row a key.") == ["Whoever", "one row a key"]
    counted = ["One committer a process", "sixteen a statement", "one recorded answer a job"]
    assert [offending(f"{text} and more.") for text in counted] == [[text] for text in counted]
    assert offending("Once a second one of a job, and in one process a job goes on.") == []
    assert offending("The worker `nobody` sends one row per key.") == []
    assert offending("He holds his lease.", IN_CODE) == ["He", "his"]


def test_comments_and_messages_are_read_and_single_words_are_not(tmp_path):
    code, sql = tmp_path / "code.py", tmp_path / "statement.sql"
    code.write_text('name = "nobody"  # why\nraise ValueError(f"{name} is not here")\n', "utf-8")
    sql.write_text("-- what it promises\nSELECT 1\nS|-- for one of them\n", "utf-8")
    assert [text.strip() for _, text in texts(code)] == ["# why", "is not here"]
    assert [(line, text.strip()) for line, text in texts(sql)] == [
        (1, "what it promises"),
        (3, "for one of them"),
    ]
