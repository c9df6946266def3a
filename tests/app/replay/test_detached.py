"""A detached child outlives its parent; one that is submitted inside a workflow is made exactly once."""

from __future__ import annotations

import pytest

from tallystick import JobFailed, aio, gather, wait
from tallystick.errors import ChildrenFailed
from tallystick.testing.stepping import Death, cancel_overdue


def run_all(hand) -> list[str]:
    seen = []
    while (outcome := hand.work()) != "idle":
        seen.append(outcome)
    return seen


def children_of(app, job) -> list:
    with app.transaction() as db:
        found = db.execute(f"select job_id from jobs where parent_job_id = '{job.id}' order by job_id")
    return [app.job(job_id) for (job_id,) in found]


@pytest.fixture
def patient(timed):
    @timed.workflow
    def patient(n: int) -> int:
        return n + wait("go", int)

    return patient


def test_a_detached_child_goes_on_when_its_parent_has_ended(timed, hand, clock, patient):
    @timed.workflow
    def quick() -> int:
        return 0

    @timed.workflow
    def parent() -> int:
        children = (patient.child(1), patient.opts(detached=True).child(2), quick.child())
        return len(gather(*children, enough=1))

    job = parent.submit()
    run_all(hand)
    assert job.result(5) == 1
    attached, detached, _ = children_of(timed, job)
    assert len(cancel_overdue(timed)) == 1
    assert attached.state() == "CANCELLED"
    assert detached.state() == "IN_PROGRESS"
    assert cancel_overdue(timed) == []
    detached.send("go", 40)
    run_all(hand)
    assert detached.result(5) == 42
    with timed.transaction() as db:
        assert db.execute("select distinct semaphore from jobs") == [(0,)]


def test_a_cancelled_parent_takes_its_attached_children_along_and_no_other(timed, hand, clock, patient):
    @timed.workflow
    def parent() -> None:
        gather(patient.child(1), patient.opts(detached=True).child(2))

    job = parent.submit()
    run_all(hand)
    assert job.cancel() == "CANCELLED"
    cancel_overdue(timed)
    assert [child.state() for child in children_of(timed, job)] == ["CANCELLED", "IN_PROGRESS"]


def test_the_first_failure_cancels_the_siblings_that_are_attached(timed, hand, patient):
    @timed.workflow
    def bad() -> None:
        raise ValueError("no")

    @timed.workflow
    def parent() -> str:
        try:
            gather(patient.child(1), patient.opts(detached=True).child(2), bad.child(), fail_fast=True)
        except ChildrenFailed:
            return "failed"
        return "fine"

    job = parent.submit()
    run_all(hand)
    assert job.result(5) == "failed"
    states = [child.state() for child in children_of(timed, job)]
    assert states == ["CANCELLED", "IN_PROGRESS", "FAILED_FINAL"]


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_job_submitted_inside_a_workflow_is_made_once_however_often_that_is_replayed(
    timed, hand, clock, patient, colour
):
    deaths = [1]

    @timed.workflow
    def sync() -> list[str]:
        made = [patient.opts(detached=True).submit(n).id for n in (1, 2)]
        if deaths:
            deaths.pop()
            raise Death
        return made

    @timed.workflow(name="async")
    async def colourful() -> list[str]:
        made = [(await patient.opts(detached=True).submit_aio(n)).id for n in (1, 2)]
        if deaths:
            deaths.pop()
            raise Death
        return made

    job = {"sync": sync, "async": colourful}[colour].submit()
    assert hand.work() == "died"
    hand.expire()
    run_all(hand)
    made = job.result(5)
    with timed.transaction() as db:
        rows = db.execute(
            "select job_id, parent_job_id, detached from jobs where handler = 'patient' order by job_id"
        )
    assert rows == [(job_id, job.id, 1) for job_id in sorted(made)]
    assert cancel_overdue(timed) == []
    timed.send_many([timed.job(job_id) for job_id in made], "go", 10)
    run_all(hand)
    assert [timed.job(job_id).result(5) for job_id in made] == [11, 12]
    assert [event.name for event in job.history()].count("step") == 2


def test_with_a_key_it_is_the_job_that_was_submitted_before(timed, hand, patient):
    earlier = patient.opts(idempotency_key="k").submit(1)

    @timed.workflow
    def flow(n: int) -> tuple[str, bool]:
        job = patient.opts(detached=True, idempotency_key="k").submit(n)
        return job.id, job.created

    same, other = flow.submit(1), flow.submit(2)
    run_all(hand)
    assert same.result(5) == (earlier.id, False)
    with pytest.raises(JobFailed, match="was used for job"):
        other.result(5)


def test_an_attached_submit_inside_a_workflow_says_what_to_write(timed, hand, patient):
    @timed.workflow
    def flow() -> str:
        try:
            patient.submit(1)
        except Exception as error:  # noqa: BLE001 (its text is what is looked at)
            return str(error)
        return "made"

    @timed.workflow
    async def wrong_colour() -> str:
        try:
            patient.opts(detached=True).submit(1)
        except Exception as error:  # noqa: BLE001 (its text is what is looked at)
            return str(error)
        await aio.sleep(0)
        return "made"

    jobs = flow.submit(), wrong_colour.submit()
    run_all(hand)
    assert "patient.opts(detached=True).submit(...)" in jobs[0].result(5)
    assert "submit_aio" in jobs[1].result(5)
