"""`tally keys`: which clients may come over HTTP, for which tenant, and what for."""

from __future__ import annotations

import click

from tallystick.app.remote.api_keys import make_key
from tallystick.cli.commands.http.opening import opened
from tallystick.cli.group import ListingGroup
from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.render.output import printable, show, show_data, tell
from tallystick.cli.render.wording import instant
from tallystick.core.durations import duration_ms
from tallystick.core.remote.keys import ALL_TENANTS, SCOPES, listed
from tallystick.errors import NotFound
from tallystick.store.api import ApiKey, RevokeKey

_EXAMPLES = """\b
Examples:
  tally keys create shop --tenant acme --scope jobs:write --scope jobs:read
  tally keys create shop --tenant acme --scope work --service ocr --expires 90d --json
  tally keys list shop
  tally keys revoke 3f2a91c07d5e shop
"""


@click.group("keys", cls=ListingGroup, epilog=_EXAMPLES)
def command() -> None:
    """Make, list and revoke the keys of the HTTP API."""


@command.command("create", epilog=_EXAMPLES)
@click.argument("app", required=False)
@click.option("--tenant", required=True, metavar="TENANT", help=f"Whose jobs it opens; '{ALL_TENANTS}': all.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(SCOPES),
    help="What it is for; may be given more than once.",
)
@click.option(
    "--service",
    "services",
    multiple=True,
    metavar="SERVICE",
    help="With the scope work: which directives it is given; may be given more than once.",
)
@click.option("--expires", metavar="DURATION", help="How long it works, 90d for instance; else for ever.")
@url_option
@json_option
def create(
    *,
    app: str | None,
    tenant: str,
    scopes: tuple[str, ...],
    services: tuple[str, ...],
    expires: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Make a key and print it; it is shown this once, and kept as its hash.

    The store is that of APP, of --url, or of the variable TALLY_URL. Send the key as `Authorization: Bearer`.
    """
    lives_ms = None if expires is None else duration_ms(expires)
    with opened(app, url) as tally:
        runtime = tally.runtime()
        made, text = make_key(runtime.committer, runtime.ids, tenant, scopes, services, lives_ms)
    if as_json:
        show_data({"id": made.kid, "key": text})
    else:
        show(text)
        tell(f"key {made.kid} for {tenant}: {', '.join(scopes)}; it is shown this once")


@command.command("list", epilog=_EXAMPLES)
@click.argument("app", required=False)
@url_option
@json_option
def list_keys(*, app: str | None, url: str | None, as_json: bool) -> None:
    """List keys, never their secrets."""
    with looking(app, url) as store:
        keys, now = store.keys(), store.now()
    if as_json:
        show_data([_as_data(key, now) for key in keys])
        return
    for key in keys:
        services = ", ".join(listed(key.services))
        scopes = ", ".join(listed(key.scopes))
        state = _state(key, now)
        show(printable(f"{key.kid}  {state:<8}  {key.tenant_id}  {scopes}{services and f' ({services})'}"))
    if not keys:
        tell("no keys")


@command.command("revoke", epilog=_EXAMPLES)
@click.argument("key")
@click.argument("app", required=False)
@url_option
@json_option
def revoke(*, key: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Let a key, named by its id, open nothing any more."""
    kid = key.partition(".")[0]
    with opened(app, url) as tally:
        found = tally.runtime().committer.call((RevokeKey(kid),))
    if not found:
        raise NotFound(f"there is no key {kid}; `tally keys list` shows them", key=kid)
    if as_json:
        show_data({"id": kid, "revoked": True})
    else:
        show(kid)


def _state(key: ApiKey, now: int) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "live" if key.is_live(now) else "expired"


def _as_data(key: ApiKey, now: int) -> dict[str, object]:
    return {
        "id": key.kid,
        "state": _state(key, now),
        "tenant": key.tenant_id,
        "scopes": listed(key.scopes),
        "services": listed(key.services),
        "created_at": instant(key.created_at),
        "expires_at": instant(key.expires_at),
        "revoked_at": instant(key.revoked_at),
    }
