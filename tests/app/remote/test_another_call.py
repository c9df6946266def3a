"""The answer of a remote worker is for the call that it was asked with; for another one the job is held."""

from __future__ import annotations

import asyncio

import pytest

from tallystick.testing.remote_hand import Heard, HeldDirective, RemoteHand
from tallystick.testing.stepping import check_books, is_at_rest
from tests.patience import wait_until

SECONDS = 8


@pytest.fixture
def price():
    """What the workflow asks for: a test changes it, as changed code or another hour would."""
    return [1_999]


@pytest.fixture
def charge(app):
    @app.remote("bank")
    def charge(cents: int) -> int:
        raise NotImplementedError

    return charge


def taken(app, service: str) -> HeldDirective:
    """Return the directive for a service when its job has been put away."""
    found: list[HeldDirective | None] = []
    wait_until(lambda: found.append(RemoteHand(app, service).look()) or found[-1], "a directive")
    assert found[-1] is not None
    wait_until(lambda: is_at_rest(app), "the job is put away")
    return found[-1]


def is_held(app, job) -> None:
    wait_until(lambda: job.row().hold, "it is held")
    row = job.row()
    assert row.hold == "MISMATCH"
    assert '{"cents":1999}' in row.hold_reason
    assert '{"cents":2999}' in row.hold_reason
    assert check_books(app) == []


def test_an_answer_that_wakes_the_job_is_not_taken_for_another_call(app, charge, price):
    seen = []

    @app.step
    def note(cents: int) -> None:
        seen.append(cents)

    @app.workflow(attempts=1)
    def pay() -> int:
        charged = charge(price[0])
        note(charged)
        return charged

    with app.worker():
        job = pay.submit()
        directive = taken(app, "bank")
        price[0] = 2_999
        assert directive.succeed(1_999) is Heard.ACCEPTED
        is_held(app, job)
        assert seen == [], "the workflow went on with what it did not ask for"
        price[0] = 1_999
        job.resume()
        assert job.result(SECONDS) == 1_999
    assert check_books(app) == []


def test_an_answer_at_the_end_of_a_function_is_not_taken_for_another_call(app, charge, price):
    @app.workflow(attempts=1)
    def pay() -> int:
        return charge(price[0])

    with app.worker():
        job = pay.submit()
        directive = taken(app, "bank")
        price[0] = 2_999
        assert directive.succeed(1_999) is Heard.ACCEPTED
        is_held(app, job)


def test_a_job_does_not_wait_on_for_the_answer_to_another_call(app, charge, price):
    @app.remote("clerk")
    def look() -> int:
        raise NotImplementedError

    @app.workflow(attempts=1)
    async def pay() -> int:
        charged, looked = await asyncio.gather(charge.aio(price[0]), look.aio())
        return charged + looked

    with app.worker():
        job = pay.submit()
        asked, looked = taken(app, "bank"), taken(app, "clerk")
        price[0] = 2_999
        assert looked.succeed(1) is Heard.ACCEPTED
        is_held(app, job)
        price[0] = 1_999
        job.resume()
        assert asked.succeed(1_999) is Heard.ACCEPTED
        assert job.result(SECONDS) == 2_000
