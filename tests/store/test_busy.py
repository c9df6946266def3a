"""A process that does not get its turn to write says so after a while, and names who has it."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tallystick import Tally
from tallystick.errors import StoreBusy
from tests.store.test_taking_turns import STANDS, start


@pytest.fixture
def app(tmp_path):
    tally = Tally(f"sqlite:///{tmp_path}/shop.db?busy=300ms")
    tally.runtime()
    yield tally
    tally.close()


@pytest.fixture
def flow(app: Tally):
    @app.workflow
    def flow() -> int:
        return 1

    return flow


@pytest.fixture
def holds(app: Tally, tmp_path):
    """Another process that has the right to write, and keeps it."""
    process = start(STANDS, tmp_path / "shop.db")
    yield process
    process.kill()
    process.communicate()


def test_a_submission_and_a_transaction_are_refused_with_the_pid_of_the_holder(app: Tally, flow, holds):
    with pytest.raises(StoreBusy, match=rf"process {holds.pid} held the right to write for [0-9.]+ s"):
        flow.submit()
    with pytest.raises(StoreBusy, match=f"process {holds.pid} ") as raised, app.transaction():
        pass
    assert raised.value.fields["pid"] == holds.pid
    assert raised.value.fields["held_ms"] >= 300


def test_a_task_is_refused_too(flow, holds):
    async def submits():
        return await asyncio.wait_for(flow.submit_aio(), 30)

    with pytest.raises(StoreBusy, match=f"process {holds.pid} "):
        asyncio.run(submits())


def test_who_gave_up_holds_nothing_and_has_its_turn_later(app: Tally, flow, holds, tmp_path):
    for _ in range(2):
        with pytest.raises(StoreBusy):
            flow.submit()
    holds.send_signal(signal.SIGKILL)
    holds.wait(30)
    assert flow.submit().state() == "QUEUED"
    other = Tally(f"sqlite:///{tmp_path}/shop.db?busy=5s")
    with other.transaction() as db:
        assert db.execute("SELECT count(*) FROM jobs") == [(1,)]
    other.close()
    assert flow.submit().state() == "QUEUED"


def test_a_turn_that_nobody_waits_for_any_more_is_given_back(app: Tally, flow, holds, tmp_path):
    with pytest.raises(StoreBusy):
        flow.submit()
    holds.kill()
    holds.wait(30)
    other = start(STANDS, tmp_path / "shop.db")  # it gets its turn although we stood before it
    assert (tmp_path / "shop.db-floor").read_text().strip() == str(other.pid)
    other.kill()
    other.communicate()
