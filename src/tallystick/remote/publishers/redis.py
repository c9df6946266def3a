"""Redis Streams: a directive is an entry of the stream of its topic; reports come back over one stream.

A copy of a directive is not added again while its identifier is remembered, for longer than all tries take.
Redis is as durable as its settings: with `appendonly yes` what was sent survives a crash of Redis.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, ClassVar, Final

from tallystick.core.remote.policy import budget_ms
from tallystick.errors import BadInput, PublishFailed
from tallystick.remote.publishers.addresses import read_address
from tallystick.remote.publishers.endpoint import (
    AWAY,
    NO_ROOM,
    REPORTS,
    AddressedEndpoint,
    Answer,
    Outgoing,
    Published,
    Publisher,
    WebAddress,
)

_GROUP: Final = "tally"
_CONNECT_SECONDS: Final = 3.0
_AGAIN_SECONDS: Final = 1.0
_BLOCK_MS: Final = 2_000
_AT_ONCE: Final = 64
# A report that a worker took and did not answer in this time is taken by another.
_LEFT_MS: Final = 30_000
_ANSWER_SECONDS: Final = 3_600

# One step for Redis: what is remembered is not added, and what could not be added is not remembered. Then all
# that every group of readers has acknowledged is removed; a stream without groups is left to its readers.
_ADD: Final = """
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('XADD', KEYS[2], '*', 'id', ARGV[2], 'directive', ARGV[3])
  redis.call('SET', KEYS[1], '1', 'EX', ARGV[1])
end
local function parts(id)
  local ms, number = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(number)
end
local function is_before(one, other)
  local ms, number = parts(one)
  local other_ms, other_number = parts(other)
  return ms < other_ms or (ms == other_ms and number < other_number)
end
local needed = nil
for _, fields in ipairs(redis.pcall('XINFO', 'GROUPS', KEYS[2])) do
  local group = {}
  for at = 1, #fields, 2 do group[fields[at]] = fields[at + 1] end
  local first = group['last-delivered-id']
  if group['pending'] > 0 then
    first = redis.call('XPENDING', KEYS[2], group['name'])[2]
  end
  if needed == nil or is_before(first, needed) then needed = first end
end
if needed ~= nil then redis.pcall('XTRIM', KEYS[2], 'MINID', needed) end
"""

_log = logging.getLogger("tallystick.worker")


class RedisStream(AddressedEndpoint):
    """Directives go to the stream `PREFIX:TOPIC`, reports to `PREFIX:reports`."""

    needs: ClassVar = ("redis", "redis")

    def __init__(self, url: str, *, prefix: str = "tally") -> None:
        """Name the server; several installations on one server need a prefix each."""
        wanted = "a Redis server has an address like redis://host:6379"
        self._parts = read_address(url, {"redis", "rediss"}, wanted)
        if not prefix or ":" in prefix:
            raise BadInput(f"the prefix of streams is a word without a colon, not {prefix!r}")
        self._prefix = prefix
        self._address = WebAddress("redis", self._parts, prefix)

    @property
    def replies(self) -> dict[str, str]:
        """Return the stream for reports, which carry their kind in a field."""
        return dict.fromkeys(REPORTS, f"redis:{self._prefix}:reports")

    def connect(self) -> Publisher:
        """Return the publisher to the streams."""
        return RedisPublisher(self._parts.geturl(), self._prefix, self.clean)


class RedisPublisher(Publisher):
    """Adds directives over a pool of connections."""

    def __init__(self, url: str, prefix: str, clean: Callable[[str], str] = str) -> None:
        """Prepare; nothing is connected yet. `clean` takes secrets out of what is logged."""
        from redis.asyncio import from_url  # noqa: PLC0415 (as above)
        from redis.asyncio.retry import Retry  # noqa: PLC0415 (as above)
        from redis.backoff import NoBackoff  # noqa: PLC0415 (as above)

        self._prefix, self._clean = prefix, clean
        # Typed for both colours of the library, which makes every answer a union: here they are awaited.
        self._redis: Any = from_url(
            url,
            socket_connect_timeout=_CONNECT_SECONDS,
            retry=Retry(NoBackoff(), 0),
            max_connections=RedisStream.in_flight + 2,
        )

    async def publish(self, outgoing: Outgoing) -> None:
        """Add a directive to its stream."""
        from redis.exceptions import RedisError, ResponseError  # noqa: PLC0415 (as above)

        keys = (f"{self._prefix}:sent:{outgoing.outbox_id}", f"{self._prefix}:{outgoing.topic}")
        about = (str(budget_ms(1) // 1000), outgoing.outbox_id, outgoing.body)
        try:
            await self._redis.eval(_ADD, len(keys), *keys, *about)
        except (RedisError, OSError) as error:
            told = NO_ROOM if isinstance(error, ResponseError) else AWAY
            raise PublishFailed(f"Redis: {type(error).__name__}: {error}", told=told) from error

    async def listen(self, answer: Answer) -> None:
        """Take reports from their stream; one that is not answered here is taken again."""
        from redis.exceptions import RedisError  # noqa: PLC0415 (as above)

        stream, told = f"{self._prefix}:reports", ""
        me = f"{id(self):x}-{id(asyncio.get_running_loop()):x}"
        while True:
            try:
                await self._make_group(stream)
                while True:
                    left = await self._redis.xautoclaim(stream, _GROUP, me, _LEFT_MS, count=_AT_ONCE)
                    await self._all_heard(stream, left[1], answer)
                    found = await self._redis.xreadgroup(
                        _GROUP, me, {stream: ">"}, count=_AT_ONCE, block=_BLOCK_MS
                    )
                    told = ""
                    for _stream, entries in found or ():
                        await self._all_heard(stream, entries, answer)
            except (RedisError, OSError) as error:
                if str(error) != told:
                    told = str(error)
                    self._tell(error)
                await asyncio.sleep(_AGAIN_SECONDS)

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    def _tell(self, error: Exception) -> None:
        _log.warning("reports over Redis: %s", self._clean(str(error)), extra={"action": "reports.failed"})

    async def _make_group(self, stream: str) -> None:
        from redis.exceptions import ResponseError  # noqa: PLC0415 (as above)

        try:
            await self._redis.xgroup_create(stream, _GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    async def _all_heard(
        self, stream: str, entries: list[tuple[bytes, dict[bytes, bytes]]], answer: Answer
    ) -> None:
        await asyncio.gather(*(self._heard(stream, entry, fields, answer) for entry, fields in entries))

    async def _heard(self, stream: str, entry: bytes, fields: dict[bytes, bytes], answer: Answer) -> None:
        kind, token = (fields.get(name, b"").decode("utf-8", "replace") for name in (b"kind", b"token"))
        try:
            told = await answer(Published(kind, token, fields.get(b"body", b"")))
        except Exception as error:  # noqa: BLE001 (the store is away, or worse: it is taken again, and nothing is lost)
            self._tell(error)
            return
        reply_to = fields.get(b"reply_to", b"").decode("utf-8", "replace")
        async with self._redis.pipeline(transaction=True) as pipe:
            if reply_to.startswith(f"{self._prefix}:replies:"):
                pipe.rpush(reply_to, told)
                pipe.expire(reply_to, _ANSWER_SECONDS)
            pipe.xack(stream, _GROUP, entry)
            pipe.xdel(stream, entry)
            await pipe.execute()
