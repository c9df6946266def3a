"""Where a dashboard stands: below a path of another app, in a server that was restarted, beside runs."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from html import unescape

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tallystick import Tally
from tallystick.app.remote.api_keys import make_key
from tallystick.dashboard import dashboard_app
from tallystick.dashboard.pages import runs as page_of_runs
from tallystick.errors import RunFailed
from tallystick.runs.definition.pipeline import Pipeline
from tallystick.runs.log.recorder import LOG
from tallystick.runs.orchestrator.start import start_or_resume
from tallystick.runs.toy import pipeline
from tallystick.runs.workers.work import Work
from tests.surfaces.dashboard.visiting import ALL, CSRF, Site, url_in, visiting

LINK = re.compile(r'(?:href|src|action|hx-get|sse-connect)="(/[^"]*)"')


@pytest.fixture
def app(tmp_path):
    return Tally(url_in(tmp_path))


def test_below_a_path_of_another_app_every_link_and_form_stays_there(app):
    @app.workflow
    def flow() -> None: ...

    job, runtime = flow.submit(), app.runtime()
    key = make_key(runtime.committer, runtime.ids, "default", ALL, ())[1]
    pages = dashboard_app(app, hosts=["d.test"])

    async def test() -> None:
        outer = httpx.ASGITransport(app=Starlette(routes=[Mount("/tally", pages)]))
        async with httpx.AsyncClient(transport=outer, base_url="http://d.test") as http:
            sent = await http.get("/tally/jobs")
            assert (sent.status_code, sent.headers["location"]) == (303, "/tally/login")
            let_in = await http.post("/tally/login", data={"key": key})
            assert let_in.headers["location"].startswith("/tally")
            assert "path=/tally" in let_in.headers["set-cookie"].lower()
            for path in ("/tally/overview", "/tally/jobs", f"/tally/jobs/{job.id}", "/tally/queues"):
                page = await http.get(path)
                links = set(LINK.findall(page.text))
                assert page.status_code == 200
                assert links
                assert [link for link in links if not link.startswith("/tally")] == []
                for link in (each for each in links if "/static/" in each):
                    assert (await http.get(link)).status_code == 200, link
            csrf = CSRF.search(page.text)
            assert csrf
            paused = await http.post(f"/tally/jobs/{job.id}/pause", data={"csrf": csrf[1], "why": "lunch"})
            assert (paused.status_code, paused.headers["location"]) == (303, f"/tally/jobs/{job.id}")
            assert app.job(job.id).row().hold == "PAUSED"

    with closing(app):
        asyncio.run(test())
        pages.stop()


def test_a_server_that_was_started_again_asks_for_the_key_again(app):
    """Sessions are in its memory; the key opens a new one."""

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        assert (await visitor.get("/overview")).status_code == 200
        again = dashboard_app(app, hosts=["d.test"])
        visitor.http._transport = httpx.ASGITransport(app=again)
        answer = await visitor.get("/overview")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        assert (await visitor.log_in(site.key())).status_code == 303
        assert (await visitor.get("/overview")).status_code == 200
        again.stop()

    visiting(app, test)


def test_an_artifact_is_a_file_that_no_browser_opens(app, tmp_path):
    start_or_resume(pipeline, str(tmp_path / "runs"), "first")

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        page = (await visitor.get("/runs/first")).text
        links = [link for link in LINK.findall(page) if "/artifacts/" in link]
        assert links
        for link in links:
            answer = await visitor.get(link)
            assert answer.status_code == 200
            assert answer.content
            assert answer.headers["content-disposition"].startswith('attachment; filename="')
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
            assert answer.headers["content-type"] == "application/octet-stream"
        for missing in ("/runs/first/artifacts/nothing", "/runs/second"):
            assert (await visitor.get(missing)).status_code == 404
        tenant = await site.visitor("jobs:read")
        assert (await tenant.get(links[0])).status_code == 403

    visiting(app, test, runs_root=str(tmp_path / "runs"))


def book(*, fails: bool) -> Pipeline:
    """Return a pipeline that calls its end by a name of its own."""
    made = Pipeline("book", {"NEW": "PUBLISHED"})
    chapters = [f"chapter-{number}.txt" for number in range(3)]

    @made.node("NEW", outputs=chapters)
    def write(work: Work) -> None:
        if fails:
            raise ValueError("the ink is dry")
        for name in chapters:
            work.write(name, name)

    return made


def test_runs_are_listed_in_pages_with_the_colour_of_their_end(app, tmp_path, monkeypatch):
    root = str(tmp_path / "runs")
    for name in ("a", "b", "d"):
        start_or_resume(book(fails=False), root, name)
    with pytest.raises(RunFailed):
        start_or_resume(book(fails=True), root, "c")
    (tmp_path / "runs" / "e").mkdir()
    (tmp_path / "runs" / "e" / LOG).write_text("no log")
    monkeypatch.setattr(page_of_runs, "RUNS_MAX", 3)
    monkeypatch.setattr(page_of_runs, "ITEMS_MAX", 2)

    async def test(site: Site) -> None:
        visitor, seen, path = await site.visitor(), {}, "/runs"
        while path:
            page = (await visitor.get(path)).text
            row = r'href="/runs/(\w)">\w</a></td><td><span class="chip (\w+)">(\w+)<'
            seen |= {name: (kind, state) for name, kind, state in re.findall(row, page)}
            more = re.search(r'href="([^"]+)" rel="next">More runs', page)
            assert ("3 are shown" in page) == bool(more)
            path = more[1] if more else ""
        good, bad, unknown = ("good", "published"), ("bad", "failed"), ("warn", "unknown")
        assert seen == {"a": good, "b": good, "c": bad, "d": good, "e": unknown}
        run = (await visitor.get("/runs/a")).text
        assert '<span class="chip good">published</span>' in run
        assert "1 to 2 of 3 artifacts." in run
        assert (run.count("/artifacts/chapter"), "work items." in run) == (2, False)
        rest = (await visitor.get("/runs/a?artifacts=2")).text
        assert "3 to 3 of 3 artifacts." in rest
        assert rest.count("/artifacts/chapter") == 1
        assert '"kind":"good","self":true' in unescape(run).replace(" ", "")

    visiting(app, test, runs_root=root)
