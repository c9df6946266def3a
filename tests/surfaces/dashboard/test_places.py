"""Where a dashboard stands: below a path of another app, in a server that was restarted, beside runs."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tallystick import Tally
from tallystick.app.remote.api_keys import make_key
from tallystick.dashboard import dashboard_app
from tallystick.runs.orchestrator.start import start_or_resume
from tallystick.runs.toy import pipeline
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
