"""What people read of a remote step: why its job waits, for whom and until when, and what happened."""

from __future__ import annotations

import json
import re

import pytest

from tallystick import gather
from tallystick.cli.commands.jobs.history import facts_of
from tallystick.cli.main import main
from tallystick.cli.render.history_words import in_words
from tallystick.testing.remote_hand import RemoteHand, expire_remote

MINUTE = 60_000
WHEN = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
# Words of the books, which an operator need not know.
INNER = ("leg", "ledger", "digit", "closer", "semaphore", "guid", "GUID")


@pytest.fixture
def order(timed):
    @timed.remote("warehouse")
    def pick(order: int) -> int: ...

    @timed.workflow
    def order(*numbers: int) -> list[int]:
        return gather(*(pick.later(number) for number in numbers))

    return order


@pytest.fixture
def warehouse(timed):
    return RemoteHand(timed, "warehouse", worker="w-1")


def says(job, pattern: str) -> None:
    assert re.fullmatch(pattern.replace("WHEN", WHEN), job.why()), job.why()
    assert not [word for word in INNER if word in job.why()]


def words(app, job) -> list[str]:
    return [in_words(fact) for fact, _took in facts_of(app.runtime().store, job.id)]


def test_a_job_says_who_has_its_remote_step_and_until_when(timed, clock, hand, order, warehouse):
    job = order.submit(1)
    hand.work()
    waits = "it has waited since WHEN for the remote pick; "
    step = r"step pick \(attempt 1\)"
    says(job, f"{waits}{step} waits until WHEN for a remote worker of warehouse to ask for it")
    directive = warehouse.take()
    assert "warehouse" in job.why()
    directive.ack()
    says(job, f"{waits}warehouse works on {step}, and is to answer or to send a heartbeat until WHEN")
    directive.fail("BUSY", "later", again=True)
    says(job, rf"{waits}{step} failed \(BUSY: later\) and is sent again at WHEN")
    clock.advance(MINUTE)
    expire_remote(timed)
    warehouse.take()
    job.cancel()
    assert "(attempt 2)" in job.why()
    assert "asked to end" in job.why()


def test_of_many_steps_the_first_are_named(hand, order):
    job = order.submit(*range(5))
    hand.work()
    assert job.why().count("for a remote worker of warehouse to ask for it") == 3
    assert "step pick#3 (attempt 1)" in job.why()
    assert job.why().endswith("; and 2 more")


def test_history_and_show_tell_of_remote_steps(timed, hand, order, warehouse, url, capsys):
    job = order.submit(1)
    hand.work()
    assert main(["show", job.id, "--url", url, "--json"]) == 0
    (step,) = json.loads(capsys.readouterr().out)["remote_steps"]
    assert (step["stepId"], step["service"], step["state"], step["attempt_no"]) == (
        "0/pick#1",
        "warehouse",
        "DISPATCHING",
        1,
    )
    warehouse.take().succeed(7)
    hand.work()
    assert words(timed, job) == [
        "submitted",
        "claimed by a worker",
        "waits for pick, without a worker",
        "claimed again by a worker",
        "remote step pick returned 7",
        "returned: the job has succeeded",
    ]
