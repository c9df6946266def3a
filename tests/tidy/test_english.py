"""Pages are in plain English: no pronoun of a person for a machine, no "a" where "per" is meant.

CONTRIBUTING.md has the rules with examples. Bodies of decision records are history and are left alone.
"""

from __future__ import annotations

import ast
import re

import pytest

from tests.tidy.tree import ROOT, SRC, parsed, project_files, python_files, short

PAGES = [path for path in project_files() if path.suffix == ".md"]
TEXTS = [page for page in PAGES if page.parent != ROOT / "docs" / "adr" and page.name != "CONTRIBUTING.md"]
RECORDS = [page for page in PAGES if page.parent == ROOT / "docs" / "adr"]
MACHINE = re.compile(
    r"\b(whoever|whomever|somebody|nobody|himself|belongs into|is no content)\b", re.IGNORECASE
)
A_FOR_PER = re.compile(
    r"\b(?:one|once|twice|\d[\d,]*|times|bundle|row|statement|page|thread|connection)s? an? "
    r"(?:job|step|worker|process|bundle|statement|key|attempt|call|child|batch|flush)\b"
)


def offending(text: str) -> list[str]:
    """Return what a colleague would not say."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [match.group() for pattern in (MACHINE, A_FOR_PER) for match in pattern.finditer(prose)]


@pytest.mark.parametrize("page", TEXTS, ids=short)
def test_a_page_is_in_plain_english(page):
    assert not offending(page.read_text("utf-8"))


def test_the_titles_of_records_are_in_plain_english():
    titles = {short(page): page.read_text("utf-8").splitlines()[0] for page in RECORDS}
    assert not {page: found for page, title in titles.items() if (found := offending(title))}


def test_the_first_lines_of_modules_are_in_plain_english():
    docstrings = {short(path): ast.get_docstring(parsed(path)) or "" for path in python_files(SRC)}
    firsts = {path: text.partition("\n")[0] for path, text in docstrings.items()}
    assert not {path: found for path, first in firsts.items() if (found := offending(first))}


def test_what_a_colleague_would_not_say_is_found():
    assert offending("Whoever comes first reads one row a key.") == ["Whoever", "row a key"]
    assert offending("The worker `nobody` sends one row per key.") == []
