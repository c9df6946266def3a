"""The telemetry service: a small HTTP server over the database, for this machine.

It listens on loopback unless told otherwise and knows no users: every client that reaches it may write to it.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from tallystick.core.json_forms.strict_json import decode_strict
from tallystick.errors import BadInput, ExtraMissing, TallyError
from tallystick.runs.telemetry.book import TelemetryBook
from tallystick.runs.telemetry.records import (
    BATCH_RECORDS_MAX,
    Association,
    Change,
    RecordBatch,
    RecordKind,
    Status,
    TelemetryRecord,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

BODY_BYTES_MAX: Final = 8 * 1024 * 1024
PAGE_MAX: Final = 1_000
HOSTS: Final = ("127.0.0.1", "localhost", "[::1]", "testserver")
COMMIT: Final = re.compile("[0-9a-fA-F]{7,40}")
T = TypeVar("T")


class Malformed(BadInput):
    """What no sender of ours sends: a batch beyond its size, a commit that is none."""

    http_status = 400


def make_service(database: str | os.PathLike[str], *, hosts: tuple[str, ...] = HOSTS) -> Starlette:
    """Return the ASGI application; the file is opened now and closed with the application."""
    try:
        from starlette.applications import Starlette  # noqa: PLC0415 (an extra: needed by the service alone)
        from starlette.middleware import Middleware  # noqa: PLC0415 (as above)
        from starlette.middleware.trustedhost import TrustedHostMiddleware  # noqa: PLC0415 (as above)
        from starlette.routing import Route  # noqa: PLC0415 (as above)
    except ImportError as error:
        if not ExtraMissing.explains(error, "starlette"):
            raise
        raise ExtraMissing("the telemetry service", "http") from error
    handlers = Handlers(TelemetryBook(database))
    routes = [
        Route("/health", handlers.health),
        Route("/metrics", handlers.metrics),
        Route("/api/v1/runs", handlers.create, methods=["POST"]),
        Route("/api/v1/runs", handlers.list, methods=["GET"]),
        Route("/api/v1/runs/batch", handlers.batch, methods=["POST"]),
        Route("/api/v1/runs/{record_id}", handlers.read, methods=["GET"]),
        Route("/api/v1/runs/{record_id}", handlers.update, methods=["PATCH"]),
        Route("/api/v1/runs/{record_id}/associate-commit", handlers.associate, methods=["POST"]),
    ]
    # A page in a browser must not reach the service by a name that it made point here.
    guard = Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    return Starlette(routes=routes, middleware=[guard], exception_handlers={TallyError: handlers.refuse})


class Handlers:
    """One method a route."""

    def __init__(self, book: TelemetryBook) -> None:
        """Answer from this book."""
        self.book = book
        self._told = 0
        self._duplicates = 0

    async def create(self, request: Request) -> Response:
        """Keep one record: 201 when it is new, 200 when its id is known."""
        record = await _body(request, TelemetryRecord)
        new = self._add([record])
        return _json({"record_id": record.record_id, "created": bool(new)}, 201 if new else 200)

    async def batch(self, request: Request) -> Response:
        """Keep several records, all or none, and note what became of others."""
        batch = await _body(request, RecordBatch)
        size = len(batch.records) + len(batch.changes)
        if not size:
            raise BadInput("a batch has at least one record or change")
        if size > BATCH_RECORDS_MAX:
            raise Malformed(f"a batch has at most {BATCH_RECORDS_MAX} records and changes, not {size}")
        new = self._add(batch.records)
        changed = sum(self.book.change(record_id, change) for record_id, change in batch.changes.items())
        known = len(batch.records) - new
        return _json({"created": new, "duplicates": known, "changed": changed}, 200)

    async def read(self, request: Request) -> Response:
        """Return one record: a run by its run id, its work and its events by theirs."""
        record_id = request.path_params["record_id"]
        found = self.book.record(record_id)
        return _not_found(record_id) if found is None else _json(found, 200)

    async def update(self, request: Request) -> Response:
        """Note what became of a record."""
        change = await _body(request, Change)
        return _touched(request, self.book.change(request.path_params["record_id"], change))

    async def associate(self, request: Request) -> Response:
        """Note a commit that came out of a record."""
        association = await _body(request, Association)
        if not COMMIT.fullmatch(association.commit):
            raise Malformed(f"{association.commit!r} is not a commit: 7 to 40 hexadecimal digits")
        return _touched(request, self.book.associate(request.path_params["record_id"], association))

    async def list(self, request: Request) -> Response:
        """Return a page of records; `next` is the `after` of the following page."""
        query = request.query_params
        after, limit = _number(query.get("after", "0"), "after"), _number(query.get("limit", "100"), "limit")
        kind = query.get("kind", "")
        if kind and kind not in set(RecordKind):
            raise BadInput(f"{kind[:80]!r} is not a kind: use {', '.join(RecordKind)}")
        if not 0 < limit <= PAGE_MAX:
            raise BadInput(f"limit must be between 1 and {PAGE_MAX}")
        status, run_id = query.get("status", ""), query.get("run_id", "")
        if status and status not in set(Status):
            raise BadInput(f"{status[:80]!r} is not a status: use {', '.join(Status)}")
        found = self.book.page(run_id=run_id, kind=kind, status=status, after=after, limit=limit)
        return _json({"records": found, "next": found[-1]["seq"] if len(found) == limit else None}, 200)

    async def health(self, request: Request) -> Response:  # noqa: ARG002 (the signature is Starlette's)
        """Say that the service is there and its file can be read."""
        return _json({"status": "ok", "records": sum(count for *_, count in self.book.counts())}, 200)

    async def metrics(self, request: Request) -> Response:  # noqa: ARG002 (the signature is Starlette's)
        """Return the figures in the text format of Prometheus."""
        from starlette.responses import PlainTextResponse  # noqa: PLC0415 (an extra)

        lines = ["# TYPE tallystick_telemetry_records gauge"]
        lines += [
            f'tallystick_telemetry_records{{kind="{kind}",status="{_label(status)}"}} {count}'
            for kind, status, count in self.book.counts()
        ]
        lines += [
            "# TYPE tallystick_telemetry_told_total counter",
            f"tallystick_telemetry_told_total {self._told}",
        ]
        lines += ["# TYPE tallystick_telemetry_duplicates_total counter"]
        lines += [f"tallystick_telemetry_duplicates_total {self._duplicates}"]
        return PlainTextResponse("\n".join(lines) + "\n")

    async def refuse(self, request: Request, error: Exception) -> Response:  # noqa: ARG002 (as health)
        """Turn an error of ours into its HTTP status."""
        assert isinstance(error, TallyError)
        return _json({"error": error.as_dict()}, error.http_status)

    def _add(self, records: Any) -> int:  # noqa: ANN401 (a list of records; `list` is a method here)
        new = self.book.add(records)
        self._told += len(records)
        self._duplicates += len(records) - new
        return new


async def _body(request: Request, shape: type[T]) -> T:
    """Return the body in the wanted shape, or raise BadInput; a body that is too large is not read on."""
    taken = bytearray()
    async for piece in request.stream():
        taken += piece
        if len(taken) > BODY_BYTES_MAX:
            raise BadInput(f"the body is larger than {BODY_BYTES_MAX} bytes")
    value = decode_strict(bytes(taken), bytes_max=BODY_BYTES_MAX)
    try:
        return msgspec.convert(value, type=shape)
    except msgspec.ValidationError as error:
        raise BadInput(f"the body is not what this address takes: {error}") from error


def _touched(request: Request, found: bool) -> Response:  # noqa: FBT001 (an answer, not an option)
    record_id = request.path_params["record_id"]
    return _json({"record_id": record_id}, 200) if found else _not_found(record_id)


def _not_found(record_id: str) -> Response:
    return _json({"error": {"code": "NOT_FOUND", "message": f"there is no record {record_id}"}}, 404)


def _number(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadInput(f"{name} must be a whole number, not {text[:40]!r}")
    return int(text)


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _json(data: object, status: int) -> Response:
    from starlette.responses import Response  # noqa: PLC0415 (an extra)

    return Response(msgspec.json.encode(data), status, media_type="application/json")
