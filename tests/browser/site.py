"""A dashboard on a seeded store, served on a free port, and a browser that notes everything it does."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page

from tallystick.app.remote.api_keys import make_key
from tallystick.dashboard import dashboard_app
from tests.patience import wait_until
from tests.surfaces.dashboard.seeds import World, seed

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PICTURES = Path(__file__).parents[2] / "build" / "browser"
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"


class Site:
    """The server, the world behind it, and the jobs that stand still."""

    def __init__(self, url: str, runs_root: str | None = None) -> None:
        self.world = World(url)
        self.stuck = seed(self.world)
        self.pages = dashboard_app(self.world.app, runs_root=runs_root)
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(self.pages, log_level="warning", lifespan="off", log_config=None)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        wait_until(lambda: self._server.started, "a server that answers")

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def key(self, *scopes: str, tenant: str = "default") -> str:
        runtime = self.world.app.runtime()
        return make_key(runtime.committer, runtime.ids, tenant, scopes, ())[1]

    def close(self) -> None:
        self.pages.news.close_soon()
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(30)
        self.pages.stop()
        self.world.app.close()


class Watched:
    """A page of a browser, and what went wrong in it."""

    def __init__(self, site: Site, context: BrowserContext) -> None:
        self.site = site
        self.context = context
        self.page = context.new_page()
        self.trouble: list[str] = []
        self.page.on("console", lambda said: self._note(said.type, said.text))
        self.page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        self.page.on(
            "dialog", lambda dialog: (self.trouble.append(f"dialog: {dialog.message}"), dialog.dismiss())
        )
        context.on("request", lambda request: self._left(request.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.trouble.append(f"{kind}: {text}")

    def _left(self, url: str) -> None:
        if not url.startswith((self.site.address, "data:")):
            self.trouble.append(f"a request left the host: {url}")

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.site.address}{path}", wait_until="load")
        return self.page

    def log_in(self) -> Watched:
        self.go(self.site.pages.link())
        return self

    def picture(self, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

    def serious(self) -> list[str]:
        """Return what axe finds that keeps people out."""
        self.page.evaluate(AXE.read_text("utf-8"))
        found: Any = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{self.page.url}: {each['id']}: {each['nodes'][0]['html'][:160]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]


@contextmanager
def watching(site: Site, browser: Browser, **options: Any) -> Iterator[Watched]:
    """Open a browser of its own for a test; whatever went wrong in it fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, **options)
    context.set_default_timeout(60_000)
    try:
        watched = Watched(site, context)
        yield watched
        assert watched.trouble == []
    finally:
        context.close()
