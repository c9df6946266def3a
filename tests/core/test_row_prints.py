"""What a fingerprint hashes never changes: rows that were written once verify for ever."""

from __future__ import annotations

from tallystick.core.remote.row_prints import of_remote, of_rows
from tallystick.core.remote.rows import ProtocolJob, ProtocolStep

JOB = ProtocolJob(
    "j1", "acme", "IN_PROGRESS", 3, 1, 0, 0, "scan", None, None, None, None, "{}", "{}", "ocr", 0, 1, None,
    None, None,
)  # fmt: skip
STEP = ProtocolStep("j1", "ocr", 0, "ocr", "ocr", "AWAITING_ACK", 0, 2, None, 1, "l1")
# Its place and what its fact says, and what has no meaning once it has ended.
TOLD_ELSEWHERE = {
    *("job_id", "step_id", "state", "ledger", "result", "error", "notes", "completed_at"),
    *("rev", "lease_expires_at"),
}


def test_a_protocol_job_has_the_fingerprint_that_it_had_before_workflows_had_remote_steps():
    assert of_rows(JOB, [STEP]) == "1:f0f33ca2b600d3d5874ec633fa92ab9c3a13e2f0ccbf90da7cddd4a63918b721"


def test_the_fingerprint_of_a_remote_step_is_that_of_its_columns_and_of_what_ended_it():
    step = STEP._replace(step_id="0/pick#1", options='{"times":{}}')
    printed = of_remote(step, '{"value":7}')
    assert printed == "1:7a942e70e79b4a6288bb64866ce7accb854454e38ae0ad9ecc8257fe38d4d33c"
    moved = step._replace(rev=9, state="SUCCEEDED", ledger=5, lease_expires_at=7, result="7", completed_at=8)
    assert of_remote(moved, '{"value":7}') == printed
    for name, value in step._asdict().items():
        changed = step._replace(**{name: 9 if isinstance(value, int) else f"{value}x"})
        assert (of_remote(changed, '{"value":7}') == printed) == (name in TOLD_ELSEWHERE), name
    assert of_remote(step, '{"value":8}') != printed
