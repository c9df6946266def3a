"""One server and one browser for all tests of this folder; `make test-browser` prepares both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tallystick.runs.orchestrator.start import start_or_resume
from tallystick.runs.toy import pipeline
from tests.browser.site import AXE, CHROMIUM, FLAGS, Site


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    missing = [path for path in (CHROMIUM, AXE) if not Path(path).exists()]
    if missing:
        text = f"{', '.join(map(str, missing))} is not there: run `make test-browser`, which installs it"
        pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    start_or_resume(pipeline, str(folder / "runs"), "first")
    site = Site(f"sqlite:///{folder / 'books.db'}", str(folder / "runs"))
    yield site
    site.close()
