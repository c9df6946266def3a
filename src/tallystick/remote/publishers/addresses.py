"""Which addresses a webhook may connect to. The rest of the machine and its network is none of its business.

A name is resolved once, every address that it has is judged, and the connection goes to one of those that
were judged: an answer that changes between the look and the connection changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

from tallystick.errors import BadInput

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

# What is_global of older Pythons lets pass: addresses that carry another one inside, and old local ones.
_CARRIERS: Final = tuple(
    ip_network(text)
    for text in (
        "::ffff:0:0/96",
        "::/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2002::/16",
        "2001::/23",
        "fec0::/10",
    )
)
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


def is_allowed(address: Address, allowed: Sequence[Network], *, plain: bool) -> bool:
    """Tell whether a webhook may connect to this address; `plain` is http, for networks of the operator only.

    >>> is_allowed(ip_address("93.184.215.14"), (), plain=False)
    True
    >>> is_allowed(ip_address("10.0.0.7"), (), plain=False)
    False
    >>> is_allowed(ip_address("10.0.0.7"), networks(["10.0.0.0/8"]), plain=True)
    True
    """
    if any(address.version == network.version and address in network for network in allowed):
        return True
    return not plain and is_public(address)


def is_public(address: Address) -> bool:
    """Tell whether an address belongs to the public network, and to nothing that carries another address.

    >>> [is_public(ip_address(text)) for text in ("8.8.8.8", "100.64.0.1", "::ffff:127.0.0.1")]
    [True, False, False]
    """
    if address.is_multicast or address.is_unspecified or address.is_reserved or address.is_link_local:
        return False
    return address.is_global and not any(
        address.version == network.version and address in network for network in _CARRIERS
    )


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks that an operator names."""
    if isinstance(texts, str):
        raise BadInput(f"allow_networks is a list: write [{texts!r}]")
    try:
        return tuple(ip_network(text) for text in texts)
    except ValueError as error:
        raise BadInput(
            f"allow_networks has an entry that is not a network: {error}; write '10.0.0.0/8'"
        ) from error


def read_webhook_url(url: str, allowed: Sequence[Network]) -> SplitResult:
    """Return an address that a webhook may have, or say what is wrong with it."""
    parts = read_address(url, {"http", "https"}, "a webhook needs an address like https://example.com/hook")
    host = parts.hostname or ""
    if parts.username is not None or parts.password is not None:
        raise BadInput(f"the address of a webhook has no name or password; {host} may check the signature")
    if parts.scheme == "http" and not allowed:
        raise BadInput(f"{host} is asked over plain http: use https, or name its network in allow_networks")
    if any(sign.isspace() or ord(sign) < 33 for sign in url) or "\\" in url or "%" in host:
        raise BadInput(f"the address of a webhook at {host} has signs that do not belong there")
    literal = _literal(host)
    if literal is not None and not is_allowed(literal, allowed, plain=parts.scheme == "http"):
        raise BadInput(
            f"{host} is not a public address; name its network in allow_networks if you mean it",
            host=host,
        )
    return parts._replace(fragment="")


def read_address(url: str, schemes: Collection[str], wanted: str) -> SplitResult:
    """Return the parts of an address, or say what is `wanted`; a wrong one with its secrets is not shown."""
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise BadInput(wanted) from None
    if not is_whole:
        raise BadInput(wanted)
    return parts


def _literal(host: str) -> Address | None:
    """Return the address that a host is written as, if it is; in one spelling only."""
    try:
        return ip_address(host)
    except ValueError:
        last = host.rstrip(".").rpartition(".")[2]
        if _NUMBER.fullmatch(last):
            raise BadInput(f"{host!r} is a number and not written as an address: write 192.0.2.7") from None
        return None
