"""Threads of a worker do not push ahead of whoever woke them, unless the user has chosen otherwise."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.app.api.workflows import Workflow

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="there are no policies here")


def policy_of_a_step(app: Tally) -> int:
    @app.step
    def look() -> int:
        return os.sched_getscheduler(0)

    @app.workflow
    def looking() -> int:
        return look()

    with app.worker():
        seen = looking.submit().result(20)
    app.close()
    return seen


def test_a_slot_waits_for_its_turn_and_the_caller_does_not(tmp_path: Path):
    assert policy_of_a_step(Tally(f"sqlite:///{tmp_path}/books.db")) == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_a_policy_that_the_user_chose_stays(tmp_path: Path):
    program = f"""
import os
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
from tallystick import Tally
from tests.worker.test_scheduling import policy_of_a_step
print(policy_of_a_step(Tally("sqlite:///{tmp_path}/books.db")))
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert (answer.stdout.strip(), answer.returncode) == (str(os.SCHED_IDLE), 0), answer.stderr


def test_a_process_that_ends_after_a_worker_says_nothing(tmp_path: Path):
    """An audit hook hears of events while the interpreter clears its module."""
    program = f"""
import builtins, sys
from tallystick import Tally
from tallystick.worker import batch_scheduling
from tests.worker.test_scheduling import policy_of_a_step

class Last:
    def __del__(self, audit=sys.audit):
        audit("of the last object")

policy_of_a_step(Tally("sqlite:///{tmp_path}/books.db"))
batch_scheduling.last = Last()
builtins.kept = batch_scheduling
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert (answer.stderr, answer.returncode) == ("", 0)


def test_a_process_that_a_step_starts_is_scheduled_as_usual(tmp_path):
    app = Tally(f"sqlite:///{tmp_path}/books.db")

    @app.workflow
    def started() -> str:
        command = [sys.executable, "-c", "import os; print(os.sched_getscheduler(0))"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    with app.worker():
        assert int(started.submit().result(30)) == os.SCHED_OTHER
    app.close()


@pytest.fixture
def looking(tmp_path: Path) -> Iterator[Workflow[[], int]]:
    app = Tally(f"sqlite:///{tmp_path}/books.db")

    @app.workflow
    def looking() -> int:
        return os.sched_getscheduler(0)

    yield looking
    app.close()


POLICIES = pytest.mark.parametrize(
    ("batch", "policy"),
    [({}, "SCHED_BATCH"), ({"batch_scheduling": False}, "SCHED_OTHER")],
    ids=["unless told", "off"],
)


@POLICIES
def test_a_worker_can_leave_the_policy_alone(looking, batch, policy):
    with looking.app.worker(**batch):
        assert looking.submit().result(30) == getattr(os, policy)


@POLICIES
def test_a_program_that_works_until_it_is_stopped_can_too(looking, batch, policy):
    done = threading.Event()
    working = threading.Thread(target=looking.app.work, kwargs={"until": done, **batch})
    working.start()
    assert looking.submit().result(30) == getattr(os, policy)
    done.set()
    working.join()


@POLICIES
def test_on_a_loop_it_can_too(looking, batch, policy):
    async def work() -> int:
        done = asyncio.Event()
        working = asyncio.create_task(looking.app.work_aio(until=done, **batch))
        seen = await (await looking.submit_aio()).result_aio(30)
        done.set()
        await working
        return int(seen)

    assert asyncio.run(work()) == getattr(os, policy)
