"""`tally backup`: a copy of a SQLite file that is in use, marked so that nothing in it goes on by itself."""

from __future__ import annotations

from pathlib import Path

import click

from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.render.output import answer
from tallystick.cli.render.wording import size
from tallystick.errors import BadInput

_EXAMPLES = """\b
Examples:
  tally backup /backups/shop-monday.db shop
  tally backup shop-copy.db --url sqlite:///shop.db --json
"""


@click.command("backup", epilog=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("app", required=False)
@url_option
@json_option
def command(*, file: Path, app: str | None, url: str | None, as_json: bool) -> None:
    """Copy the books to FILE as of one instant, while workers go on.

    FILE must not be there. When the copy is opened for the first time, every unfinished job in it is held as
    RESTORED and every schedule is paused: what happened after the copy was made is not in it. `tally resume
    --restored` lets them go on. PostgreSQL has tools of its own; see the guide. The store is that of APP, of
    --url, or of the variable TALLY_URL.
    """
    from tallystick.store.sqlite.store import SqliteStore

    with looking(app, url) as store:
        if not isinstance(store, SqliteStore):
            raise BadInput("tally backup copies SQLite files; for PostgreSQL use pg_dump or pg_basebackup")
        written = store.back_up(file.absolute())
    answer(f"{size(written)} written to {file}", {"file": str(file), "size_bytes": written}, as_json=as_json)
