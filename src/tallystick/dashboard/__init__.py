"""The dashboard: what runs, what stands still, and why. `dashboard_app(tally)` is an ASGI app.

    from tallystick.dashboard import dashboard_app

`tally serve` has it at `/ui`. It needs the extra `tallystick[http]`.
"""

from __future__ import annotations

from tallystick.errors import ExtraMissing

try:
    from tallystick.dashboard.app import dashboard_app
except ModuleNotFoundError as error:
    if error.name not in ("jinja2", "starlette", "uvicorn"):
        raise
    raise ExtraMissing("the dashboard", "http") from error

__all__ = ["dashboard_app"]
