"""Each verb is cut off after each of its requests; then the same verb again, or the sweep alone, ends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.core.lease import ACK_TIMEOUT_MS
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    CancelProtocol,
    DeliverDirective,
    ExpireStep,
    MarkSent,
    NotPublished,
    ProtocolRequest,
    RenewStep,
    SubmitCommand,
    TakeDirective,
)
from tallystick.store.api import Existing
from tallystick.store.azure import keys
from tallystick.store.azure.changing import LOOK_MS
from tallystick.store.azure.heads import Seen
from tallystick.store.azure.reading import LEFT_MS
from tallystick.store.azure.tail import finish, load
from tallystick.testing.conformance.drafts import FRESH, done
from tallystick.testing.conformance.protocol_runs import (
    FINAL,
    OK,
    PULLED,
    PUSHED,
    RETRY,
    RunningProtocol,
    command,
)
from tests.azure.service import Cut
from tests.azure.worlds import ModelSubject, judge, mend, run_out

Verb = SubmitCommand | ProtocolRequest
Setup = Callable[[RunningProtocol], Verb]


def in_flight(run: RunningProtocol) -> None:
    run.publish()
    run.ack()


def answered(answer: object) -> Setup:
    def setup(run: RunningProtocol) -> Verb:
        in_flight(run)
        return AnswerStep(run.fence, answer, FRESH.new(), relays=True)  # type: ignore[arg-type]  # tests name answers

    return setup


def late(run: RunningProtocol) -> Verb:
    in_flight(run)
    run.until(run.picture.steps[0].lease_expires_at or 0)
    return ExpireStep(run.job_id, FRESH.new())


def taken(run: RunningProtocol) -> Verb:
    run.until(run.subject.clock.wall_ms() + 30_000)
    return TakeDirective(run.job_id, "s0", 1)


def again(run: RunningProtocol) -> Verb:
    run.answer(RETRY)
    run.until((run.picture.steps[0].lease_expires_at or 0) + 1)
    return ExpireStep(run.job_id, FRESH.new())


def last(run: RunningProtocol) -> Verb:
    run.answer()
    return AnswerStep(run.fence, OK, FRESH.new())


def asked_to_end(run: RunningProtocol) -> Verb:
    in_flight(run)
    run.apply(CancelProtocol(run.job_id))
    return AnswerStep(run.fence, OK, FRESH.new())


def renewed(run: RunningProtocol) -> Verb:
    in_flight(run)
    run.subject.clock.advance(1_000)
    return RenewStep(run.fence)


VERBS: dict[str, tuple[Policy, Setup]] = {
    "sent": (PUSHED, lambda run: MarkSent(run.fence)),
    "not published for good": (PUSHED, lambda run: NotPublished(run.fence, 1, "gone", final=True)),
    "taken": (PUSHED, taken),
    "delivered": (PULLED, lambda run: DeliverDirective(run.job_id, "s0", 1, "w")),
    "ack": (PUSHED, lambda run: AckStep(run.fence)),
    "ack of what was pulled": (PULLED, lambda run: AckStep(run.fence)),
    "result": (PUSHED, answered(OK)),
    "result of what was pulled": (PULLED, lambda run: AnswerStep(run.fence, OK, FRESH.new())),
    "result that may be tried again": (PUSHED, answered(RETRY)),
    "result that may not": (PUSHED, answered(FINAL)),
    "last result": (PUSHED, last),
    "timeout": (PUSHED, late),
    "next attempt": (PUSHED, again),
    "heartbeat": (PUSHED, renewed),
    "heartbeat before an ack": (PUSHED, lambda run: RenewStep(run.fence)),
    "cancel at once": (PULLED, lambda run: CancelProtocol(run.job_id)),
    "cancel in flight": (PUSHED, lambda run: CancelProtocol(run.job_id)),
    "cancel by force": (PUSHED, lambda run: CancelProtocol(run.job_id, force=True)),
    "result of a job that was asked to end": (PUSHED, asked_to_end),
}


def prepared(name: str, *, twice: bool = False) -> tuple[RunningProtocol, ModelSubject, Verb]:
    """Return a job that is about to be told something, by a process that remembers nothing of it."""
    policy, setup = VERBS[name]
    subject = ModelSubject()
    run = RunningProtocol(subject, 2, policy)
    request = setup(run)
    other = subject.reopened()
    other.client.twice = twice
    run.subject = other
    return run, other, request


def cut(subject: ModelSubject, request: Verb, after: int) -> bool:
    """Carry out a request up to so many of what it asks of the service; tell whether it was over before."""
    subject.client.left = after
    try:
        done(subject.store, request)
    except Cut:
        return False
    finally:
        subject.client.left = None
    return True


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_was_cut_off_is_ended_by_itself(name: str):
    whole, subject, request = prepared(name)
    done(subject.store, request)
    states, facts = whole.states(), [fact.type for fact in subject.store.history(whole.job_id)]
    judge(subject)
    for after in range(100):
        run, subject, request = prepared(name)
        if cut(subject, request, after):
            assert after > 1
            return
        done(subject.reopened().store, request)
        subject = run.subject = subject.reopened()
        if not isinstance(request, RenewStep):  # heartbeats leave the mending to others
            judge(subject, swept=False)
            assert [fact.type for fact in subject.store.history(run.job_id)] == facts
        assert run.states() == states
    raise AssertionError("it never ends")


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_was_cut_off_is_ended_by_the_sweep_alone(name: str):
    for after in range(100):
        run, subject, request = prepared(name)
        if cut(subject, request, after):
            return
        subject = run.subject = subject.reopened()
        run.until(subject.clock.wall_ms() + 86_400_000)
        mend(subject)
        judge(subject)
        run_out(subject)
        judge(subject)
        assert JobState(run.picture.job.state) in JOB.final
    raise AssertionError("it never ends")


def left(name: str, after: int) -> tuple[RunningProtocol, ModelSubject] | None:
    """Return a job that a sweep had looked at, so that its next look is far, with a verb cut off after that.

    None if the verb was over before.
    """
    policy, setup = VERBS[name]
    subject = ModelSubject()
    run = RunningProtocol(subject, 2, policy)
    request = setup(run)
    subject = run.subject = subject.reopened()
    (noted,) = (keys.due_instant(row.rk) for row in subject.rows(keys.DUE))
    if noted >= subject.clock.wall_ms() and not isinstance(request, MarkSent | NotPublished):
        run.until(noted)
        assert subject.store.due_steps(100) == []
    return None if cut(subject, request, after) else (run, subject)


def next_look(subject: ModelSubject) -> int:
    """Return how long it is until the sweep looks at the job, whose row is the only one."""
    looks = [max(keys.due_instant(row.rk), int(row.values["look_at"] or 0)) for row in subject.rows(keys.DUE)]
    return min(looks) - subject.clock.wall_ms()


@pytest.mark.parametrize("name", VERBS)
def test_what_a_verb_left_waits_for_one_look_that_is_at_most_a_quarter_of_an_hour_away(name: str):
    for after in range(100):
        found = left(name, after)
        if found is None:
            assert after > 1
            return
        run, subject = found
        away = next_look(subject)
        assert away <= LOOK_MS
        run.until(subject.clock.wall_ms() + max(away, 0))
        subject.store.due_steps(100)
        judge(subject)
    raise AssertionError("it never ends")


def seen_of(subject: ModelSubject, job_id: str) -> Seen:
    """Return the job as another process reads it."""
    seen = subject.client.ask(load(job_id))
    assert seen is not None
    return seen


@pytest.mark.parametrize("name", ["delivered", "result", "timeout", "taken"])
def test_after_the_next_look_is_noted_nothing_but_the_copy_is_to_be_written(name: str):
    cuts = 0
    for after in range(100):
        found = left(name, after)
        if found is None:
            break
        run, subject = found
        seen, due = seen_of(subject, run.job_id), {row.rk for row in subject.rows(keys.DUE)}
        if seen.copy_n == seen.head.n or seen.head.former is None or seen.head.former in due:
            continue
        cuts += 1
        assert due == {seen.head.armed}
        assert next_look(subject) <= LOOK_MS
        before = subject.client.tables.copy().prints
        subject.client.ask(finish(seen))
        written = set(subject.client.tables.prints.items()) - set(before.items())
        assert {table for (table, *_key), _print in written} == {keys.JOBS}
        gone = before.keys() - subject.client.tables.prints.keys()
        assert {table for table, *_key in gone} <= {keys.READY}, "what is over is taken away"
    assert cuts in (1, 2)


def test_what_a_server_left_that_died_while_it_gave_a_directive_is_mended_by_the_next_worker_that_asks():
    states = set()
    for after in range(100):
        found = left("delivered", after)
        if found is None:
            break
        run, subject = found
        state = run.picture.steps[0].state
        if state == "DISPATCHING":
            continue
        states.add(state)
        before = subject.client.tables.content
        assert subject.store.asked_directives(["svc"], None, 10) == []
        assert subject.client.tables.content == before, "the server may be at it"
        run.until(subject.clock.wall_ms() + LEFT_MS)
        assert subject.store.asked_directives(["svc"], None, 10) == []
        assert next_look(subject) == ACK_TIMEOUT_MS - LEFT_MS
        judge(subject, lags=True)
    assert states == {"AWAITING_ACK"}


@pytest.mark.parametrize("name", VERBS)
def test_requests_whose_answers_are_lost_are_sent_again_and_count_once(name: str):
    whole, subject, request = prepared(name)
    done(subject.store, request)
    run, subject, request = prepared(name, twice=True)
    done(subject.store, request)
    subject.client.twice = False
    judge(subject)
    assert run.states() == whole.states()
    assert len(subject.store.history(run.job_id)) == len(whole.subject.store.history(whole.job_id))


def sent_again(request: SubmitCommand) -> SubmitCommand:
    """Return the same command as another process would submit it."""
    job = request.job._replace(job_id=FRESH.new())
    steps = tuple(step._replace(job_id=job.job_id) for step in request.steps)
    return request._replace(job=job, steps=steps)


@pytest.mark.parametrize("policy", [PUSHED, PULLED], ids=["pushed", "pulled"])
@pytest.mark.parametrize("by", ["itself", "another", "sweep"])
def test_a_submission_that_was_cut_off_is_ended(by: str, policy: Policy):
    for after in range(100):
        subject, request = ModelSubject(), command(2, policy)
        if cut(subject, request, after):
            return
        subject = subject.reopened()
        match by:
            case "itself":
                done(subject.store, request)
            case "another":
                other = sent_again(request)
                if not isinstance(done(subject.store, other), Existing):
                    assert after == 0
                    request = other
            case "sweep":
                mend(subject)
        judge(subject)
        if by != "sweep":
            assert subject.store.protocol(request.job_id) is not None
        run_out(subject)
        judge(subject)
        if subject.store.protocol(request.job_id) is None:  # nothing was made of it: it can be sent again
            made = done(subject.store, sent_again(request))
            assert not isinstance(made, Existing) or made.job_id == request.job_id
            judge(subject)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("policy", [PUSHED, PULLED], ids=["pushed", "pulled"])
def test_a_submission_whose_answers_are_lost_is_made_once(policy: Policy):
    subject = ModelSubject(twice=True)
    run = RunningProtocol(subject, 2, policy)
    assert run.answer().heard.name == "ACCEPTED"
    subject.client.twice = False
    judge(subject)
