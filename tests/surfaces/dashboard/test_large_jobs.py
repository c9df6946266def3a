"""Jobs with much in them: every page stays small, says what it leaves out, and leads to the rest."""

from __future__ import annotations

import gzip
import random
import re
from html import unescape

import msgspec
import pytest

from tallystick import Tally, gather, set_value, wait
from tallystick.dashboard.pages.job import KIN_MAX, STEPS_MAX, TABS
from tallystick.dashboard.shown.graph import NODES_MAX
from tests.patience import wait_until
from tests.surfaces.dashboard.test_pages import PAGE_BYTES_MAX
from tests.surfaces.dashboard.visiting import Site, url_in, visiting

STEPS = STEPS_MAX + 60
CHILDREN = KIN_MAX + 30
NEXT = re.compile(r'href="([^"]+)" rel="next"')
BAR = re.compile(r"<tr>\s*<td>(?:<a[^>]*>)?([^<]+)(?:</a>)?</td>\s*<td class=\"soft\">(\w+)</td>")
GRAPH = re.compile(r'data-graph="([^"]*)"')


def incompressible(number: int) -> str:
    return random.Random(number).randbytes(20_000).hex()


def graph_of(page: str) -> dict[str, list[dict[str, object]]]:
    found = GRAPH.search(page)
    assert found
    return msgspec.json.decode(unescape(found[1]))


@pytest.mark.slow
def test_values_of_any_size_leave_pages_small_and_in_gzip(tmp_path):
    app = Tally(url_in(tmp_path))

    @app.step
    def fetch(number: int) -> dict[str, str]:
        return {"text": incompressible(number)}

    @app.workflow
    def flow(text: str) -> list[str]:
        for name in range(60):
            set_value(f"value-{name}", incompressible(name)[:900])
        return [fetch(number)["text"] for number in range(20)]

    with app.worker():
        job = flow.submit(incompressible(-1) * 5)
        job.result(60)

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        for tab in TABS:
            path = f"/jobs/{job.id}?tab={tab}&show=1&raw=1"
            page = await visitor.get(path, headers={"Accept-Encoding": "gzip"})
            assert (page.status_code, page.headers["content-encoding"]) == (200, "gzip")
            assert int(page.headers["content-length"]) < PAGE_BYTES_MAX, tab
            assert len(gzip.compress(page.content)) < PAGE_BYTES_MAX, tab
            if tab in ("payloads", "history", "json"):
                assert "more characters are not shown" in page.text, tab
        plain = await visitor.get(f"/jobs/{job.id}", headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.headers["vary"] == "Accept-Encoding"
        whole = await visitor.get(f"/jobs/{job.id}/payload/arguments")
        assert incompressible(-1) * 5 in whole.text

    visiting(app, test)


def test_values_that_a_job_shows_are_hidden_by_their_names(tmp_path):
    app = Tally(url_in(tmp_path))

    @app.workflow
    def flow() -> None:
        set_value("progress", {"done": 7, "api_key": "hunter2"})
        set_value("token", "s3cr3t")

    with app.worker():
        job = flow.submit()
        job.result(30)

    async def test(site: Site) -> None:
        page = unescape((await (await site.visitor()).get(f"/jobs/{job.id}")).text)
        assert '{"done":7,"api_key":"•••"}' in page
        assert "hunter2" not in page
        assert "s3cr3t" not in page

    visiting(app, test)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A store with a job of many steps, and one with many children, that both wait at their end."""
    url = url_in(tmp_path_factory.mktemp("large"))
    app = Tally(url)

    @app.step
    def turn(number: int) -> int:
        return number

    @app.workflow
    def steps() -> str:
        for number in range(STEPS):
            turn(number)
        # Behind all others by its name, and so on the last page of steps.
        return wait("zebra", str)

    @app.workflow
    def kid(number: int) -> int:
        return wait("go", int) if number == 3 else number

    @app.workflow
    def children() -> list[int]:
        return gather(*(kid.child(number) for number in range(CHILDREN)))

    def still_open(job) -> list[str]:
        return [each.id for each in job.children() if each.row().completed_at is None]

    with app.worker(concurrency=4):
        long, wide = steps.submit(), children.submit()
        wait_until(lambda: "for the signal zebra" in long.why(), "the wait")
        wait_until(lambda: len(wide.children()) == CHILDREN and len(still_open(wide)) == 1, "one that waits")
    (open_kid,) = still_open(wide)
    app.close()
    return url, long.id, wide.id, open_kid


@pytest.mark.slow
def test_a_timeline_leads_page_by_page_to_every_step_and_child(large):
    url, long, wide, _open_kid = large

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        for job_id, kind, number in ((long, "step", STEPS), (wide, "child", CHILDREN)):
            seen: list[str] = []
            path, pages = f"/jobs/{job_id}", 0
            while path:
                page = (await visitor.get(path)).text
                rows = BAR.findall(page)
                seen += [name for name, of_kind in rows if of_kind == kind]
                found = NEXT.search(page)
                assert ("has more lines than one page" in page) == (found is not None or pages > 0)
                path, pages = unescape(found[1]) if found else "", pages + 1
            assert (len(seen), pages) == (number, 2)
            if kind == "step":
                assert len(set(seen)) == number
        assert (await visitor.get(f"/jobs/{long}?steps=nonsense")).status_code == 422

    visiting(Tally(url), test)


@pytest.mark.slow
def test_a_graph_draws_what_is_open_and_says_how_much_it_leaves_out(large):
    url, long, wide, open_kid = large

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        page = (await visitor.get(f"/jobs/{long}?tab=graph")).text
        nodes = graph_of(page)["nodes"]
        assert [each["label"] for each in nodes if each["open"] and not each.get("self")] == ["zebra"]
        assert len(nodes) == 1 + NODES_MAX
        assert re.search(r"\d+\+ boxes are not drawn", page)
        page = (await visitor.get(f"/jobs/{wide}?tab=graph")).text
        nodes = graph_of(page)["nodes"]
        assert open_kid in [each["id"] for each in nodes if each["open"]]
        assert "not drawn" in page

    visiting(Tally(url), test)
