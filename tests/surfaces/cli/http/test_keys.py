"""`tally keys`: made once, shown once, listed without secrets, revoked for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick.app.remote.api_keys import Keyring
from tallystick.clock import SystemClock
from tallystick.store.sqlite.store import SqliteStore
from tests.surfaces.commands import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


WORK = ("--scope", "work", "--service", "ocr")


def test_a_key_opens_what_it_was_made_for_until_it_is_revoked(shop: Shop):
    wanted = ("--tenant", "acme", "--scope", "jobs:write", "--scope", "jobs:read", *WORK)
    made = shop.tally("keys", "create", "shop", *wanted, "--json").data
    assert set(made) == {"id", "key"}
    assert made["key"].startswith(f"{made['id']}.")
    store = SqliteStore(shop.database, SystemClock())
    try:
        ring = Keyring(store)
        found = ring.opened_by(made["key"])
        assert found is not None
        assert (found.tenant_id, found.allows("work"), found.allows("admin")) == ("acme", True, False)
        assert ring.opened_by(f"{made['id']}.{'0' * 64}") is None
        (listed,) = shop.tally("keys", "list", "shop", "--json").data
        assert (listed["id"], listed["state"], listed["services"]) == (made["id"], "live", ["ocr"])
        assert shop.tally("keys", "revoke", made["key"], "shop").code == 0
        assert ring.opened_by(made["key"]) is None
        (listed,) = shop.tally("keys", "list", "shop", "--json").data
        assert listed["state"] == "revoked"
    finally:
        store.close()


def test_the_secret_is_nowhere_in_the_file(shop: Shop):
    key = shop.tally("keys", "create", "shop", "--tenant", "acme", *WORK, "--json").data["key"]
    secret = key.partition(".")[2].encode()
    assert not [file for file in shop.folder.iterdir() if file.is_file() and secret in file.read_bytes()]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tenant", "acme", "--scope", "work"), "--service"),
        (("--tenant", "acme", "--scope", "jobs:read", "--service", "ocr"), "--scope work"),
        (("--tenant", "*", "--scope", "jobs:read"), "name the tenant"),
        (("--tenant", "a b", "--scope", "jobs:read"), "tenant"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(shop: Shop, arguments: tuple[str, ...], says: str):
    done = shop.tally("keys", "create", "shop", *arguments)
    assert done.code == 4
    assert says in done.err


def test_workers_and_operators_may_have_keys_for_all_tenants(shop: Shop):
    assert shop.tally("keys", "create", "shop", "--tenant", "*", *WORK).code == 0
    assert shop.tally("keys", "create", "shop", "--tenant", "*", "--scope", "admin").code == 0


def test_a_key_that_is_not_there_is_not_found(shop: Shop):
    shop.tally("keys", "create", "shop", "--tenant", "acme", *WORK)
    assert shop.tally("keys", "revoke", "nobody", "shop").code == 3
