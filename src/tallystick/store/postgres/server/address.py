"""The address of a PostgreSQL store: libpq's own, and four options of ours.

`postgresql://host/db?schema=shop` keeps the books in that schema (default `tallystick`). `pooler=transaction`
relies on nothing but the transaction, as PgBouncer in transaction mode demands. `answer=30s` is how long a
server may keep silent before its connection is given up, `busy=30s` how long a write waits for rows that
others hold. Everything else in the address is libpq's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any
from urllib.parse import quote, unquote

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from tallystick.core.durations import duration_ms
from tallystick.defaults import ANSWER, BUSY
from tallystick.errors import BadInput

SCHEMA_DEFAULT = "tallystick"

# The name of the channel, which has the schema in it, is cut by the server at 63 characters.
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,51}")
_PORTS = re.compile(r"[0-9,]*")
_OWN = ("schema", "pooler", "answer", "busy")
# How long one statement of a flush waits for a row that others hold; then each bundle is written alone.
_LOCK_MS_MAX = 200

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
# Our texts are Unicode. Where a client is to speak SQL_ASCII, psycopg gives bytes for them.
_LANGUAGE = {"client_encoding": "UTF8"}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the store is and how to talk to it."""

    url: str
    conninfo: dict[str, Any]
    schema: str
    pooled: bool
    answer_ms: int
    busy_ms: int

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
            f"-c lock_timeout={self.lock_ms} -c enable_seqscan=off -c enable_bitmapscan=off "
            "-c enable_mergejoin=off"
        )

    @property
    def statement_ms(self) -> int:
        """Return how long one statement of ours may take: less than we would wait for its answer."""
        return max(1, self.answer_ms * 9 // 10)

    @property
    def lock_ms(self) -> int:
        """Return how long one statement of ours may wait for a lock."""
        return min(_LOCK_MS_MAX, self.statement_ms)


def parse_address(url: str) -> Address:
    """Read an address; refuse what cannot be meant."""
    plain, own = _taken_apart(url)
    conninfo = _understood(plain)
    schema = own.get("schema", SCHEMA_DEFAULT)
    pooler = own.get("pooler", "")
    shown = _shown(conninfo, schema)
    if _SCHEMA.fullmatch(schema) is None:
        raise BadInput(f"schema={schema}: write a plain lower-case name of at most 52 characters", url=shown)
    if pooler not in ("", "transaction"):
        raise BadInput(f"pooler={pooler}: the only value is pooler=transaction", url=shown)
    return Address(
        shown,
        {**_PATIENCE, **conninfo, **_LANGUAGE},
        schema,
        pooler == "transaction",
        duration_ms(own.get("answer", ANSWER)),
        duration_ms(own.get("busy", BUSY)),
    )


def _taken_apart(url: str) -> tuple[str, dict[str, str]]:
    """Return the address as libpq takes it, and our own options.

    What is libpq's stays as it was written: it has rules of its own for hosts, and for what a password may
    hold. A name and a password end at the first @, if no slash comes before it.
    """
    scheme, mark, rest = url.partition("://")
    credentials = re.match(r"[^@/]*@", rest)
    start = credentials.end() if credentials else 0
    place, asks, query = rest[start:].partition("?")
    if "@" in place:
        raise BadInput("write an @ in the name, password or database of an address as %40, and a / as %2F")
    kept, own = [], {}
    for option in query.split("&") if asks else ():
        name, _, value = option.partition("=")
        if unquote(name) in _OWN:
            own[unquote(name)] = unquote(value)
        else:
            kept.append(option)
    plain = "&".join(kept)
    return f"{scheme}{mark}{rest[:start]}{place}{'?' if plain else ''}{plain}", own


def _understood(plain: str) -> dict[str, Any]:
    """Let libpq read an address. It may repeat what it does not understand, which may be a secret."""
    try:
        conninfo = conninfo_to_dict(plain)
    except (ProgrammingError, ValueError) as error:
        known = re.match(r'invalid URI query parameter: "[a-z_]+"', str(error))
        why = (
            known[0]
            if known and "password=" not in plain
            else re.sub(r'".*"', '"…"', str(error).strip(), flags=re.DOTALL)
        )
        raise BadInput(f"this is not the address of a PostgreSQL server: {why}") from None
    if _PORTS.fullmatch(str(conninfo.get("port", ""))) is None:
        raise BadInput(
            "the port of an address is a number; if that is part of a password, write its / as %2F, its ? as "
            "%3F and its # as %23"
        )
    return conninfo


def _shown(conninfo: dict[str, Any], schema: str) -> str:
    """Return an address for people: who, where and what, and nothing that could be a secret."""
    hosts = str(conninfo.get("host", "")).split(",")
    ports = str(conninfo.get("port", "")).split(",")
    last = ports[0] if len(ports) == 1 else ""
    places = [
        (f"[{host}]" if ":" in host else quote(host, safe="")) + (f":{port}" if port else "")
        for host, port in zip_longest(hosts, ports, fillvalue=last)
    ]
    user = f"{quote(str(conninfo['user']), safe='')}@" if "user" in conninfo else ""
    options = [f"service={quote(str(conninfo['service']))}"] if "service" in conninfo else []
    options += [f"schema={schema}"] if schema != SCHEMA_DEFAULT else []
    query = f"?{'&'.join(options)}" if options else ""
    return f"postgresql://{user}{','.join(places)}/{quote(str(conninfo.get('dbname', '')))}{query}"
