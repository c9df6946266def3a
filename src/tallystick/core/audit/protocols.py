"""Protocol jobs, and remote steps of workflows, against their rows: what must be so after every commit.

What a remote step of a workflow has come to is in its fact, with a fingerprint of its row. A directive tells
no fact of its own there: all of it but how it travelled follows from the job and the step, and is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from tallystick.core.audit.book import Findings, StepRest
from tallystick.core.audit.fingerprints import is_known
from tallystick.core.audit.told import Account
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.consistency import contradictions
from tallystick.core.lifecycles import JOB, STEP, JobState, OutboxState, StepState
from tallystick.core.pictures import CANCEL, Message, Now, cancel_of
from tallystick.core.remote.row_prints import of_directive, of_rows
from tallystick.core.remote.rows import (
    IN_FLIGHT,
    PENDING,
    OutboxRow,
    ProtocolJob,
    ProtocolPicture,
    ProtocolStep,
    outbox_id,
    result_guid,
)
from tallystick.core.verbs.protocol.step_drafts import as_made
from tallystick.core.verbs.protocol.sweeping import ACK_TIMEOUT, LEASE_TIMEOUT
from tallystick.errors import LedgerCorrupt, TallyError


def judge_protocol(
    picture: ProtocolPicture,
    messages: Iterable[Message],
    directives: Sequence[tuple[OutboxRow, int]],
    said: Account,
    findings: Findings,
) -> None:
    """Note everything about a protocol job that no history of it can have left."""
    if is_known(said.rows) and said.rows != of_rows(picture.job, picture.steps):
        findings.note("columns", "the job or one of its steps is not what its newest fact says")
    for name in said.directives.keys() - {row.outbox_id for row, _at in directives}:
        findings.note("outbox", f"the directive {name} is not there")
    for row, _at in directives:
        told = said.directives.get(row.outbox_id)
        if said.birth_print is not None and told != of_directive(row):
            findings.note("outbox", f"the directive {row.outbox_id} is not what its newest fact says")
    try:
        for check, message in _wrong(picture, list(messages)):
            findings.note(check, message)
    except (LedgerCorrupt, ValueError) as error:
        findings.note("digits", str(error))


def judge_protocol_rest(row: StepRest, findings: Findings) -> None:
    """Note what the row of a step has that steps of protocol jobs have no use for."""
    unused = (row.n, row.attempt, row.origin_job_id, row.origin_dimension)
    counts = (row.semaphore, row.threshold, row.failed, row.misplaced)
    if any(value is not None for value in (*unused, *counts)) or row.has_hash:
        findings.note("columns", f"step {row.name} has columns that it has no use for")
    if (row.dimension, row.occurrence, row.kind) != (0, 1, "protocol"):
        findings.note("columns", f"step {row.name} stands where no step of a protocol does")
    if row.completed_at is not None and row.lease_expires_at is not None:
        findings.note("columns", f"step {row.name} has ended and is due")


def _wrong(picture: ProtocolPicture, messages: list[Message]) -> Iterator[tuple[str, str]]:
    job, active = picture.job, picture.active
    still_open = list(picture.open_steps())
    over = JobState(job.state) in JOB.final
    if over == bool(still_open):
        yield "state", f"the job is {job.state} with {len(still_open)} open steps"
    if job.semaphore != len(still_open):
        yield "semaphore", f"the semaphore is {job.semaphore}, open steps are {len(still_open)}"
    on_its_way = active is not None and active.state == StepState.DISPATCHING
    if (picture.pending is not None) != on_its_way:
        stands = "nothing is open" if active is None else f"{active.step_id} is {active.state}"
        yield "outbox", f"a directive is{'' if picture.pending else ' not'} on its way, and {stands}"
    if job.attempts_total != sum(step.attempt_no for step in picture.steps):
        yield "attempts", f"attempts_total is {job.attempts_total}, and its steps say otherwise"
    if active is not None:
        yield from _wrong_order(picture, active)
    for step in picture.steps:
        yield from _wrong_digits(step)
        if step.options is not None:
            yield "columns", f"step {step.step_id} has rules of its own, and those of its job are what counts"
    yield from _wrong_closer(picture, messages, over=over)


def _wrong_order(picture: ProtocolPicture, active: ProtocolStep) -> Iterator[tuple[str, str]]:
    """Say what is wrong about the step that is worked on, and those around it."""
    job = picture.job
    if (job.current_step_id, job.current_step_index) != (active.step_id, active.step_index):
        yield "state", f"the current step is {job.current_step_id}, and {active.step_id} is the active one"
    if active.lease_expires_at is None:
        yield "state", f"step {active.step_id} is {active.state}, and nothing is ever due"
    if job.state == JobState.CANCELLING and StepState(active.state) not in IN_FLIGHT:
        yield "state", f"the job is CANCELLING with its step {active.step_id} {active.state}"
    for step in picture.steps:
        expected = StepState.SUCCEEDED if step.step_index < active.step_index else StepState.PENDING
        if step is not active and step.state != expected:
            yield "state", f"step {step.step_id} is {step.state}, and {active.step_id} is the active one"
        if step is not active and step.lease_expires_at is not None:
            yield "state", f"step {step.step_id} is due, and {active.step_id} is the active one"


def _wrong_digits(step: ProtocolStep) -> Iterator[tuple[str, str]]:
    """Say what is wrong about the digits of a step: an entry for each directive, one for what ended it."""
    ledger = ActivityLedger(step.ledger)
    said = f"step {step.step_id} is {step.state} after {step.attempt_no} attempts: {ledger.text}"
    answered = StepState(step.state) in (StepState.SUCCEEDED, StepState.FAILED_FINAL)
    entries = (ledger.leg1_entries, ledger.leg1_complete)
    if (
        contradictions(ledger)
        or entries != (step.attempt_no, step.attempt_no > 0)
        or (
            (ledger.leg2_entries == 1) != answered
            and not (step.state == StepState.CANCELLED and ledger.leg2_entries == 1)
        )
    ):
        yield "digits", said


def _wrong_closer(
    picture: ProtocolPicture, messages: list[Message], *, over: bool
) -> Iterator[tuple[str, str]]:
    """Say what is wrong about the messages: one for each step that was answered, one of all the closer."""
    words = [message for message in messages if message.kind != "signal"]
    ledgers = [GuidLedger(message.ledger) for message in words]
    closers = sum(ledger.closed_job and ledger.tasks_done for ledger in ledgers)
    if closers != over:
        yield "closer", f"{closers} messages have closed a job that is {picture.job.state}"
    root = ActivityLedger(picture.job.root_ledger)
    entered = sum(ActivityLedger(step.ledger).leg2_entries for step in picture.steps) + root.leg2_entries - 1
    if entered != len(ledgers) or contradictions(root) or any(contradictions(each) for each in ledgers):
        yield "digits", f"{len(ledgers)} messages are there, and {entered} have entered"
    yield from _wrong_words(picture, words, root)


def _wrong_words(
    picture: ProtocolPicture, words: list[Message], root: ActivityLedger
) -> Iterator[tuple[str, str]]:
    """Say which messages are not as the end of a step, or of a job that was asked to end, has made them."""
    job_id = picture.job.job_id
    expected = {
        result_guid(job_id, step.step_id, step.attempt_no): (step.step_id, "result", 1)
        for step in picture.steps
    } | {cancel_of(job_id): (CANCEL, "resume", root.leg2_entries)}
    for word in words:
        name, kind, entry = expected.get(word.guid, ("", "", 0))
        ledger = GuidLedger(word.ledger)
        made = Message(word.guid, job_id, 0, name, 1, kind, None, None, word.ledger, 0, *word[-3:])
        if word != made:
            yield "messages", f"{word.kind} {word.guid} is not as a step that ends makes it"
        marks = (ledger.get("entry"), ledger.work_done, ledger.children_spawned, ledger.closed_job)
        if marks != (entry, 1, 1, ledger.tasks_done):
            yield "digits", f"{word.kind} {word.guid}: {ledger.text} after {entry} entries"


ATTEMPTS_LOOKED_AT_MAX: Final = 100
"""How many attempts of a step are looked at: a damaged row may say any number."""

# The errors of attempts that have ended without an answer.
_LATE: Final = (ACK_TIMEOUT, LEASE_TIMEOUT)
_STATES: Final = frozenset(state.value for state in STEP.states)


def judge_remote(
    home: ProtocolJob, step: ProtocolStep, find: Callable[[str], OutboxRow | None], findings: Findings
) -> int:
    """Note what is wrong about a step and its directives, and return what stands for all that was read."""
    if step.state not in _STATES:
        findings.note("state", f"remote step {step.step_id} is in no state that there is: {step.state}")
        return hash(step)
    if not step.is_open and step.lease_expires_at is not None:
        findings.note("columns", f"remote step {step.step_id} has ended and is due")
    entries = ActivityLedger(step.ledger).leg1_entries
    if entries != (step.attempt_no or 0):
        findings.note(
            "digits", f"remote step {step.step_id} was entered {entries} times, not {step.attempt_no}"
        )
    seen, row = hash(step), None
    for attempt_no in range(1, min(step.attempt_no or 0, ATTEMPTS_LOOKED_AT_MAX) + 1):
        name = outbox_id(step.job_id, step.step_id, attempt_no)
        row = find(name)
        seen = hash((seen, row))
        if row is None:
            findings.note("outbox", f"the directive {name} is not there")
            continue
        try:
            for wrong in _wrong_directive(home, step, attempt_no, row):
                findings.note("outbox", f"the directive {name} {wrong}")
        except (TallyError, TypeError, ValueError) as error:
            findings.note("outbox", f"the directive {name} cannot be made again: {error}")
    if step.is_open:
        for wrong in _wrong_way(step, row):
            findings.note("columns", f"remote step {step.step_id} {wrong}")
    return seen


def _wrong_way(step: ProtocolStep, row: OutboxRow | None) -> Iterator[str]:
    """Say what of a step that is on its way cannot be; `row` is the directive of its last attempt."""
    routed = (
        step.resolved_mode,
        step.lane,
        step.routing_key_used,
        step.decision_source,
        step.decision_reason,
    )
    if row is not None and routed != (
        *(row.resolved_mode, row.lane, row.routing_key_used, row.decision_source, row.decision_reason),
    ):
        yield "is routed otherwise than its directive"
    answered = (
        () if step.answers is None else msgspec.json.decode(step.answers, type=list[tuple[int, str, str]])
    )
    attempts = [attempt for attempt, _lease, _digest in answered]
    if attempts != sorted(set(attempts)) or not set(attempts) <= set(range(1, step.attempt_no + 1)):
        yield "remembers answers of attempts that it never made"
    if step.answers is not None and msgspec.json.encode(answered).decode() != step.answers:
        yield "remembers answers that are not as they were written"
    if any(attempt == step.attempt_no and lease != step.lease_id for attempt, lease, _digest in answered):
        yield "remembers an answer to another directive"
    is_answered = step.attempt_no in attempts
    if is_answered and step.is_in_flight:
        yield "has its answer and is in flight"
    if step.step_index != 0 or not step.payload or not step.options:
        yield "has no place, no arguments or no rules"
    elif msgspec.json.encode(msgspec.json.decode(step.options)).decode() != step.options:
        yield "has rules that are not as they were written"
    ended = is_answered and step.lease_expires_at is None
    if not ended and (step.workspace_ref, step.output_ref) != (None, None):
        yield "has left something before its answer"
    if (step.last_error_code is None) != (step.last_error_message is None):
        yield "has a part of an error"
    yield from _wrong_stand(step, is_answered=is_answered, tried_again=step.attempt_no > 1)


def _wrong_stand(step: ProtocolStep, *, is_answered: bool, tried_again: bool) -> Iterator[str]:
    """Say what does not go together with the state of a step that is on its way."""
    state = StepState(step.state)
    if state is StepState.PENDING:
        yield "was never sent"
    if state is StepState.IN_PROGRESS and step.acked_at is None:
        yield "is at work, and its worker was never heard of"
    new = state in (StepState.DISPATCHING, StepState.AWAITING_ACK) and not tried_again
    if new and not is_answered and step.acked_at is not None:
        yield "was heard of before it was sent"
    failed = state is StepState.FAILED_RETRY
    if failed and not is_answered and step.last_error_code not in _LATE:
        yield "is to be tried again, and has not failed"
    if not failed and not tried_again and step.is_in_flight and step.last_error_code is not None:
        yield "is in flight, and has failed"


def _wrong_directive(home: ProtocolJob, step: ProtocolStep, attempt_no: int, row: OutboxRow) -> Iterator[str]:
    """Say what of a directive is not as its attempt made it, or cannot be where it is."""
    is_last = attempt_no == step.attempt_no
    if is_last and row.lease_id != step.lease_id:
        yield "has another lease than its step"
    # No step of a workflow is given a workspace: what its row has there came with its RESULT.
    of_attempt = step._replace(attempt_no=attempt_no, lease_id=row.lease_id, workspace_ref=None)
    if _pinned(row) != _pinned(as_made(home, of_attempt, Now(row.created_at))):
        yield "is not what its step has asked for"
    on_its_way = is_last and step.state == StepState.DISPATCHING and step.lease_expires_at is not None
    if (row.state == PENDING) != on_its_way:
        yield f"is {row.state}, and its step is {step.state}"
    if (row.state == OutboxState.SENT) != (row.sent_at is not None):
        yield f"is {row.state}, and went out {'never' if row.sent_at is None else f'at {row.sent_at}'}"
    if (row.state == OutboxState.FAILED_FINAL) != (row.reason is not None):
        yield f"is {row.state}, and {'has no' if row.reason is None else 'has a'} reason why it never went"


def _pinned(row: OutboxRow) -> OutboxRow:
    """Return what was decided when a directive was made, without how far it has come."""
    return row._replace(state="", tries=0, next_try_at=0, sent_at=None, rev=0, taken_by=None, reason=None)
