"""Each verb is cut off after each of its requests; then the same verb again, or the sweep alone, ends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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
