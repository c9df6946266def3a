"""A decision record has its five sections, stands in the index, and names guards that exist."""

from __future__ import annotations

import re

import pytest

from tests.tidy.tree import ROOT, project_files, short

FOLDER = ROOT / "docs" / "adr"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
SECTIONS = ["Context", "Decision", "Consequences", "Specifications touched", "Guarded by"]


def test_every_record_has_a_number_of_its_own():
    """Parts of the project number in blocks of ten, so that two of them never meet in one number."""
    numbers = [path.name[:4] for path in RECORDS]
    assert len(set(numbers)) == len(numbers)
    assert all(number.isdigit() for number in numbers)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_its_sections_and_its_number(path):
    text = path.read_text("utf-8")
    assert text.startswith(f"# {path.name[:4]} ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_is_guarded_by_tests_that_exist(path):
    guards = re.findall(r"`(tests/[\w/.]+)`", path.read_text("utf-8").split("## Guarded by")[1])
    assert guards
    assert not [guard for guard in guards if not (ROOT / guard).exists()]


def test_the_index_lists_every_record_under_its_title():
    index = (FOLDER / "README.md").read_text("utf-8")
    for path in RECORDS:
        title = path.read_text("utf-8").splitlines()[0].removeprefix("# ")[5:]
        assert f"| [{path.name[:4]}]({path.name}) | {title} |" in index


def test_every_record_that_a_file_names_exists():
    known = {path.name[:4] for path in RECORDS}
    named = {
        (short(path), number)
        for path in project_files()
        if path.suffix in {".py", ".sql", ".md"} and path.is_relative_to(ROOT / "src")
        for number in re.findall(r"ADR-(\d{4})", path.read_text("utf-8"))
    }
    assert named
    assert not [(name, number) for name, number in named if number not in known]
