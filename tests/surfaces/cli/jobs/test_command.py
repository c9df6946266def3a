"""`tally command`: a file becomes a job of the protocol that takes it, once."""

from __future__ import annotations

import json

from tests.surfaces.commands import Shop

PROGRAM = """
from tallystick import RemoteStep, Tally

app = Tally("sqlite:///scans.db")
app.protocol("ocr", request_types=["ocr"], steps=[RemoteStep("ocr", service="ocr")])
"""
COMMAND = {
    "tenant_id": "acme",
    "request_type": "ocr",
    "input_ref": "in",
    "output_ref": "out",
    "payload": {},
    "schema_version": "v1",
}


def test_a_command_is_a_job_once_and_a_mistake_is_told_with_its_path(tmp_path):
    shop = Shop(tmp_path)
    (tmp_path / "scans.py").write_text(PROGRAM)
    (tmp_path / "command.json").write_text(json.dumps(COMMAND))
    first = shop.tally("command", "scans", "command.json")
    assert first.code == 0, first
    again = shop.tally("command", "scans", "command.json", "--json")
    assert json.loads(again.out) == {"job_id": first.out.strip(), "created": False, "state": "DISPATCHING"}
    (tmp_path / "command.json").write_text(json.dumps({**COMMAND, "tenant_id": 7}))
    wrong = shop.tally("command", "scans", "command.json", "--json")
    assert wrong.code == 4
    assert '"path": "tenant_id"' in json.dumps(json.loads(wrong.err))
    (tmp_path / "command.json").write_text(json.dumps({**COMMAND, "request_type": "mail"}))
    unknown = shop.tally("command", "scans", "command.json")
    assert unknown.code == 4
    assert "known are: ocr" in unknown.err
    assert shop.tally("cancel", first.out.strip(), "scans").out.strip() == "CANCELLED"
    assert shop.tally("doctor", "scans").code == 0
