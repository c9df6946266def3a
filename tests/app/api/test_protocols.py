"""Protocols on a Tally: declared, submitted to by commands, looked after by its workers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from tallystick import Job, RemoteStep, Tally
from tallystick.errors import (
    BadCommand,
    BadInput,
    BadValue,
    DuplicateHandler,
    IdempotencyConflict,
    JobFailed,
)
from tallystick.testing.remote_hand import Heard, RemoteHand
from tallystick.testing.stepping import count_jobs
from tests.patience import wait_until

COMMAND = {
    "tenant_id": "acme",
    "request_type": "ocr",
    "input_ref": "s3://in",
    "output_ref": "s3://out",
    "payload": {"steps": {"ocr": {"pages": 3}}},
    "schema_version": "v1",
}


class OcrRequest(msgspec.Struct):
    pages: int


def steps(app: Tally, job: Job[Any], columns: str) -> list[tuple[object, ...]]:
    """Return the steps of a job in order."""
    with app.connect() as db:
        query = f"select {columns} from steps where job_id = '{job.id}' order by step_index"
        return [tuple(row) for row in db.execute(query)]


@pytest.fixture
def app(tmp_path: Path):
    app = Tally(f"sqlite:///{tmp_path / 'shop.db'}")
    app.protocol(
        "ocr-embed",
        request_types=["ocr", "scan"],
        steps=[
            RemoteStep("ocr", service="ocr", ack="1s", payload=OcrRequest),
            RemoteStep("embed", service="embed", step_type="vectors", lease="5m"),
        ],
    )
    yield app
    app.close()


def test_a_command_becomes_a_job_once(app: Tally):
    protocol = app.protocols["ocr-embed"]
    job = protocol.submit(COMMAND)
    assert job.created
    again = protocol.submit({**COMMAND, "correlation_id": "not a part of the content"})
    assert (again, again.created) == (job, False)
    keyed = app.command({**COMMAND, "idempotency_key": "k"})
    assert keyed.created
    with pytest.raises(IdempotencyConflict) as conflict:
        app.command({**COMMAND, "idempotency_key": "k", "payload": {"steps": {"ocr": {"pages": 4}}}})
    assert conflict.value.fields["existing_hash"] != conflict.value.fields["submitted_hash"]
    assert asyncio.run(protocol.submit_aio(COMMAND)) == job
    assert steps(app, job, "name, step_type, payload") == [
        ("ocr", "ocr", '{"pages":3}'),
        ("embed", "vectors", None),
    ]


@pytest.mark.parametrize(
    ("change", "error", "path"),
    [
        ({"request_type": "mail"}, BadCommand, "request_type"),
        ({"protocol_id": "other"}, BadCommand, "protocol_id"),
        ({"mode": "BURST"}, BadCommand, "doc_id"),
        ({"tenant_id": 7}, BadValue, "tenant_id"),
        ({"payload": {"steps": {"ocr": {"pages": "many"}}}}, BadValue, "payload.steps.ocr.pages"),
        ({"payload": {"steps": {"ocr": {"pages": 3}}, "a": object()}}, BadValue, "payload"),
        ({"schema_version": "v2"}, BadValue, "schema_version"),
    ],
)
def test_a_command_that_cannot_be_is_refused_with_its_path(app: Tally, change, error, path):
    with pytest.raises(error) as refused:
        app.protocols["ocr-embed"].submit({**COMMAND, **change})
    assert refused.value.fields["path"] == path
    assert count_jobs(app) == {}


def test_what_cannot_be_declared_is_refused(app: Tally):
    step = RemoteStep("a", service="s")
    for id_, types, steps, error in (
        ("ocr-embed", ["new"], [step], DuplicateHandler),
        ("other", ["scan"], [step], DuplicateHandler),
        ("other", ["new"], [], BadValue),
        ("other", ["new"], [step, step], BadValue),
        ("other", ["new"], [RemoteStep("a", service="s", ack=0)], BadInput),
        ("no name!", ["new"], [step], BadValue),
        ("other", "new", [step], BadInput),
        ("other", ["new"], ["a"], BadInput),
    ):
        with pytest.raises(error):
            app.protocol(id_, request_types=types, steps=steps)


class Scan(pydantic.BaseModel):
    pages: list[int]


def test_a_payload_may_be_a_model_and_its_error_names_the_member(app: Tally):
    steps = [RemoteStep("a", service="a", payload=Scan)]
    protocol = app.protocol("models", request_types=["models"], steps=steps)
    command = {**COMMAND, "request_type": "models", "payload": {"steps": {"a": {"pages": [1, 2]}}}}
    assert protocol.submit(command).created
    with pytest.raises(BadValue, match="valid integer") as refused:
        protocol.submit({**command, "payload": {"steps": {"a": {"pages": [1, "x"]}}}})
    assert refused.value.fields["path"] == "payload.steps.a.pages[1]"


def test_a_protocol_that_is_not_there_is_named(app: Tally):
    with pytest.raises(BadCommand, match="no protocol 'other'; known are: ocr-embed") as refused:
        app.command({**COMMAND, "protocol_id": "other"})
    assert refused.value.fields["path"] == "protocol_id"


def test_a_worker_looks_after_steps_whose_time_is_over_and_the_job_ends(app: Tally):
    """Nobody acknowledges in time; the next attempt waits a minute, so the first timeout is what is seen."""
    job = app.command(COMMAND)
    assert RemoteHand(app, "ocr").take()
    with app.worker(lease="300ms"):
        wait_until(lambda: steps(app, job, "state")[0] == ("FAILED_RETRY",), "FAILED_RETRY")
    assert steps(app, job, "last_error_code")[0] == ("ACK_TIMEOUT",)


def test_the_result_of_a_protocol_job_is_that_of_its_last_step(app: Tally):
    job = app.command(COMMAND)
    for service, value in (("ocr", 1), ("embed", {"vectors": 7})):
        assert RemoteHand(app, service).take().succeed(value) is Heard.ACCEPTED
    assert app.job(job.id).result(timeout="5s") == {"vectors": 7}
    failing = app.command({**COMMAND, "doc_id": "other", "idempotency_key": "f"})
    assert RemoteHand(app, "ocr").take().fail("UNREADABLE", "page 2") is Heard.ACCEPTED
    with pytest.raises(JobFailed) as failed:
        app.job(failing.id).result(timeout="5s")
    assert failed.value.error_code == "UNREADABLE"
    assert app.job(failing.id).state() == "FAILED_FINAL"
