"""A remote worker's side of a broker, as small as one in another language would be."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any
from uuid import uuid4

import msgspec
import nats
import redis
from nats.errors import TimeoutError as NothingCame
from nats.js.api import DiscardPolicy, StreamConfig
from nats.js.errors import NotFoundError

from tallystick import Nats, RedisStream
from tallystick.remote.publishers.endpoint import Endpoint
from tests.remote.brokers import Broker

Report = dict[str, Any]


class Side(ABC):
    """What a remote worker does: it takes directives and reports on them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    @property
    @abstractmethod
    def endpoint(self) -> Endpoint: ...

    @abstractmethod
    def directives(self) -> list[dict[str, Any]]:
        """Return all directives that the broker keeps."""

    @abstractmethod
    def take(self) -> list[dict[str, Any]]:
        """Take the directives that wait, as a remote worker of the guide does: the broker is told so."""

    @abstractmethod
    def kept(self) -> int:
        """Return how many directives and reports the broker keeps."""

    @abstractmethod
    def report(self, kind: str, token: str, body: bytes) -> Report:
        """Send a report and return the answer to it."""

    @abstractmethod
    def fill(self) -> None:
        """Let the broker take nothing more."""


class NatsSide(Side):
    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.broker.port}"

    @property
    def endpoint(self) -> Nats:
        return Nats(self.url, stream="WORK")

    def directives(self) -> list[dict[str, Any]]:
        async def read() -> list[dict[str, Any]]:
            client = await nats.connect(self.url)
            try:
                jetstream = client.jetstream()
                count = (await jetstream.stream_info("WORK")).state.messages
                found = [await jetstream.get_msg("WORK", seq) for seq in range(1, count + 1)]
                return [msgspec.json.decode(each.data or b"") for each in found]
            except NotFoundError:
                return []  # the relay has not made the stream yet
            finally:
                await client.close()

        return asyncio.run(read())

    def take(self) -> list[dict[str, Any]]:
        async def read() -> list[dict[str, Any]]:
            client = await nats.connect(self.url)
            try:
                taken = await client.jetstream().pull_subscribe("WORK.>", durable="readers", stream="WORK")
                found = await taken.fetch(10, timeout=1)
                for message in found:
                    await message.ack_sync()
                return [msgspec.json.decode(each.data) for each in found]
            except (NotFoundError, NothingCame):
                return []
            finally:
                await client.close()

        return asyncio.run(read())

    def kept(self) -> int:
        async def count() -> int:
            client = await nats.connect(self.url)
            jetstream = client.jetstream()
            infos = [await jetstream.stream_info(name) for name in ("WORK", "WORK-reports")]
            await client.close()
            return sum(each.state.messages for each in infos)

        return asyncio.run(count())

    def report(self, kind: str, token: str, body: bytes) -> Report:
        async def send() -> Report:
            client = await nats.connect(self.url)
            try:
                inbox = client.new_inbox()
                answers = await client.subscribe(inbox)
                headers = {"Tally-Token": token, "Tally-Reply-To": inbox}
                await client.jetstream().publish(f"WORK-reports.{kind}", body, headers=headers)
                return msgspec.json.decode((await answers.next_msg(timeout=30)).data)
            finally:
                await client.close()

        return asyncio.run(send())

    def fill(self) -> None:
        async def change() -> None:
            client = await nats.connect(self.url)
            config = StreamConfig("WORK", subjects=["WORK.>"], max_msgs=1, discard=DiscardPolicy.NEW)
            await client.jetstream().add_stream(config)
            await client.jetstream().publish("WORK.other", b"{}")
            await client.close()

        asyncio.run(change())


class RedisSide(Side):
    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.broker.port}"

    @property
    def endpoint(self) -> RedisStream:
        return RedisStream(self.url)

    def directives(self) -> list[dict[str, Any]]:
        with redis.from_url(self.url) as client:
            entries = [fields for stream in self._streams(client) for _id, fields in client.xrange(stream)]
            return [msgspec.json.decode(fields[b"directive"]) for fields in entries]

    def take(self) -> list[dict[str, Any]]:
        with redis.from_url(self.url) as client:
            found = []
            for stream in self._streams(client):
                with suppress(redis.ResponseError):
                    client.xgroup_create(stream, "readers", id="0")
                for _stream, entries in client.xreadgroup("readers", "w", {stream: ">"}) or ():
                    for entry, fields in entries:
                        client.xack(stream, "readers", entry)
                        found.append(msgspec.json.decode(fields[b"directive"]))
            return found

    def kept(self) -> int:
        with redis.from_url(self.url) as client:
            return sum(client.xlen(name) for name in (*self._streams(client), "tally:reports"))

    def _streams(self, client: Any) -> list[bytes]:
        return [key for key in client.keys("tally:*-p*") if not key.startswith(b"tally:sent:")]

    def report(self, kind: str, token: str, body: bytes) -> Report:
        with redis.from_url(self.url) as client:
            reply_to = f"tally:replies:{uuid4()}"
            fields = {"kind": kind, "token": token, "body": body, "reply_to": reply_to}
            client.xadd("tally:reports", fields)
            answer = client.blpop([reply_to], timeout=30)
            assert answer is not None
            return msgspec.json.decode(answer[1])

    def fill(self) -> None:
        with redis.from_url(self.url) as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "1")
