"""`tally command`: a file becomes a job of the protocol that takes it, once."""

from __future__ import annotations

import json

from tallystick import Tally
from tallystick.core.remote.refs import Ref
from tallystick.core.remote.wire import ResultReport
from tallystick.testing.remote_hand import RemoteHand
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


TWO_STEPS = """
from tallystick import RemoteStep, Tally

app = Tally("sqlite:///scans.db")
steps = [RemoteStep("scan", service="a"), RemoteStep("embed", service="b")]
app.protocol("ocr", request_types=["ocr"], steps=steps)
"""


def test_a_protocol_job_is_shown_with_its_steps_in_their_order_and_what_they_have_left(tmp_path):
    shop = Shop(tmp_path)
    (tmp_path / "scans.py").write_text(TWO_STEPS)
    (tmp_path / "command.json").write_text(json.dumps(COMMAND))
    job_id = shop.tally("command", "scans", "command.json").out.strip()
    app = Tally(f"sqlite:///{tmp_path / 'scans.db'}")
    given = RemoteHand(app, "a").take()
    left = {"output_ref": Ref("s3://mid", checksum="c"), "artifact_refs": ["s3://log"]}
    given.answer(ResultReport(*given.fence, status="SUCCEEDED", workspace_ref="s3://space", **left))
    app.close()
    shown = shop.tally("show", job_id, "scans").out
    assert "view        RUNNING" in shown
    first, second = (line for line in shown.splitlines() if line.strip().startswith("step "))
    assert first.split("  ")[-1] == (
        'scan: SUCCEEDED, service a, attempt 1, output {"uri":"s3://mid","checksum":"c"}, '
        'workspace s3://space, artifacts ["s3://log"]'
    )
    assert second.split("  ")[-1] == "embed: DISPATCHING, service b, attempt 1, workspace s3://space"
    assert shop.tally("cancel", job_id, "scans").out.strip() == "CANCELLED"
    said = json.loads(shop.tally("show", job_id, "scans", "--json").out)
    assert said["view"] == "CANCELLED"
    assert [(step["stepId"], step["state"]) for step in said["remote_steps"]] == [
        ("scan", "SUCCEEDED"), ("embed", "CANCELLED"),
    ]  # fmt: skip
    first = said["remote_steps"][0]
    assert (first["output_ref"], first["artifact_refs"]) == (
        {"uri": "s3://mid", "checksum": "c"},
        ["s3://log"],
    )
