"""From an address to a store."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from tallystick.clock import Clock
from tallystick.core.durations import duration_ms
from tallystick.defaults import BUSY
from tallystick.errors import BadInput, ExtraMissing
from tallystick.store.api import Store
from tallystick.store.sql.restoring import hold_restored

if TYPE_CHECKING:
    from tallystick.store.sqlite.store import SqliteStore

_log = logging.getLogger("tallystick.store")

DEFAULT_URL: Final = "sqlite:///tally.db"
"""Where a program keeps its books that does not say where, nor the variable TALLY_URL for it."""


def open_store(url: str, clock: Clock, *, create: bool, credential: object | None = None) -> Store:
    """Open the store at an address: `sqlite:///shop.db`, `sqlite:////var/lib/shop.db`, `postgresql://host/db`."""
    check_address(url)
    if credential is not None and not url.startswith("azure:"):
        raise BadInput("credential= is for Azure Tables: azure://ACCOUNT/PREFIX")
    if url.startswith(("postgresql:", "postgres:")):
        return _open_postgres(url, clock, create=create)
    if url.startswith("azure:"):
        return _open_azure(url, clock, create=create, credential=credential)
    if not url.startswith("sqlite:"):
        scheme, mark, _rest = url.partition("://")
        # A file name means SQLite.
        file = f"sqlite:///{url}" if not mark and url.endswith((".db", ".sqlite")) else "sqlite:///FILE"
        # Before an @ there may be a password.
        url = f"{scheme}://…" if mark and "@" in url else url
        raise BadInput(
            f"{url!r} is not an address Tallystick knows; write {file}, postgresql://HOST/DATABASE or "
            "azure://ACCOUNT/PREFIX",
            url=url,
        )
    parts = _split(url)
    if parts.netloc or parts.path in ("", "/"):
        raise BadInput(f"{url!r} names no file; write sqlite:///FILE with three slashes", url=url)
    if parts.path.endswith(":memory:"):
        raise BadInput(f"{url!r} is gone with its process, so nothing is durable; name a file", url=url)
    options = dict(parse_qsl(parts.query))
    synchronous = options.pop("synchronous", "FULL").upper()
    busy_ms = duration_ms(options.pop("busy", BUSY))
    if options or synchronous not in ("FULL", "NORMAL"):
        raise BadInput(
            f"{url!r}: the options are synchronous=FULL or synchronous=NORMAL, and busy={BUSY}",
            url=url,
        )
    # Imported here, so that a process on another store never loads this library.
    from tallystick.store.sqlite.store import SqliteStore  # noqa: PLC0415 (as said above)

    try:
        path = Path(parts.path[1:]).absolute()
    except FileNotFoundError:
        raise BadInput(f"{url!r} is in the current folder, and that is gone", url=url) from None
    store = SqliteStore(path, clock, create=create, synchronous=synchronous, busy_ms=busy_ms)
    if store.is_copy:
        _begin_with_copy(store)
    return store


def _begin_with_copy(store: SqliteStore) -> None:
    """Hold what is unfinished in a copy before a worker can claim it, and let it be a store then."""
    try:
        held = hold_restored(store).jobs
        store.call_original()
    except BaseException:
        store.close()
        raise
    _log.warning(
        "%s was restored from a backup; unfinished jobs that are held until `tally resume --restored`: %s",
        store.path,
        held,
        extra={"action": "store.restored", "held": held},
    )


def tell_unused(url: str) -> None:
    """Say that TALLY_URL is set and another store is opened: it may have been set for this program."""
    variable = os.environ.get("TALLY_URL")
    if variable and variable != url:
        _log.info(
            "TALLY_URL is set and not used: the program names its store itself; write Tally() to take it",
            extra={"action": "address.variable_unused"},
        )


def check_address(url: object) -> None:
    """Refuse what no database could be told, before there is a file for it."""
    try:
        if not isinstance(url, str) or "\0" in url:
            raise ValueError("it is no text")
        url.encode()
    except ValueError as error:
        raise _no_address(url, error) from None


def check_keeps(url: str, declared: Mapping[str, Collection[object]]) -> None:
    """Refuse a store that does not keep what a program declares, and say which ones do."""
    found = [what for what, names in declared.items() if names]
    if found and url.startswith("azure:"):
        raise BadInput(
            f"Azure Tables keep protocol jobs alone: {' and '.join(found)} need SQLite or PostgreSQL", url=url
        )


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise _no_address(url, error) from None


def _no_address(url: object, error: ValueError) -> BadInput:
    shown = f"{url!r:.200}"
    return BadInput(f"{shown} is not an address of a store: {error}", url=shown)


def _open_postgres(url: str, clock: Clock, *, create: bool) -> Store:
    try:
        from tallystick.store.postgres.store import PostgresStore  # noqa: PLC0415 (as above)
    except ImportError as error:
        if not ExtraMissing.explains(error, "psycopg"):
            raise
        raise BadInput(
            "PostgreSQL needs psycopg: pip install 'tallystick[postgres]'", needs="psycopg"
        ) from error
    return PostgresStore(url, clock, create=create)


def _open_azure(url: str, clock: Clock, *, create: bool, credential: object | None) -> Store:
    try:
        from tallystick.store.azure.store import AzureStore  # noqa: PLC0415 (as above)
    except ImportError as error:
        if not ExtraMissing.explains(error, "azure", "aiohttp"):
            raise
        raise BadInput(
            "Azure Tables need their libraries: pip install 'tallystick[azure]'", needs="azure-data-tables"
        ) from error
    return AzureStore(url, clock, create=create, credential=credential)
