"""Between a remote worker and the API: connections are cut before a request arrives, or before its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from tests.azure.proxy import BUSY, LOST, OK, Proxy

CUT = "cut"
"""The request never arrives; that of `LOST` does, and its answer goes nowhere."""
FATES = (CUT, LOST, BUSY)

__all__ = ["BUSY", "CUT", "FATES", "LOST", "OK", "CuttingProxy", "cutting"]


class CuttingProxy(Proxy):
    """A proxy that can also hang up on a request before it has passed it on."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        # What was cut, by its method and path.
        self.cut: list[str] = []

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        fate = self.decide(self.number + 1)
        if fate != OK:
            self.cut.append(f"{fate} {request.method} {request.path}")
        if fate != CUT or request.transport is None:
            return await super()._pass(request)
        self.number += 1
        self.troubles += 1
        await request.read()
        request.transport.abort()
        return web.Response()


@contextmanager
def cutting(url: str) -> Iterator[CuttingProxy]:
    """Put a proxy before the API at an address."""
    proxy = CuttingProxy(int(url.rpartition(":")[2]))
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
