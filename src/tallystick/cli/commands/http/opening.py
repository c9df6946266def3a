"""The Tally that a command about HTTP is meant for; its store is made if there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import click

from tallystick.app.api.tally import Tally
from tallystick.cli.loading import load_app
from tallystick.cli.place import announce_creation
from tallystick.errors import StoreMissing


@contextmanager
def opened(app: str | None, url: str | None) -> Iterator[Tally]:
    """Open the Tally of APP, or one on --url or TALLY_URL, and close it afterwards."""
    if app is None:
        address = url or os.environ.get("TALLY_URL")
        if address is None:
            raise click.UsageError("say which store you mean with APP, --url or TALLY_URL.")
        tally = Tally()
        tally.bind(address)
    else:
        tally = load_app(app).app
        if url is not None:
            tally.bind(url)
    try:
        tally.runtime(create=False)
    except StoreMissing as missing:
        announce_creation(missing)
    try:
        yield tally
    finally:
        tally.close()
