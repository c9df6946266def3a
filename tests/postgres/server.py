"""The server of these tests: the one that the crash sweep starts too."""

from __future__ import annotations

from tallystick.testing.postgres_server import Server, make_server, make_standby, shared_server

__all__ = ["Server", "make_server", "make_standby", "shared_server"]
