"""Between a program and the service: it says that the service is busy, or keeps answers, or half of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import ClientSession, web
from yarl import URL

OK, BUSY, LOST, TORN = "ok", "busy", "lost", "torn"


class Proxy:
    """A server that passes requests on; `decide` says of each what becomes of it, by its number."""

    def __init__(self, target: int) -> None:
        self._target = f"http://127.0.0.1:{target}"
        self.decide: Callable[[int], str] = lambda _number: OK
        self.port = 0
        self.number = 0
        self.troubles = 0
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(30)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        self._loop.close()

    async def _serve(self) -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._pass)
        async with ClientSession(auto_decompress=False, skip_auto_headers=("Content-Type",)) as self._client:
            runner = web.AppRunner(app)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.port = runner.addresses[0][1]
            self._started.set()
            await self._stop.wait()
            await runner.cleanup()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        self.number += 1
        fate = self.decide(self.number)
        self.troubles += fate != OK
        if fate == BUSY:
            return web.Response(status=503, headers={"Retry-After": "0"}, text="busy")
        body = await request.read() or None
        url = URL(f"{self._target}{request.raw_path}", encoded=True)  # what was signed, to the letter
        async with self._client.request(request.method, url, data=body, headers=request.headers) as answer:
            said = await answer.read()
            if fate == LOST and request.transport is not None:
                request.transport.abort()
            headers = {name: value for name, value in answer.headers.items() if name not in _HOP}
            if fate == TORN and len(said) > 1:
                return await self._torn(request, answer.status, headers, said)
            return web.Response(status=answer.status, body=said, headers=headers)

    async def _torn(
        self, request: web.Request, status: int, headers: dict[str, str], said: bytes
    ) -> web.StreamResponse:
        """Send the head and half of the body of an answer, and no more."""
        half = web.StreamResponse(status=status, headers={**headers, "Content-Length": str(len(said))})
        await half.prepare(request)
        await half.write(said[: len(said) // 2])
        if request.transport is not None:
            request.transport.close()
        return half


_HOP = {"Transfer-Encoding", "Content-Length", "Connection", "Keep-Alive"}


@contextmanager
def between(target: int) -> Iterator[Proxy]:
    proxy = Proxy(target)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
