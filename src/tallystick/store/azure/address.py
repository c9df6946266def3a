"""The address of Azure Tables and the credentials for it, which appear in no address, error or log."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from azure.data.tables.aio import TableServiceClient

from tallystick.errors import BadInput, ExtraMissing

VARIABLES: Final = ("TALLYSTICK_AZURE_CONNECTION_STRING", "AZURE_STORAGE_CONNECTION_STRING")
"""Where a connection string is looked for; without one `azure-identity` is asked, if it is installed."""

_PREFIX: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,39}")
_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")


class AzureAddress(NamedTuple):
    """A storage account, and how the names of our tables begin there."""

    account: str
    prefix: str

    @property
    def url(self) -> str:
        """Return the address as it is written."""
        return f"azure://{self.account}/{self.prefix}"


def read_address(url: str) -> AzureAddress:
    """Return the parts of an address, or say how one is written.

    >>> read_address("azure://shopaccount/shop")
    AzureAddress(account='shopaccount', prefix='shop')
    """
    parts = urlsplit(url)
    account, prefix = parts.netloc, parts.path.strip("/")
    if not _ACCOUNT.fullmatch(account) or not _PREFIX.fullmatch(prefix) or parts.query or parts.fragment:
        # It may have a secret in it.
        raise BadInput(
            "an address of Azure Tables is azure://ACCOUNT/PREFIX: the storage account, and letters and "
            f"digits that begin the names of its tables; the connection string is in {VARIABLES[0]}"
        )
    return AzureAddress(account, prefix)


def right_of(environment: Mapping[str, str] = os.environ) -> object:
    """Return by what right a program comes in that does not say so itself: a string, or an identity."""
    told = next((environment[name] for name in VARIABLES if environment.get(name)), None)
    return _identity() if told is None else told


def connected(address: AzureAddress, options: dict[str, Any], right: object) -> TableServiceClient:
    """Return a client of the service, for the running loop.

    A right is a connection string, or a credential as the libraries of Azure have them.
    """
    if not isinstance(right, str):
        endpoint = f"https://{address.account}.table.core.windows.net"
        try:
            return TableServiceClient(endpoint=endpoint, credential=right, **options)  # type: ignore[arg-type]  # the library judges it
        except TypeError:
            raise BadInput(
                "credential= is a connection string, or a credential of azure-identity or azure-core"
            ) from None
    try:
        client = TableServiceClient.from_connection_string(right, **options)
    except ValueError:
        raise BadInput(
            f"the connection string (of `credential`, or in {VARIABLES[0]}) cannot be read"
        ) from None
    if client.account_name != address.account:
        raise BadInput(
            f"the connection string is for another account than {address.account}, which {address.url} names"
        )
    return client


def _identity() -> Any:  # noqa: ANN401 (the library is optional)
    try:
        from azure.identity.aio import DefaultAzureCredential  # type: ignore[import-untyped]  # noqa: PLC0415 (optional)
    except ImportError as error:
        if not ExtraMissing.explains(error, "azure"):
            raise
        raise BadInput(
            f"no credentials for Azure Tables: set {VARIABLES[0]}, pass `credential`, "
            "or install azure-identity"
        ) from None
    return DefaultAzureCredential()
