"""The server of these tests: the one that the crash sweep starts too."""

from __future__ import annotations

from tallystick.testing.postgres_server import (
    NoServer,
    Server,
    find_binaries,
    make_server,
    make_standby,
    shared_server,
)

__all__ = ["NoServer", "Server", "find_binaries", "make_server", "make_standby", "shared_server"]
