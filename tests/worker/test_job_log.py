"""The log has one record for each job that was cancelled, however it ended, and one for each lost lease."""

from __future__ import annotations

import logging
import threading

import pytest

from tallystick import aio, gather, wait
from tallystick.worker.roles.renew import Renew
from tests.patience import wait_until

SECONDS = 30


@pytest.fixture
def flows(app):
    """A workflow of each colour that says that it has begun, and then waits for a signal or for the test."""
    begun, go_on = threading.Event(), threading.Event()

    @app.step
    def stay() -> None:
        begun.set()
        assert go_on.wait(SECONDS)

    @app.workflow(name="sync")
    def sync(*, deaf: bool) -> None:
        if deaf:
            stay()
        wait("go", int)

    @app.workflow(name="async")
    async def async_(*, deaf: bool) -> None:
        if deaf:
            await stay.aio()
        await aio.wait("go", int)

    yield {"sync": sync, "async": async_, "begun": begun, "go_on": go_on}
    go_on.set()


def cancelled(caplog) -> list[tuple[str, str | None, str | None]]:
    records = [each for each in caplog.records if getattr(each, "action", "") == "job.cancelled"]
    return [(each.job_id, each.workflow, each.code) for each in records]


@pytest.mark.parametrize("colour", ["sync", "async"])
@pytest.mark.parametrize("where", ["queued", "waiting", "deaf"])
def test_a_job_that_a_person_cancels_is_logged_once_wherever_it_stands(app, flows, caplog, where, colour):
    flow = flows[colour]
    with caplog.at_level(logging.INFO, "tallystick.job"), app.worker():
        job = flow.opts(delay="1h" if where == "queued" else None).submit(deaf=where == "deaf")
        if where == "waiting":
            wait_until(lambda: not app.runtime().worker.running and job.row().attempt)
        if where == "deaf":
            assert flows["begun"].wait(SECONDS)
        job.cancel(grace="10ms")
        wait_until(lambda: job.state() == "CANCELLED" and cancelled(caplog))
        job.cancel()
        flows["go_on"].set()
    ((job_id, workflow, code),) = cancelled(caplog)
    assert (job_id, code) == (job.id, None)
    assert workflow in (colour, None)


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_job_whose_deadline_passes_in_the_queue_is_logged_once_with_the_reason(app, flows, caplog, colour):
    with caplog.at_level(logging.INFO, "tallystick.job"), app.worker():
        job = flows[colour].opts(delay="1h", deadline="10ms").submit(deaf=False)
        wait_until(lambda: cancelled(caplog))
    assert cancelled(caplog) == [(job.id, None, "DEADLINE")]


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_children_that_end_with_their_parent_are_logged_once_each(app, flows, caplog, colour):
    child = flows[colour]

    @app.workflow
    def parent() -> None:
        gather(*(child.opts(delay="1h").child(deaf=False) for _ in range(3)))

    with caplog.at_level(logging.INFO, "tallystick.job"), app.worker():
        job = parent.submit()
        wait_until(lambda: len(job.children()) == 3 and not app.runtime().worker.running)
        job.cancel()
        wait_until(lambda: len(cancelled(caplog)) >= 4)
    assert {job_id for job_id, *_about in cancelled(caplog)} == {
        job.id,
        *(each.id for each in job.children()),
    }
    assert len(cancelled(caplog)) == 4


def test_a_lost_lease_is_logged_once_however_often_it_is_to_be_renewed(app, flows, caplog):
    with app.worker():
        job = flows["sync"].submit(deaf=True)
        assert flows["begun"].wait(SECONDS)
        with app.transaction() as db:
            db.execute("update attempts set lease_expires_at = 0")
        for _ in range(3):
            Renew(app.runtime().worker).run()
        flows["go_on"].set()
    lost = [each.job_id for each in caplog.records if getattr(each, "action", "") == "lease.lost"]
    assert lost == [job.id]
