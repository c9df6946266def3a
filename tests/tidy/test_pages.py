"""What the pages say exists, exists: links lead somewhere, paths are there, examples print what is shown."""

from __future__ import annotations

import doctest
import re

import pytest

from tests.tidy.tree import ROOT, project_files, short

PAGES = [path for path in project_files() if path.suffix == ".md"]
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
PATH = re.compile(r"`((?:src|tests|docs|scripts|examples|bench)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_links_and_paths_of_a_page_lead_somewhere(page):
    text = page.read_text("utf-8")
    broken = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing = [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    assert not broken + missing


def test_the_examples_of_the_readme_print_what_it_says(capsys):
    failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False, encoding="utf-8")
    assert tried
    assert not failed


def test_the_drawing_of_the_readme_is_what_the_command_draws(capsys):
    from tallystick.cli.main import main

    main(["ledger", "001110000000001"])
    assert f"$ tally ledger 001110000000001\n{capsys.readouterr().out}```" in (ROOT / "README.md").read_text(
        "utf-8"
    )


def test_a_broken_link_is_found():
    assert LINK.findall("[a](b.md) [c](https://x.org) [d](#e) [f](g.md#h)") == ["b.md", "g.md"]
    assert PATH.findall("`src/a.py` `make docs` `tests/tidy`") == ["src/a.py", "tests/tidy"]
