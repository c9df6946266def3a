"""What a browser sees where there is no page for it: words and a way on, not data."""

from __future__ import annotations

import asyncio
from contextlib import closing

import httpx
import pytest

from tallystick import Tally
from tallystick.http.app import http_app
from tallystick.http.serving import UI, _with_dashboard
from tests.surfaces.dashboard.visiting import Site, url_in, visiting

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Mode": "navigate"}
FROM_ELSEWHERE = {**BROWSER, "Sec-Fetch-Site": "cross-site"}


@pytest.fixture
def app(tmp_path):
    return Tally(url_in(tmp_path))


def test_a_link_of_another_site_leads_to_a_page_with_a_way_on(app):
    async def test(site: Site) -> None:
        visitor = await site.visitor()
        page = await visitor.get("/jobs", headers=FROM_ELSEWHERE)
        assert (page.status_code, page.headers["content-type"]) == (403, "text/html; charset=utf-8")
        assert 'href="/"' in page.text
        assert "CROSS_SITE" in page.text
        assert "default-src 'self'" in page.headers["content-security-policy"]
        as_data = await visitor.get("/jobs", headers={"Sec-Fetch-Site": "cross-site"})
        assert as_data.headers["content-type"] == "application/problem+json"
        assert (
            (await visitor.get("/nothing", headers=BROWSER)).headers["content-type"].startswith("text/html")
        )

    visiting(app, test)


def test_beside_the_api_browsers_get_pages_below_its_path_alone(app):
    http = http_app(app, hosts=["d.test"])
    _with_dashboard(http, ["d.test"], None, secure=False)

    async def test() -> None:
        transport = httpx.ASGITransport(app=http)
        async with httpx.AsyncClient(transport=transport, base_url="http://d.test") as client:
            for path, headers, status in (
                (f"{UI}/jobs", FROM_ELSEWHERE, 403),
                (UI, FROM_ELSEWHERE, 403),
                (f"{UI}/nothing", BROWSER, 404),
                (f"{UI}/jobs", {**BROWSER, "Host": "evil.example"}, 421),
            ):
                page = await client.get(path, headers=headers)
                assert (page.status_code, page.headers["content-type"]) == (
                    status,
                    "text/html; charset=utf-8",
                )
                assert f'"{UI}/' in page.text, page.text
            for path in ("/v1/jobs", "/uikit"):
                answer = await client.get(path, headers=FROM_ELSEWHERE)
                assert answer.headers["content-type"] == "application/problem+json"

    with closing(app):
        asyncio.run(test())
        http.api.news.close()
