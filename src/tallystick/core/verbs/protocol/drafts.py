"""A draft of what becomes of a protocol job: rows that were moved by triggers, then written down as a plan.

Each row is written once, with the digits and the state to which its moves have led. What a machine or a
ledger does not allow cannot be drafted: it raises, and nothing of the request is written.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tallystick.core.ledger.decisions import count_down
from tallystick.core.ledger.marks import complete, entry, first_entry, settled
from tallystick.core.lifecycles import JOB, OUTBOX, STEP, JobState, OutboxState, StepState
from tallystick.core.pictures import CANCEL, Message, Now, cancel_of
from tallystick.core.remote.plans import (
    Heard,
    InsertAnswer,
    InsertOutbox,
    MoveOutbox,
    MoveProtocolJob,
    MoveProtocolStep,
    ProtocolPlan,
    ProtocolWrite,
    StepFactDraft,
)
from tallystick.core.remote.policy import Policy, budget_ms, next_try_ms, policy_of
from tallystick.core.remote.routing import route, topic
from tallystick.core.remote.row_prints import DIRECTIVES, ROWS, of_directive, of_rows
from tallystick.core.remote.rows import (
    PENDING,
    PULL,
    WITHDRAWN,
    OutboxRow,
    ProtocolPicture,
    ProtocolStep,
    outbox_id,
    result_guid,
)
from tallystick.core.verbs.protocol.directives import directive_of
from tallystick.errors import InvariantBroken

# A job begins with the first ACK, and goes on with every directive after that. One that was asked to end has
# neither move.
_BEGINS: Final = {JobState.DISPATCHING: ("start",)}
# What is to end is not held.
_LET_GO: Final = JOB.final | {JobState.CANCELLING}
_DISPATCHES: Final = {JobState.QUEUED: ("dispatch",), JobState.DISPATCHING: ()}


class PlanDraft:
    """One protocol job on its way from a picture to a plan."""

    def __init__(self, picture: ProtocolPicture, now: Now) -> None:
        """Begin with the rows as they are."""
        self._picture = picture
        self._now = now.wall
        self.job = picture.job
        self.steps = list(picture.steps)
        self.pending = picture.pending
        self._made: OutboxRow | None = None
        self._message: Message | None = None
        self._path: str | None = None
        self._paths: dict[str, str] = {}

    @property
    def policy(self) -> Policy:
        """Return the rules by which its steps are sent, timed and tried again."""
        return policy_of(self._picture.rules)

    @property
    def is_cancelling(self) -> bool:
        """Tell whether the job was asked to end."""
        return self.job.state == JobState.CANCELLING

    def move_step(self, step: ProtocolStep, *triggers: str) -> ProtocolStep:
        """Move a step, whose row may say other things already, by triggers."""
        if triggers:
            led = STEP.follow(StepState(step.state), *triggers)
            self._paths[step.step_id] = led.path
            step = step._replace(state=led.target.value)
            if led.target in STEP.final:
                step = step._replace(completed_at=self._now, lease_expires_at=None)
        self.steps[step.step_index] = step
        return step

    def move_job(self, *triggers: str) -> None:
        """Move the job by triggers."""
        if triggers:
            led = JOB.follow(JobState(self.job.state), *triggers)
            self._path = led.path if self._path is None else f"{self._path}>{led.path.partition('>')[2]}"
            hold = None if led.target in _LET_GO else self.job.hold
            self.job = self.job._replace(state=led.target.value, hold=hold)

    def begin(self) -> None:
        """Note that a remote worker has begun: the job is IN_PROGRESS with the first ACK, told or implied."""
        self.move_job(*_BEGINS.get(JobState(self.job.state), ()))

    def close_directive(self, trigger: str, reason: str | None = None) -> None:
        """End the way of the directive that is not out, if there is one."""
        if self.pending is not None and self.pending.state == PENDING:
            target = OUTBOX.follow(OutboxState(self.pending.state), trigger).target
            sent_at = self._now if target is OutboxState.SENT else None
            self.pending = self.pending._replace(state=target.value, reason=reason, sent_at=sent_at)

    def dispatch(self, step: ProtocolStep, lease_id: str, *, relays: bool) -> None:
        """Make the directive of a step's next attempt: routing is decided here, once, and pinned.

        A request that `relays` has its first try. Otherwise it is due at once, for any relay.
        """
        job, policy = self.job, self.policy
        first = step.state == StepState.PENDING
        ledger = first_entry(step.ledger)[1]
        after = self._with_inputs(step)._replace(
            attempt_no=step.attempt_no + 1, lease_id=lease_id, ledger=complete(ledger) if first else ledger
        )
        row = self.made(after, lease_id, relays=relays)
        lease_ms = policy.start_within_ms if row.is_pulled else budget_ms(1)
        after = after._replace(
            lease_expires_at=self._now + lease_ms,
            resolved_mode=row.resolved_mode,
            lane=row.lane,
            routing_key_used=row.routing_key_used,
            decision_source=row.decision_source,
            decision_reason=row.decision_reason,
        )
        self.move_step(after, "dispatch" if first else "redispatch")
        self._made = row
        self.move_job(*_DISPATCHES.get(JobState(job.state), ("advance",)))
        self.job = self.job._replace(
            current_step_id=step.step_id,
            current_step_index=step.step_index,
            attempts_total=job.attempts_total + 1,
        )

    def wait_at(self, step: ProtocolStep) -> None:
        """Come to the next step of a job that is held: its directive is due as soon as the job is resumed."""
        self.move_step(step._replace(lease_expires_at=self._now))
        self.job = self.job._replace(current_step_id=step.step_id, current_step_index=step.step_index)

    def made(self, step: ProtocolStep, lease_id: str, *, relays: bool) -> OutboxRow:
        """Return the directive of an attempt: its first try is counted if its maker publishes it."""
        job, policy, now = self.job, self.policy, self._now
        routed = route(job.tenant_id, job.doc_id, job.mode, policy)
        via = policy.publisher(step.service)
        tries, next_try_at = (1, now + next_try_ms(1)) if relays and via != PULL else (0, now)
        row = OutboxRow(
            outbox_id(job.job_id, step.step_id, step.attempt_no), job.tenant_id, job.job_id, step.step_id,
            step.attempt_no, lease_id, OUTBOX.start.value,
            topic(policy.topic_prefix or step.service, routed.lane), routed.lane, "",
            *routed, tries, next_try_at, now, None, 1, step.service, via,
        )  # fmt: skip
        return row._replace(payload=directive_of(job, step, row))

    def _with_inputs(self, step: ProtocolStep) -> ProtocolStep:
        """Return a step with what it works on: what the one before has left, or what the command named."""
        if not step.step_index:
            return step._replace(input_ref=self.job.input_ref)
        before = self.steps[step.step_index - 1]
        return step._replace(
            input_ref=before.output_ref or before.input_ref, workspace_ref=before.workspace_ref
        )

    def answer(self, step: ProtocolStep, *, closes: bool) -> ProtocolStep:
        """Count the message that ends a step: in the step's digits, in its own, and in the semaphore."""
        counted = entry(step.ledger, 0)
        ledger, guid = settled(counted.activity, counted.guid, closes=closes)
        name = result_guid(step.job_id, step.step_id, step.attempt_no)
        self._message = self._word(name, step.step_id, "result", guid)
        return self.move_step(step._replace(ledger=ledger))

    def end(self, trigger: str, step: ProtocolStep | None) -> None:
        """End the job, and with it every step that is still open and the directive that is not out.

        The message that answered `step` is the closer; without one it is a message of the job's own.
        """
        dropped = "drop" if trigger == "fail" else "cancel"
        how_many = (step is not None) + sum(each.is_open for each in self.steps)
        for each in self.steps:
            if each.is_open:
                self.move_step(each, dropped)
        self.close_directive("withdraw", WITHDRAWN)
        if step is not None:
            self.answer(self.steps[step.step_index], closes=True)
        else:
            self._close_by_root()
        cancelled = trigger == "settle" and not self.is_cancelling
        self.move_job(*(("cancel", "settle") if cancelled else (trigger,)))
        self.job = self.job._replace(completed_at=self._now)
        self.count(how_many, closes=True)

    def fail(self, step: ProtocolStep) -> None:
        """End the job because a step has failed for good, and say so in its row."""
        code, message = step.last_error_code or "", step.last_error_message or ""
        about = {"type": "StepFailed", "step": step.step_id, "message": message, "code": code}
        error = msgspec.json.encode({**about, "tries": step.attempt_no}).decode()
        self.end("fail", step)
        self.job = self.job._replace(error=error, error_code=code, error_message=message)

    def _close_by_root(self) -> None:
        counted = entry(self.job.root_ledger, 0)
        root, guid = settled(counted.activity, counted.guid, closes=True)
        self._message = self._word(cancel_of(self.job.job_id), CANCEL, "resume", guid)
        self.job = self.job._replace(root_ledger=root)

    def count(self, how_many: int, *, closes: bool) -> None:
        """Take what has ended from the semaphore, which counts the steps that are open."""
        moved = count_down(self.job.semaphore, -how_many)
        if moved.hit != closes:
            raise InvariantBroken(
                f"job {self.job.job_id}: its semaphore comes to {moved.after}; see `tally doctor`",
                job_id=self.job.job_id,
            )
        self.job = self.job._replace(semaphore=moved.after)

    def _word(self, guid: str, name: str, kind: str, ledger: int) -> Message:
        now = self._now
        return Message(guid, self.job.job_id, 0, name, 1, kind, None, None, ledger, 0, now, 0, now)

    def plan(self, heard: Heard, kind: str | None, **about: object) -> ProtocolPlan:
        """Return everything that has changed; `kind` is what its fact is called, None for no fact."""
        writes: list[ProtocolWrite] = [
            MoveProtocolStep(after._replace(rev=before.rev + 1), before.rev)
            for before, after in zip(self._picture.steps, self.steps, strict=True)
            if after != before
        ]
        if (row := self.pending) != self._picture.pending:
            assert row is not None, "a directive is closed, never forgotten"
            writes.append(MoveOutbox(row._replace(rev=row.rev + 1), row.rev))
        if self._made is not None:
            writes.append(InsertOutbox(self._made))
        if self._message is not None:
            writes.append(InsertAnswer(self._message))
        if self.job != self._picture.job:
            writes.append(MoveProtocolJob(self.job._replace(rev=self.job.rev + 1), self.job.rev))
        told = None if kind is None else self._fact(kind, about)
        active = next((step for step in self.steps if step.is_open), None)
        lease_expires_at = None if active is None else active.lease_expires_at
        return ProtocolPlan(heard, tuple(writes), told, self.is_cancelling, self._made, lease_expires_at)

    def _fact(self, kind: str, about: dict[str, object]) -> StepFactDraft:
        """Return what the fact says: the moves, the digits that they have left, and what else is known."""
        digits = {
            after.step_id: f"{after.ledger:015d}"
            for before, after in zip(self._picture.steps, self.steps, strict=True)
            if after.ledger != before.ledger
        }
        said: dict[str, object] = {"job": self._path, "steps": self._paths, "digits": digits, **about}
        said[ROWS] = of_rows(self.job, self.steps)
        closed = None if self.pending == self._picture.pending else self.pending
        said[DIRECTIVES] = {
            row.outbox_id: of_directive(row) for row in (self._made, closed) if row is not None
        }
        if self._message is not None:
            said["message"] = {"guid": self._message.guid, "digits": f"{self._message.ledger:015d}"}
        kept = {name: value for name, value in said.items() if value not in (None, {})}
        attempt = max(
            (step.attempt_no for step in self.steps if step.step_id == about.get("step")), default=0
        )
        return StepFactDraft(kind, attempt, msgspec.json.encode(kept).decode())


def unchanged(picture: ProtocolPicture, heard: Heard) -> ProtocolPlan:
    """Return the answer to a request that changes nothing."""
    active = picture.active
    lease_expires_at = None if active is None else active.lease_expires_at
    cancelling = picture.job.state == JobState.CANCELLING
    return ProtocolPlan(heard, (), None, cancelling, None, lease_expires_at)
