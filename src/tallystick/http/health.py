"""Routes about the server itself."""

from __future__ import annotations

import asyncio

from tallystick.http.api import Api
from tallystick.http.calls import Call
from tallystick.http.forms import Health

Answer = tuple[int, object]


async def alive(_api: Api, _call: Call) -> Answer:
    """Say that the process answers."""
    return 200, Health("ok")


async def ready(api: Api, _call: Call) -> Answer:
    """Say that the store answers too; else its error is the answer."""
    await asyncio.to_thread(api.runtime.store.job, "")
    return 200, Health("ok")
