"""What tests of the dashboard share: its app in this process, visitors with keys, and their forms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from tallystick import Tally
from tallystick.app.remote.api_keys import make_key
from tallystick.core.remote.keys import SCOPES
from tallystick.dashboard import dashboard_app
from tallystick.dashboard.app import Dashboard

CSRF = re.compile(r'name="csrf" value="([0-9a-f]+)"')
ALL = tuple(scope for scope in SCOPES if scope != "work")


def url_in(folder: Path) -> str:
    return f"sqlite:///{folder / 'books.db'}"


class Visitor:
    """A browser: it keeps its cookie, and sends the token of the page that it saw."""

    def __init__(self, site: Site) -> None:
        transport = httpx.ASGITransport(app=site.pages, raise_app_exceptions=True)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://d.test")

    async def log_in(self, key: str) -> httpx.Response:
        return await self.http.post("/login", data={"key": key})

    async def get(self, path: str, **said: Any) -> httpx.Response:
        return await self.http.get(path, **said)

    async def token(self) -> str:
        page = await self.http.get("/lifecycles")
        found = CSRF.search(page.text)
        assert found, page.text
        return found[1]

    async def post(self, path: str, **fields: str) -> httpx.Response:
        return await self.http.post(path, data={"csrf": await self.token(), **fields})


class Site:
    """A dashboard and those who come."""

    def __init__(self, app: Tally, pages: Dashboard) -> None:
        self.app = app
        self.pages = pages
        self._visitors: list[Visitor] = []

    def key(self, *scopes: str, tenant: str = "default", **about: Any) -> str:
        runtime = self.app.runtime()
        services = ("ocr",) if "work" in scopes else ()
        _kept, text = make_key(runtime.committer, runtime.ids, tenant, scopes or ALL, services, **about)
        return text

    def stranger(self) -> Visitor:
        visitor = Visitor(self)
        self._visitors.append(visitor)
        return visitor

    async def visitor(self, *scopes: str, tenant: str = "default") -> Visitor:
        visitor = self.stranger()
        answer = await visitor.log_in(self.key(*scopes, tenant=tenant))
        assert answer.status_code == 303, answer.text
        return visitor

    async def close(self) -> None:
        for visitor in self._visitors:
            await visitor.http.aclose()
        self.pages.stop()


def visiting(app: Tally, test: Callable[[Site], Awaitable[None]], **options: Any) -> None:
    """Run a test against a dashboard in this process, and close the app."""

    async def run() -> None:
        site = Site(app, dashboard_app(app, hosts=["d.test"], **options))
        try:
            await test(site)
        finally:
            await site.close()

    with closing(app):
        asyncio.run(run())
