"""What holds unless somebody says otherwise is said in one place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from inspect import signature

import click
import pytest

from tallystick import Tally
from tallystick.app.api.job import Job
from tallystick.app.scheduling.submit_options import SubmitOptions
from tallystick.cli.commands.http.serve import command as serve
from tallystick.cli.commands.jobs.cancel import command as cancel
from tallystick.cli.commands.work.work import command as work
from tallystick.core.audit.job_view import ViewPolicy, attempts_allowed
from tallystick.core.durations import duration_ms
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.defaults import (
    ATTEMPTS,
    BATCH_SCHEDULING,
    CANCEL_GRACE,
    DEFAULTS,
    EFFECT_SETTLE,
    EFFECT_TIMEOUT,
    IN_FLIGHT_MAX,
    PRIORITY,
    QUEUE,
    STAGE_GRACE,
    WORKER_GRACE,
    WORKER_LEASE,
    WORKER_SLOTS,
)
from tallystick.engine.submission import Submission
from tallystick.http import http_app
from tallystick.stage import Stage
from tallystick.worker.options import WorkerOptions
from tests.tidy.tree import SRC, parsed, python_files

DURATION = re.compile(r"[1-9]\d*(?:ms|s|m|h|d)")


def default_of(function, name: str) -> object:
    return signature(function).parameters[name].default


def option_of(command: click.Command, name: str) -> object:
    (option,) = (option for option in command.params if option.name == name)
    return option.default


@pytest.mark.parametrize("start", [Tally.worker, Tally.work, Tally.work_aio])
def test_a_worker_is_the_same_whoever_starts_it(start):
    names = ("queues", "concurrency", "lease", "grace", "batch_scheduling")
    said = [(QUEUE,), WORKER_SLOTS, WORKER_LEASE, WORKER_GRACE, BATCH_SCHEDULING]
    assert [default_of(start, name) for name in names] == said


def test_a_worker_of_the_command_line_is_the_same():
    names = ("concurrency", "lease", "grace", "batch_scheduling")
    said = [WORKER_SLOTS, WORKER_LEASE, WORKER_GRACE, BATCH_SCHEDULING]
    assert [option_of(work, name) for name in names] == said
    options = WorkerOptions()
    assert options.batch_scheduling is BATCH_SCHEDULING
    assert (options.queues, options.concurrency) == ((QUEUE,), WORKER_SLOTS)
    assert (options.lease_ms, options.grace_ms) == (duration_ms(WORKER_LEASE), duration_ms(WORKER_GRACE))


def test_a_job_that_is_cancelled_has_the_same_grace_whoever_asks():
    asked = [default_of(Job.cancel, "grace"), default_of(Job.cancel_aio, "grace"), option_of(cancel, "grace")]
    assert asked == [CANCEL_GRACE] * 3
    assert duration_ms(CANCEL_GRACE) == CANCEL_GRACE_MS


def test_an_effect_a_stage_and_a_server_have_the_defaults_of_the_page():
    effect = [default_of(Tally.effect, name) for name in ("timeout", "settle")]
    assert effect == [EFFECT_TIMEOUT, EFFECT_SETTLE]
    assert default_of(Stage, "grace") == STAGE_GRACE
    assert [default_of(http_app, "in_flight_max"), option_of(serve, "in_flight")] == [IN_FLIGHT_MAX] * 2


def test_no_other_module_has_a_default_of_its_own():
    """A duration that stands as a default in a signature or an option belongs to the table."""
    found = [
        f"{path.relative_to(SRC)}:{node.lineno} {node.value!r}"
        for path in python_files(SRC)
        if path.relative_to(SRC).as_posix() != "defaults.py"
        for node in declared_defaults(parsed(path))
    ]
    assert found == []


def declared_defaults(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
                given = [*args.defaults, *args.kw_defaults]
            case ast.Call(keywords=keywords):
                given = [word.value for word in keywords if word.arg == "default"]
            case _:
                continue
        for value in given:
            if isinstance(value, ast.Constant) and DURATION.fullmatch(str(value.value)):
                yield value


def test_the_page_names_every_default():
    """The page is printed from this table, and `make check` compares them."""
    assert (SubmitOptions().queue, SubmitOptions().priority) == (QUEUE, PRIORITY)
    named = {row.value for row in DEFAULTS}
    assert named >= {QUEUE, PRIORITY, ATTEMPTS, WORKER_SLOTS, WORKER_LEASE, WORKER_GRACE, CANCEL_GRACE}
    assert named >= {EFFECT_TIMEOUT, EFFECT_SETTLE, STAGE_GRACE, IN_FLIGHT_MAX}


def test_a_job_may_lose_as_many_attempts_whoever_judges_it():
    assert default_of(Tally.workflow, "attempts") == ATTEMPTS
    budgets = [
        Submission(handler="pay", payload="{}").attempts_max,
        ViewPolicy().attempts_max,
        attempts_allowed("{}"),
    ]
    assert budgets == [ATTEMPTS] * 3
