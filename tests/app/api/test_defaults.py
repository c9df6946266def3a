"""What holds unless somebody says otherwise is said in one place."""

from __future__ import annotations

from inspect import signature

from tallystick import Tally
from tallystick.cli.commands.work.work import command
from tallystick.core.audit.job_view import ViewPolicy, attempts_allowed
from tallystick.core.durations import duration_ms
from tallystick.core.lease import WORKER_LEASE
from tallystick.core.limits import ATTEMPTS_DEFAULT
from tallystick.engine.submission import Submission
from tallystick.worker.options import WorkerOptions


def default_of(function, name: str) -> object:
    return signature(function).parameters[name].default


def test_a_lease_lasts_as_long_whoever_starts_the_worker():
    (option,) = (option for option in command.params if option.name == "lease")
    starters = [default_of(Tally.worker, "lease"), default_of(Tally.work, "lease"), option.default]
    assert starters == [WORKER_LEASE] * 3
    assert WorkerOptions().lease_ms == duration_ms(WORKER_LEASE)


def test_a_job_may_lose_as_many_attempts_whoever_judges_it():
    assert default_of(Tally.workflow, "attempts") == ATTEMPTS_DEFAULT
    budgets = [
        Submission(handler="pay", payload="{}").attempts_max,
        ViewPolicy().attempts_max,
        attempts_allowed("{}"),
    ]
    assert budgets == [ATTEMPTS_DEFAULT] * 3
