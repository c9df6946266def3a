"""JSON Schemas of the log and of the snapshot, generated from the types that read and write them."""

from __future__ import annotations

from importlib import resources
from typing import Any, Final

import msgspec

from tallystick.core.limits import NAME_CHARS_MAX
from tallystick.log.event import LogEvent
from tallystick.runs.log.events import PAYLOADS, EventType
from tallystick.runs.log.snapshot import Snapshot

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REF: Final = "#/$defs/{name}"
_HASH: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_RUN_ID: Final = {
    "type": "string",
    "pattern": rf"^(?!.*\.$)[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_CHARS_MAX - 1}}}$",
}
_INSTANT: Final = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"}


def event_schema() -> dict[str, Any]:
    """Return the schema of one line of events.ndjson: the payload has the shape that the type demands."""
    types = [LogEvent, *dict.fromkeys(PAYLOADS.values())]
    _, definitions = msgspec.json.schema_components(types, ref_template=_REF)
    event = definitions.pop("LogEvent")
    event["title"] = "Event"
    definitions["ArtifactWritten"]["properties"]["sha256"] = _HASH
    _bind_issue(definitions["Issue"])
    event["properties"] |= {
        "event_id": {"type": "string", "minLength": 1},
        "run_id": _RUN_ID,
        "ts": _INSTANT,
        "type": {"enum": sorted(EventType)},
        "payload": {"type": "object"},
        "trace_id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
        "span_id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
        "parent_span_id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
        "prev_hash": {"type": "string", "pattern": "^([0-9a-f]{64})?$"},
        "event_hash": _HASH,
    }
    event["allOf"] = [
        {
            "if": {"properties": {"type": {"const": kind.value}}},
            "then": {"properties": {"payload": {"$ref": _REF.format(name=PAYLOADS[kind].__name__)}}},
        }
        for kind in EventType
    ]
    return {"$schema": DIALECT, "$id": "event.schema.json", **event, "$defs": definitions}


def snapshot_schema() -> dict[str, Any]:
    """Return the schema of snapshot.json."""
    _, definitions = msgspec.json.schema_components([Snapshot], ref_template=_REF)
    snapshot = definitions.pop("Snapshot")
    snapshot["properties"]["run_id"] = _RUN_ID
    definitions["Artifact"]["properties"] |= {"sha256": _HASH, "ts": _INSTANT}
    _bind_issue(definitions["Issue"])
    return {"$schema": DIALECT, "$id": "snapshot.schema.json", **snapshot, "$defs": definitions}


def _bind_issue(issue: dict[str, Any]) -> None:
    """Demand a status, which is always written, and an error code of errors and blockers.

    A reader also takes the issue of an older log that leaves out the status while it is open.
    """
    issue["required"] = [*issue["required"], "status"]
    issue["allOf"] = [
        {
            "if": {"properties": {"severity": {"enum": ["blocker", "error"]}}},
            "then": {"required": ["error_code"]},
        }
    ]


def schema_text(schema: dict[str, Any]) -> str:
    """Return a schema as the text of a file."""
    return msgspec.json.format(msgspec.json.encode(schema, order="sorted"), indent=2).decode() + "\n"


def shipped(name: str) -> dict[str, Any]:
    """Return a schema as it lies in the package."""
    text = resources.files("tallystick.runs.log").joinpath("schema_files", name).read_bytes()
    found: dict[str, Any] = msgspec.json.decode(text)
    return found
