"""What a newcomer writes first and means otherwise: one sentence each that says what to write instead."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import JobFailed, Retry, Tally, gather
from tallystick.errors import BadInput, BadName, NotFound


def plain() -> None: ...


def numbers():
    yield 1


async def pages():
    yield 1


class Till:
    def charge(self) -> None: ...


def _private() -> None: ...


MISTAKES = [
    (lambda app: app.step(retry=3)(plain), "retry=3 is not a Retry: write retry=Retry(3)"),
    (lambda app: app.workflow(retry=3)(plain), "retry=3 is not a Retry: write retry=Retry(3)"),
    (lambda app: app.step(plain).opts(retry=3), "retry=3 is not a Retry: write retry=Retry(3)"),
    (lambda app: Retry(on=ValueError), "on is a list of error classes: write on=[ValueError]"),
    (lambda app: app.step(numbers), "numbers is a generator, and what it yields is not kept: return a list"),
    (lambda app: app.workflow(pages), "pages is a generator, and what it yields is not kept: return a list"),
    (lambda app: app.step(Till.charge), "charge is a method, and a job does not keep its object"),
    (lambda app: app.workflow(Till.charge), "charge is a method, and a job does not keep its object"),
    (
        lambda app: app.tx(plain),
        "plain takes no transaction: write def plain(db: Tx, ...), or declare a step",
    ),
    (lambda app: app.step(timeout=0)(plain), "timeout=0 leaves no time at all; leave it out for no limit"),
    (lambda app: app.step(plain).opts(timeout="0s"), "timeout='0s' leaves no time at all"),
    (lambda app: app.step(_private), "not ending in a dot; or give it a name="),
    (lambda app: app.workflow(lambda: 1), "not ending in a dot; or give it a name="),
    (lambda app: app.jobs(states=["RUNNING"]), "'RUNNING' is not a state of a job; the states are QUEUED,"),
]


@pytest.mark.parametrize(("mistake", "says"), MISTAKES)
def test_a_mistake_is_told_where_it_is_made(app, mistake, says):
    with pytest.raises(BadInput) as caught:
        mistake(app)
    assert says in str(caught.value)


def test_what_is_gathered_must_be_a_child(timed, hand):
    @timed.step
    def price() -> int:
        return 1

    @timed.workflow
    def flow() -> int:
        return sum(gather(price(), price()))

    job = flow.submit()
    hand.work()
    with pytest.raises(JobFailed, match=r"gather takes children, .* and no int: what a step"):
        job.result(5)


def test_a_store_in_memory_is_refused_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="is gone with its process, so nothing is durable; name a file"):
        Tally("sqlite:///:memory:").jobs()
    assert list(tmp_path.iterdir()) == []


def test_the_history_of_a_job_that_is_not_there_is_not_empty_but_refused(app):
    with pytest.raises(NotFound):
        app.job("nobody").history()


def test_states_may_be_named_by_their_words(app):
    job = app.workflow(plain).submit()
    assert app.jobs(states=["QUEUED"]) == [job] == app.jobs(states=[job.state()])
    assert app.jobs(states=["SUCCEEDED"]) == []


def test_two_handles_of_one_job_are_equal(app):
    job = app.workflow(plain).submit()
    assert job == app.job(job.id)
    assert len({job, app.job(job.id), app.job("other")}) == 2
    assert job != job.id


def test_a_key_is_an_idempotency_key(app):
    with pytest.raises(BadName, match="cannot be an idempotency key"):
        app.workflow(plain).opts(idempotency_key="").submit()


def test_a_task_group_does_not_hide_what_went_wrong(timed, hand):
    @timed.step
    async def charge(card: str) -> None:
        raise ValueError(f"{card} is blocked")

    @timed.workflow
    async def flow(cards: list[str]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for card in cards:
                tasks.create_task(charge.named(card)(card))

    one, both = flow.submit(["visa"]), flow.submit(["visa", "amex"])
    hand.work_all()
    with pytest.raises(JobFailed, match=r"charge\.visa failed after 1 try: ValueError: visa is blocked"):
        one.result(5)
    assert one.row().error_code == "STEP_FAILED"
    with pytest.raises(JobFailed, match=r"StepFailed: charge\.visa .*; StepFailed: charge\.amex"):
        both.result(5)
