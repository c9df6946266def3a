"""A held job is nobody's until it is resumed; what arrives meanwhile waits for it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tallystick import Cancelled, Tally, gather, sleep, wait
from tallystick.errors import Misuse, NotFound
from tallystick.testing.stepping import Death, cancel_overdue, check_books
from tests.patience import wait_until


def names(job):
    return [event.name for event in job.history()]


def test_a_queued_job_that_is_paused_is_not_claimed_until_it_is_resumed(timed, hand, clock):
    @timed.workflow
    def flow() -> str:
        return "done"

    job = flow.submit()
    assert job.pause("the shop is shut").name == "HELD"
    assert hand.work() == "idle"
    assert (job.row().hold, job.row().hold_reason, job.state()) == ("PAUSED", "the shop is shut", "QUEUED")
    assert job.resume().name == "FREE"
    assert hand.work() == "EndJob"
    assert job.result(5) == "done"
    assert names(job) == ["submit", "hold", "resume", "claim", "return"]
    assert check_books(timed) == []


def test_saying_it_twice_changes_nothing(timed, hand, clock):
    @timed.workflow
    def flow() -> None: ...

    job = flow.submit()
    said = [job.resume(), job.pause(), job.pause("again"), job.resume(), job.resume()]
    assert [one.name for one in said] == ["NOT_HELD", "HELD", "ALREADY", "FREE", "NOT_HELD"]
    hand.work()
    assert [job.pause().name, job.resume().name] == ["ENDED", "ENDED"]
    assert names(job) == ["submit", "hold", "resume", "claim", "return"]
    assert check_books(timed) == []


def test_a_job_that_does_not_exist_can_be_neither_paused_nor_resumed(timed):
    for wish in (timed.job("nobody").pause, timed.job("nobody").resume):
        with pytest.raises(NotFound):
            wish()


def test_signals_gather_while_a_waiting_job_is_paused_and_wake_it_only_after_it_is_resumed(
    timed, hand, clock
):
    @timed.workflow
    def flow() -> list[int]:
        return [wait("number", int), wait("number", int)]

    job = flow.submit()
    hand.work()
    assert job.pause().name == "HELD"
    job.send("number", 1)
    job.send("number", 2)
    assert hand.work() == "idle"
    assert check_books(timed) == []
    job.resume()
    assert hand.work() == "EndJob"
    assert job.result(5) == [1, 2]
    assert check_books(timed) == []


def test_a_timer_that_fires_during_a_pause_is_answered_after_it(timed, hand, clock):
    @timed.workflow
    def flow() -> str:
        sleep("1m")
        return "slept"

    job = flow.submit()
    hand.work()
    job.pause()
    clock.advance(60_000)
    assert hand.work() == "idle"
    job.resume()
    assert hand.work() == "EndJob"
    assert check_books(timed) == []


def test_a_deadline_goes_on_during_a_pause(timed, hand, clock):
    @timed.workflow(deadline="1h")
    def flow() -> None:
        wait("go", bool)

    job = flow.submit()
    hand.work()
    job.pause()
    job.send("go", True)
    clock.advance(3_600_000)
    cancel_overdue(timed)
    assert (job.state(), job.row().error_code) == ("CANCELLED", "DEADLINE")
    assert check_books(timed) == []


def test_a_waiting_job_that_is_resumed_before_its_signal_goes_on_waiting(timed, hand, clock):
    @timed.workflow
    def flow() -> int:
        return wait("number", int)

    job = flow.submit()
    hand.work()
    job.pause()
    job.resume()
    assert hand.work() == "idle"
    job.send("number", 7)
    assert hand.work() == "EndJob"
    assert job.result(5) == 7


def test_children_that_end_while_their_parent_is_paused_wait_for_it(timed, hand, clock):
    @timed.workflow
    def child(n: int) -> int:
        return n

    @timed.workflow
    def parent() -> tuple[int, ...]:
        return gather(child.child(1), child.child(2))

    job = parent.submit()
    hand.work()
    job.pause()
    assert [hand.work(), hand.work(), hand.work()] == ["EndJob", "EndJob", "idle"]
    job.resume()
    assert hand.work() == "EndJob"
    assert tuple(job.result(5)) == (1, 2)
    assert check_books(timed) == []


def test_a_running_job_stops_at_its_next_call_keeps_what_it_did_and_goes_on_from_there(timed, hand, clock):
    done = []

    @timed.step
    def work(name: str) -> str:
        done.append(name)
        return name

    @timed.workflow
    def flow() -> list[str]:
        first = work("first")
        if len(done) == 1:
            assert timed_pause().name == "ASKED"
            segment.paused = True  # what maintenance does when it sees it
        return [first, work("second")]

    def timed_pause():
        # From another thread, as somebody outside would say it.
        said = []
        thread = threading.Thread(target=lambda: said.append(job.pause()))
        thread.start()
        thread.join(10)
        return said[0]

    job = flow.submit()
    segment = hand.claim()
    assert hand.run(segment) == "EndAttempt"
    assert (done, job.row().hold, job.state()) == (["first"], "PAUSED", "IN_PROGRESS")
    assert hand.work() == "idle"
    assert check_books(timed) == []
    job.resume()
    assert hand.work() == "EndJob"
    assert job.result(5) == ["first", "second"]
    assert done == ["first", "second"]
    assert names(job)[-4:] == ["resume", "claim", "step", "return"]
    assert check_books(timed) == []


def outside(wish):
    """Say something from another thread, as somebody outside of the workflow would."""
    said = []
    thread = threading.Thread(target=lambda: said.append(wish()))
    thread.start()
    thread.join(10)
    return said[0]


@pytest.mark.parametrize("waits_for", ["signal", "sleep", "children"])
def test_a_running_job_that_comes_to_a_wait_finds_out_there_that_it_is_held(timed, hand, clock, waits_for):
    """Also when the answer is there already: it is not taken before the job is resumed."""
    paused = []

    @timed.workflow
    def child() -> None: ...

    @timed.workflow
    def flow() -> str:
        if not paused:
            paused.append(outside(job.pause))
        if waits_for == "signal":
            return wait("word", str)
        sleep("1s") if waits_for == "sleep" else gather(child.child())
        return "word"

    job = flow.submit()
    job.send("word", "word")
    assert hand.work() == "EndAttempt"
    hand.work_all()
    clock.advance(1_000)
    assert hand.work() == "idle"
    assert check_books(timed) == []
    job.resume()
    for _ in range(4):
        hand.work()
        clock.advance(1_000)
    assert job.result(5) == "word"
    assert check_books(timed) == []


def test_a_function_that_makes_no_more_calls_comes_to_its_end_and_is_held_no_longer(timed, hand, clock):
    @timed.workflow
    def flow() -> str:
        assert outside(job.pause).name == "ASKED"
        return "done"

    job = flow.submit()
    assert hand.work() == "EndJob"
    assert (job.result(5), job.row().hold, job.row().hold_reason) == ("done", None, None)
    assert check_books(timed) == []


def test_a_pause_survives_the_death_of_the_worker_that_ran_the_job(timed, hand, clock):
    @timed.workflow
    def flow() -> str:
        if job.row().hold is None and job.row().attempt == 1:
            outside(job.pause)
            raise Death
        return "done"

    job = flow.submit()
    assert hand.work() == "died"
    assert hand.expire() == 1
    assert hand.work() == "idle"
    assert job.row().hold == "PAUSED"
    assert check_books(timed) == []
    job.resume()
    assert hand.work() == "EndJob"
    assert check_books(timed) == []


def test_a_job_resumed_before_its_holder_noticed_the_pause_is_not_held_by_it(timed, hand, clock):
    """The holder stops without setting a flag of its own, so the one that was taken away stays away."""
    calls = []

    @timed.step
    def work() -> None:
        calls.append(1)

    @timed.workflow
    def flow() -> None:
        if not calls:
            outside(job.pause)
            segment.paused = True
            outside(job.resume)
            calls.append(0)
        work()

    job = flow.submit()
    segment = hand.claim()
    assert hand.run(segment) == "EndAttempt"
    assert job.row().hold is None
    assert hand.work() == "EndJob"
    assert check_books(timed) == []


@pytest.mark.parametrize("running", [True, False], ids=["running", "waiting"])
def test_a_cancellation_goes_before_a_pause(timed, hand, clock, running):
    cleaned = []

    @timed.step
    def clean_up() -> None:
        cleaned.append(1)

    @timed.workflow
    def flow() -> None:
        try:
            if running:
                assert outside(job.pause).name == "ASKED"
                segment.paused = True
                outside(lambda: job.cancel(grace="1h"))
                assert outside(job.pause).name == "ENDED"
                segment.cancelled = True
            wait("never", bool)
        except Cancelled:
            clean_up()
            raise

    job = flow.submit()
    segment = hand.claim()
    hand.run(segment)
    if not running:
        job.pause()
        job.cancel()
    assert (job.state(), job.row().hold) == ("CANCELLED", None)
    assert cleaned == ([1] if running else [])
    assert check_books(timed) == []


def test_a_job_held_for_a_mismatch_goes_on_when_the_code_is_back_and_it_is_resumed(timed, hand, clock):
    renamed = []

    @timed.step
    def charge() -> int:
        return 1

    @timed.step
    def bill() -> int:
        return 2

    @timed.workflow
    def flow() -> int:
        paid = bill() if renamed else charge()
        return paid + wait("tip", int)

    job = flow.submit()
    hand.work()
    renamed.append(1)
    job.send("tip", 10)
    assert hand.work() == "EndAttempt"
    assert job.row().hold == "MISMATCH"
    assert job.pause().name == "ALREADY"
    assert hand.work() == "idle"
    renamed.clear()
    assert job.resume().name == "FREE"
    assert hand.work() == "EndJob"
    assert job.result(5) == 11
    assert check_books(timed) == []


def test_a_worker_stops_a_running_job_that_another_process_pauses(app, url):
    began, go_on = threading.Event(), threading.Event()
    done = []

    @app.step
    def first() -> None:
        began.set()
        go_on.wait(10)

    @app.step
    def work(n: int) -> None:
        done.append(n)

    @app.workflow
    def flow() -> int:
        first()
        for n in range(10_000):
            work(n)
        return len(done)

    elsewhere = Tally(url)
    with app.worker():
        job = flow.submit()
        assert began.wait(10)
        assert elsewhere.job(job.id).pause().name == "ASKED"
        go_on.set()
        wait_until(lambda: "hold" in names(job))
        assert len(done) < 10_000
        assert elsewhere.job(job.id).row().hold == "PAUSED"
        assert elsewhere.job(job.id).cancel() == "CANCELLED"
    elsewhere.close()


def test_an_async_program_pauses_and_resumes_without_blocking_its_loop(timed, hand):
    @timed.workflow
    async def flow() -> str:
        return "done"

    async def program(job):
        return await job.pause_aio(), await job.resume_aio()

    job = flow.submit()
    assert [one.name for one in asyncio.run(program(job))] == ["HELD", "FREE"]
    assert hand.work() == "EndJob"


@pytest.mark.parametrize("verb", ["pause", "resume", "retry", "fork"])
def test_a_workflow_is_told_to_say_it_in_a_step(timed, hand, verb):
    heard = []

    @timed.step
    def say() -> None:
        timed.job(other.id).pause()

    @timed.workflow
    def idle() -> None: ...

    @timed.workflow
    def flow() -> None:
        try:
            getattr(timed.job(other.id), verb)(**({"at": "x"} if verb == "fork" else {}))
        except Misuse as error:
            heard.append(str(error))
        say()

    job = flow.submit()
    other = idle.opts(delay="1h").submit()
    assert hand.work() == "EndJob"
    assert job.state() == "SUCCEEDED"
    assert "step" in heard[0]
    assert other.row().hold == "PAUSED"
