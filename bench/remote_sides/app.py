"""The app that is served: one protocol of one step, whose store comes with the command."""

from __future__ import annotations

from tallystick import RemoteStep, Tally

app = Tally()
app.protocol("work", request_types=["work"], steps=[RemoteStep("s", service="s")])


def command(n: int) -> dict[str, object]:
    about = {"tenant_id": "default", "request_type": "work", "input_ref": "in", "output_ref": "out"}
    return {**about, "payload": {"n": n}, "schema_version": "v1"}
