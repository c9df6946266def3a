"""A COMMIT whose outcome is unknown: the job goes on from what is recorded, and from nothing else."""

from __future__ import annotations

import logging

import pytest

from tallystick import Tally
from tallystick.testing.stepping import check_books
from tests.patience import wait_until
from tests.store.test_commit_in_doubt import Disk

ALWAYS = 1_000_000


@pytest.fixture
def disk():
    made = Disk()
    yield made
    made.unregister()


@pytest.fixture
def app(disk, tmp_path):
    tally = Tally(f"sqlite:///{tmp_path}/shop.db")
    yield tally
    disk.failures = 0
    tally.close()


class WhenRefused(logging.Handler):
    """Lets the disk fail from the refusal of a write on, until the worker could not give its job back."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk
        self.fired = 0

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "action", "") == "segment.refused":
            self.fired += 1
            if self.fired == 1:
                self._disk.failures = ALWAYS
        elif "give back failed" in record.getMessage():
            self._disk.failures = 0


def test_a_refused_job_whose_hold_is_lost_is_given_back_and_held_when_it_is_refused_again(app, disk):
    @app.step
    def one() -> int:
        return 1

    @app.workflow(attempts=1)
    def flow() -> int:
        return one() + 1

    with app.transaction() as db:
        db.execute(
            "CREATE TRIGGER refuses BEFORE INSERT ON steps WHEN NEW.name = 'one' "
            "BEGIN SELECT RAISE(ABORT, 'NOT HERE'); END"
        )
    refused = WhenRefused(disk)
    logging.getLogger("tallystick").addHandler(refused)
    try:
        with app.worker(lease="60s"):
            job = flow.submit()
            wait_until(lambda: job.row().hold == "REFUSED", "it is held")
    finally:
        logging.getLogger("tallystick").removeHandler(refused)
    assert [event.name for event in job.history()] == ["submit", "claim", "release", "claim", "hold"]
    assert refused.fired == 2
    assert check_books(app) == []
