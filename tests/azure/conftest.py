"""One emulator of Azure Tables for the whole run, tables of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tallystick.testing.azurite_server import Azurite
from tests.azure.emulator import fresh_prefix
from tests.azure.subject import AzureSubject


@pytest.fixture
def subject(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureSubject]:
    monkeypatch.setenv("TALLYSTICK_AZURE_CONNECTION_STRING", azurite.connection())
    made = AzureSubject(azurite.url(fresh_prefix()))
    yield made
    made.close()
