"""What tests of the HTTP API share: an app with a protocol and workflows, its keys, and a client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from tallystick import RemoteStep, Tally, wait
from tallystick.app.remote.api_keys import make_key
from tallystick.http import http_app
from tallystick.http.app import HttpApp

COMMAND = {
    "tenant_id": "acme",
    "request_type": "scan",
    "input_ref": "s3://in",
    "output_ref": "s3://out",
    "payload": {"page": 1},
    "schema_version": "v1",
}
ALL_SCOPES = ("jobs:read", "jobs:write", "work")


def make_app(url: str) -> Tally:
    """Return an app with a protocol of two steps and a few workflows."""
    app = Tally(url)
    app.protocol(
        "ocr-embed",
        request_types=["scan"],
        steps=[RemoteStep("ocr", service="ocr"), RemoteStep("embed", service="embed")],
    )

    @app.step
    def double(n: int) -> int:
        return n * 2

    @app.workflow
    def doubled(n: int) -> int:
        return double(n)

    @app.workflow
    def waits() -> str:
        return str(wait("go"))

    return app


class Client:
    """Somebody with a key."""

    def __init__(self, http: httpx.AsyncClient, key: str | None) -> None:
        self._http = http
        self._key = key

    async def __call__(self, method: str, path: str, **said: Any) -> httpx.Response:
        headers = dict(said.pop("headers", {}))
        if self._key is not None:
            headers.setdefault("Authorization", f"Bearer {self._key}")
        return await self._http.request(method, path, headers=headers, **said)


class World:
    """An app, its API in this process, and keys."""

    def __init__(self, app: Tally, api: HttpApp, http: httpx.AsyncClient) -> None:
        self.app = app
        self.api = api
        self._http = http

    def key(self, tenant: str = "acme", scopes: tuple[str, ...] = ALL_SCOPES, **about: Any) -> str:
        runtime = self.app.runtime()
        services = ("ocr", "embed") if "work" in scopes else ()
        _kept, text = make_key(runtime.committer, runtime.ids, tenant, scopes, services, **about)
        return text

    def client(self, key: str | None = None) -> Client:
        return Client(self._http, key)

    def known(self, tenant: str = "acme", scopes: tuple[str, ...] = ALL_SCOPES) -> Client:
        return self.client(self.key(tenant, scopes))


def serving(url: str, test: Callable[[World], Awaitable[None]], **options: Any) -> None:
    """Run a test against an API in this process."""

    async def run(app: Tally) -> None:
        api = http_app(app, hosts=["api.test"], **options)
        transport = httpx.ASGITransport(app=api, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://api.test") as http:
            try:
                await test(World(app, api, http))
            finally:
                await api.api.stop()

    with closing(make_app(url)) as app:
        asyncio.run(run(app))


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'books.db'}"
