"""Submitting inside a workflow: a job of its own, made once, that its parent does not wait for or cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tallystick.app.replay.calls import Call, Write
from tallystick.app.replay.context import WorkflowContext
from tallystick.engine.submission import Submission, check_same_content, submit_job
from tallystick.errors import IdempotencyConflict, Misuse
from tallystick.store.api import Existing, RecordStep

_KIND: Final = "step"
_SUFFIX: Final = ".submit"


def submitted(
    context: WorkflowContext, submission: Submission, is_same: Callable[[IdempotencyConflict], bool]
) -> Call:
    """Submit and record that, in one bundle, and return the job's id and whether this made it."""
    context.check()
    if submission.rule is not None:
        raise Misuse(f"inside a workflow submit {submission.handler} under a plain key, without rules for it")
    segment = context.segment
    name = f"{submission.handler}{_SUFFIX}"
    occurrence = segment.number(name)
    record = segment.past.recall(_KIND, name, occurrence)
    if record is not None and record.kind == _KIND and record.result is not None:
        context.calls.append((name, occurrence))
        return _read(record.result)
    context.check_cancelled()
    if record is not None or context.has_skipped():
        raise context.mismatch((name, occurrence))
    runtime = context.runtime
    now = runtime.clock.wall_ms()
    # It keeps its parent for people to read, and that is all: its parent neither waits for it nor ends it.
    primitive = submit_job(submission, runtime.ids.new(), now, parent=segment.job_id)

    def row(job_id: str, *, created: bool) -> RecordStep:
        text = msgspec.json.encode([job_id, created]).decode()
        return segment.step_succeeded(_KIND, name, occurrence, text, now)

    outcome = yield Write((primitive, row(primitive.job.job_id, created=True)))
    job_id, created = primitive.job.job_id, True
    if isinstance(outcome, Existing):
        try:
            check_same_content(primitive.reservation, outcome)
        except IdempotencyConflict as conflict:
            if not is_same(conflict):
                raise
        job_id, created = outcome.job_id, False
        yield Write((row(job_id, created=False),))
    context.calls.append((name, occurrence))
    runtime.poke()
    return job_id, created


def _read(result: str) -> tuple[str, bool]:
    job_id, created = msgspec.json.decode(result)
    return str(job_id), bool(created)
