"""NATS JetStream: a directive is out when the stream has it; reports come back over a stream of their own.

The server drops copies: a directive that is published again has the same `Nats-Msg-Id`, and the stream
remembers identifiers for longer than all tries of a directive take. Streams that are made here are work
queues: what was acknowledged is gone. A stream that is there is left as it is.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from tallystick.core.remote.policy import budget_ms
from tallystick.errors import BadInput, PublishFailed
from tallystick.remote.publishers.addresses import read_address
from tallystick.remote.publishers.endpoint import (
    AWAY,
    NO_ROOM,
    PUBLISH_SECONDS,
    REFUSED,
    REPORTS,
    AddressedEndpoint,
    Answer,
    Outgoing,
    Published,
    Publisher,
    WebAddress,
)

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

TOKEN: Final = "Tally-Token"  # noqa: S105 (the name of a header)
REPLY_TO: Final = "Tally-Reply-To"
_CONSUMER: Final = "tally"
_CONNECT_SECONDS: Final = 3.0
_AGAIN_SECONDS: Final = 1.0
_KNOCK_SECONDS: Final = 0.1
_AT_ONCE: Final = 64
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

_log = logging.getLogger("tallystick.worker")


class Nats(AddressedEndpoint):
    """Directives go to a stream of JetStream, to the subject `STREAM.TOPIC`."""

    needs: ClassVar = ("nats", "nats")

    def __init__(self, url: str, *, stream: str, credentials: str | None = None) -> None:
        """Name the server and the stream; `credentials` is a file of NATS, if the server wants one."""
        wanted = "a NATS server has an address like nats://host:4222"
        self._parts = read_address(url, {"nats", "tls", "ws", "wss"}, wanted)
        if not _NAME.fullmatch(stream):
            raise BadInput(f"the name of a stream has letters, digits, - and _, not {stream!r}")
        self._stream = stream
        self._credentials = credentials
        self._address = WebAddress("nats", self._parts, stream)

    @property
    def replies(self) -> dict[str, str]:
        """Return the subjects for reports."""
        return {kind: f"nats:{self._stream}-reports.{kind}" for kind in REPORTS}

    def connect(self) -> Publisher:
        """Return the publisher to the stream."""
        return NatsPublisher(self._parts.geturl(), self._stream, self._credentials, self.clean)


class NatsPublisher(Publisher):
    """Publishes over one connection, which is made again when it is lost."""

    def __init__(
        self, url: str, stream: str, credentials: str | None, clean: Callable[[str], str] = str
    ) -> None:
        """Prepare; nothing is connected yet. `clean` takes secrets out of what is logged."""
        self._clean = clean
        self._url, self._stream, self._credentials = url, stream, credentials
        self._client: Client | None = None
        self._endless: set[str] = set()
        self._connecting = asyncio.Lock()

    async def publish(self, outgoing: Outgoing) -> None:
        """Publish a directive and wait until the stream has it."""
        from nats.errors import Error, MaxPayloadError  # noqa: PLC0415 (as above)
        from nats.js.errors import APIError  # noqa: PLC0415 (as above)

        try:
            jetstream = await self._jetstream()
            await jetstream.publish(
                f"{self._stream}.{outgoing.topic}",
                outgoing.body,
                timeout=PUBLISH_SECONDS,
                stream=self._stream,
                headers={"Nats-Msg-Id": outgoing.outbox_id},
            )
        except (Error, OSError) as error:
            final = isinstance(error, MaxPayloadError)
            told = REFUSED if final else NO_ROOM if isinstance(error, APIError) else AWAY
            raise PublishFailed(f"NATS: {type(error).__name__}: {error}", final=final, told=told) from error

    async def listen(self, answer: Answer) -> None:
        """Take reports from their stream; one that is not answered here comes again."""
        from nats.errors import Error  # noqa: PLC0415 (as above)
        from nats.errors import TimeoutError as NothingCame  # noqa: PLC0415 (as above)

        told = ""
        while True:
            try:
                jetstream = await self._jetstream()
                subject = f"{self._stream}-reports"
                taken = await jetstream.pull_subscribe(f"{subject}.>", durable=_CONSUMER, stream=subject)
                while True:
                    try:
                        messages = await taken.fetch(_AT_ONCE, timeout=PUBLISH_SECONDS)
                    except NothingCame:
                        continue
                    told = ""
                    await asyncio.gather(*(self._heard(message, answer) for message in messages))
            except (Error, OSError, PublishFailed) as error:
                if str(error) != told:
                    told = str(error)
                    self._tell(error)
                await asyncio.sleep(_AGAIN_SECONDS)

    async def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            await self._client.close()

    async def _heard(self, message: Msg, answer: Answer) -> None:
        headers = message.headers or {}
        kind = message.subject.rpartition(".")[2]
        try:
            told = await answer(Published(kind, headers.get(TOKEN, ""), message.data))
        except Exception as error:  # noqa: BLE001 (the store is away, or worse: it comes again, and nothing is lost)
            self._tell(error)
            await message.nak(delay=_AGAIN_SECONDS)
            return
        reply_to = headers.get(REPLY_TO, "")
        if reply_to.startswith("_INBOX."):
            await message._client.publish(reply_to, told)  # noqa: SLF001 (the connection that it came over)
        await message.ack()

    def _tell(self, error: Exception) -> None:
        _log.warning("reports over NATS: %s", self._clean(str(error)), extra={"action": "reports.failed"})

    async def _jetstream(self) -> JetStreamContext:
        """Return the open connection, or open one and see that the streams are there."""
        import nats  # noqa: PLC0415 (as above)

        async with self._connecting:
            if self._client is None or not self._client.is_connected:
                if self._client is not None:
                    await self._client.close()
                self._client = await nats.connect(
                    self._url,
                    allow_reconnect=False,
                    # The library would knock at a server that is away for longer than a try may take.
                    max_reconnect_attempts=1,
                    reconnect_time_wait=_KNOCK_SECONDS,
                    connect_timeout=_CONNECT_SECONDS,
                    user_credentials=self._credentials,
                    error_cb=_no_word,
                    name="tallystick",
                )
                for name in (self._stream, f"{self._stream}-reports"):
                    await self._see_stream(self._client.jetstream(), name)
            return self._client.jetstream()

    async def _see_stream(self, jetstream: JetStreamContext, name: str) -> None:
        """Make a stream that is missing; of one that keeps everything for ever say so, once."""
        from nats.js.api import RetentionPolicy, StreamConfig  # noqa: PLC0415 (as above)
        from nats.js.errors import NotFoundError  # noqa: PLC0415 (as above)

        try:
            config = (await jetstream.stream_info(name)).config
        except NotFoundError:
            made = StreamConfig(
                name=name,
                subjects=[f"{name}.>"],
                retention=RetentionPolicy.WORK_QUEUE,
                duplicate_window=budget_ms(1) / 1000,
            )
            await jetstream.add_stream(made)
            return
        limits = (config.max_age, config.max_msgs, config.max_bytes, config.max_msgs_per_subject)
        is_endless = config.retention == RetentionPolicy.LIMITS and not any(
            (each or 0) > 0 for each in limits
        )
        if is_endless and name not in self._endless:
            self._endless.add(name)
            _log.warning(
                "the stream %s of NATS keeps every message for ever, also those that were acknowledged: "
                "make it a work queue, or give it a max_age",
                name,
                extra={"action": "stream.endless"},
            )


async def _no_word(_error: Exception) -> None:
    """Leave errors to the calls that meet them."""
