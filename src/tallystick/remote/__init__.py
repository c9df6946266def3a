"""What travels between a Tally and services outside: how directives go out, and how reports come back.

For services that see nothing of the database there is a worker that asks over HTTP:
`from tallystick.remote import RemoteWorker`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallystick.remote.given import Done, GivenDirective, RemoteFailed
    from tallystick.remote.worker import RemoteWorker

__all__ = ["Done", "GivenDirective", "RemoteFailed", "RemoteWorker"]

_HOMES = {"RemoteWorker": "worker", "Done": "given", "GivenDirective": "given", "RemoteFailed": "given"}


def __getattr__(name: str) -> object:
    """Load a part when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return __all__
