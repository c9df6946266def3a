"""The documentation site: it builds without a warning, tells every public name, and asks no other host."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from scripts.build_site import MODULES
from tallystick import errors
from tallystick.cli.group import COMMANDS
from tallystick.http.routes import ENDPOINTS
from tests.tidy.tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

# What a browser loads by itself; a link that a person follows may lead anywhere.
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"|<link\b[^>]*\bhref=\"([^\"]+)\"")
IMPORTED = re.compile(r"@import\s+(?:url\()?[\"']?([^\"')]+)|url\([\"']?([^\"')]+)")
TOLD_IMPORT = re.compile(r"^\s*(?:from|import) (tallystick(?:\.\w+)*)", re.MULTILINE)
CODES = {getattr(errors, name).code for name in errors.__all__}


def built(folder: Path, *pages: str) -> Path:
    """Return the site, with these pages or with all of them; every page was read."""
    command = [sys.executable, "-m", "scripts.build_site", str(folder), *pages]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "html"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_site_is_read_without_a_warning_and_its_reference_is_complete(tmp_path):
    """All pages and their links are read; HTML is made of the reference, of all pages in the long tests."""
    pages = ("api", "errors", "commands", "http")
    site = built(tmp_path, *(f"reference/{name}.md" for name in pages))
    assert public_names() - places(site / "reference" / "api.html") == set()
    assert {code.lower().replace("_", "-") for code in CODES} - places(
        site / "reference" / "errors.html"
    ) == set()
    told = text_of(site / "reference" / "commands.html")
    assert [name for name in COMMANDS if f"tally {name}" not in told] == []
    told = re.sub("<[^>]+>", "", text_of(site / "reference" / "http.html"))
    assert [route.path for route in ENDPOINTS if f"{route.method} {route.path}" not in told] == []
    assert hosts_asked_by(site) == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_page_of_the_site_is_built_without_a_warning_and_asks_no_other_host(tmp_path):
    site = built(tmp_path)
    assert hosts_asked_by(site) == []
    assert '"idempot' in text_of(site / "searchindex.js"), "the search has its words in the site"


def test_every_code_has_a_sentence_of_what_to_do():
    remedies = tomllib.loads(text_of(ROOT / "docs" / "site" / "remedies.toml"))
    assert set(remedies) == CODES
    assert [code for code, text in remedies.items() if not text.endswith(".")] == []


def test_every_module_that_a_page_or_an_example_imports_is_in_the_reference():
    """What the pages tell people to import is public, and every public name is on the site."""
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "adr"]
    texts = [text_of(path) for path in (ROOT / "README.md", *pages, *(ROOT / "examples").rglob("*.py"))]
    told = {module for text in texts for module in TOLD_IMPORT.findall(text)}
    assert "tallystick.stage" in told
    assert told - set(MODULES) == set()


def public_names() -> set[str]:
    modules = [importlib.import_module(name) for name in MODULES if name != errors.__name__]
    return {f"{module.__name__}.{name}" for module in modules for name in module.__all__}


def places(page: Path) -> set[str]:
    """Return where on a page a link can lead to."""
    return set(re.findall(r'id="([^"]+)"', text_of(page)))


def hosts_asked_by(site: Path) -> list[str]:
    return [each for each in loaded_by(site) if re.match(r"(?:https?:)?//", each)]


def loaded_by(site: Path) -> set[str]:
    """Return what the pages and styles of the site load."""
    pages = [match for page in site.rglob("*.html") for match in LOADED.findall(text_of(page))]
    styles = [match for style in site.rglob("*.css") for match in IMPORTED.findall(text_of(style))]
    return {first or second for first, second in (*pages, *styles)}


def text_of(path: Path) -> str:
    return path.read_text("utf-8")
