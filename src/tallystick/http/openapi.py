"""The OpenAPI document, made of the table of routes and of the types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import msgspec

from tallystick import __version__
from tallystick.core.remote.wire import add_conditions
from tallystick.http.forms import Problem
from tallystick.http.routes import ENDPOINTS, ApiRoute

_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_ALWAYS: Final = (401, 403, 405, 408, 421, 431, 500, 503)
DOCUMENT: Final = "/openapi.json"
METRICS: Final = "/metrics"
# Routes that answer with something else than a form: their name, what they say, and its media type.
_OTHERS: Final = {
    DOCUMENT: ("openapi_document", "This document.", "application/json"),
    METRICS: ("metrics_series", "The series of the store, for Prometheus; for operators.", "text/plain"),
}


@cache
def document() -> dict[str, Any]:
    """Return the whole document."""
    kinds: dict[type[msgspec.Struct], None] = {Problem: None}
    for endpoint in ENDPOINTS:
        for kind in (endpoint.body, endpoint.query, *endpoint.answers.values()):
            if kind is not None:
                kinds[kind] = None
    _, schemas = msgspec.json.schema_components(kinds, schema_hook=_anything, ref_template=_REF)
    add_conditions(schemas)
    paths: dict[str, dict[str, object]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    for path, (name, summary, media_type) in _OTHERS.items():
        paths[path] = {"get": _other(name, summary, media_type)}
    for query in {endpoint.query for endpoint in ENDPOINTS if endpoint.query}:
        del schemas[query.__name__]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tallystick",
            "version": __version__,
            "description": "Commands, jobs and remote workers.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "an API key, KID.SECRET"},
                "token": {"type": "http", "scheme": "bearer", "description": "the token of a directive"},
            },
        },
    }


def _operation(endpoint: ApiRoute, schemas: dict[str, Any]) -> dict[str, object]:
    errors = sorted({*endpoint.errors, *_ALWAYS} - set(endpoint.answers))
    said: dict[str, object] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": list(_parameters(endpoint, schemas)),
        "responses": {
            **{str(status): _answer(status, kind) for status, kind in endpoint.answers.items()},
            **{str(status): _refusal(endpoint, status) for status in errors},
        },
    }
    if endpoint.body is not None:
        said["requestBody"] = {
            "required": bool(_required(endpoint.body)),
            "content": {"application/json": {"schema": _ref(endpoint.body)}},
        }
    said["security"] = [{"key": []}] if endpoint.scope else [{"token": []}] if endpoint.reporter else []
    return said


def _other(name: str, summary: str, media_type: str) -> dict[str, object]:
    """Return a route that answers with something else than a form; it needs a key unless it is open."""
    kind = "object" if media_type == "application/json" else "string"
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [],
        "responses": {
            "200": {"description": "OK", "content": {media_type: {"schema": {"type": kind}}}},
            **{str(status): _problem(status) for status in _ALWAYS},
        },
        "security": [{"key": []}, {}],
    }


def _parameters(endpoint: ApiRoute, schemas: dict[str, Any]) -> Iterator[dict[str, object]]:
    for name in _PARAMETER.findall(endpoint.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    if endpoint.query is None:
        return
    whole = schemas[endpoint.query.__name__]
    for name, schema in whole["properties"].items():
        yield {
            "name": name,
            "in": "query",
            "required": name in whole.get("required", ()),
            "schema": _without_null(schema),
        }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a query can say: it has no word for null."""
    if "anyOf" not in schema:
        return schema
    kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _answer(status: int, kind: type[msgspec.Struct]) -> dict[str, object]:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {"application/json": {"schema": _ref(kind)}},
    }


def _refusal(endpoint: ApiRoute, status: int) -> dict[str, object]:
    if endpoint.reporter is not None and status == HTTPStatus.UNAUTHORIZED:
        return {"description": "The token is missing, wrong or over."}
    return _problem(status)


def _problem(status: int) -> dict[str, object]:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {"application/problem+json": {"schema": _ref(Problem)}},
    }


def _ref(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}


def _required(kind: type[msgspec.Struct]) -> Sequence[str]:
    return [field.name for field in msgspec.structs.fields(kind) if field.required]


def _anything(kind: type) -> dict[str, object]:
    """Return the schema of what may be any JSON value."""
    if kind is not object:
        raise TypeError(f"{kind} has no schema")
    return {"description": "any JSON value"}
