"""One emulator of Azure Tables for the whole run, tables of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.azure.subject import AzureSubject


@pytest.fixture
def subject(azure_url: str) -> Iterator[AzureSubject]:
    made = AzureSubject(azure_url)
    yield made
    made.close()
