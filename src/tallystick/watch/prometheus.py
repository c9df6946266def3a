"""How series are read: as text, or from a small server of a worker."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, generate_latest, start_http_server

from tallystick.clock import Clock
from tallystick.errors import BadInput
from tallystick.store.api import Store
from tallystick.watch.process_series import ProcessSeries
from tallystick.watch.store_series import StoreSeries

__all__ = ["ProcessSeries", "StoreSeries", "serve_series", "text_of", "text_of_store"]


def text_of_store(store: Store, clock: Clock) -> bytes:
    """Return the series of a store as Prometheus reads them."""
    return text_of(StoreSeries(store, clock))


def text_of(series: StoreSeries) -> bytes:
    """Return series as Prometheus reads them."""
    registry = CollectorRegistry()
    registry.register(series)
    return generate_latest(registry)


def serve_series(registry: CollectorRegistry, host: str, port: int) -> tuple[int, Callable[[], None]]:
    """Answer GET /metrics in threads of its own; return the port and how to stop that."""
    try:
        server, _thread = start_http_server(port, host, registry)
    except OSError as error:
        raise BadInput(f"metrics cannot be served at {host}:{port}: {error}") from None
    return server.server_address[1], server.shutdown
