"""Where the directives of a service go, and what takes them there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import ClassVar, Final, NamedTuple, TypeAlias
from urllib.parse import SplitResult

from tallystick.core.remote.rows import PULL
from tallystick.errors import BadInput, ExtraMissing

PUBLISH_SECONDS: Final = 10.0
"""How long one try may take; the shortest right to publish lasts three times as long."""

REPORTS: Final = ("ack", "heartbeat", "result")
"""What a remote worker may report, as the addresses for it are called."""


class Outgoing(NamedTuple):
    """A directive as it leaves; every copy of it has the same `outbox_id`."""

    outbox_id: str
    topic: str
    body: bytes


class Published(NamedTuple):
    """What a remote worker says over a broker: `kind` is ack, heartbeat or result."""

    kind: str
    token: str
    body: bytes


Answer: TypeAlias = Callable[[Published], Awaitable[bytes]]
"""Takes a report, and returns what its sender is told once it is durable or refused."""


class Publisher(ABC):
    """Takes directives to one endpoint; it belongs to one event loop."""

    @abstractmethod
    async def publish(self, outgoing: Outgoing) -> None:
        """Hand a directive over; return when the other side has it, or raise `PublishFailed`."""

    async def listen(self, answer: Answer) -> None:  # noqa: B027 (only brokers have something to read)
        """Take reports that come back on this way, until cancelled; each is acknowledged after its answer."""

    async def close(self) -> None:  # noqa: B027 (only those override it that have something open)
        """Give everything back."""


class Endpoint(ABC):
    """Where directives of a service go, as it is declared."""

    in_flight: ClassVar[int] = 64
    """How many directives may be on their way to it at once."""

    needs: ClassVar[tuple[str, str] | None] = None
    """The package that publishing needs, and the extra that brings it."""

    def check(self) -> None:
        """Raise `ExtraMissing` if a package for it is not installed; a worker asks before it begins."""
        if self.needs is not None and find_spec(self.needs[0]) is None:
            raise ExtraMissing(f"publishing to {self.address}", self.needs[1])

    @property
    @abstractmethod
    def address(self) -> str:
        """Return way and address without any secret, as the row of a directive keeps them."""

    @property
    def replies(self) -> dict[str, str]:
        """Return where reports may be sent on this way; the addresses of HTTP are added to them."""
        return {}

    @abstractmethod
    def connect(self) -> Publisher:
        """Return the publisher to it."""


class Pull(Endpoint):
    """Remote workers ask for the directives: nothing goes out."""

    @property
    def address(self) -> str:
        """Return the way alone."""
        return PULL

    def connect(self) -> Publisher:
        """Refuse: no publisher can do what is asked for."""
        raise BadInput("directives that remote workers ask for are not published")


def bare_address(way: str, url: SplitResult, extra: str = "") -> str:
    """Return an address as rows keep it: without the name and password that it may hold.

    >>> from urllib.parse import urlsplit
    >>> bare_address("redis", urlsplit("redis://:secret@queue:6379/1"), "ocr")
    'redis redis://queue:6379/1 ocr'
    """
    bare = url._replace(netloc=url.netloc.rpartition("@")[2], fragment="")
    return " ".join(filter(None, (way, bare.geturl(), extra)))
