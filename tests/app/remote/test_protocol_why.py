"""Why a protocol job that is paused stands still: what is out may end, and nothing new goes out."""

from __future__ import annotations

from tallystick import RemoteStep
from tallystick.testing.remote_hand import RemoteHand

COMMAND = {
    "tenant_id": "acme",
    "request_type": "scan",
    "input_ref": "in",
    "output_ref": "out",
    "payload": {},
    "schema_version": "v1",
}


def test_a_paused_protocol_job_says_what_goes_on_and_what_does_not(timed):
    steps = [RemoteStep(name, service=name) for name in ("ocr", "embed")]
    job = timed.protocol("scan", request_types=["scan"], steps=steps).submit(COMMAND)
    directive = RemoteHand(timed, "ocr").take()
    directive.ack()
    job.pause(by="ann")
    why = job.why()
    assert why.startswith("it has been held (PAUSED) since ")
    assert "ocr works on step ocr (attempt 1)" in why
    assert why.endswith("no further directive goes out before the job is resumed")
    directive.succeed(1)
    why = job.why()
    assert why.endswith("no directive of step embed goes out before the job is resumed")
    assert why.actions[0] == f"tally resume {job.id}"
    job.resume()
    why = job.why()
    assert "held" not in why
    assert "resumed" not in why
    assert "step embed is next, and a worker of this program dispatches it" in why
