"""Where the directives of a service go, and what takes them there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from hashlib import sha256
from importlib.util import find_spec
from typing import ClassVar, Final, NamedTuple, TypeAlias
from urllib.parse import SplitResult, parse_qsl, unquote

from tallystick.core.remote.rows import PULL
from tallystick.errors import BadInput, ExtraMissing

PUBLISH_SECONDS: Final = 10.0
"""How long one try may take; the shortest right to publish lasts three times as long."""

# What tenants read of a service that could not be given a directive.
AWAY: Final = "could not be reached"
SILENT: Final = "did not answer in time"
FAILED: Final = "answered with an error"
REFUSED: Final = "does not accept the directive"
FORBIDDEN: Final = "is at an address that may not be connected to"
NO_ROOM: Final = "could not be given the directive by its broker"

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
    def older_address(self) -> str | None:
        """Return how rows of older versions name it, if they name it otherwise."""
        return None

    @property
    def replies(self) -> dict[str, str]:
        """Return where reports may be sent on this way; the addresses of HTTP are added to them."""
        return {}

    def clean(self, text: str) -> str:
        """Return a text, as of an error, without the secrets of its address."""
        return text

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


class WebAddress:
    """The address of an endpoint: what may be shown of it, and the secrets that it may hold."""

    def __init__(self, way: str, url: SplitResult, extra: str = "") -> None:
        """Take it apart."""
        self._way, self._extra = way, extra
        self._query = url.query
        self._shown = url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="")
        user, _at, _host = url.netloc.rpartition("@")
        parts = [user, url.password or "", url.query, *(value for _name, value in parse_qsl(url.query))]
        parts += [url.username or ""] if len(url.username or "") >= _NAME_CHARS_MIN else []
        # The longest first, so that nothing is left of one that holds another.
        self._secrets = sorted({*parts, *map(unquote, parts)} - {""}, key=len, reverse=True)

    @property
    def kept(self) -> str:
        """Return it as rows keep it: of a query, which may be a secret, there is only a print.

        >>> from urllib.parse import urlsplit
        >>> WebAddress("redis", urlsplit("redis://:secret@queue:6379/1"), "ocr").kept
        'redis redis://queue:6379/1 ocr'
        >>> WebAddress("webhook", urlsplit("https://example.com/hook?code=secret")).kept
        'webhook https://example.com/hook query:ba304e69'
        """
        query = f"query:{sha256(self._query.encode()).hexdigest()[:8]}" if self._query else ""
        return self._as_text(self._shown, query)

    @property
    def older(self) -> str | None:
        """Return it as rows of older versions keep it, with its query."""
        return self._as_text(self._shown._replace(query=self._query)) if self._query else None

    def clean(self, text: str) -> str:
        """Return a text without the name, the password and the query of the address.

        >>> from urllib.parse import urlsplit
        >>> WebAddress("nats", urlsplit("nats://me:pass%21@queue")).clean("no pass! at me:pass%21@queue")
        'no … at …@queue'
        """
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text

    def _as_text(self, url: SplitResult, query: str = "") -> str:
        return " ".join(filter(None, (self._way, url.geturl(), query, self._extra)))


# A shorter name of a user is part of too many words.
_NAME_CHARS_MIN: Final = 3


class AddressedEndpoint(Endpoint):
    """An endpoint with a web address, which may hold secrets; nothing that is shown or kept has them."""

    _address: WebAddress

    def __repr__(self) -> str:
        """Show where it leads, and no secret."""
        return f"{type(self).__name__}({self.address!r})"

    @property
    def address(self) -> str:
        """Return the way and the web address; of a query, which may be a secret, there is only a print."""
        return self._address.kept

    @property
    def older_address(self) -> str | None:
        """Return the same with its query, as rows of older versions have it."""
        return self._address.older

    def clean(self, text: str) -> str:
        """Return a text without the name, the password and the query of the address."""
        return self._address.clean(text)
