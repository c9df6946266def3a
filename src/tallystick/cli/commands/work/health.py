"""`tally health`: whether a worker of a store lives, by the exit code, for containers and load balancers."""

from __future__ import annotations

import os
import socket

import click

from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.render.output import show, show_data
from tallystick.cli.render.wording import count
from tallystick.store.inspection import watched

_WORKERS_MAX = 10_000
_UNWELL = 1

_EXAMPLES = """\b
Examples:
  tally health shop                 is any worker alive?
  tally health shop --here          is one alive on this machine or in this container?
  tally health shop --here --pid 1  is it that process?
"""


@click.command("health", epilog=_EXAMPLES)
@click.argument("app", required=False)
@click.option("--here", is_flag=True, help="Count only workers of this host.")
@click.option("--pid", type=int, metavar="PID", help="Count only the worker in this process of this host.")
@url_option
@json_option
def command(*, app: str | None, here: bool, pid: int | None, url: str | None, as_json: bool) -> int:
    """Say whether the store answers and a worker of it lives; the exit code is 0 then, else 1 or the error's.

    A worker lives while it reports, at least every minute. The store is that of APP, of --url, or of the
    variable TALLY_URL.
    """
    with looking(app, url) as store:
        now = store.now()
        live = [worker for worker in watched(store).workers(_WORKERS_MAX) if worker.is_live(now)]
    if here or pid is not None:
        live = [worker for worker in live if worker.host == socket.gethostname()]
    if pid is not None:
        live = [worker for worker in live if worker.pid == pid]
    if as_json:
        show_data({"ok": bool(live), "workers": len(live), "host": socket.gethostname(), "pid": os.getpid()})
    else:
        show(f"{count(len(live), 'live worker')}" if live else "no live worker")
    return 0 if live else _UNWELL
