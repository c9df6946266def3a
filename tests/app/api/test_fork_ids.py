"""A fork with an id is made once, however often somebody asks."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import Fatal
from tallystick.errors import BadName, IdempotencyConflict
from tallystick.testing.stepping import check_books
from tests.app.api.test_fork_and_retry import drain, rows


def test_a_fork_repeated_after_a_lost_answer_is_the_same_job(timed, hand, clock):
    @timed.step
    def charge() -> str:
        return "paid"

    @timed.workflow
    def order() -> str:
        return charge()

    job = order.submit()
    drain(hand)
    first = job.fork(at="charge", id="ticket-7")
    again_ = job.fork(at="charge#1", id="ticket-7")
    assert (first.created, again_.created, again_.id) == (True, False, first.id)
    assert asyncio.run(forked_aio(job)) == (first.id, False)
    with pytest.raises(IdempotencyConflict, match="ticket-7"):
        job.fork(at="charge", version="2", id="ticket-7")
    assert job.fork(at="charge").created
    with pytest.raises(BadName):
        job.fork(at="charge", id="two words")
    drain(hand)
    assert check_books(timed) == []
    clock.advance(60_000)
    timed.prune(older_than="1s")
    assert rows(timed, "select count(*) from idempotency") == [(0,)]


async def forked_aio(job):
    fork = await job.fork_aio(at="charge", id="ticket-7")
    return fork.id, fork.created


def test_the_retry_of_a_fork_with_an_id_has_its_id(timed, hand, clock):
    @timed.step
    def charge() -> str:
        raise Fatal("declined")

    @timed.workflow
    def order() -> str:
        return charge()

    job = order.submit()
    drain(hand)
    fork = job.fork(at="charge", id="i")
    drain(hand)
    retried = fork.retry()
    assert job.fork(at="charge", id="i").id == retried.id
