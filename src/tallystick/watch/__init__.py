"""Metrics for monitoring from outside: what happens in a process, and how a store stands."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tallystick.errors import ExtraMissing


def exposition() -> ModuleType:
    """Return the module that shows series; it stands on a package of the extra `metrics`."""
    try:
        return import_module("tallystick.watch.prometheus")
    except ModuleNotFoundError as error:
        if not ExtraMissing.explains(error, "prometheus_client"):
            raise
        raise ExtraMissing("metrics", "metrics") from None
