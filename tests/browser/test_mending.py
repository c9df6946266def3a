"""Twelve jobs stand still. A stranger opens the dashboard, reads why, presses a button, and they go on."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page

from tests.browser.site import Site, Watched, watching
from tests.surfaces.dashboard.seeds import QUEUES

# A machine that does much else is slow.
pytestmark = pytest.mark.timeout(600)

# What keeps each job, as its page says it, and the button that mends it with what is filled in.
SITUATIONS = {
    "signal": ("for the signal approve", "Send approve", {"value": "true"}),
    "paused": ("held (PAUSED)", "Resume", {}),
    "in doubt": ("whether charge happened", "Resolve charge", {"says": "happened", "value": '"receipt"'}),
    "failed": ("it failed at", "Retry", {}),
    "paused queue": ("paused by the night shift", "Resume the queue emails", {}),
    "full queue": ("it lets 1 run at once", "Change the limit of reports", {"value": "2"}),
    "no worker": ("for a worker on queue gpu", "", {}),
    "mismatch": ("put the code back or fork the job", "Fork", {"at": "quote"}),
    "dead directive": ("DISPATCH_FAILED: the service ocr could not be reached", "Redrive ocr", {}),
    "child": ("1 more child of gather to end", "child", {}),
    "cancelling": ("asked to end", "End by force", {}),
    "lost worker": ("was lost with attempt 1", "", {}),
}


def press(page: Page, label: str, fields: dict[str, str]) -> None:
    """Open the sheet of a button, fill it in, and send it."""
    act = page.locator("details.act", has=page.locator("summary", has_text=label)).first
    act.locator("summary").click()
    form = act.locator("form")
    assert form.locator(".same pre").count() >= 1, "the same on the command line"
    for name, value in fields.items():
        field = form.locator(f"[name={name}]")
        field.select_option(value) if field.evaluate("each => each.tagName") == "SELECT" else field.fill(
            value
        )
    form.locator("button.button").click()
    page.wait_for_selector(".said, [role=alert]")
    assert page.locator("[role=alert]").all_inner_texts() == [], label


def mend(watched: Watched, name: str) -> str:
    """Find a job among the others, read why it stands still, do what the page offers; return who goes on."""
    site, page = watched.site, watched.page
    says, label, fields = SITUATIONS[name]
    job_id = site.stuck[name]
    watched.go("/jobs")
    page.locator(f'a.strong[href="/jobs/{job_id}"]').click()
    page.wait_for_selector("#why")
    assert says.lower() in page.locator("#why").inner_text().lower(), name
    if label == "child":
        page.locator(".why a.id").click()
        page.wait_for_selector("#why")
        assert "held (PAUSED)" in page.locator("#why").inner_text()
        press(page, "Resume", {})
        press(page, "Send grow", {"value": '"grown"'})
    elif label:
        press(page, label, fields)
    else:
        assert "tally work APP" in page.locator(".why pre").first.inner_text()
    new = page.url.rpartition("/")[2]
    return new if name in ("failed", "mismatch", "dead directive") else job_id


def test_a_stranger_finds_out_why_each_of_twelve_jobs_stands_still_and_mends_it(tmp_path, browser):
    site = Site(f"sqlite:///{tmp_path / 'books.db'}")
    app = site.world.app
    try:
        with watching(site, browser) as watched:
            watched.log_in()
            assert len(SITUATIONS) == len(site.stuck) == 12
            on = {name: mend(watched, name) for name in SITUATIONS}
            app.job(on["mismatch"]).send("approve", value=False)
            app.job(on["paused"]).send("approve", value=True)
            site.world.is_broken = False
            with app.worker(queues=[*QUEUES, "gpu", "left", "slow"]):
                app.job(on["full queue"]).send("numbers", "42")
                results = {name: app.job(job_id) for name, job_id in on.items()}
                assert results.pop("cancelling").state().value == "CANCELLED"
                redriven = results.pop("dead directive")
                assert redriven.row().retry_of == site.stuck["dead directive"]
                got = {name: job.result(60) for name, job in results.items()}
            assert got == {
                "signal": "approved",
                "paused": "approved",
                "in doubt": "parcel 77",
                "failed": "parcel 13",
                "paused queue": 7,
                "full queue": "42",
                "no worker": 7,
                "mismatch": "refused",
                "child": ["leaf 0", "grown", "leaf 2"],
                "lost worker": "parcel 500",
            }
    finally:
        site.close()


def test_pages_that_are_open_show_what_happens_in_two_tabs(tmp_path, browser):
    site = Site(f"sqlite:///{tmp_path / 'books.db'}")
    app, job_id = site.world.app, site.stuck["signal"]
    try:
        with watching(site, browser) as watched:
            watched.log_in()
            job, overview = watched.page, watched.context.new_page()
            job.goto(f"{site.address}/jobs/{job_id}")
            overview.goto(f"{site.address}/overview")
            for page in (job, overview):
                page.wait_for_selector("#dot.on")
            with app.worker(queues=["default"], concurrency=3):
                app.job(job_id).send("approve", value=True)
                job.bring_to_front()
                job.wait_for_selector(".why.good")
                assert "It succeeded" in job.locator("#why").inner_text()
                assert "approve" in job.locator("#pane").inner_text()
                overview.bring_to_front()
                overview.wait_for_function(
                    "() => document.querySelector('#numbers').innerText.includes('1 worker')"
                )
            watched.picture("two-tabs-light")
    finally:
        site.close()


def test_buttons_of_an_open_page_follow_the_job_and_an_open_sheet_stays(tmp_path, browser):
    site = Site(f"sqlite:///{tmp_path / 'books.db'}")
    app, first, second = site.world.app, site.stuck["paused"], site.stuck["signal"]
    try:
        with watching(site, browser) as watched:
            page = watched.log_in().go(f"/jobs/{first}")
            page.evaluate("document.body.dataset.same = 'page'")
            page.wait_for_selector("#dot.on")
            page.locator("#acts summary", has_text="Resume").focus()
            app.job(first).resume()
            page.locator("#acts summary", has_text="Pause").wait_for()
            assert page.locator("#acts summary", has_text="Resume").count() == 0
            cancel = page.locator("#acts summary", has_text="Cancel")
            cancel.focus()
            app.job(first).pause("once more")
            page.locator("#acts summary", has_text="Resume").wait_for()
            assert page.evaluate("document.activeElement.textContent") == "Cancel", "the focus stays"
            assert page.evaluate("document.body.dataset.same") == "page", "it was never loaded again"
            page = watched.go(f"/jobs/{second}")
            page.wait_for_selector("#dot.on")
            page.locator("#acts summary", has_text="Send approve").click()
            page.locator("#acts [name=value]").first.fill("tr")
            app.job(second).pause("while somebody types")
            page.locator("#acts [name=value]").first.press_sequentially("ue")
            assert page.locator("#acts [name=value]").first.input_value() == "true"
            page.keyboard.press("Escape")
            page.locator("#acts summary", has_text="Resume").wait_for()
    finally:
        site.close()


SHOWN = """(how) => {
  Object.defineProperty(document, 'visibilityState', { value: how, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_a_tab_that_is_shown_again_keeps_its_sheet_and_follows_the_job(tmp_path, browser):
    site = Site(f"sqlite:///{tmp_path / 'books.db'}")
    app, job_id = site.world.app, site.stuck["signal"]
    try:
        with watching(site, browser) as watched:
            page = watched.log_in().go(f"/jobs/{job_id}")
            page.evaluate("document.body.dataset.same = 'page'")
            page.wait_for_selector("#dot.on")
            page.locator("#acts summary", has_text="Send approve").click()
            page.locator("#acts [name=value]").first.fill("true")
            page.locator("h1").click()
            page.evaluate(SHOWN, "hidden")
            assert page.locator("#live").count() == 0
            assert page.locator("#dot.on").count() == 0
            app.job(job_id).pause("while the tab is hidden")
            page.evaluate(SHOWN, "visible")
            page.wait_for_selector("#dot.on")
            assert page.locator("details.act[open] [name=value]").input_value() == "true"
            page.keyboard.press("Escape")
            page.locator("#acts summary", has_text="Resume").wait_for()
            page.evaluate(SHOWN, "hidden")
            app.job(job_id).resume()
            page.evaluate(SHOWN, "visible")
            page.locator("#acts summary", has_text="Pause").wait_for()
            assert page.evaluate("document.body.dataset.same") == "page", "it was never loaded again"
    finally:
        site.close()


def tell_all(page: Page, label: str, number: int) -> None:
    """Say a word to all jobs of the list: the page counts them first, then says how many it reached."""
    page.locator(".bulk a", has_text=label).click()
    jobs = "1 job" if number == 1 else f"{number} jobs"
    assert page.locator("p.big").inner_text() == f"{jobs} would be reached now."
    assert "tally " in page.locator(".same pre").first.inner_text()
    page.locator("form button.button", has_text=f"{label} {jobs}").click()
    assert page.locator(".said").inner_text().startswith(f"{label}: reached {jobs}.")


def test_what_matches_is_paused_resumed_and_cancelled_by_a_person_on_the_books(tmp_path, browser):
    site = Site(f"sqlite:///{tmp_path / 'books.db'}")

    @site.world.app.workflow(queue="later")
    def prints(sheet: int) -> int:
        return sheet

    try:
        with watching(site, browser) as watched:
            jobs = [prints.opts(tags=["old"] if sheet else []).submit(sheet) for sheet in range(3)]
            page = watched.log_in().go("/jobs")
            page.locator("summary", has_text="Filters").click()
            page.locator("form.fields [name=tag]").fill("old")
            page.locator("form.fields button", has_text="Show").click()
            assert "2 jobs match" in page.locator(".tally-line").inner_text()
            tell_all(page, "Pause", 2)
            assert [job.row().hold for job in jobs] == [None, "PAUSED", "PAUSED"]
            page.locator(f'a.strong[href="/jobs/{jobs[1].id}"]').click()
            press(page, "Cancel", {})
            page.go_back()
            page = watched.go("/jobs?tag=old")
            tell_all(page, "Resume", 1)
            tell_all(page, "Cancel", 1)
            page = watched.go(f"/jobs/{jobs[0].id}")
            press(page, "Pause", {})
            press(page, "Resume", {})
            watched.go(f"/jobs/{jobs[2].id}?tab=history")
            said = page.locator("#pane").inner_text()
            assert [verb for verb in ("pause", "resume", "cancel") if verb not in said.lower()] == []
        acts = [[(act.verb, act.who) for act in reversed(site.world.app.acts(job=job))] for job in jobs]
        verbs = [[verb for verb, _who in each] for each in acts]
        assert verbs == [["pause", "resume"], ["pause", "cancel"], ["pause", "resume", "cancel"]]
        assert len({who for each in acts for _verb, who in each}) == 1, acts
        assert [job.row().completed_at is None for job in jobs] == [True, False, False]
    finally:
        site.close()


PRESS = """
import sys

from tallystick import Tally

app = Tally(sys.argv[1])


@app.step
def press(sheet: int) -> str:
    if sys.argv[2] == "hangs":
        print("begun", flush=True)
        sys.stdin.readline()
    return f"sheet {sheet}"


@app.workflow(queue="press")
def book(sheet: int) -> str:
    return press(sheet)


print("starts", flush=True)
app.work(queues=["press"], lease="2s")
"""


@contextmanager
def press_room(folder, url, how):
    """A worker in a process of its own, killed in the end if it was not before."""
    (folder / "press_room.py").write_text(PRESS, "utf-8")
    command = [sys.executable, str(folder / "press_room.py"), url, how]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "starts\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_page_that_is_open_shows_that_a_worker_was_killed_and_another_one_goes_on(tmp_path, browser):
    site = Site(f"sqlite:///{tmp_path / 'books.db'}")

    @site.world.app.workflow(queue="press")
    def book(sheet: int) -> str:
        raise AssertionError("workers of their own run it")

    try:
        with watching(site, browser) as watched:
            job = book.submit(3)
            page = watched.log_in().go(f"/jobs/{job.id}")
            page.evaluate("document.body.dataset.same = 'page'")
            page.wait_for_selector("#dot.on")
            with press_room(tmp_path, site.world.url, "hangs") as victim:
                assert victim.stdout.readline() == "begun\n"
                page.locator("#why", has_text="in attempt 1").wait_for()
                victim.send_signal(signal.SIGKILL)
                victim.wait()
            page.locator("#why", has_text="was lost").wait_for()
            watched.picture("killed-light")
            with press_room(tmp_path, site.world.url, "returns"):
                page.wait_for_selector(".why.good")
            assert page.evaluate("document.body.dataset.same") == "page", "it was never loaded again"
            assert "It succeeded" in page.locator("#why").inner_text()
            assert "attempt 2" in page.locator("#pane").inner_text()
    finally:
        site.close()
