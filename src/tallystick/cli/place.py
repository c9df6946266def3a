"""Which store a command is about: `--url`, the APP it imports, TALLY_URL, or the default file.

Commands that look never create anything; those that write say so before they do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tallystick.cli.render.output import tell
from tallystick.clock import SystemClock
from tallystick.core.limits import is_storable
from tallystick.errors import BadInput, NotFound, StoreMissing
from tallystick.store.api import Store
from tallystick.store.inspection import watched
from tallystick.store.opening import DEFAULT_URL, open_store

if TYPE_CHECKING:
    from tallystick.app.api.job import Job
    from tallystick.app.api.tally import Tally

F = TypeVar("F", bound=Callable[..., Any])

ID_CHARS: Final = 36
_URL_HELP: Final = "Address of the store, for instance sqlite:///shop.db."


def url_option(function: F) -> F:
    """Add `--url`."""
    return click.option("--url", metavar="URL", help=_URL_HELP)(function)


def json_option(function: F) -> F:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print data instead of text.")(function)


def by_option(function: F) -> F:
    """Add `--by`; what is left out is the user of this process, so that every act has an author."""

    def author(_context: click.Context, _option: click.Parameter, given: str) -> str:
        from tallystick.app.api.control import process_user

        return given or process_user()

    about = "Who does it; the user of this process if left out."
    return click.option("--by", metavar="WHO", default="", callback=author, help=about)(function)


def store_options(function: F) -> F:
    """Add what every command about a thing of a store has: APP, `--url` and `--json`."""
    return click.argument("app", required=False)(url_option(json_option(function)))


@contextmanager
def looking(address: str | None, url: str | None) -> Iterator[Store]:
    """Open the store that was meant, as it is; a missing one is an error and stays missing."""
    given = _address(address, url)
    with _said_which(given):
        store = open_store(DEFAULT_URL if given is None else given, SystemClock(), create=False)
    try:
        with _said_whole():
            yield store
    finally:
        store.close()


@contextmanager
def acting(address: str | None, url: str | None) -> Iterator[Tally]:
    """Open the store that was meant, to say something to a job in it; a missing one stays missing."""
    from tallystick.app.api.tally import Tally

    given = _address(address, url)
    tally = Tally()
    tally.bind(DEFAULT_URL if given is None else given)
    try:
        with _said_which(given):
            tally.runtime(create=False)
        with _said_whole():
            yield tally
    finally:
        tally.close()


def _address(address: str | None, url: str | None) -> str | None:
    """Return the address of the store, or None when none was named."""
    if address is not None and url is not None:
        raise click.UsageError("APP and --url exclude each other: both say where the store is.")
    if address is not None:
        from tallystick.cli.loading import load_app

        return load_app(address).app.url
    # An empty variable is one that is not set; an empty option was given, and names no store.
    return (os.environ.get("TALLY_URL") or None) if url is None else url


@contextmanager
def _said_which(given: str | None) -> Iterator[None]:
    """Where no store was named, let the error of a missing one ask for it."""
    try:
        yield
    except StoreMissing as missing:
        if given is not None:
            raise
        raise StoreMissing(
            f"{missing.message.partition(';')[0]}; say which store you mean with APP, --url or TALLY_URL",
            **missing.fields,
        ) from None


@contextmanager
def _said_whole() -> Iterator[None]:
    """Where no job was found under what is too short for an id, say what an id is."""
    try:
        yield
    except NotFound as error:
        if len(str(error.fields.get("job_id", ""))) in (0, ID_CHARS):
            raise
        raise NotFound(
            f"{error.message}; an id has {ID_CHARS} characters, and `tally list` prints them all",
            **error.fields,
        ) from None


def whole_id(store: Store, text: str) -> str:
    """Return the id of the one job that begins so; what begins no id, or is whole, is returned as it is."""
    if len(text) >= ID_CHARS or not is_storable(text):
        return text
    found = watched(store).ids_with(text, 2)
    if len(found) > 1:
        raise BadInput(
            f"{text!r} begins the ids of several jobs, {found[0]} and {found[1]}; write more of it"
        )
    return found[0] if found else text


@contextmanager
def acting_on(job: str, address: str | None, url: str | None) -> Iterator[Job[Any]]:
    """Open the store that was meant, and give the job of it whose id begins so."""
    with acting(address, url) as tally:
        yield tally.job(whole_id(tally.runtime().store, job))


def announce_creation(missing: StoreMissing) -> None:
    """Say that a file is about to be created."""
    tell(f"creating {missing.fields['path']}")
