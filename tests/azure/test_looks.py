"""Looks for what is due: each endpoint has its own line, and the cost of a look has a bound."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tallystick.core.remote.plans import Hearing
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.requests import (
    CancelProtocol,
    DeliverDirective,
    DueStep,
    SubmitCommand,
    TakeDirective,
)
from tallystick.store.azure import keys
from tallystick.store.azure.changing import LOOK_MS
from tallystick.store.azure.store import AzureStore
from tallystick.testing.conformance.drafts import bundles, done
from tallystick.testing.conformance.protocol_runs import PULLED, RunningProtocol, command
from tests.azure.subject import AzureSubject
from tests.azure.worlds import ModelSubject, judge
from tests.patience import wait_until
from tests.remote.receiver import Receiver, receiving
from tests.remote.test_publish import declare, webhook

PARTITIONS = len(keys.DUE_PARTITIONS)
SLOW, QUICK = "webhook slow", "webhook quick"
READ = 2
"""Requests for one job that is looked at: its partition, and its copy."""


def due(via: str) -> SubmitCommand:
    """Return a command whose directive is due at once, for any relay to an endpoint."""
    return command(1, Policy(via={"svc": via}))._replace(relays=False)


def submit(store: AzureStore, *commands: SubmitCommand) -> None:
    for outcome in store.apply(bundles(*commands)):
        assert isinstance(outcome, Hearing), outcome


def filled(subject: AzureSubject, slow: int) -> None:
    """Make many directives due for an endpoint, and a moment later one for another."""
    for start in range(0, slow, 500):
        submit(subject.store, *(due(SLOW) for _ in range(min(500, slow - start))))
    subject.clock.advance(5)
    submit(subject.store, due(QUICK))
    subject.clock.advance(31_000)


def requests(subject: AzureSubject) -> int:
    return subject.store.client.requests


@pytest.mark.parametrize("room", [1, 4, 16, 64])
def test_four_hundred_directives_of_a_service_that_hangs_are_in_no_other_line(room: int):
    subject = ModelSubject()
    filled(subject, 400)
    before = requests(subject)
    (row,) = subject.store.due_directives(QUICK, room)
    assert row.via == QUICK
    assert requests(subject) - before == PARTITIONS + READ


@pytest.mark.long
@pytest.mark.timeout(900)
def test_two_thousand_directives_of_a_service_that_hangs_are_in_no_other_line(subject: AzureSubject):
    filled(subject, 2_000)
    for room in (1, 16, 512):
        before = requests(subject)
        (row,) = subject.store.due_directives(QUICK, room)
        assert row.via == QUICK
        assert requests(subject) - before == PARTITIONS + READ


@pytest.mark.parametrize("room", [1, 16])
def test_a_look_reads_as_many_jobs_as_there_is_room_for(room: int):
    subject = ModelSubject()
    filled(subject, 400)
    before = requests(subject)
    assert len(subject.store.due_directives(SLOW, room)) == room
    assert requests(subject) - before == PARTITIONS + READ * room


def late_step(subject: AzureSubject) -> RunningProtocol:
    """Return a job that the sweep has to act on."""
    run = RunningProtocol(subject)
    run.publish()
    subject.clock.advance(31_000)
    return run


def test_the_sweep_comes_past_what_it_has_to_leave_to_relays():
    subject = ModelSubject()
    filled(subject, 100)
    run = late_step(subject)
    assert subject.store.due_steps(1) == [DueStep(run.job_id)]
    before = requests(subject)
    assert subject.store.due_steps(1) == [DueStep(run.job_id)]
    assert requests(subject) - before == PARTITIONS + READ, "what is left to relays was read again"
    assert len(subject.store.due_directives(SLOW, 512)) == 100, "the relays have lost it"
    judge(subject)


def test_what_is_left_to_relays_is_looked_at_again_within_a_quarter_of_an_hour():
    subject = ModelSubject()
    submit(subject.store, due(SLOW))
    for _look in range(3):
        before = requests(subject)
        assert subject.store.due_steps(10) == []
        assert requests(subject) - before == PARTITIONS + READ + 1
        subject.clock.advance(LOOK_MS - 1)
        before = requests(subject)
        assert subject.store.due_steps(10) == []
        assert requests(subject) - before == PARTITIONS
        subject.clock.advance(1)


def test_a_job_that_is_to_end_is_ended_by_the_sweep_while_its_endpoint_hangs():
    """A relay has taken it and died: no room comes free, and the sweep alone withdraws the directive."""
    subject = ModelSubject()
    request = due(SLOW)
    submit(subject.store, request)
    done(subject.store, TakeDirective(request.job_id, "s0", 1))
    done(subject.store, CancelProtocol(request.job_id))
    picture = subject.store.protocol(request.job_id)
    assert picture is not None
    (over,) = (step.lease_expires_at or 0 for step in picture.steps)
    for at in (subject.clock.wall_ms() + 30_000, over - 1):
        subject.clock.advance(at - subject.clock.wall_ms())
        assert subject.store.due_steps(10) == []
    subject.clock.advance(1)
    assert subject.store.due_steps(10) == [DueStep(request.job_id)]


def test_the_directive_of_the_next_step_is_in_the_line_of_its_own_endpoint():
    subject = ModelSubject()
    request = command(2, Policy(via={"svc": SLOW, "next": QUICK}))
    steps = (request.steps[0], request.steps[1]._replace(service="next"))
    submit(subject.store, request._replace(steps=steps))
    run = RunningProtocol.__new__(RunningProtocol)
    run.subject, run.job_id = subject, request.job_id
    subject.clock.advance(1_000)
    run.answer()
    subject.clock.advance(29_999)
    assert subject.store.due_directives(QUICK, 10) == []
    subject.clock.advance(1)
    assert [row.step_id for row in subject.store.due_directives(QUICK, 10)] == ["s1"]
    assert subject.store.due_directives(SLOW, 10) == []
    judge(subject)


@pytest.mark.parametrize("known", [1, 10, 25])
def test_an_endpoint_that_no_worker_has_is_found_behind_all_that_some_have(known: int):
    subject = ModelSubject()
    names = [f"webhook {number}" for number in range(known)]
    names[-1] = f"webhook {'x' * 300}"
    submit(subject.store, *(due(name) for name in names for _ in range(800 // known)))
    subject.clock.advance(5)
    submit(subject.store, due(QUICK))
    subject.clock.advance(60_000)
    before = requests(subject)
    assert [row.via for row in subject.store.stray_directives(names, 60_000, 1)] == [QUICK]
    assert requests(subject) - before <= 2 * PARTITIONS + READ
    assert subject.store.stray_directives([*names, QUICK], 60_000, 100) == []


def test_what_a_remote_worker_was_given_is_found_among_what_it_has_acknowledged():
    subject = ModelSubject()
    runs = [RunningProtocol(subject, 1, PULLED) for _ in range(30)]
    for run in runs:
        subject.clock.advance(10)
        run.apply(DeliverDirective(run.job_id, "s0", 1, "w"))
        if run is not runs[-1]:
            run.ack()
    (row,) = subject.store.given_directives("w", 1)
    assert row.job_id == runs[-1].job_id


@pytest.fixture
def stuck() -> Iterator[Receiver]:
    with receiving() as one:
        one.held.clear()
        yield one


@pytest.mark.slow
@pytest.mark.parametrize(
    "slow", [80, pytest.param(1_100, marks=[pytest.mark.long, pytest.mark.timeout(900)])]
)
def test_a_worker_publishes_to_a_quick_endpoint_while_another_hangs(
    azure_url: str, stuck: Receiver, slow: int
):
    with receiving() as quick:
        app = declare(azure_url, scan=webhook(quick), slow=webhook(stuck))
        store = app.runtime().store
        assert isinstance(store, AzureStore)
        for start in range(0, slow, 100):
            submit(store, *(due(f"webhook {stuck.url}") for _ in range(min(100, slow - start))))
        with app.worker(grace="0s"):
            wait_until(lambda: stuck.got, "directives that hang")
            submit(store, due(f"webhook {quick.url}"))
            wait_until(lambda: quick.got, "the one that does not")
            assert len(stuck.got) <= 64
        app.close()
