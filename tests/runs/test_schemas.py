"""The shipped schemas are those of the types, and accept exactly what the package writes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from tallystick.errors import RunFailed
from tallystick.runs.log.events import PAYLOADS, EventType
from tallystick.runs.log.schemas import event_schema, shipped, snapshot_schema
from tallystick.runs.log.snapshot import read_snapshot
from tallystick.runs.orchestrator.start import start_or_resume
from tallystick.runs.toy import toy_publishing
from tests.runs.test_recovery import resume, stopped_run
from tests.runs.worlds import around, events, fast_folder


def validator(name: str):
    return jsonschema_rs.validator_for(shipped(name))


def test_the_shipped_schemas_are_current():
    assert shipped("event.schema.json") == event_schema(), "write them again: make docs"
    assert shipped("snapshot.schema.json") == snapshot_schema(), "write them again: make docs"


@pytest.fixture(scope="module")
def runs():
    """Runs that between them record every kind of trouble."""
    with fast_folder() as root:
        start_or_resume(toy_publishing(2), root, "good", around=around())
        with pytest.raises(RunFailed):
            start_or_resume(toy_publishing(9, 1), root, "bad", around=around())
        run = stopped_run(root)
        with (run / "events.ndjson").open("ab") as file:
            file.write(b'{"torn')
        (run / "artifacts" / "raw.txt").write_text("edited")
        resume(root)
        yield [root / "good", root / "bad", run]


def test_every_event_and_snapshot_is_valid(runs):
    of_event, of_snapshot = validator("event.schema.json"), validator("snapshot.schema.json")
    for run in runs:
        written = list(events(run))
        assert written
        for event in written:
            of_event.validate(event)
        of_snapshot.validate(json.loads((run / "snapshot.json").read_bytes()))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda event: event.pop("trace_id"),
        lambda event: event.update(type="SOMETHING_ELSE"),
        lambda event: event.update(ts="yesterday"),
        lambda event: event.update(extra=1),
        lambda event: event.update(run_id="../up"),
        lambda event: event["payload"].pop("pipeline"),
        lambda event: event["payload"].update(extra=1),
        lambda event: event.update(event_hash="x"),
    ],
)
def test_an_event_that_is_not_one_is_refused(runs, spoil):
    event = events(runs[0])[0]
    spoil(event)
    assert not validator("event.schema.json").is_valid(event)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda snapshot: snapshot.pop("issues"),
        lambda snapshot: snapshot.update(extra=1),
        lambda snapshot: snapshot["work_items"][0].update(status="dreaming"),
        lambda snapshot: snapshot["work_items"][0].update(attempt=0),
        lambda snapshot: snapshot["artifacts_index"]["plan.json"].pop("sha256"),
        lambda snapshot: snapshot["section_states"].update(intro="LOST"),
    ],
)
def test_a_snapshot_that_is_not_one_is_refused_by_schema_and_reader_alike(runs, spoil):
    snapshot = json.loads((runs[0] / "snapshot.json").read_bytes())
    spoil(snapshot)
    assert not validator("snapshot.schema.json").is_valid(snapshot)
    assert read_snapshot(msgspec.json.encode(snapshot)) is None


def test_an_issue_says_its_status_also_while_it_is_open(runs):
    opened = [event["payload"] for run in runs for event in events(run) if event["type"] == "ISSUE_OPENED"]
    shown = json.loads((runs[1] / "snapshot.json").read_bytes())["issues"]
    assert opened
    assert {issue.get("status") for issue in opened} == {"OPEN"}
    assert {issue.get("status") for issue in shown} == {"OPEN"}
    event = next(event for event in events(runs[1]) if event["type"] == "ISSUE_OPENED")
    for field in ("status", "error_code"):
        without = {key: value for key, value in event["payload"].items() if key != field}
        assert not validator("event.schema.json").is_valid({**event, "payload": without}), field


def test_an_issue_of_a_log_that_leaves_the_status_out_is_open():
    payload: Any = msgspec.json.decode(
        b'{"issue_id":"i","gate":"g","severity":"warn","message":"m"}', type=PAYLOADS[EventType.ISSUE_OPENED]
    )
    assert payload.status == "OPEN"


@pytest.mark.parametrize(("kind", "field"), [("WORK_ITEM_QUEUED", "attempt"), ("WORK_ITEM_QUEUED", "visit")])
def test_attempts_and_visits_are_counted_from_one(runs, kind, field):
    event = next(event for event in events(runs[0]) if event["type"] == kind)
    event["payload"][field] = 0
    assert not validator("event.schema.json").is_valid(event)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(json.dumps(event["payload"]).encode(), type=PAYLOADS[EventType(kind)])


def test_every_field_of_the_specification_is_there(runs):
    """The field lists of specification 003 as it was ruled, spelled out once more."""
    properties = {
        name: set(part["properties"])
        for name, part in shipped("snapshot.schema.json")["$defs"].items()
        if "properties" in part
    }
    assert set(shipped("event.schema.json")["properties"]) == {
        "event_id",
        "run_id",
        "ts",
        "type",
        "payload",
        "trace_id",
        "span_id",
        "parent_span_id",
        "prev_hash",
        "event_hash",
    }
    assert properties["WorkItem"] == {
        "work_item_id",
        "worker",
        "attempt",
        "status",
        "inputs",
        "outputs",
        "scope_key",
        "started_at",
        "finished_at",
        "error",
    }
    assert properties["Issue"] == {
        "issue_id",
        "gate",
        "severity",
        "message",
        "status",
        "error_code",
        "files",
        "location",
        "suggested_fix",
    }
    assert properties["Location"] == {"path", "line"}
    assert properties["Artifact"] == {"path", "sha256", "schema_id", "writer_worker", "ts", "stale"}
    assert set(shipped("snapshot.schema.json")["properties"]) == {
        "run_id",
        "run_state",
        "section_states",
        "artifacts_index",
        "work_items",
        "issues",
    }
