"""By what right a program comes in: a connection string, in its environment or in code, or an identity."""

from __future__ import annotations

import asyncio
import sys
import time
from types import ModuleType
from typing import Any, Self

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ServiceRequestError

from tallystick import RemoteStep, Tally
from tallystick.errors import BadInput
from tallystick.store.azure.address import VARIABLES, AzureAddress, connected, right_of
from tallystick.store.azure.client import Client
from tallystick.testing.azurite_server import Azurite
from tests.remote.test_publish import command

SHOP = AzureAddress("shopaccount", "tally")


class Identity:
    """A credential as `azure-identity` has them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.closed = False

    async def get_token(self, *scopes: str, **_about: Any) -> AccessToken:
        self.asked += scopes
        return AccessToken("a-secret-token", int(time.time()) + 3_600)

    async def close(self) -> None:
        self.closed = True


class Nowhere:
    """A way to the service that notes what would be sent, and leads nowhere."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def send(self, request: Any, **_about: Any) -> Any:
        self.sent.append(request)
        raise ServiceRequestError("no network here")

    async def open(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_about: object) -> None:
        """Do nothing."""


def test_an_identity_signs_what_is_sent_to_the_service_of_the_account():
    identity, way = Identity(), Nowhere()

    async def ask() -> None:
        client = connected(SHOP, {"retry_total": 0, "transport": way}, identity)
        with pytest.raises(ServiceRequestError):
            await client.get_table_client("tallyJobs").create_table()

    asyncio.run(ask())
    (sent,) = way.sent
    assert sent.url.startswith("https://shopaccount.table.core.windows.net/")
    assert sent.headers["Authorization"] == "Bearer a-secret-token"
    assert identity.asked == ["https://storage.azure.com/.default"]


def test_without_a_string_the_identity_of_the_machine_is_asked_and_closed(monkeypatch: pytest.MonkeyPatch):
    identity = Identity()
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    library, its_aio = ModuleType("azure.identity"), ModuleType("azure.identity.aio")
    its_aio.DefaultAzureCredential = lambda: identity  # type: ignore[attr-defined]  # as the library has it
    monkeypatch.setitem(sys.modules, "azure.identity", library)
    monkeypatch.setitem(sys.modules, "azure.identity.aio", its_aio)
    Client(SHOP).close()
    assert identity.closed


def test_an_identity_that_the_program_has_made_is_left_open():
    identity = Identity()
    Client(SHOP, identity).close()
    assert not identity.closed


def test_a_connection_string_is_in_no_error(azurite: Azurite):
    for told in ("AccountName=a;AccountKey=secret", azurite.connection()):
        with pytest.raises(BadInput) as refused:
            connected(AzureAddress("elsewhere", "x"), {}, right_of({VARIABLES[0]: told}))
        assert "secret" not in str(refused.value)
        assert azurite.key not in str(refused.value)


def test_what_is_no_credential_is_refused_without_being_repeated():
    with pytest.raises(BadInput, match="credential") as refused:
        Client(SHOP, b"a-secret").close()
    assert "a-secret" not in str(refused.value)


def test_without_a_right_to_come_in_it_is_said_where_one_is_looked_for():
    with pytest.raises(BadInput, match=VARIABLES[0]):
        right_of({})


def test_a_credential_is_refused_where_there_is_no_use_for_it(tmp_path):
    with pytest.raises(BadInput, match="for Azure Tables"):
        Tally(f"sqlite:///{tmp_path}/shop.db", credential="AccountName=a").runtime()


@pytest.mark.slow
def test_a_connection_string_may_be_given_in_code(
    azure_url: str, azurite: Azurite, monkeypatch: pytest.MonkeyPatch
):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    app = Tally(azure_url, credential=azurite.connection())
    app.protocol("p", request_types=["scan"], steps=[RemoteStep("s0", service="ocr")])
    assert app.command(command()).state() == "DISPATCHING"
    app.close()
