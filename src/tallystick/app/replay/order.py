"""The order of a replay: what was recorded is given out in the order in which it once happened.

Tasks ask for their records in any order. Each gets its own when everything recorded before it has been asked
for and given out, so that tasks go on as they first did, and what they do next is numbered as it was. Records
that no task asks for any more hold up none: when nothing else can go on, the first that waits does.
"""

from __future__ import annotations

import asyncio
import heapq

from tallystick.engine.segment import Segment


class Turns:
    """The calls of one segment that have asked for a record and wait for their turn."""

    def __init__(self, segment: Segment, loop: asyncio.AbstractEventLoop) -> None:
        """Begin with none."""
        self._segment = segment
        self._loop = loop
        self._queue: list[tuple[int, asyncio.Future[None]]] = []
        self._gone_on: set[asyncio.Future[None]] = set()

    def __bool__(self) -> bool:
        """Tell whether any call waits."""
        return self._first() is not None

    def is_early(self, n: int) -> bool:
        """Tell whether something recorded before place `n` was not asked for, or not given out."""
        first = self._first()
        return self._segment.past.skipped(n) or (first is not None and first[0] < n)

    async def come(self, n: int) -> None:
        """Return when it is the turn of place `n`."""
        future: asyncio.Future[None] = self._loop.create_future()
        heapq.heappush(self._queue, (n, future))
        self.look()
        try:
            await future
        finally:
            # Only now does its task go on. The next one comes when that task waits again, or has ended.
            self._gone_on.add(future)
            self.look()

    def look(self) -> None:
        """Look soon whether the first has its turn now: a record was asked for, or given out."""
        if self._queue:
            self._loop.call_soon(self._let_go)

    def let_first_go(self) -> None:
        """Let the first go on although records before its own were not asked for: no task asks any more."""
        first = self._first()
        if first is not None and not first[1].done():
            first[1].set_result(None)

    def abandon(self) -> None:
        """Let all calls go: the function has ended without them."""
        for _n, future in self._queue:
            future.cancel()

    def _let_go(self) -> None:
        first = self._first()
        if first is not None and not self._segment.past.skipped(first[0]):
            self.let_first_go()

    def _first(self) -> tuple[int, asyncio.Future[None]] | None:
        while self._queue and self._queue[0][1] in self._gone_on:
            self._gone_on.discard(heapq.heappop(self._queue)[1])
        return self._queue[0] if self._queue else None
