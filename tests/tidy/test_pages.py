"""What the pages say exists, exists: links lead somewhere, paths are there, examples print what is shown."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.tidy.tree import ROOT, project_files, short

PAGES = [path for path in project_files() if path.suffix == ".md"]
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
PATH = re.compile(r"`((?:src|tests|docs|scripts|examples|bench)/[\w./-]+)`")
# A file of ours, wherever it is; a name in the style of our functions and tables.
FILE = re.compile(r"`([\w./-]+\.(?:py|sql))`")
NAME = re.compile(r"`([a-z]+(?:_[a-z0-9]+)+)(?:\(\))?`")
# Pages about the project itself. Guides and the README also name files of the user.
OURS = [
    page
    for page in PAGES
    if page.parent in {ROOT / "docs", ROOT / "docs" / "adr"} or page.name == "ARCHITECTURE.md"
]
# Names that others gave.
FOREIGN = {"pipeline_communicate"}
REPLACED = re.compile(r"(?:^|is )[Rr]eplaced by \[", re.MULTILINE)


@cache
def endings() -> frozenset[str]:
    """Return every file of the project by each end of its path."""
    parts = [path.relative_to(ROOT).parts for path in project_files()]
    return frozenset("/".join(part[start:]) for part in parts for start in range(len(part)))


@cache
def words() -> frozenset[str]:
    """Return every word of the code, and the name of every file."""
    code = [path for path in project_files() if path.suffix in {".py", ".sql", ".toml"}]
    texts = [path.read_text("utf-8") for path in code]
    return frozenset(re.findall(r"\w+", "\n".join(texts))) | {path.stem for path in project_files()}


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_links_and_paths_of_a_page_lead_somewhere(page):
    text = page.read_text("utf-8")
    broken = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing = [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    assert not broken + missing


@pytest.mark.parametrize("page", OURS, ids=short)
def test_files_and_names_that_a_page_mentions_exist(page):
    """A record that was replaced is history: it may name what is gone."""
    text = page.read_text("utf-8")
    gone = [file for file in FILE.findall(text) if file not in endings()]
    known = words() | FOREIGN
    gone += [name for name in NAME.findall(text) if not {name, name.upper()} & known]
    assert not gone or REPLACED.search(text), gone


def test_the_drawing_of_the_guide_is_what_the_command_draws(capsys):
    from tallystick.cli.main import main

    main(["ledger", "001110000000001"])
    guide = (ROOT / "docs" / "guides" / "command-line.md").read_text("utf-8")
    assert f"$ tally ledger 001110000000001\n{capsys.readouterr().out}```" in guide


def test_a_broken_link_is_found():
    assert LINK.findall("[a](b.md) [c](https://x.org) [d](#e) [f](g.md#h)") == ["b.md", "g.md"]
    assert PATH.findall("`src/a.py` `make docs` `tests/tidy`") == ["src/a.py", "tests/tidy"]
    assert FILE.findall("`store/waits.py` `rounds.py` `a b.py`") == ["store/waits.py", "rounds.py"]
    assert NAME.findall("`count_down_all` `next_step()` `Machine` `make docs`") == [
        "count_down_all",
        "next_step",
    ]
