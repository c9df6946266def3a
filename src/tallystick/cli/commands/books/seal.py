"""`tally seal`: note the end of every history, to be compared later with `tally verify --seal`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec

from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.render.output import show, tell
from tallystick.cli.render.wording import count
from tallystick.clock import SystemClock
from tallystick.engine.audit.sealing import seal
from tallystick.engine.audit.seals import Seal
from tallystick.errors import BadInput, ExtraMissing, Misuse

_EXAMPLES = """\b
Examples:
  tally seal shop --out monday.seal
  tally seal shop --key seal-key.pem > monday.seal
  tally verify shop --seal monday.seal --signed-by seal-key-public.pem
"""


@click.command("seal", epilog=_EXAMPLES)
@click.argument("app", required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file, which is not there yet.",
)
@click.option(
    "--key",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Sign with this private Ed25519 key, a PEM file.",
)
@url_option
@json_option
def command(*, app: str | None, out: Path | None, key: Path | None, url: str | None, as_json: bool) -> None:
    """Note the end of every history as a small record, to be kept out of reach of writers to the store.

    The store is that of APP, which may be an address too, of --url, or of the variable TALLY_URL. It only
    reads, and may run beside workers. The record is JSON; with --json it is one line.
    """
    if app is not None and url is None and "://" in app:
        app, url = None, app
    with looking(app, url) as store:
        made = seal(store, SystemClock().wall_ms())
    if key is not None:
        made = _signing().signed(made, key)
    text = msgspec.json.format(msgspec.json.encode(made), indent=-1 if as_json else 1).decode()
    if out is None:
        show(text)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        raise BadInput(f"the seal cannot be written to {out}: {error.strerror}") from error
    tell(f"sealed {count(made.jobs, 'job')} that ended and {len(made.listed)} that go on or are young: {out}")


def read_seal(path: Path, key: Path | None) -> Seal:
    """Return a seal from a file, signed by this key if one is named."""
    try:
        sealed = msgspec.json.decode(path.read_bytes(), type=Seal)
    except msgspec.DecodeError as error:
        raise BadInput(f"{path} holds no seal: {error}") from error
    if key is not None and not _signing().is_signed_by(sealed, key):
        raise BadInput(f"{path} is not signed by the key in {key}")
    return sealed


def _signing() -> Any:  # noqa: ANN401 (a module of ours)
    """Return what signs and checks signatures, which needs a package that may not be there."""
    try:
        return import_module("tallystick.engine.audit.signing")
    except ImportError as error:
        if not ExtraMissing.explains(error, "cryptography"):
            raise
        raise Misuse("signatures need the package cryptography: install tallystick[seal]") from error
