"""What must be so when a verb about protocol jobs has answered: its answer, rows, digits and fact."""

from __future__ import annotations

from typing import Any

import msgspec

from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.consistency import contradictions
from tallystick.core.lifecycles import JOB, OUTBOX, STEP, JobState, OutboxState, StepState
from tests.model.search import Violation

NOW = 1_000_000_000
IN_FLIGHT = ("DISPATCHING", "AWAITING_ACK", "IN_PROGRESS")
FINAL_STEPS = {state.value for state in STEP.final}
SILENT = {"DUPLICATE", "STALE", "EXPIRED", "CONFLICT", "UNKNOWN", "NOT_DUE", "LATER", "FINAL", "CANCELLING"}
MOVES = {
    machine.name: {(before.value, after.value) for before, after in machine.stored_moves}
    for machine in (JOB, STEP, OUTBOX)
}


def judge_plan(picture: Any, request: Any, plan: Any) -> None:
    """Judge the answer to a request: what is accepted, and that what is refused changes nothing."""
    heard, kind = plan.heard.name, type(request).__name__
    asked = kind == "CancelProtocol" and heard == "CANCELLING" and picture.job.state != "CANCELLING"
    at_once = kind == "RenewStep" and heard == "ACCEPTED"  # a heartbeat at the very instant of the one before
    if bool(plan.writes) != (heard not in SILENT) and not asked and not at_once:
        raise Violation(f"{kind} was answered {heard}, with {len(plan.writes)} writes")
    if plan.writes and picture.job.completed_at is not None:
        raise Violation(f"{kind} changes a job that has ended")
    began = kind == "RenewStep" and picture.active is not None and picture.active.state != "IN_PROGRESS"
    quiet = kind in ("TakeDirective", "RenewStep") and heard in ("TAKEN", "ACCEPTED") and not began
    if plan.writes and (plan.told is None) != quiet:
        raise Violation(f"{kind} changes rows and tells no fact")
    if kind in ("AckStep", "RenewStep", "AnswerStep"):
        _judge_fence(picture, request, heard)
    _judge_way(picture, request, heard)
    if picture.job.state == "CANCELLING" and heard == "TAKEN" and kind == "TakeDirective":
        raise Violation("a directive of a job that is asked to end is published again")
    if plan.cancelling != (_state_after(picture, plan) == "CANCELLING"):
        raise Violation(f"{kind} does not say whether the job is being cancelled")


def _judge_way(picture: Any, request: Any, heard: str) -> None:  # noqa: PLR0912 (a case for each request)
    """Judge who may make, take, deliver and close a directive."""
    row, active, held = picture.pending, picture.active, picture.job.hold is not None
    match type(request).__name__:
        case "TakeDirective":
            named = row is not None and request[1:] == (row.step_id, row.attempt_no)
            allowed = named and row.via != "pull" and row.next_try_at <= NOW and not held
        case "DeliverDirective":
            named = row is not None and request[1:3] == (row.step_id, row.attempt_no)
            allowed = named and row.via == "pull" and active.lease_expires_at > NOW and not held
        case "MarkSent":
            allowed = row is not None and request.fence[1:] == (row.step_id, row.attempt_no, row.lease_id)
        case "DispatchStep":
            waits = active is not None and active.state == "FAILED_RETRY" and active.lease_expires_at <= NOW
            allowed = not held and (waits or (active is not None and active.state == "PENDING"))
        case "CancelProtocol":
            asked = picture.job.state == "CANCELLING"
            waits = row is not None and (row.via == "pull" or row.next_try_at <= NOW)
            is_out = active is not None and active.state in IN_FLIGHT and not waits
            at_once = request.force or not (asked or is_out)
            expected = "FINAL" if active is None else "CANCELLED" if at_once else "CANCELLING"
            if heard != expected:
                raise Violation(f"{request} was answered {heard}, not {expected}")
            return
        case "ExpireStep":
            due = active is not None and active.lease_expires_at <= NOW
            mine = due and (
                active.state != "DISPATCHING" or row.via == "pull" or picture.job.state == "CANCELLING"
            )
            allowed = mine and not (held and active.state in ("PENDING", "FAILED_RETRY", "DISPATCHING"))
        case "NotPublished":
            known = row is not None and request.fence[1:] == (row.step_id, row.attempt_no, row.lease_id)
            last = known and (row.tries == 4 or request.final or picture.job.state == "CANCELLING")
            allowed = last and row.tries == request.try_no
            if (heard == "LATER") != (known and not last and row.tries == request.try_no):
                raise Violation(f"{request} was answered {heard}")
        case _:
            return
    if (heard in ("TAKEN", "DONE", "CANCELLED")) != allowed:
        raise Violation(f"{request} was answered {heard}")
    if type(request).__name__ == "MarkSent" and not allowed:
        step = picture.step(request.fence.step_id)
        known = step is not None and (step.attempt_no, step.lease_id) == request.fence[2:]
        was_out = known and step.state in ("AWAITING_ACK", "IN_PROGRESS", "FAILED_RETRY", "SUCCEEDED")
        if heard != ("DUPLICATE" if was_out else "STALE"):
            raise Violation(f"{request} was answered {heard}")


def judge_result(before: Any, after: Any, request: Any) -> None:
    """Judge what an accepted RESULT, or a time that is over, makes of its step."""
    kind, cancelling = type(request).__name__, before.job.state == "CANCELLING"
    if kind == "AnswerStep":
        old, new = before.step(request.fence.step_id), after.step(request.fence.step_id)
        answer, last = request.answer, request.fence.attempt_no == 3
        retried = "CANCELLED" if cancelling else "FAILED_FINAL" if last else "FAILED_RETRY"
        expected = "SUCCEEDED" if answer.succeeded else retried if answer.retryable else "FAILED_FINAL"
        entered = ActivityLedger(new.ledger).leg2_entries == (new.state != "FAILED_RETRY")
        entered = entered and f'"{answer.digest}"' in (new.answers or "")
        if (
            not entered
            or new.state != expected
            or not (new.answers or "").startswith((old.answers or "[")[:-1])
        ):
            raise Violation(f"a RESULT {answer.digest} makes a step {new.state}, not {expected}")
    if kind in ("MarkSent", "DeliverDirective", "AckStep", "RenewStep"):
        expected = 900_000 if after.active.state == "IN_PROGRESS" else 30_000
        if after.active.lease_expires_at != NOW + expected:
            raise Violation(f"{kind} leaves a lease of {after.active.lease_expires_at - NOW} ms")
    if kind == "ExpireStep" and before.active.state in ("AWAITING_ACK", "IN_PROGRESS"):
        last, new = before.active.attempt_no == 3, after.step(before.active.step_id)
        expected = "CANCELLED" if cancelling else "FAILED_FINAL" if last else "FAILED_RETRY"
        if new.state != expected or new.last_error_code not in ("ACK_TIMEOUT", "LEASE_TIMEOUT"):
            raise Violation(f"a step whose time is over is {new.state}, not {expected}")


def judge_held(before: Any, after: Any, request: Any) -> None:
    """Judge that a held job never ends by a time that no worker could use."""
    ended = before.job.completed_at is None and after.job.completed_at is not None
    given_out = before.active is not None and before.active.state in ("AWAITING_ACK", "IN_PROGRESS")
    if type(request).__name__ == "ExpireStep" and before.job.hold is not None and ended and not given_out:
        raise Violation("a held job ends by a time in which no worker could be given its directive")


def judge_resumed(before: Any, after: Any, policy: Any) -> None:
    """Judge that a directive that could not be given out has all its time when its job is resumed."""
    row, active = before.pending, before.active
    waited = row is not None and row.via == "pull"
    expected = NOW + policy.start_within_ms if waited else active.lease_expires_at
    if after.active.lease_expires_at != expected:
        raise Violation("a job is resumed, and its directive has lost time in which it was held")


def judge_told(before: Any, after: Any, plan: Any) -> None:
    """Judge what is told besides the rows: one message for an end, paths that lead from state to state."""
    ended = sum(
        a.state != b.state and b.state in ("SUCCEEDED", "FAILED_FINAL")
        for a, b in zip(before.steps, after.steps, strict=True)
    )
    messages = sum(type(write).__name__ == "InsertAnswer" for write in plan.writes)
    if messages != bool(ended or (after.job.completed_at is not None)):
        raise Violation(f"{messages} messages end {ended} steps of a job that is {after.job.state}")
    active = after.active
    if plan.lease_expires_at != (None if active is None else active.lease_expires_at):
        raise Violation("the answer does not say when the time is over")
    if plan.told is None:
        return
    said = msgspec.json.decode(plan.told.payload)
    paths = [(said.get("job"), before.job, after.job)]
    moved = said.get("steps", {})
    paths += [(moved.get(a.step_id), a, b) for a, b in zip(before.steps, after.steps, strict=True)]
    for path, old, new in paths:
        if (path is None and old.state != new.state) or (
            path is not None and _ends(path) != (old.state, new.state)
        ):
            raise Violation(f"the fact tells {path}, and it went from {old.state} to {new.state}")


def _ends(path: str) -> tuple[str, str]:
    first, *_between, last = path.split(">")
    return first, last


def judge_times(row: Any, step: Any, policy: Any) -> None:
    """Judge a directive that was just made or taken: until when it is whose, and how long it has in all."""
    if row.via == "pull":
        expected = (0, NOW, NOW + policy.start_within_ms)
    else:
        waits = (30_000, 120_000, 600_000, 60_000)
        due = NOW + waits[row.tries - 1] if row.tries else NOW
        expected = (row.tries, due, NOW + sum(waits[max(row.tries - 1, 0) :]))
    if (row.tries, row.next_try_at, step.lease_expires_at) != expected or row.topic != f"svc-p{row.lane}":
        raise Violation(f"try {row.tries} of a directive is due at {row.next_try_at - NOW}")


def _state_after(picture: Any, plan: Any) -> str:
    return next(
        (w.job.state for w in plan.writes if type(w).__name__ == "MoveProtocolJob"), picture.job.state
    )


def _judge_fence(picture: Any, request: Any, heard: str) -> None:
    """Judge the fence by what it promises, said once more in other words."""
    told, step = request.fence, picture.step(request.fence.step_id)
    current = (
        step is not None
        and step.state in IN_FLIGHT
        and (step.attempt_no, step.lease_id) == told[2:]
        and step.lease_expires_at > NOW
    )
    kind = type(request).__name__
    again = kind == "AckStep" and current and step.state == "IN_PROGRESS"
    no_more = kind == "RenewStep" and picture.job.state == "CANCELLING"
    if (heard == "ACCEPTED") != (current and not again and not no_more):
        raise Violation(f"{kind} of attempt {told.attempt_no} was answered {heard}")
    answered = f'[{told.attempt_no},"{told.lease_id}",'
    over = step is not None and step.state not in IN_FLIGHT and (step.attempt_no, step.lease_id) == told[2:]
    again = step is not None and bool(step.answers) and answered in step.answers
    if kind == "AckStep" and over and heard != ("DUPLICATE" if again else "STALE"):
        raise Violation(f"an ACK after the RESULT is {heard}")
    if kind == "RenewStep" and step is not None and step.state not in IN_FLIGHT and heard != "STALE":
        raise Violation(f"a heartbeat after the end is {heard}")
    if kind == "AnswerStep" and step is not None and step.answers and answered in step.answers:
        expected = "DUPLICATE" if request.answer.digest in step.answers else "CONFLICT"
        if heard != expected:
            raise Violation(f"a RESULT that was answered before is {heard}, not {expected}")


def judge_move(before: Any, after: Any, plan: Any) -> None:
    """Judge what a plan does to rows: legal moves, digits that grow, nothing that has ended."""
    keys = [_key(write) for write in plan.writes]
    if len(keys) != len(set(keys)):
        raise Violation("a row is written twice in one plan")
    _moved("job", before.job.state, after.job.state)
    for old, new in zip(before.steps, after.steps, strict=True):
        _moved("step", old.state, new.state)
        if old.state in FINAL_STEPS and old != new:
            raise Violation(f"step {old.step_id} has ended and changes")
        if new.ledger < old.ledger or contradictions(ActivityLedger(new.ledger)):
            raise Violation(f"the digits of {old.step_id} go from {old.ledger:015d} to {new.ledger:015d}")
        if new.routing_key_used != old.routing_key_used and new.attempt_no == old.attempt_no:
            raise Violation("the routing of an attempt is not pinned")
    for write in plan.writes:
        kind = type(write).__name__
        if kind == "MoveOutbox":
            _moved("outbox", before.pending.state, write.row.state)
            same = write.row._replace(rev=before.pending.rev) == before.pending
            if same or (write.row.state == "SENT") != (write.row.sent_at is not None):
                raise Violation(f"a directive is {write.row.state}, sent at {write.row.sent_at}")
        if kind == "InsertAnswer" and contradictions(GuidLedger(write.message.ledger)):
            raise Violation(f"the digits of {write.message.guid} are {write.message.ledger:015d}")
        if kind in ("MoveProtocolJob", "MoveProtocolStep", "MoveOutbox") and write.rev + 1 != write[0].rev:
            raise Violation(f"{kind} is not guarded by the revision that was seen")
    if before.job.state == "CANCELLING" and after.job.attempts_total != before.job.attempts_total:
        raise Violation("a job that was asked to end is dispatched again")
    _judge_hold(before.job, after.job)
    if plan.heard.name == "TAKEN" and after.active.lease_expires_at <= NOW:
        raise Violation("what is published now cannot be answered")


def _judge_hold(before: Any, after: Any) -> None:
    """Judge what became of a hold: nothing is made while it lasts, and it ends with its job."""
    if before.hold is not None and after.attempts_total != before.attempts_total:
        raise Violation("a directive is made for a job that is held")
    let_go = after.state == "CANCELLING" or after.completed_at is not None
    if after.hold != (None if let_go else before.hold):
        raise Violation(f"the job is {after.state} and held: {after.hold}")


def _key(write: Any) -> tuple[str, str]:
    kind = type(write).__name__
    row = write[0]
    if kind.endswith("Outbox"):
        return "outbox", row.outbox_id
    return kind, getattr(row, "step_id", "") or getattr(row, "guid", "")


def _moved(machine: str, before: str, after: str) -> None:
    if before != after and (before, after) not in MOVES[machine]:
        raise Violation(f"the {machine} goes from {before} to {after}")


def judge_picture(picture: Any) -> None:
    """Judge rows that stand together after any commit."""
    job, steps, pending, *_workflow = picture
    still_open = [step for step in steps if step.state not in FINAL_STEPS]
    active = still_open[0] if still_open else None
    over = job.completed_at is not None
    if over == bool(still_open) or over != (JobState(job.state) in JOB.final):
        raise Violation(f"the job is {job.state} with {len(still_open)} open steps")
    if job.semaphore != len(still_open):
        raise Violation(f"the semaphore is {job.semaphore} with {len(still_open)} open steps")
    if (pending is not None) != (active is not None and active.state == StepState.DISPATCHING):
        raise Violation(
            "a directive is not out, and the active step is not DISPATCHING, or the other way round"
        )
    if pending is not None:
        if (pending.step_id, pending.attempt_no, pending.lease_id) != (
            active.step_id,
            active.attempt_no,
            active.lease_id,
        ):
            raise Violation("the directive that is not out is another attempt's")
        if pending.state != OutboxState.PENDING or pending.tries > 4:
            raise Violation(f"the directive is {pending.state} after {pending.tries} tries")
    _judge_steps(job, steps, active)
    _judge_end(job, steps)


def _judge_steps(job: Any, steps: Any, active: Any) -> None:
    if sum(step.attempt_no for step in steps) != job.attempts_total:
        raise Violation("attempts_total is not the sum of the attempts")
    began = any(step.acked_at is not None for step in steps)
    if job.state in ("DISPATCHING", "IN_PROGRESS") and (job.state == "IN_PROGRESS") != began:
        raise Violation(f"the job is {job.state}, acknowledged: {began}")
    for step in steps:
        ledger = ActivityLedger(step.ledger)
        if (ledger.leg1_entries, ledger.leg1_complete) != (step.attempt_no, step.attempt_no > 0):
            raise Violation(f"attempt {step.attempt_no} has the digits {ledger.text}")
        if step.attempt_no > 3:
            raise Violation("a fourth attempt")
        answered = step.state in ("SUCCEEDED", "FAILED_FINAL")
        if answered and ledger.leg2_entries != 1:
            raise Violation(f"{step.state} with the digits {ledger.text}")
    if active is None:
        return
    if (job.current_step_id, job.current_step_index) != (active.step_id, active.step_index):
        raise Violation("current_step_id is not the active step")
    if active.lease_expires_at is None:
        raise Violation(f"the active step is {active.state} and nothing is ever due")
    if any(step.state != "SUCCEEDED" for step in steps[: active.step_index]):
        raise Violation("a step before the active one has not succeeded")
    if any(step.state != "PENDING" or step.attempt_no for step in steps[active.step_index + 1 :]):
        raise Violation("a step behind the active one has begun")
    if job.state == "CANCELLING" and active.state not in IN_FLIGHT:
        raise Violation(f"the job is asked to end with its step {active.state}")


def _judge_end(job: Any, steps: Any) -> None:
    states = [step.state for step in steps]
    closers = sum(ActivityLedger(step.ledger).get("tasks_done") for step in steps)
    closers += ActivityLedger(job.root_ledger).get("tasks_done")
    if closers != (job.completed_at is not None):
        raise Violation(f"{closers} messages have closed a job that is {job.state}")
    if (job.state == "SUCCEEDED") != all(
        state == "SUCCEEDED" for state in states
    ) and job.state != "CANCELLED":
        raise Violation(f"the job is {job.state} with steps {states}")
    if (job.state == "FAILED_FINAL") != (job.error_code is not None):
        raise Violation(f"the job is {job.state} with the error {job.error_code}")
    if job.state == "FAILED_FINAL" and states.count("FAILED_FINAL") != 1:
        raise Violation(f"the job has failed with steps {states}")
