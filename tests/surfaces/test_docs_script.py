"""`make docs` writes the pages that are printed from code; `make verify` shows how a stale one differs."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from tallystick.core.ledger.promises import PROMISES
from tallystick.core.lifecycles import MACHINES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def docs(tmp_path):
    """The script, in a copy of the project that may be written to."""
    place = tmp_path / "a project" / "scripts" / "docs.py"
    place.parent.mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "docs.py", place)
    spec = importlib.util.spec_from_file_location("tallystick_docs_script_copy", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_writes_every_page_once_and_then_nothing(docs, capsys):
    assert docs.main([]) == 0
    assert capsys.readouterr().out.splitlines() == [f"wrote {path}" for path in docs.pages()]
    assert docs.main(["--check"]) == 0
    assert docs.main([]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_stale_page_fails_with_a_unified_diff(docs, capsys):
    docs.main([])
    page = docs.ROOT / "docs" / "ledger.md"
    page.write_text(page.read_text("utf-8").replace("# The fifteen digits", "# The sixteen digits"), "utf-8")
    capsys.readouterr()
    assert docs.main(["--check"]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines()[:2] == ["--- docs/ledger.md (on disk)", "+++ docs/ledger.md (from code)"]
    assert "-# The sixteen digits\n+# The fifteen digits\n" in said.out
    assert said.err == "docs/ledger.md is stale; run `make docs`\n"
    assert "sixteen" in page.read_text("utf-8"), "checking writes nothing"


def test_a_missing_page_is_stale_and_so_is_a_missing_last_newline(docs, capsys):
    assert docs.main(["--check"]) == 1
    docs.main([])
    page = docs.ROOT / "docs" / "ledger.md"
    page.write_text(page.read_text("utf-8").rstrip("\n"), "utf-8")
    assert docs.main(["--check"]) == 1


def test_the_pages_show_every_machine_and_every_promise(docs):
    pages = docs.pages()
    assert all(f"\n## {name}\n" in pages["docs/lifecycles.md"] for name in MACHINES)
    assert all(f"| `{promise.name}`" in pages["docs/ledger.md"] for promise in PROMISES)


def test_pages_end_in_one_newline_and_have_no_trailing_spaces(docs):
    for text in docs.pages().values():
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert not [line for line in text.splitlines() if line != line.rstrip()]
        assert "\n\n\n" not in text
