"""Where a server listens, as people write it."""

from __future__ import annotations

from tallystick.errors import BadInput


def split_bind(bind: str) -> tuple[str, int]:
    """Return host and port of an address.

    >>> split_bind("127.0.0.1:8000"), split_bind("[::1]:0")
    (('127.0.0.1', 8000), ('::1', 0))
    """
    host, mark, port = bind.rpartition(":")
    if not mark or not host or not port.isdecimal() or int(port) > 65_535:
        raise BadInput(f"{bind!r} is no HOST:PORT; write 127.0.0.1:8000", bind=bind)
    return host.strip("[]"), int(port)
