"""The world of one protocol job: two relays, a sweep, remote workers that say anything at any time.

Every move is a verb of core, called with a picture; nothing here decides. A state is a picture (as a number),
the tries that relays are at, and whether a remote worker may have the current directive. Time has no length:
the clock stands at `NOW`, and passing the next instant moves all instants of the picture towards it.

Remote workers are not modelled at all: whatever they could report of the current attempt they may report at
any moment, any number of times, and what they could report of older attempts is tried in every picture.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

from tallystick.core.pictures import Now
from tests.model.protocol_judging import (
    NOW,
    judge_held,
    judge_move,
    judge_picture,
    judge_plan,
    judge_result,
    judge_resumed,
    judge_times,
    judge_told,
)
from tests.model.search import Violation

JOB_ID = "j"
RELAYS = 2
WORK_MS, PAUSE_MS = 900_000, 1_000
RESULTS = ("ok", "retry", "final")


class Shape(NamedTuple):
    """A small world: how many steps, how directives travel, and after how many further attempts it ends.

    `relays` says that who makes a directive publishes it, `holds` that people hold the job and resume it.
    """

    steps: int
    pull: bool = False
    again: int = 6
    relays: bool = True
    holds: bool = False


class Try(NamedTuple):
    """A relay at work on one try of one directive; `out` says that it has published it."""

    step_id: str
    attempt_no: int
    lease_id: str
    try_no: int
    out: bool = False


class Edge(NamedTuple):
    """What one request makes of a picture."""

    label: str
    picture: int
    begun: Try | None
    heard: str


class State(NamedTuple):
    picture: int
    tries: frozenset[Try]
    out: bool


class ProtocolWorld:
    """All states of one protocol job, as core's verbs lead through them."""

    def __init__(self, core: SimpleNamespace, shape: Shape) -> None:
        self.core, self.shape = core, shape
        self.pictures: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.edges: dict[int, tuple[list[Edge], list[Edge]]] = {}
        self.reports: dict[Any, Edge] = {}

    def initial(self) -> State:
        core, rows = self.core, self.core.rows
        names = [f"s{index}" for index in range(self.shape.steps)]
        via = {} if self.shape.pull else {"svc": "webhook"}
        options = core.policy.Policy(via=via).written()
        job = rows.ProtocolJob(
            JOB_ID, "acme", "QUEUED", 1, 0, 0, 0, "p", None, None, "in", "out", "{}", options, None, None, 0,
            None, None, None,
        )  # fmt: skip
        steps = tuple(
            rows.ProtocolStep(JOB_ID, name, index, "work", "svc", "PENDING", 0, 1, None)
            for index, name in enumerate(names)
        )
        about = core.requests.NewProtocolJob("p", "1", None, "hash", 1)
        request = core.requests.SubmitCommand(job, about, steps, None, "lease1", self.shape.relays)
        plan = core.submitting.submit(request, Now(NOW))
        born = {type(write).__name__: write for write in plan.writes}
        made = tuple(w.step for w in plan.writes if type(w).__name__ == "InsertProtocolStep")
        ordered = tuple(sorted(made, key=lambda step: step.step_index))
        picture = rows.ProtocolPicture(born["InsertProtocolJob"].job, ordered, born["InsertOutbox"].row)
        first = self._begun(born["InsertOutbox"].row)
        return State(self._number(picture), frozenset() if first is None else frozenset({first}), False)

    # --- what may happen next

    def successors(self, state: State) -> list[tuple[Any, State]]:
        if self.final(state):
            self.edges_at(state.picture)
            return []
        always, reports = self.edges_at(state.picture)
        found = [(edge.label, self._after(state, edge)) for edge in always if self._is_free(state, edge)]
        if state.out:
            found += [(edge.label, self._after(state, edge)) for edge in reports]
        for one in state.tries:
            found += self._of_try(state, one)
        for label in ("tick", "pause"):
            later = self._later(state.picture, pause=label == "pause")
            if later is not None:
                found.append((label, state._replace(picture=later)))
        return found

    def _is_free(self, state: State, edge: Edge) -> bool:
        return edge.label != "take" or edge.begun is None or len(state.tries) < RELAYS

    def _of_try(self, state: State, one: Try) -> list[tuple[Any, State]]:
        gone = state._replace(tries=state.tries - {one})
        found: list[tuple[Any, State]] = [(("relay dies", one.try_no), gone)]
        fence = self.core.requests.StepFence(JOB_ID, *one[:3])
        failed = self.core.requests.NotPublished(fence, one.try_no, "away")
        for report in (failed, failed._replace(final=True)):
            edge = self._report(state.picture, ("not published", one.try_no), report)
            if edge.heard == "DONE" and self._picture(state.picture).pending.tries != one.try_no:
                raise Violation(f"try {one.try_no} failed and a later one is given up")
            found.append((edge.label, self._after(gone, edge)))
        if not one.out:
            published = state._replace(tries=gone.tries | {one._replace(out=True)})
            found.append((("publish", one.try_no), self._delivered(published, one)))
        else:
            edge = self._report(state.picture, ("sent", one.try_no), self.core.requests.MarkSent(fence))
            found.append((edge.label, self._after(gone, edge)))
        return found

    def _delivered(self, state: State, one: Try) -> State:
        active = self._picture(state.picture).active
        mine = active is not None and (active.attempt_no, active.lease_id) == one[1:3]
        return state._replace(out=state.out or mine)

    def _after(self, state: State, edge: Edge) -> State:
        if edge.picture == state.picture:
            return state
        before, after = self._picture(state.picture).job, self._picture(edge.picture).job
        same = before.attempts_total == after.attempts_total and after.completed_at is None
        tries = state.tries if edge.begun is None else state.tries | {edge.begun}
        if edge.begun is not None and len(tries) > RELAYS:
            tries = frozenset(sorted(tries)[-RELAYS:])  # a relay that is given new work has left the oldest
        if edge.begun is not None and edge.begun in state.tries:
            raise Violation(f"try {edge.begun.try_no} of {edge.begun.step_id} is given to two relays")
        return State(edge.picture, tries, (state.out and same) or edge.label == "deliver")

    def edges_at(self, number: int) -> tuple[list[Edge], list[Edge]]:
        """Return what may always happen in a picture, and what the holder of its directive may report."""
        found = self.edges.get(number)
        if found is None:
            found = self.edges[number] = self._looked(number)
        return found

    def edges_of(self, number: int) -> list[Edge]:
        """Return what the sweep, relays and cancellations may make of a picture."""
        return self.edges_at(number)[0]

    def later(self, number: int) -> int | None:
        """Return a picture at its next instant."""
        return self._later(number, pause=False)

    def _looked(self, number: int) -> tuple[list[Edge], list[Edge]]:
        ask, picture = self.core.requests, self._picture(number)
        made = (f"lease{picture.job.attempts_total + 1}", self.shape.relays)
        always = [self.edge(number, "expire", ask.ExpireStep(JOB_ID, *made))]
        always.append(self.edge(number, "dispatch", ask.DispatchStep(JOB_ID, *made)))
        row = picture.pending
        if row is not None:
            at = (JOB_ID, row.step_id, row.attempt_no)
            always.append(self.edge(number, "take", ask.TakeDirective(*at)))
            always.append(self.edge(number, "deliver", ask.DeliverDirective(*at, "w")))
        always.append(self.edge(number, "cancel", ask.CancelProtocol(JOB_ID)))
        always.append(self.edge(number, "force", ask.CancelProtocol(JOB_ID, force=True)))
        always += self._people(number)
        self._try_what_must_not_count(number)
        active = picture.active
        if active is None or active.lease_id is None:
            return self._real(number, always), []
        fence = ask.StepFence(JOB_ID, active.step_id, active.attempt_no, active.lease_id)
        return self._real(number, always), self._real(number, self._heard(number, fence))

    def _people(self, number: int) -> list[Edge]:
        """Return what people may do besides: hold a job that is not to end, or resume it."""
        picture = self._picture(number)
        job = picture.job
        if not self.shape.holds or picture.active is None or job.state == "CANCELLING":
            return []
        if job.hold is None:
            held = picture._replace(job=job._replace(hold="PAUSED"))
            return [Edge("hold", self._number(held), None, "DONE")]
        resumed = picture._replace(job=job._replace(hold=None))
        anew = self.core.publishing.asked_anew(resumed, Now(NOW))
        if anew is not None:
            resumed = see(resumed, [self.core.plans.MoveProtocolStep(anew, anew.rev - 1)])
        judge_resumed(picture, resumed, self.core.policy.policy_of(job.options))
        return [Edge("resume", self._number(resumed), None, "DONE")]

    def _real(self, number: int, edges: list[Edge]) -> list[Edge]:
        return [edge for edge in edges if edge.picture != number]

    def _heard(self, number: int, fence: Any) -> list[Edge]:
        ask, lease = self.core.requests, f"lease{self._picture(number).job.attempts_total + 1}"
        said = [self.edge(number, ("ack", fence.step_id, fence.attempt_no), ask.AckStep(fence))]
        said.append(self.edge(number, ("heartbeat", fence.step_id), ask.RenewStep(fence)))
        for result in RESULTS:
            answer = ask.StepAnswer(
                result == "ok", f"{fence.lease_id} {result}", result == "retry", "CODE", "text"
            )
            label = ("result", result, fence.step_id, fence.attempt_no)
            said.append(self.edge(number, label, ask.AnswerStep(fence, answer, lease, self.shape.relays)))
        return said

    def _try_what_must_not_count(self, number: int) -> None:  # noqa: PLR0912 (a case for each lie)
        """Report on every older attempt, on steps that are over or not begun, with a wrong lease, unknown."""
        picture, fence = self._picture(number), self.core.requests.StepFence
        for step in picture.steps:
            told = [fence(JOB_ID, step.step_id, step.attempt_no, "forged")]
            if step.attempt_no > 1:
                told.append(fence(JOB_ID, step.step_id, step.attempt_no - 1, step.lease_id or ""))
            told += [fence(JOB_ID, step.step_id, no, lease) for no, lease in self._answered(step)]
            if not step.is_open:
                told.append(fence(JOB_ID, step.step_id, step.attempt_no, step.lease_id or ""))
            for each in told:
                for edge in self._heard(number, each):
                    if edge.picture != number:
                        raise Violation(f"{edge.label} with {each.lease_id} changed something")
        ask, active = self.core.requests, picture.active
        for step in picture.steps:
            said = ask.MarkSent(fence(JOB_ID, step.step_id, step.attempt_no, step.lease_id or ""))
            self.edge(number, "sent", said)
        at = [("nowhere", 1, "lease1")]
        if active is not None and active.attempt_no:
            at += [
                (active.step_id, active.attempt_no, "forged"),
                (active.step_id, active.attempt_no + 1, active.lease_id),
            ]
        for each in at:
            told = fence(JOB_ID, *each)
            for request in (
                ask.MarkSent(told),
                ask.NotPublished(told, 1, "away"),
                ask.TakeDirective(JOB_ID, each[0], each[1] + 1),
                ask.DeliverDirective(JOB_ID, each[0], each[1] + 1, "w"),
            ):
                if self.edge(number, "forged", request).heard != "STALE":
                    raise Violation(f"{request} was not refused")
        for edge in self._heard(number, fence(JOB_ID, "nowhere", 1, "lease1")):
            if edge.heard != "UNKNOWN":
                raise Violation(f"a step that is not there answers {edge.heard}")

    def _answered(self, step: Any) -> list[tuple[int, str]]:
        kept = self.core.msgspec.json.decode(step.answers) if step.answers else []
        return [(no, lease) for no, lease, _digest in kept]

    # --- one request, judged

    def _report(self, number: int, label: Any, request: Any) -> Edge:
        key = (number, request)
        found = self.reports.get(key)
        if found is None:
            found = self.reports[key] = self.edge(number, label, request)
        return found

    def edge(self, number: int, label: Any, request: Any) -> Edge:
        picture = self._picture(number)
        plan = self.core.deciding.decide(picture, request, Now(NOW))
        judge_plan(picture, request, plan)
        if not plan.writes:
            return Edge(label, number, None, plan.heard.name)
        after = see(picture, plan.writes)
        judge_move(picture, after, plan)
        judge_result(picture, after, request)
        judge_told(picture, after, plan)
        judge_held(picture, after, request)
        if plan.directive is not None and label != "deliver":
            policy = self.core.policy.policy_of(picture.job.options)
            judge_times(plan.directive, after.active, policy)
        for born in (write.row for write in plan.writes if type(write).__name__ == "InsertOutbox"):
            if born.tries != (self.shape.relays and not self.shape.pull):
                raise Violation(f"a directive is born with {born.tries} tries")
        begun = None if plan.directive is None else self._begun(plan.directive)
        if label == "deliver":
            begun = None
        return Edge(label, self._number(after), begun, plan.heard.name)

    def _begun(self, row: Any) -> Try | None:
        if row.via == "pull" or not row.tries:
            return None
        return Try(row.step_id, row.attempt_no, row.lease_id, row.tries)

    # --- pictures

    def _picture(self, number: int) -> Any:
        return self.pictures[number]

    def _number(self, picture: Any) -> int:
        """Return the number of a picture; what only people read is the same in all."""
        job = picture.job._replace(rev=1, completed_at=None if picture.job.completed_at is None else NOW)
        pending = picture.pending
        if pending is not None:
            pending = pending._replace(
                rev=1, created_at=NOW, payload="", next_try_at=max(pending.next_try_at, NOW)
            )
        steps = tuple(_plain(step) for step in picture.steps)
        plain = type(picture)(job, steps, pending)
        number = self.numbers.get(plain)
        if number is None:
            judge_picture(plain)
            number = self.numbers[plain] = len(self.pictures)
            self.pictures.append(plain)
        return number

    def _later(self, number: int, *, pause: bool) -> int | None:
        """Return the picture at its next instant, or a moment after the work began: a heartbeat is for that.

        What lies behind does not move any more.
        """
        picture = self._picture(number)
        instants = [
            step.lease_expires_at for step in picture.open_steps() if step.lease_expires_at is not None
        ]
        instants += [] if picture.pending is None else [picture.pending.next_try_at]
        ahead = [at - NOW for at in instants if at > NOW]
        if not ahead:
            return None
        ms, pending = min(ahead), picture.pending
        if pause and (picture.active.state != "IN_PROGRESS" or ms < WORK_MS):
            return None
        ms = PAUSE_MS if pause else ms
        if pending is not None:
            pending = pending._replace(next_try_at=max(pending.next_try_at - ms, NOW))
        steps = tuple(
            step
            if step.lease_expires_at is None
            else step._replace(lease_expires_at=max(step.lease_expires_at - ms, NOW))
            for step in picture.steps
        )
        return self._number(picture._replace(steps=steps, pending=pending))

    # --- what the search asks

    def check(self, state: State) -> None:
        pending = self._picture(state.picture).pending
        for one in state.tries:
            mine = pending is not None and (pending.step_id, pending.attempt_no) == one[:2]
            if mine and one.try_no > pending.tries:
                raise Violation(f"try {one.try_no} is published and {pending.tries} are counted")

    def final(self, state: State) -> bool:
        """An end of the job, or of this world: what comes after so many attempts is seen in others."""
        job = self._picture(state.picture).job
        return job.completed_at is not None or job.attempts_total > self.shape.steps + self.shape.again

    def ledgers(self, _state: State) -> tuple[int, ...]:
        return ()

    def helpful(self, label: Any) -> bool:
        """Only time, the sweep, relays that come for work, who resumes: no remote worker says anything."""
        return label in ("tick", "expire", "take", "resume") or label[0] == "relay dies"


def see(picture: Any, writes: Any) -> Any:
    """Return the picture with what was planned."""
    job, steps, pending, *_workflow = picture
    for write in writes:
        match type(write).__name__:
            case "MoveProtocolJob":
                job = write.job
            case "MoveProtocolStep":
                steps = (*steps[: write.step.step_index], write.step, *steps[write.step.step_index + 1 :])
            case "InsertOutbox":
                pending = write.row
            case "MoveOutbox":
                pending = write.row if write.row.state == "PENDING" else None
    return type(picture)(job, steps, pending)


def _plain(step: Any) -> Any:
    fixed = {"rev": 1}
    if step.acked_at is not None:
        fixed["acked_at"] = NOW
    if step.completed_at is not None:
        fixed["completed_at"] = NOW
    if step.lease_expires_at is not None:
        fixed["lease_expires_at"] = max(step.lease_expires_at, NOW)
    return step._replace(**fixed)
