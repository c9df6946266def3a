"""Remote steps of workflows: remote workers that report anything at any time, the sweep, and what must be so.

A remote worker is not modelled: whoever was given a directive may report on it at any moment, any number of
times, also long after. What only an older attempt could report is tried in every state and changes nothing.
Directives are asked for (pull): how others travel, the worlds of protocol jobs have.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tallystick.core.remote.policy import Policy, StepTimes, policy_of
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    DeliverDirective,
    ExpireStep,
    RenewStep,
    StepAnswer,
    StepFence,
)
from tallystick.core.remote.rows import ProtocolJob, result_guid, step_id_of
from tallystick.core.retry import RetryPolicy
from tallystick.store.api import Asks, Wait
from tests.model.search import Violation

NOW, FUTURE = 1_000, 10**9
# No time that a walk lets pass on a store is so long, so that only a move of its own ends the time of a step.
LONG_MS, REST_MS = 10**15, 10**12
IN_FLIGHT = ("DISPATCHING", "AWAITING_ACK", "IN_PROGRESS")
FINAL = ("SUCCEEDED", "FAILED_FINAL", "CANCELLED")
RESULTS = ("ok", "retry", "final")
# What a world knows of a job that nothing is decided by.
_HOME = ("p", None, None, None, None, "{}", "{}", None, None, 0, None, None, None)


class Remotes(NamedTuple):
    """The remote steps of a job, and their directives that are not out."""

    steps: tuple[Any, ...] = ()
    directives: tuple[Any, ...] = ()


def as_wait(name: str, occurrence: int, dimension: int, attempts: int) -> Wait:
    """Return the wait for a remote step, with what its directive is made of."""
    place = (dimension, name, occurrence)
    tries = RetryPolicy(attempts, jitter=0.0, table_ms=(REST_MS,))
    times = StepTimes(ack_ms=LONG_MS, lease_ms=LONG_MS, retry=tries)
    options = Policy(times={step_id_of(place): times}, start_within_ms=LONG_MS).written()
    return Wait("remote", name, occurrence, None, Asks("svc", name, "{}", options, "r1"))


# --- the rows of a world, spread out and frozen


def spread(picture: Any, remotes: Remotes) -> None:
    """Put rows into a picture."""
    for step in remotes.steps:
        _job_id, step_id, *_rest = step
        dimension, _, rest = step_id.partition("/")
        name, _, occurrence = rest.rpartition("#")
        picture.remotes[int(dimension), name, int(occurrence)] = step
    picture.directives = {row.step_id: row for row in remotes.directives}


def frozen(picture: Any) -> Remotes:
    """Return the rows of a picture without what only tells one moment from another."""
    steps = tuple(
        step._replace(
            rev=1,
            lease_expires_at=_instant(step.lease_expires_at),
            acked_at=_instant(step.acked_at),
            completed_at=None,
            result=None,
            error=None,
        )
        for _place, step in sorted(picture.remotes.items())
    )
    rows = (
        row._replace(rev=1, payload="", created_at=NOW, next_try_at=NOW)
        for row in picture.directives.values()
    )
    return Remotes(steps, tuple(sorted(rows)))


def look(picture: Any, full: Any, wants: Any) -> None:
    """Add what a store reads of remote steps for a request."""
    if wants.remotes:
        job = full.job
        picture.home = ProtocolJob(job.job_id, "acme", job.state, job.rev, job.semaphore, 0, 0, *_HOME)
        picture.directives = dict(full.directives)
        picture.remotes |= {place: step for place, step in full.remotes.items() if step.state not in FINAL}
    if wants.remote in full.remotes:
        picture.remotes[wants.remote] = full.remotes[wants.remote]
    if wants.results:
        found = [each for each in full.messages.values() if each.kind == "result" and each.acked_at is None]
        picture.messages |= {each.guid: each for each in found}


def attempts_of(step: Any) -> int:
    """Return how often a step may be asked for."""
    return policy_of(step.options).times_of(step.step_id).tries.attempts_max


def _instant(at: int | None) -> int | None:
    return None if at is None else FUTURE if at > NOW else NOW


def may_be_at_it(book: Any) -> bool:
    """Tell whether a remote worker has a directive of a job and time to report."""
    waiting = {row.step_id for row in book.remotes.directives}
    return any(
        step.state in IN_FLIGHT and step.lease_expires_at == FUTURE and step.step_id not in waiting
        for step in book.remotes.steps
    )


# --- what remote workers and the sweep do


class RemoteMoves:
    """The moves of remote workers, and of the sweep over their steps."""

    act: Any
    _books: list[Any]
    _number: Any

    def _remote_moves(self, state: Any, found: list[Any]) -> None:
        at, workers, env = state
        book = self._books[at][0]
        waiting = {row.step_id: row for row in book.remotes.directives}
        for step in book.remotes.steps:
            row = waiting.get(step.step_id)
            moves = self._reports(at, step) if row is None else [self._given(at, row)]
            if step.lease_expires_at == FUTURE:
                moves.append((("lapse", step.step_id), self._lapsed(at, step)))
            if step.lease_expires_at == NOW:
                moves.append(self._swept(at, step, book))
            found += [(label, (after, workers, env)) for label, after in moves if after != at]

    def _given(self, at: int, row: Any) -> tuple[Any, int]:
        request = DeliverDirective(row.job_id, row.step_id, row.attempt_no, "w")
        after, hearing = self.act(at, (type(request).__name__, request), lambda: (request,))
        job = self._books[at][0].job
        heard, held = hearing.heard.name, job.hold is not None
        if heard == ("TAKEN" if held else "NOT_DUE"):
            raise Violation(f"a directive of a job that is {job.state}, held {job.hold}: {heard}")
        return ("given", row.step_id, heard), after

    def _reports(self, at: int, step: Any) -> list[tuple[Any, int]]:
        """Report on the attempt that is out, and (in vain) on older ones and with another lease."""
        fence = StepFence(step.job_id, step.step_id, step.attempt_no, step.lease_id)
        older = [
            fence._replace(attempt_no=number, lease_id=f"r{number}") for number in range(1, step.attempt_no)
        ]
        strange = ({"lease_id": "forged"}, {"step_id": "0/nothing#1"}, {"job_id": "nobody"})
        for lie in (*older, *(fence._replace(**each) for each in strange)):
            for request in _said(lie):
                after, _hearing = self.act(at, (type(request).__name__, request), lambda r=request: (r,))
                if after != at:
                    raise Violation(f"a report on {lie} changed something")
        return [self._reported(at, step, request) for request in _said(fence)]

    def _reported(self, at: int, step: Any, request: Any) -> tuple[Any, int]:
        after, hearing = self.act(at, (type(request).__name__, request), lambda: (request,))
        kind, heard = type(request).__name__, hearing.heard.name
        book = self._books[at][0]
        cancelling = book.job.state == "CANCELLING"
        open_ = step.state in IN_FLIGHT and step.lease_expires_at == FUTURE
        begun = kind == "AckStep" and step.state == "IN_PROGRESS"
        told_to_stop = kind == "RenewStep" and cancelling
        if (heard == "ACCEPTED") != (open_ and not begun and not told_to_stop):
            raise Violation(f"{kind} on a step that is {step.state} is {heard}")
        if hearing.cancelling != cancelling:
            raise Violation(f"{kind} is not told whether the job is being cancelled")
        if kind == "AnswerStep" and heard == "ACCEPTED":
            self._check_answered(book, self._books[after][0], step, request.answer)
        said = _result_of(request.answer) if kind == "AnswerStep" else ""
        return (kind, step.step_id, said, heard), after

    def _check_answered(self, before: Any, after: Any, step: Any, answer: StepAnswer) -> None:
        """A RESULT ends the step, by a message that says so, or waits for the next attempt."""
        guid = result_guid(step.job_id, step.step_id, step.attempt_no)
        told = [each for each in after.messages if each.guid == guid]
        again = answer.retryable and step.attempt_no < attempts_of(step) and before.job.state != "CANCELLING"
        (now,) = (each for each in after.remotes.steps if each.step_id == step.step_id)
        if again != (now.state == "FAILED_RETRY") or bool(told) == again:
            raise Violation(f"a RESULT leaves its step {now.state}, and {len(told)} messages")
        if told and ("value" in (told[0].payload or "")) != answer.succeeded:
            raise Violation(f"a RESULT becomes {told[0].payload}")

    def _lapsed(self, at: int, step: Any) -> int:
        """Let the time of a step run out, and with the last one that of a job that waits for it to end."""
        books = self._books[at]
        book = books[0]
        steps = tuple(
            each._replace(lease_expires_at=NOW) if each.step_id == step.step_id else each
            for each in book.remotes.steps
        )
        book = book._replace(remotes=book.remotes._replace(steps=steps))
        job = book.job
        if job.state == "CANCELLING" and book.lease is None and not may_be_at_it(book):
            book = book._replace(job=job._replace(cancel_at=NOW))
        return self._number((book, *books[1:]))

    def _swept(self, at: int, step: Any, book: Any) -> tuple[Any, int]:
        request = ExpireStep(step.job_id, f"r{step.attempt_no + 1}", step_id=step.step_id)
        after, hearing = self.act(at, (type(request).__name__, request), lambda: (request,))
        stands = book.job.hold is not None and step.state == "DISPATCHING"
        if after != at and stands:
            raise Violation("a held step ends by a time in which no worker could be given its directive")
        if after == at and not stands:
            raise Violation(f"the time of a step that is {step.state} is over, and the sweep leaves it")
        (now,) = (each for each in self._books[after][0].remotes.steps if each.step_id == step.step_id)
        stays = book.job.hold is not None or book.job.state == "CANCELLING"
        if now.attempt_no > step.attempt_no and (stays or step.state != "FAILED_RETRY"):
            raise Violation(f"a directive goes out for a job that is {book.job.state}, held {book.job.hold}")
        return ("sweep", step.step_id, hearing.heard.name), after


def _said(fence: StepFence) -> list[Any]:
    """Return everything that a remote worker may report."""
    answers = (AnswerStep(fence, answer_of(fence.lease_id, result), "r9") for result in RESULTS)
    return [AckStep(fence), RenewStep(fence), *answers]


def answer_of(lease_id: str, result: str) -> StepAnswer:
    """Return a RESULT under a lease: it went well, or has failed for good or to be tried again."""
    code = None if result == "ok" else "CODE"
    answer = StepAnswer(result == "ok", f"{lease_id} {result}", result == "retry", code, code)
    return answer._replace(value='"v"' if result == "ok" else None)


def _result_of(answer: StepAnswer) -> str:
    return "ok" if answer.succeeded else "retry" if answer.retryable else "final"


# --- what must be so


def check_resumed(book: Any) -> None:
    """Check that a directive which could not be given out has all its time when its job is resumed."""
    waiting = {row.step_id for row in book.remotes.directives}
    if any(each.step_id in waiting and each.lease_expires_at != FUTURE for each in book.remotes.steps):
        raise Violation("a job is resumed, and a directive has lost time in which it was held")


def check(book: Any) -> None:
    """Check the remote steps of a job against everything around them."""
    job, remotes = book.job, book.remotes
    waiting = {row.step_id: row for row in remotes.directives}
    activities = {step_id_of(each.place): each for each in book.activities if each.kind == "remote"}
    if activities.keys() != {step.step_id for step in remotes.steps}:
        raise Violation("a remote step has no row, or a row no step")
    for step in remotes.steps:
        activity, row = activities[step.step_id], waiting.pop(step.step_id, None)
        _check_step(book, step, activity, row)
    if waiting:
        raise Violation(f"directives are on their way for {sorted(waiting)}")
    if job.state == "CANCELLING" and book.lease is None and may_be_at_it(book) and job.cancel_at != FUTURE:
        raise Violation("a job that is asked to end does not wait for its remote worker")


def _check_step(book: Any, step: Any, activity: Any, row: Any) -> None:
    job, name = book.job, f"{step.step_id}, {step.state},"
    if (activity.state, activity.ledger) != (step.state, step.ledger):
        raise Violation(f"{name} is {activity.state} as an activity")
    known = [each for each in book.messages if each.kind == "result" and each.place == activity.place]
    is_open = step.state not in FINAL
    if len(known) > 1:
        raise Violation(f"{name} has ended {len(known)} times")
    if (row is not None) != (is_open and step.state == "DISPATCHING" and not known):
        raise Violation(f"{name} has {'a' if row else 'no'} directive on its way")
    if row is not None and (row.attempt_no, row.lease_id) != (step.attempt_no, step.lease_id):
        raise Violation(f"{name} is on its way as another attempt")
    if step.ledger // 10**12 != step.attempt_no or step.attempt_no > attempts_of(step):
        raise Violation(f"{name} counts {step.attempt_no} attempts: {step.ledger:015d}")
    due = step.lease_expires_at is not None
    if due and (not is_open or known):
        raise Violation(f"{name} is over and due")
    rests = step.state == "FAILED_RETRY" and (job.hold is not None or job.state == "CANCELLING")
    if is_open and not known and not due and not rests:
        raise Violation(f"{name} waits for nothing that ever comes")
    if job.completed_at is not None and is_open:
        raise Violation(f"{name} is open in a job that has ended")
    if step.state in ("SUCCEEDED", "FAILED_FINAL"):
        said = "value" in (known[0].payload or "") if known else None
        if said is None or said != (step.state == "SUCCEEDED"):
            raise Violation(f"{name} has ended with {known}")


def check_kept(request: Any, decision: Any) -> None:
    """A report that is refused changes nothing, and is kept for people; no other is."""
    if isinstance(request, AckStep | RenewStep | AnswerStep):
        kinds = [type(write).__name__ for write in decision.writes]
        refused = decision.outcome.heard.name in ("STALE", "EXPIRED", "CONFLICT")
        if (kinds == ["KeepReport"]) != refused:
            raise Violation(f"{type(request).__name__} is {decision.outcome.heard.name} and writes {kinds}")


def check_asked(picture: Any) -> None:
    """A segment that goes on lets directives out, unless its job is held or asked to end."""
    stays = picture.job.hold is not None or picture.job.state == "CANCELLING"
    if stays == bool(picture.remotes):
        raise Violation(f"a job that is {picture.job.state}, held {picture.job.hold}, asks for a remote step")


def check_unheard(before: Any, after: Any) -> None:
    """What was known when nobody ran a job is in the row of its step, although its function never took it."""
    if before.lease is not None:
        return
    for step in after.remotes.steps:
        told = [
            each
            for each in before.messages
            if each.kind == "result" and each.acked_at is None and step_id_of(each.place) == step.step_id
        ]
        if told and step.state == "CANCELLED":
            raise Violation(f"{step.step_id} was answered, and its job forgets it with its end")
