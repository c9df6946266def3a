"""How series are read: as text, or from a small server of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest, start_http_server

from tallystick.errors import BadInput
from tallystick.watch.process_series import ProcessSeries
from tallystick.watch.store_series import StoreSeries

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["ProcessSeries", "StoreSeries", "data_of", "serve_series", "text_of"]


def text_of(series: StoreSeries) -> bytes:
    """Return series as Prometheus reads them."""
    registry = CollectorRegistry()
    registry.register(series)
    return generate_latest(registry)


def data_of(series: StoreSeries) -> list[dict[str, object]]:
    """Return series for programs, one entry for each value."""
    return [
        {"name": sample.name, "labels": sample.labels, "value": sample.value}
        for family in series.collect()
        for sample in family.samples
    ]


def serve_series(registry: CollectorRegistry, host: str, port: int) -> tuple[int, Callable[[], None]]:
    """Answer GET /metrics in threads of its own; return the port and how to stop that."""
    try:
        server, _thread = start_http_server(port, host, registry)
    except OSError as error:
        raise BadInput(f"metrics cannot be served at {host}:{port}: {error}") from None
    if (answers := server.get_app()) is not None:
        server.set_app(_at_metrics(answers))
    return server.server_address[1], server.shutdown


def _at_metrics(answers: WSGIApplication) -> WSGIApplication:
    """Return what answers at /metrics alone: an address that was mistyped must not look well."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO", "").rstrip("/") == "/metrics":
            return answers(environ, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"the series are at /metrics\n"]

    return answer
