"""`tally queues`: queues that have limits; look, set, pause, resume, reset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from tallystick.app.scheduling.queues import QueueView
from tallystick.cli.group import ListingGroup
from tallystick.cli.place import acting, by_option, json_option, store_options, url_option
from tallystick.cli.render.output import aligned, show, show_data
from tallystick.core.queues.rows import LIMIT_NAMES, Limits
from tallystick.errors import BadInput

_EXAMPLES = """\b
Examples:
  tally queues shop --json
  tally queues set emails concurrency=20 rate=100/1m shop
  tally queues set emails concurrency=none --url sqlite:///shop.db
  tally queues pause emails shop
"""
_NOTHING = ("none", "null")
_TRUTHS = ("true", "false")


@click.group("queues", cls=ListingGroup, epilog=_EXAMPLES)
def command() -> None:
    """Show and change queues that have limits, or are paused.

    The store is that of APP, of --url, or of the variable TALLY_URL.
    """


@command.command("list")
@store_options
def show_all(*, app: str | None, url: str | None, as_json: bool) -> None:
    """Show all queues that have limits: which, how many slots are taken, and whether they are paused."""
    with acting(app, url) as tally:
        views = tally.queues.all()
    if as_json:
        show_data([_data(view) for view in views])
    else:
        show("\n".join(_table(views)) if views else "no queue has limits or is paused")


@command.command("set")
@click.argument("queue")
@click.argument("words", metavar="LIMIT=VALUE...", nargs=-1, required=True)
@by_option
@url_option
@json_option
def set_limits(*, queue: str, words: tuple[str, ...], by: str, url: str | None, as_json: bool) -> None:
    """Set limits of a queue; they win over what programs declare until `tally queues reset`.

    Limits are concurrency, per_key, worker_concurrency, rate, key_rate, burst, order and hold_slots; `none`
    takes one away. The last word may name the APP.
    """
    *given, last = words
    app = None
    if "=" in last:
        given.append(last)
    else:
        app = last
    if not given:
        raise click.UsageError("Missing argument 'LIMIT=VALUE...': name a limit, as in concurrency=20.")
    with acting(app, url) as tally:
        limits: dict[str, Any] = dict(map(_limit, given))
        _say(tally.queues.set(queue, by=by, **limits), as_json=as_json)


@command.command("pause")
@click.argument("queue")
@by_option
@store_options
def pause(*, queue: str, app: str | None, by: str, url: str | None, as_json: bool) -> None:
    """Let no job of a queue be claimed until it is resumed; what runs goes on."""
    with acting(app, url) as tally:
        _say(tally.queues.pause(queue, by=by), as_json=as_json)


@command.command("resume")
@click.argument("queue")
@by_option
@store_options
def resume(*, queue: str, app: str | None, by: str, url: str | None, as_json: bool) -> None:
    """Let jobs of a queue be claimed again."""
    with acting(app, url) as tally:
        _say(tally.queues.resume(queue, by=by), as_json=as_json)


@command.command("reset")
@click.argument("queue")
@by_option
@store_options
def reset(*, queue: str, app: str | None, by: str, url: str | None, as_json: bool) -> None:
    """Let what programs declare count again."""
    with acting(app, url) as tally:
        _say(tally.queues.reset(queue, by=by), as_json=as_json)


def _limit(word: str) -> tuple[str, object]:
    """Return a limit as it was written on the command line."""
    name, _, text = word.partition("=")
    if name not in LIMIT_NAMES:
        raise BadInput(
            f"{word!r} is not a limit: write NAME=VALUE, where NAME is one of {', '.join(LIMIT_NAMES)}"
        )
    if text in _NOTHING:
        return name, msgspec.structs.asdict(Limits())[name]
    if text.lower() in _TRUTHS:
        return name, text.lower() == "true"
    try:
        return name, msgspec.json.decode(text)
    except msgspec.DecodeError:
        return name, text


def _say(view: QueueView, *, as_json: bool) -> None:
    show_data(_data(view)) if as_json else show("\n".join(_table([view])))


def _data(view: QueueView) -> dict[str, object]:
    return {
        **view._asdict(),
        "limits": msgspec.structs.asdict(view.limits),
        "paused_at": None if view.paused_at is None else view.paused_at.isoformat(),
    }


def _table(views: Sequence[QueueView]) -> list[str]:
    rows = [(view.name, _limits(view), f"{view.running} running", _paused(view)) for view in views]
    return aligned(rows)


def _limits(view: QueueView) -> str:
    usual = msgspec.structs.asdict(Limits())
    told = [
        f"{name}={value}{'*' if name in view.chosen else ''}"
        for name, value in msgspec.structs.asdict(view.limits).items()
        if value != usual[name] or name in view.chosen
    ]
    return " ".join(told) or "no limits"


def _paused(view: QueueView) -> str:
    if view.paused_by is None or view.paused_at is None:
        return ""
    return f"paused by {view.paused_by} since {view.paused_at.isoformat()}"
