"""Protocols from files: what they say is what Python would have declared, and what is wrong has its path."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.core.remote.policy import policy_of
from tallystick.errors import BadInput, BadValue, DuplicateHandler
from tallystick.store.api import Protocols
from tests.remote.test_publish import command

TOML = """
[[protocols]]
id = "scan-protocol"
request_types = ["scan"]

[[protocols.steps]]
step_id = "ocr"
service = "ocr"
ack = "10s"
lease = "5m"

[protocols.steps.payload_schema]
type = "object"
required = ["n"]
properties.n.type = "integer"

[[protocols.steps]]
step_id = "embed"
service = "embed"
step_type = "vectors"
"""
JSON = '{"id": "scan-protocol", "request_types": ["scan"], "steps": [{"step_id": "ocr", "service": "ocr"}]}'


@pytest.fixture
def app(tmp_path: Path):
    app = Tally(f"sqlite:///{tmp_path / 'books.db'}")
    yield app
    app.close()


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_file_declares_what_python_would(app: Tally, tmp_path: Path):
    (protocol,) = app.load_protocols(write(tmp_path, "protocols.toml", TOML))
    job = app.command(command())
    store = app.runtime().store
    assert isinstance(store, Protocols)
    picture = store.protocol(job.id)
    assert picture is not None
    assert (protocol.id, app.protocols[protocol.id]) == ("scan-protocol", protocol)
    assert [(step.step_id, step.service, step.step_type) for step in picture.steps] == [
        ("ocr", "ocr", "ocr"), ("embed", "embed", "vectors"),
    ]  # fmt: skip
    times = policy_of(picture.job.options).times_of("ocr")
    assert (times.ack_ms, times.lease_ms) == (10_000, 300_000)


def test_json_may_hold_one_protocol(app: Tally, tmp_path: Path):
    (protocol,) = app.load_protocols(write(tmp_path, "scan.json", JSON))
    assert protocol.id == "scan-protocol"
    with pytest.raises(DuplicateHandler):
        app.load_protocols(tmp_path / "scan.json")


def test_a_payload_that_its_schema_refuses_is_refused_with_its_path(app: Tally, tmp_path: Path):
    app.load_protocols(write(tmp_path, "protocols.toml", TOML))
    with pytest.raises(BadValue) as refused:
        app.command({**command(), "payload": {"n": "three"}})
    assert refused.value.fields["path"] == "payload.steps.ocr.n"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (('service = "embed"\n', ""), "protocols[0].steps[1]"),
        (('ack = "10s"', 'ack = "soon"'), "protocols[0].steps[0].ack"),
        (('lease = "5m"', "lease = 0"), "protocols[0].steps[0].lease"),
        (('step_id = "embed"', 'step_id = "ocr"'), "protocols[0].steps[1].step_id"),
        (('request_types = ["scan"]', "request_types = []"), "protocols[0].request_types"),
        (('id = "scan-protocol"', 'id = "no name"'), "protocols[0].id"),
        (('properties.n.type = "integer"', 'properties.n.type = "number of pages"'), "payload_schema"),
        (('properties.n.type = "integer"', '"$ref" = "https://example.com/s.json"'), "payload_schema"),
        (("[[protocols]]", "protocols = 7\n[other]"), "protocols"),
    ],
)
def test_what_is_wrong_is_told_with_its_path(app: Tally, tmp_path: Path, change: tuple[str, str], path: str):
    text = TOML.replace(*change)
    if path == "protocols":
        text = "protocols = 7"
    with pytest.raises(BadValue) as refused:
        app.load_protocols(write(tmp_path, "protocols.toml", text))
    assert refused.value.fields["path"] == path
    assert app.protocols == {}


@pytest.mark.parametrize("name", ["broken.toml", "broken.json", "missing.json"])
def test_a_file_that_cannot_be_read_says_so(app: Tally, tmp_path: Path, name: str):
    if name.startswith("broken"):
        write(tmp_path, name, "{ [")
    with pytest.raises(BadInput, match=name):
        app.load_protocols(tmp_path / name)
