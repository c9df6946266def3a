"""News for pages that are open: a stream of server-sent events that say that something was written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import StreamingResponse

from tallystick.http.news import LOOK_SECONDS, News
from tallystick.store.api import Store

# Pages ask for themselves again after a change; more often than this is no use to a reader.
GAP_SECONDS: Final = 1.0
# Some of a page changes without a write: a lease runs out, a job gets older.
CHECK_SECONDS: Final = 5.0
_CHANGE: Final = "event: change\ndata: 1\n\n"
_STILL_HERE: Final = ": still here\n\n"
_OVER: Final = "event: over\ndata: 1\n\n"


def stream(request: Request, news: News, store: Store, is_open: Callable[[], bool]) -> StreamingResponse:
    """Return the stream; it says nothing about what was written, and ends with its session."""
    return StreamingResponse(
        _said(request, news, store, is_open),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _said(
    request: Request, news: News, store: Store, is_open: Callable[[], bool]
) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    pulse = await asyncio.to_thread(store.pulse)
    yield _STILL_HERE
    left = CHECK_SECONDS
    while not news.closed and not await request.is_disconnected():
        await news.heard(GAP_SECONDS)
        beat = await asyncio.to_thread(store.pulse)
        if beat != pulse:
            pulse = beat
            yield _CHANGE
            await asyncio.sleep(GAP_SECONDS)
        left -= LOOK_SECONDS
        if left <= 0:
            left = CHECK_SECONDS
            if not await loop.run_in_executor(None, is_open):
                yield _OVER
                return
            yield _CHANGE
