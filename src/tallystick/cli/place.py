"""Which store a command is about: `--url`, the APP it imports, TALLY_URL, or the default file.

Commands that look never create anything; those that write say so before they do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click

from tallystick.cli.output import tell
from tallystick.clock import SystemClock
from tallystick.errors import StoreMissing
from tallystick.store.api import Store
from tallystick.store.opening import open_store

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_URL: Final = "sqlite:///tally.db"
_URL_HELP: Final = "Address of the store, for instance sqlite:///shop.db."


def url_option(function: F) -> F:
    """Add `--url`."""
    return click.option("--url", metavar="URL", help=_URL_HELP)(function)


def json_option(function: F) -> F:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print data instead of text.")(function)


@contextmanager
def looking(address: str | None, url: str | None) -> Iterator[Store]:
    """Open the store that was meant, as it is; a missing one is an error and stays missing."""
    if address and url:
        raise click.UsageError("APP and --url exclude each other: both say where the store is.")
    store = _open(address, url)
    try:
        yield store
    finally:
        store.close()


def _open(address: str | None, url: str | None) -> Store:
    if address is not None:
        from tallystick.cli.loading import load_app

        url = load_app(address).app.url
    given = url or os.environ.get("TALLY_URL")
    try:
        return open_store(given or DEFAULT_URL, SystemClock(), create=False)
    except StoreMissing as missing:
        if given:
            raise
        raise StoreMissing(
            f"{missing.message.partition(';')[0]}; say which store you mean with APP, --url or TALLY_URL",
            **missing.fields,
        ) from None


def announce_creation(missing: StoreMissing) -> None:
    """Say that a file is about to be created."""
    tell(f"creating {missing.fields['path']}")
