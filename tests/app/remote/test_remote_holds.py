"""A job that is held does not end by a time in which no remote worker could be given its directive."""

from __future__ import annotations

import pytest

from tallystick import RemoteStep
from tallystick.errors import JobFailed
from tallystick.testing.remote_hand import Heard, RemoteHand, expire_remote
from tallystick.testing.stepping import check_books
from tests.surfaces.http.served import COMMAND

SECOND, DAY = 1_000, 86_400_000


@pytest.fixture
def order(timed):
    @timed.remote("warehouse", start_within="2s")
    def pick(order: int) -> int:
        raise NotImplementedError

    @timed.workflow
    def order(number: int) -> int:
        return pick(number)

    return order


@pytest.fixture
def warehouse(timed):
    return RemoteHand(timed, "warehouse")


def test_a_remote_step_of_a_held_workflow_waits_and_is_done_after_the_resumption(
    timed, clock, hand, order, warehouse
):
    job = order.submit(1)
    hand.work()
    job.pause("lunch")
    clock.advance(DAY)
    assert (expire_remote(timed), hand.work(), warehouse.look()) == (0, "idle", None)
    job.resume()
    clock.advance(2 * SECOND - 1)
    assert expire_remote(timed) == 0
    assert warehouse.take().succeed(7) is Heard.ACCEPTED
    hand.work()
    assert job.result(5) == 7
    assert check_books(timed) == []


def test_the_time_of_a_remote_step_ends_when_no_worker_asks_after_the_resumption(timed, clock, hand, order):
    job = order.submit(1)
    hand.work()
    job.pause("lunch")
    clock.advance(DAY)
    job.resume()
    clock.advance(2 * SECOND)
    assert expire_remote(timed) == 1
    hand.work()
    with pytest.raises(JobFailed, match="no remote worker asked"):
        job.result(5)
    assert check_books(timed) == []


def test_a_held_protocol_job_waits_and_is_done_after_the_resumption(timed, clock):
    ocr = RemoteStep("ocr", service="ocr")
    timed.protocol("scan", request_types=["scan"], steps=[ocr], start_within="1s")
    job = timed.command(COMMAND)
    job.pause("lunch")
    clock.advance(DAY)
    assert expire_remote(timed) == 0
    assert (job.row().state, job.row().hold) == ("DISPATCHING", "PAUSED")
    job.resume()
    clock.advance(SECOND - 1)
    assert expire_remote(timed) == 0
    assert RemoteHand(timed, "ocr").take().succeed(1) is Heard.ACCEPTED
    assert job.row().state == "SUCCEEDED"
    assert check_books(timed) == []
