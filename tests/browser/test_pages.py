"""Every page in a real browser: nothing goes wrong, nothing leaves the host, everybody can use it."""

from __future__ import annotations

import pytest

from tallystick import wait
from tallystick.dashboard.pages.job import TABS
from tallystick.dashboard.rendering import MENU
from tests.browser.site import Site, watching
from tests.patience import wait_until

# A machine that does much else is slow.
pytestmark = pytest.mark.timeout(600)

DRAWN = "() => [...document.querySelectorAll('.graph')].every((each) => each.firstChild?.tagName === 'svg')"
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)><b style='position:fixed;inset:0'>"


def addresses(site: Site) -> dict[str, str]:
    found = {name: f"/{path}" for name, _label, path, _operator in MENU}
    doubtful, tree = site.stuck["in doubt"], site.stuck["child"]
    found |= {f"job-{tab}": f"/jobs/{doubtful}?tab={tab}&show=1" for tab in TABS}
    found |= {"job-family": f"/jobs/{tree}?tab=graph", "job-raw": f"/jobs/{tree}?tab=history&raw=1"}
    more = {"run": "/runs/first", "bulk": "/bulk/cancel?state=QUEUED", "dead": "/outbox?show=dead"}
    machines = {"slot": "/lifecycles?machine=slot", "error": "/jobs/nothing", "ended": "/effects?show=ended"}
    return found | more | machines


def test_every_page_is_drawn_and_can_be_used_by_everybody(site, browser):
    with watching(site, browser) as watched:
        watched.log_in()
        found = []
        for name, path in addresses(site).items():
            page = watched.go(path)
            page.wait_for_function(DRAWN)
            found += watched.serious()
            watched.picture(f"{name}-light")
        assert found == []
        watched.trouble = [each for each in watched.trouble if "404" not in each]


# Where one is in a menu, buttons of rows and what jobs say: the width of a phone is enough to see them.
SEEN_WHOLE = """(width) => {
  const those = [...document.querySelectorAll('nav [aria-current], td.do .button, td.says')];
  const boxes = those.map((each) => [each.textContent, each.getBoundingClientRect()]);
  return boxes.filter(([, box]) => box.width && (box.left < 0 || box.right > width)).map(([text]) => text);
}"""


def test_every_page_in_the_dark_and_on_a_phone_fits_its_width(site, browser):
    phone = {"width": 390, "height": 800}
    with watching(site, browser, color_scheme="dark") as watched:
        watched.log_in()
        for name in ("overview", "jobs", "attention", "job-timeline", "job-books"):
            watched.go(addresses(site)[name])
            assert watched.serious() == []
            watched.picture(f"{name}-dark")
        watched.page.set_viewport_size(phone)
        for name, path in addresses(site).items():
            page = watched.go(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= phone["width"], name
            assert page.evaluate(SEEN_WHOLE, phone["width"]) == [], name
            watched.picture(f"{name}-phone")
        watched.trouble = [each for each in watched.trouble if "404" not in each]


SEEN = """(wanted) => {
  const figure = document.querySelector('.graph').getBoundingClientRect();
  const seen = [...document.querySelectorAll('.node')].filter((node) => {
    const box = node.getBoundingClientRect();
    const [left, top] = [box.left - figure.left, box.top - figure.top];
    return left >= 0 && top >= 0 && box.right <= figure.right && box.bottom <= figure.bottom;
  }).map((node) => node.querySelector('text').textContent);
  return seen.includes(wanted);
}"""


@pytest.mark.parametrize("steps", [14, 60])
def test_a_graph_that_is_too_large_shows_the_step_at_which_the_job_is(site, browser, steps):
    app = site.world.app
    name = f"walk_{steps}"

    @app.step(name=f"turn_{steps}")
    def turn(number: int) -> int:
        return number

    @app.workflow(name=name, queue=name)
    def walk() -> int:
        for number in range(steps):
            turn(number)
        return int(wait("go", str)) + int(wait("stop", str))

    job = walk.submit()
    with app.worker(queues=[name]), watching(site, browser) as watched:
        wait_until(lambda: "for the signal go" in job.why(), "the wait")
        page = watched.log_in().go(f"/jobs/{job.id}?tab=graph")
        page.wait_for_function(DRAWN)
        assert page.evaluate(SEEN, "go")
        assert not page.evaluate(SEEN, name), "the drawing is larger than its frame"
        page.wait_for_selector("#dot.on")
        page.evaluate("document.querySelector('.graph').scrollTo(0, 0)")
        page.wait_for_function(SEEN, arg=name)
        job.send("go", "1")
        page.wait_for_function(SEEN, arg="stop")
        watched.picture(f"graph-{steps}-light")
        job.send("stop", "1")
        assert job.result(60) == 2


def test_a_person_logs_in_with_a_key_and_out_again(site, browser):
    with watching(site, browser) as watched:
        page = watched.go("/jobs")
        assert page.url.endswith("/login")
        page.fill("#key", "no.key")
        page.keyboard.press("Enter")
        page.wait_for_selector("[role=alert]")
        watched.picture("login-light")
        assert watched.serious() == []
        page.fill("#key", site.key("jobs:read"))
        page.keyboard.press("Enter")
        page.wait_for_url("**/jobs")
        assert page.locator("nav.side").inner_text().split("\n")[:2] == ["Jobs", "Attention"]
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        watched.trouble = [each for each in watched.trouble if "401" not in each]


def test_stored_text_neither_runs_nor_paints(site, browser):
    app = site.world.app
    job = site.world.approval.opts(queue="evil", idempotent=False).submit(9)
    job.pause(EVIL)
    app.queues.pause("evil", by=EVIL)
    with watching(site, browser) as watched:
        watched.log_in()
        for path in (
            "/jobs?held=yes",
            "/attention",
            "/queues",
            f"/jobs/{job.id}",
            f"/jobs/{job.id}?tab=history&raw=1",
        ):
            page = watched.go(path)
            assert EVIL[:20] in page.locator("main").inner_text()
            assert page.locator("main script, main img[src=x], main b[style]").count() == 0
    job.cancel()
    app.queues.resume("evil")


def test_the_keyboard_is_enough(site, browser):
    with watching(site, browser) as watched:
        page = watched.log_in().go("/jobs")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "find"
        page.keyboard.type(site.stuck["paused"])
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/jobs/{site.stuck['paused']}")
        summary = page.get_by_text("Resume", exact=True).first
        summary.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("details.act[open] form")
        page.keyboard.press("Escape")
        assert page.locator("details.act[open]").count() == 0
        page.goto(f"{site.address}/jobs")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        first = page.locator(".list tbody .strong").first.get_attribute("href")
        assert page.evaluate("document.activeElement.getAttribute('href')") == first


def test_a_view_is_saved_in_the_browser(site, browser):
    with watching(site, browser) as watched:
        page = watched.log_in().go("/jobs?state=FAILED_FINAL")
        watched.page.evaluate("window.prompt = () => 'What failed'")
        page.get_by_role("button", name="Save this view").click()
        watched.go("/jobs")
        page.get_by_role("link", name="What failed").click()
        page.wait_for_url("**/jobs?state=FAILED_FINAL")
        page.get_by_role("button", name="Forget the view What failed").click()
        assert page.get_by_role("link", name="What failed").count() == 0
