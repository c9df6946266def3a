"""Real protocol jobs in one store: done, failed, tried again, withdrawn, asked to end in flight."""

from __future__ import annotations

from tallystick import RemoteStep
from tallystick.testing.remote_hand import RemoteHand, expire_remote

MINUTE = 60_000
COMMAND = {
    "tenant_id": "acme",
    "request_type": "ocr",
    "input_ref": "s3://in",
    "output_ref": "s3://out",
    "payload": {"steps": {"ocr": {"pages": 3}}},
    "schema_version": "v1",
}


def live_by_protocol(app, clock) -> None:
    """Bring protocol jobs to their ends, each in another way."""
    app.protocol(
        "ocr-embed",
        request_types=["ocr"],
        steps=[RemoteStep("ocr", service="ocr"), RemoteStep("embed", service="embed", step_type="vectors")],
    )
    remote = RemoteHand(app, "ocr", "embed", worker="remote-1")

    def command(name: str):
        return app.command({**COMMAND, "doc_id": name, "idempotency_key": name})

    jobs = [command("done")]
    first = remote.take()
    first.ack()
    first.succeed({"pages": 3})
    remote.take().succeed()
    jobs.append(command("failed"))
    remote.take().fail("UNREADABLE", "there is no text", page=2)
    jobs.append(command("again"))
    remote.take().fail("BUSY", "later", again=True)
    clock.advance(MINUTE)
    expire_remote(app)
    remote.take().succeed()
    remote.take().succeed()
    jobs.append(command("withdrawn"))
    jobs[-1].cancel()
    jobs.append(command("in-flight"))
    held = remote.take()
    held.ack()
    jobs[-1].cancel()
    held.succeed("too late")
    states = [job.state() for job in jobs]
    assert states == ["SUCCEEDED", "FAILED_FINAL", "SUCCEEDED", "CANCELLED", "CANCELLED"], states
