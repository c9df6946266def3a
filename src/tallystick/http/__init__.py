"""The HTTP API: commands, jobs and remote workers. `http_app(tally)` is an ASGI app of its own or to mount.

    from tallystick.http import http_app

It needs the extra `tallystick[http]`.
"""

from __future__ import annotations

from tallystick.errors import ExtraMissing

try:
    from tallystick.http.app import http_app
except ModuleNotFoundError as error:
    if error.name not in ("starlette", "uvicorn"):
        raise
    raise ExtraMissing("the HTTP API", "http") from error

__all__ = ["http_app"]
