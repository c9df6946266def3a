"""What holds unless somebody says otherwise is said in one place."""

from __future__ import annotations

from inspect import signature

import click
import pytest

from tallystick import Tally
from tallystick.app.api.job import Job
from tallystick.app.scheduling.submit_options import SubmitOptions
from tallystick.cli.commands.jobs.cancel import command as cancel
from tallystick.cli.commands.work.work import command as work
from tallystick.core.audit.job_view import ViewPolicy, attempts_allowed
from tallystick.core.durations import duration_ms
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.defaults import (
    ATTEMPTS,
    CANCEL_GRACE,
    DEFAULTS,
    PRIORITY,
    QUEUE,
    WORKER_GRACE,
    WORKER_LEASE,
    WORKER_SLOTS,
)
from tallystick.engine.submission import Submission
from tallystick.worker.options import WorkerOptions


def default_of(function, name: str) -> object:
    return signature(function).parameters[name].default


def option_of(command: click.Command, name: str) -> object:
    (option,) = (option for option in command.params if option.name == name)
    return option.default


@pytest.mark.parametrize("start", [Tally.worker, Tally.work, Tally.work_aio])
def test_a_worker_is_the_same_whoever_starts_it(start):
    names = ("queues", "concurrency", "lease", "grace")
    assert [default_of(start, name) for name in names] == [(QUEUE,), WORKER_SLOTS, WORKER_LEASE, WORKER_GRACE]


def test_a_worker_of_the_command_line_is_the_same():
    names = ("concurrency", "lease", "grace")
    assert [option_of(work, name) for name in names] == [WORKER_SLOTS, WORKER_LEASE, WORKER_GRACE]
    options = WorkerOptions()
    assert (options.queues, options.concurrency) == ((QUEUE,), WORKER_SLOTS)
    assert (options.lease_ms, options.grace_ms) == (duration_ms(WORKER_LEASE), duration_ms(WORKER_GRACE))


def test_a_job_that_is_cancelled_has_the_same_grace_whoever_asks():
    asked = [default_of(Job.cancel, "grace"), default_of(Job.cancel_aio, "grace"), option_of(cancel, "grace")]
    assert asked == [CANCEL_GRACE] * 3
    assert duration_ms(CANCEL_GRACE) == CANCEL_GRACE_MS


def test_the_page_names_every_default():
    """The page is printed from this table, and `make check` compares them."""
    assert (SubmitOptions().queue, SubmitOptions().priority) == (QUEUE, PRIORITY)
    named = {row.value for row in DEFAULTS}
    assert named >= {QUEUE, PRIORITY, ATTEMPTS, WORKER_SLOTS, WORKER_LEASE, WORKER_GRACE, CANCEL_GRACE}


def test_a_job_may_lose_as_many_attempts_whoever_judges_it():
    assert default_of(Tally.workflow, "attempts") == ATTEMPTS
    budgets = [
        Submission(handler="pay", payload="{}").attempts_max,
        ViewPolicy().attempts_max,
        attempts_allowed("{}"),
    ]
    assert budgets == [ATTEMPTS] * 3
