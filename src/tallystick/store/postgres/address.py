"""The address of a PostgreSQL store: libpq's own, and three options of ours.

`postgresql://host/db?schema=shop` keeps the books in that schema (default `tallystick`). `pooler=transaction`
relies on nothing but the transaction, as PgBouncer in transaction mode demands. `answer=30s` is how long a
server may keep silent before its connection is given up. Everything else in the address is libpq's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from tallystick.core.durations import duration_ms
from tallystick.errors import BadInput

SCHEMA_DEFAULT = "tallystick"
ANSWER_DEFAULT = "30s"

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")

# A peer that is gone must not be waited for until the operating system gives up hours later.
_PATIENCE: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "target_session_attrs": "read-write",
    "application_name": "tallystick",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the store is and how to talk to it."""

    url: str
    conninfo: dict[str, Any]
    schema: str
    pooled: bool
    answer_ms: int

    @property
    def channel(self) -> str:
        """Return the channel on which this store says that there may be work."""
        return f"tallystick_{self.schema}"

    @property
    def path(self) -> str:
        """Return the search path of our own statements.

        Temporary tables are looked at first unless the path says otherwise: a user's `jobs` would take ours.
        """
        return f"{self.schema},pg_temp"

    @property
    def settings(self) -> str:
        """Return what a connection of our own is told when it starts."""
        return (
            f"-c search_path={self.path} -c statement_timeout={self.statement_ms} "
            f"-c lock_timeout={self.statement_ms} -c enable_seqscan=off -c enable_bitmapscan=off "
            "-c enable_mergejoin=off"
        )

    @property
    def statement_ms(self) -> int:
        """Return how long one statement of ours may take: less than we would wait for its answer."""
        return max(1, self.answer_ms * 9 // 10)


def parse_address(url: str) -> Address:
    """Read an address; refuse what cannot be meant."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    schema = options.pop("schema", SCHEMA_DEFAULT)
    pooler = options.pop("pooler", "")
    answer = options.pop("answer", ANSWER_DEFAULT)
    if _SCHEMA.fullmatch(schema) is None:
        raise BadInput(f"schema={schema}: write a plain lower-case name", url=_shown(url))
    if pooler not in ("", "transaction"):
        raise BadInput(f"pooler={pooler}: the only value is pooler=transaction", url=_shown(url))
    plain = urlunsplit(parts._replace(query=urlencode(options, quote_via=quote)))
    try:
        conninfo = conninfo_to_dict(plain)
    except ProgrammingError as error:
        raise BadInput(
            f"{_shown(url)} is no address of a PostgreSQL server: {error}", url=_shown(url)
        ) from error
    return Address(
        _shown(url), {**_PATIENCE, **conninfo}, schema, pooler == "transaction", duration_ms(answer)
    )


def _shown(url: str) -> str:
    """Return an address without secrets."""
    parts = urlsplit(url)
    netloc = parts.netloc
    if "@" in netloc:
        user, _, host = netloc.rpartition("@")
        netloc = f"{user.partition(':')[0]}@{host}"
    query = urlencode(
        [(name, value) for name, value in parse_qsl(parts.query) if name != "password"], quote_via=quote
    )
    return urlunsplit(parts._replace(netloc=netloc, query=query))
