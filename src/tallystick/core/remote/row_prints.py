"""Fingerprints of the rows of protocol jobs: what each of their facts says that the rows are afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.core.audit.fingerprints import fingerprint, of_birth
from tallystick.core.remote.requests import NewProtocolJob
from tallystick.core.remote.rows import OutboxRow, ProtocolJob, ProtocolStep
from tallystick.core.values import NewJob

ROWS: Final = "rows"
"""Where a fact says what the job and all its steps are."""

DIRECTIVES: Final = "directives"
"""Where a fact says what the directives are that it has made or moved."""


# What changes without a fact is left out: how often a row was written, and when it is looked at again.


def of_rows(job: ProtocolJob, steps: Sequence[ProtocolStep]) -> str:
    """Return the fingerprint of a job and its steps."""
    rows = (step._replace(rev=0, lease_expires_at=None)[:_OF_PROTOCOLS] for step in steps)
    return fingerprint(job._replace(rev=0)[:_OF_JOBS], *rows)


# A hold has facts of its own.
_OF_JOBS: Final = ProtocolJob._fields.index("hold")
# The columns of a step that only workflows use stand behind all others.
_OF_PROTOCOLS: Final = ProtocolStep._fields.index("options")


def of_remote(step: ProtocolStep, said: str | None = None) -> str:
    """Return the fingerprint of a remote step of a workflow: of all that its fact does not tell by itself.

    `said` is what the message says that has ended it, if one has.
    """
    told = step._asdict()
    return fingerprint(*(value for name, value in told.items() if name not in _TOLD), said)


# What the fact of a step says, what its place says, and what has no meaning once it has ended.
_TOLD: Final = frozenset(
    {
        *("job_id", "step_id", "state", "ledger", "result", "error", "notes", "completed_at"),
        *("rev", "lease_expires_at"),
    }
)


def of_directive(row: OutboxRow) -> str:
    """Return the fingerprint of a directive."""
    return fingerprint(row._replace(rev=0, tries=0, next_try_at=0))


def of_command(job: ProtocolJob, about: NewProtocolJob) -> str:
    """Return the fingerprint of a protocol job as it is born, as that of every other job."""
    kept = NewJob(
        job.job_id, job.payload, 0, None, 0, job.tenant_id, "protocol", job.protocol_id, "", "default", 5,
        job.options, about.request_type, job.input_ref, job.output_ref, about.schema_version,
        about.idempotency_key, about.idempotency_hash, about.canon_version, job.correlation_id,
        job.traceparent,
    )  # fmt: skip
    return of_birth(kept)
