"""A task that waits for directives hears at once when there may be some."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from tallystick.ids import SystemIds

if TYPE_CHECKING:
    from tallystick.store.api import Store

# The store notifies us of writes of other processes where it can; this is for where it cannot.
LOOK_SECONDS: Final = 0.25


class News:
    """Wakes all tasks of a loop that wait for something to be written."""

    def __init__(self, store: Store) -> None:
        """Begin with nothing heard."""
        self._store = store
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hush = _nothing
        self.closed = False
        self.waiting = 0

    def begin(self) -> None:
        """Hear of what other processes write."""
        self._loop = asyncio.get_running_loop()
        self._hush = self._store.listen(self.ring_soon, f"http-{SystemIds().token()[:8]}")

    def ring(self) -> None:
        """Wake all that wait; called in the loop's own thread."""
        self._changed.set()
        self._changed = asyncio.Event()

    def ring_soon(self) -> None:
        """Wake all that wait, from another thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.ring)

    async def heard(self, seconds: float) -> None:
        """Return when something may be new, or when the time is up."""
        self.waiting += 1
        try:
            async with asyncio.timeout(min(seconds, LOOK_SECONDS)):
                await self._changed.wait()
        except TimeoutError:
            return
        finally:
            self.waiting -= 1

    def close_soon(self) -> None:
        """Let all go, from a signal."""
        self.closed = True
        self.ring_soon()

    def close(self) -> None:
        """Let all go."""
        self.closed = True
        self._hush()
        self.ring()


def _nothing() -> None:
    return None
