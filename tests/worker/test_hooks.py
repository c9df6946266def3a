"""Hooks: called at least once for the end or hold of a job, whoever caused it; they cannot change the job."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
import threading

import pytest

from tallystick import Tally, wait
from tallystick.cli.commands.books.doctor import examine
from tallystick.core.verbs.hooks import again_ms
from tallystick.store.api import TakeHook, TellHook
from tallystick.testing.stepping import Death, SteppedWorker, check_books
from tests.app.programs import hooked
from tests.elsewhere import elsewhere
from tests.patience import wait_until


def declared(app, *hooks):
    """Return where the hooks of an app leave what they were called with."""
    told = []
    for hook in hooks:
        getattr(app, f"on_{hook}")(lambda job, hook=hook: told.append((hook, job.id)))
    return told


def owed(app):
    return [
        (each.job_id, each.hook_tries, each.hook_error) for each in app.runtime().store.inspect().hooks(10)
    ]


def flow_of(app):
    @app.workflow
    def flow(how: str) -> str:
        if how == "fails":
            raise ValueError("no")
        if how == "waits":
            wait("go", str)
        return how

    return flow


def test_each_end_has_its_hook_and_the_hook_has_the_job(app):
    told = []

    @app.on_succeeded
    def good(job):
        told.append(("succeeded", job.id, job.result(0)))

    @app.on_failed
    async def bad(job):
        await asyncio.sleep(0)
        told.append(("failed", job.id, job.row().error_message))

    @app.on_cancelled
    def ended(job):
        told.append(("cancelled", job.id, job.state()))

    flow = flow_of(app)
    with app.worker():
        jobs = [flow.submit(how) for how in ("good", "fails", "waits")]
        wait_until(lambda: jobs[2].row().semaphore == 1 and jobs[2].row().attempt, "a job that waits")
        jobs[2].cancel()
        wait_until(lambda: len(told) == 3, "all hooks")
    assert sorted(told) == sorted(
        [
            ("succeeded", jobs[0].id, "good"),
            ("failed", jobs[1].id, "no"),
            ("cancelled", jobs[2].id, "CANCELLED"),
        ]
    )
    assert owed(app) == []
    assert not check_books(app)


def test_what_ended_while_no_worker_ran_is_told_by_the_next_one(url):
    """By hand, by a sweep, and in a program that knows of no hook."""
    with_hooks, without = Tally(url), Tally(url)
    told = declared(with_hooks, "cancelled", "held")
    flow_of(without)
    flow = flow_of(with_hooks)
    cancelled, paused = flow.submit("good"), flow.submit("good")
    without.job(cancelled.id).cancel()
    without.job(paused.id).pause("the shop is shut")
    assert told == []
    with with_hooks.worker():
        wait_until(lambda: len(told) == 2, "both hooks")
    assert set(told) == {("cancelled", cancelled.id), ("held", paused.id)}
    with_hooks.close()
    without.close()


def test_a_job_whose_workers_died_is_told_by_the_sweep(timed, hand, clock):
    told = declared(timed, "failed")

    @timed.workflow(attempts=1)
    def deadly() -> None:
        raise Death

    job = deadly.submit()
    assert hand.work() == "died"
    hand.expire()
    assert job.row().error_code == "ATTEMPTS_SPENT"
    assert [job_id for job_id, _tries, _error in owed(timed)] == [job.id]
    with timed.worker():
        wait_until(lambda: told, "its hook")
    assert told == [("failed", job.id)]


def test_every_hold_is_told_once(timed, clock):
    told = declared(timed, "held")
    flow = flow_of(timed)
    job = flow.opts(queue="elsewhere").submit("good")
    with timed.worker():
        for times in (1, 2):
            job.pause()
            wait_until(lambda times=times: len(told) == times, "the hook of the hold")
            wait_until(lambda: owed(timed) == [], "its end")
            job.resume()
    assert told == [("held", job.id)] * 2


@pytest.mark.parametrize("ended", ["at once", "after a wait"])
def test_a_hold_that_was_over_before_any_worker_looked_is_told_before_the_end(url, ended):
    app = Tally(url)
    told = declared(app, "held", "succeeded")
    flow = flow_of(app)
    job = flow.submit("good" if ended == "at once" else "waits")
    for _ in range(2):
        job.pause()
        job.resume()
    assert owed(app) == [(job.id, 0, None)]
    if ended == "after a wait":
        job.send("go", "on")
    with app.worker():
        wait_until(lambda: len(told) == 2, "both hooks")
        wait_until(lambda: owed(app) == [], "their ends")
    assert told == [("held", job.id), ("succeeded", job.id)]
    assert not check_books(app)
    app.close()


def test_a_hold_that_is_over_while_its_hook_is_called_is_told_once(timed, clock):
    told = []

    @timed.on_held
    def tell(job):
        told.append(job.row().hold)
        elsewhere(job.resume)

    job = flow_of(timed).opts(queue="elsewhere").submit("good")
    job.pause()
    with timed.worker():
        wait_until(lambda: told and owed(timed) == [], "its hook")
    assert told == ["PAUSED"]
    assert job.row().hold is None


def test_a_hook_that_raises_is_logged_called_again_with_backoff_and_seen_by_doctor(timed, clock, caplog):
    calls = []

    @timed.on_failed
    def tell(job):
        calls.append(clock.wall_ms())
        if len(calls) < 3:
            raise ConnectionError("the mail server is away")

    flow = flow_of(timed)
    with caplog.at_level(logging.ERROR, "tallystick.worker"), timed.worker():
        job = flow.submit("fails")
        wait_until(
            lambda: owed(timed) == [(job.id, 1, "ConnectionError: the mail server is away")], "an error"
        )
        (problem,) = [text for text in examine(timed.runtime().store, 10).problems if "hook" in text]
        for tries in (1, 2):
            left = calls[-1] + again_ms(tries)
            wait_until(
                lambda left=left: timed.runtime().store.inspect().hooks(1)[0].hook_due == left, "a pause"
            )
            assert len(calls) == tries
            clock.advance(again_ms(tries) - 1)
            assert timed.runtime().store.owed_hooks(["flow"], 10) == []
            clock.advance(1)
            wait_until(lambda tries=tries: len(calls) == tries + 1, "another call")
        wait_until(lambda: owed(timed) == [], "its end")
    assert "on_failed raised 1 time" in problem
    assert "the mail server is away" in problem
    assert [record.action for record in caplog.records] == ["hook.failed"] * 2
    assert job.state() == "FAILED_FINAL"
    assert not check_books(timed)


def test_a_hook_that_no_worker_calls_is_a_problem(url):
    app = Tally(url)
    declared(app, "cancelled")
    flow_of(app).submit("good").cancel()
    seen = examine(app.runtime().store, 10)
    (problem,) = {*seen._replace(now=seen.now + 3_600_000).problems} - {*seen.problems}
    assert "on_cancelled is owed for" in problem
    assert "start a worker of flow that declares it" in problem
    app.close()


@pytest.mark.parametrize("when", ["before the hook", "in the hook"])
def test_kill_9_between_the_end_and_the_hook_loses_no_hook(url, tmp_path, when):
    """Several jobs end while the hook of the first kills the process, or there is just that one."""
    app = Tally(url)
    fails = hooked.declare(app, tmp_path)
    (tmp_path / "deadly").touch()
    jobs = [fails.submit() for _ in range(1 if when == "in the hook" else 5)]

    def process():
        return subprocess.Popen([sys.executable, "-m", "tests.app.programs.hooked", url, str(tmp_path)])

    first = process()
    assert first.wait(60) == -signal.SIGKILL
    wait_for_ends = [job for job in jobs if job.row().completed_at is None]
    assert not (tmp_path / "told").exists()
    (tmp_path / "deadly").unlink()
    second = process()
    told = tmp_path / "told"
    wait_until(lambda: told.exists() and len(told.read_text().splitlines()) >= len(jobs), "every hook")
    second.kill()
    second.wait(60)
    assert {line.split()[0] for line in told.read_text().splitlines()} == {job.id for job in jobs}
    assert len(wait_for_ends) < len(jobs)
    app.close()


def test_a_worker_that_declares_a_hook_gives_it_to_jobs_that_were_submitted_without(url):
    before, after = Tally(url), Tally(url)
    job = flow_of(before).submit("fails")
    told = declared(after, "failed")
    flow_of(after)
    with after.worker():
        wait_until(lambda: told, "the hook")
    assert told == [("failed", job.id)]
    before.close()
    after.close()


def test_a_worker_leaves_hooks_that_it_does_not_declare_to_others(url):
    app, other = Tally(url), Tally(url)
    told = declared(app, "cancelled")
    job = flow_of(app).submit("good")
    job.cancel()
    flow_of(other)
    wrong = declared(other, "failed")
    with other.worker():
        other_job = other.workflows["flow", ""].submit("fails")
        wait_until(lambda: wrong, "its own hook")
    assert [job_id for job_id, _tries, _error in owed(app)] == [job.id]
    with app.worker():
        wait_until(lambda: told, "the hook")
    assert (told, wrong) == ([("cancelled", job.id)], [("failed", other_job.id)])
    app.close()
    other.close()


def test_a_hook_that_hangs_keeps_the_worker_from_nothing(app):
    begun, free = threading.Event(), threading.Event()

    @app.on_succeeded
    def hangs(_job):
        begun.set()
        free.wait(60)

    flow = flow_of(app)
    with app.worker(grace="100ms"):
        flow.submit("good")
        assert begun.wait(60)
        assert flow.submit("also").result(60) == "also"
        job = flow.submit("waits")
        job.send("go", "on")
        assert job.result(60) == "waits"
    assert not free.is_set()
    free.set()


def test_a_worker_that_stops_calls_what_is_owed_first(app):
    told = declared(app, "succeeded")
    flow = flow_of(app)
    with app.worker():
        jobs = flow.submit_many([("a",), ("b",), ("c",)])
        for job in jobs:
            job.result(60)
    assert sorted(told) == sorted(("succeeded", job.id) for job in jobs)


def test_an_async_hook_runs_on_the_loop_of_an_async_worker(app):
    loops = []

    @app.on_succeeded
    async def tell(_job):
        loops.append(asyncio.get_running_loop())

    flow = flow_of(app)

    async def main():
        async with app.worker():
            await (await flow.submit_aio("good"))
        return asyncio.get_running_loop()

    loop = asyncio.run(main())
    assert loops == [loop]


def test_one_of_two_workers_gets_a_hook_and_a_late_word_changes_nothing(timed, clock):
    declared(timed, "failed")
    job = flow_of(timed).submit("fails")
    hand, call = SteppedWorker(timed, clock), timed.runtime().committer.call
    hand.work()
    assert [call((TakeHook(job.id, 0, 1000),)) for _ in range(2)] == ["failed", None]
    assert call((TakeHook(job.id, 1, 1000),)) is None
    clock.advance(1000)
    assert call((TakeHook(job.id, 1, 1000),)) == "failed"
    assert call((TellHook(job.id, 1, "failed"),)) is False
    assert call((TellHook(job.id, 2, "failed", "no", 5000),)) is True
    assert owed(timed) == [(job.id, 2, "no")]
    clock.advance(5000)
    assert call((TakeHook(job.id, 2, 1000),)) == "failed"
    assert call((TellHook(job.id, 3, "failed"),)) is True
    assert (owed(timed), call((TakeHook(job.id, 0, 1000),))) == ([], None)


def test_a_job_whose_hook_is_owed_is_not_pruned(timed, clock):
    declared(timed, "cancelled")
    job = flow_of(timed).submit("good")
    job.cancel()
    clock.advance(86_400_000)
    assert timed.prune(older_than="1h") == 0
    call = timed.runtime().committer.call
    call((TakeHook(job.id, 0, 1000),))
    call((TellHook(job.id, 1, "cancelled"),))
    assert timed.prune(older_than="1h") == 1


def test_a_fork_and_a_child_carry_the_hooks_of_their_program(app):
    told = declared(app, "failed", "succeeded")
    flow = flow_of(app)

    @app.workflow
    def parent() -> str:
        return flow("good")

    with app.worker():
        job = parent.submit()
        job.result(60)
        (child,) = job.children()
        failed = flow.submit("fails")
        wait_until(lambda: ("failed", failed.id) in told, "the hook")
        again = failed.retry()
        wait_until(lambda: ("failed", again.id) in told, "the hook of the fork")
        wait_until(lambda: {("succeeded", child.id), ("succeeded", job.id)} <= set(told), "those of the tree")
