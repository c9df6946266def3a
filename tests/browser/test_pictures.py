"""The four pictures of the README and of the guide: made again here, looked at and copied by the author."""

from __future__ import annotations

import threading
from typing import Any

import apsw
import pytest

from tests.browser.site import PICTURES, Site, Watched, watching
from tests.patience import wait_until

# A machine that does much else is slow.
pytestmark = pytest.mark.timeout(600)

WIDTH = 1180
# What is wider than its frame would be cut in a picture.
CUT = """() => [...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth)
  .map((each) => each.getAttribute('aria-label'))"""
MINUTE_MS = 60_000


def ended_before(url: str, owner: str, now: int) -> None:
    """Let a worker have ended jobs in the last hour: more and more, with a bad quarter of an hour in it."""
    db = apsw.Connection(url.removeprefix("sqlite:///"))
    for ago in range(1, 60):
        failed = {16: 5, 17: 8, 18: 6}.get(ago, int(ago % 13 == 0))
        for state, number in (("SUCCEEDED", 26 + (60 - ago) // 3 + ago * 7 % 11), ("FAILED_FINAL", failed)):
            if number:
                row = (now // MINUTE_MS - ago, owner, state, number)
                db.execute("INSERT INTO ended_by_minute VALUES (?, ?, ?, ?)", row)
    db.close()


def picture(watched: Watched, name: str, path: str = "") -> None:
    """Make a picture of a page as high as it is, in which nothing is cut."""
    page = watched.page
    page.set_viewport_size({"width": WIDTH, "height": 600})
    if path:
        watched.go(path)
    page.set_viewport_size({"width": WIDTH, "height": page.evaluate("document.documentElement.scrollHeight")})
    assert page.evaluate(CUT) == [], name
    page.screenshot(path=PICTURES / f"guide-{name}.png")


def test_the_four_pictures_of_the_guide_show_all_of_what_is_on_the_page(tmp_path, browser):
    site = Site(f"sqlite:///{tmp_path / 'books.db'}")
    app, is_made = site.world.app, threading.Event()
    doubtful = f"/jobs/{site.stuck['in doubt']}"
    PICTURES.mkdir(parents=True, exist_ok=True)

    @app.workflow(queue="mail")
    def mail(number: int) -> None:
        assert is_made.wait(60)

    try:
        with watching(site, browser) as watched:
            page = watched.log_in().page
            mail.submit_many([(number,) for number in range(14)])
            with app.worker(queues=["mail"], concurrency=8):
                store: Any = app.runtime().store
                wait_until(
                    lambda: any(each.running == 8 for each in store.workers(9)), "a worker with its jobs"
                )
                ended_before(site.world.url, store.workers(9)[0].owner, store.now())
                picture(watched, "overview", "/overview")
                is_made.set()
            watched.go(doubtful)
            page.locator("#acts summary").first.click()
            page.set_viewport_size({"width": WIDTH, "height": 820})
            page.screenshot(path=PICTURES / "guide-job.png")
            picture(watched, "attention", "/attention")
            watched.go(f"{doubtful}?tab=books")
            page.locator("button", has_text="Verify this job").click()
            page.wait_for_selector(".good-card")
            picture(watched, "books")
    finally:
        is_made.set()
        site.close()
