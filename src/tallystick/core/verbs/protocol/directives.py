"""A directive as it is kept in the outbox: all that a remote worker needs, without addresses and secrets.

The token and the addresses for callbacks are added when it is published or delivered.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tallystick.core.remote.policy import policy_of
from tallystick.core.remote.rows import OutboxRow, ProtocolJob, ProtocolStep

_encode: Final = msgspec.json.Encoder().encode


def directive_of(job: ProtocolJob, step: ProtocolStep, row: OutboxRow) -> str:
    """Return the JSON of a step's directive."""
    said = {
        "schema_version": "v1",
        "outbox_id": row.outbox_id,
        "jobId": job.job_id,
        "tenant_id": job.tenant_id,
        "stepId": step.step_id,
        "protocol_id": job.protocol_id,
        "step_type": step.step_type,
        "service": step.service,
        "attempt_no": step.attempt_no,
        "lease_id": step.lease_id,
        "input_ref": read_ref(step.input_ref),
        "workspace_ref": read_ref(step.workspace_ref),
        "output_ref": read_ref(job.output_ref),
        "payload": msgspec.Raw((step.payload or job.payload).encode()),
        "lease_ms": policy_of(job.options).times_of(step.step_id).lease_ms,
        "lane": int(row.lane),
        "mode": row.resolved_mode,
        "correlation_id": job.correlation_id,
        "traceparent": job.traceparent,
    }
    return _encode({name: value for name, value in said.items() if value is not None}).decode()


def read_ref(kept: str | None) -> object:
    """Return a reference as it is told: text, or an object, which no text begins like.

    >>> read_ref("s3://in"), bytes(read_ref('{"uri":"s3://in"}'))
    ('s3://in', b'{"uri":"s3://in"}')
    """
    return msgspec.Raw(kept.encode()) if kept is not None and kept.startswith("{") else kept
