"""Pages that are printed from code are as the code would print them now; `make docs` makes them so."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from tests.tidy.tree import ROOT


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    """The script behind `make docs` and `make verify`."""
    spec = importlib.util.spec_from_file_location("tallystick_docs_script", ROOT / "scripts" / "docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_generated_page_is_current(docs: ModuleType):
    pages = {ROOT / name: text for name, text in docs.pages().items()}
    stale = [
        path.name for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text
    ]
    assert not stale, "run `make docs`"
