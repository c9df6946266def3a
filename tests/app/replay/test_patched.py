"""Jobs that had passed a change go the old way, all others the new one, and each of them always the same."""

from __future__ import annotations

import pytest

from tallystick import Retry, StepFailed, Tally, again, aio, gather, patched, wait
from tallystick.testing.stepping import Death, SteppedWorker


def deploy(url, clock, declare):
    """Open the same store with another program."""
    tally = Tally(url, clock=clock)
    return tally, SteppedWorker(tally, clock), declare(tally)


def old_program(app):
    @app.step
    def measure() -> int:
        return 1

    @app.workflow
    def shelf() -> list[str]:
        done = [f"measured {measure()}"]
        done.append(wait("wood", str))
        done.append(wait("paint", str))
        return done

    return shelf


def new_program(app):
    @app.step
    def measure() -> int:
        return 1

    @app.step
    def sand() -> str:
        return "sanded"

    @app.workflow
    def shelf() -> list[str]:
        done = [f"measured {measure()}"]
        if patched("sanding"):
            done.append(sand())
        done.append(wait("wood", str))
        done.append(wait("paint", str))
        return done

    return shelf


@pytest.fixture
def world(url, clock):
    made = []

    def open_with(declare):
        made.append(deploy(url, clock, declare))
        return made[-1]

    yield open_with
    for tally, _hand, _workflow in made:
        tally.close()


def run_all(hand) -> list[str]:
    seen = []
    while (outcome := hand.work()) != "idle":
        seen.append(outcome)
    return seen


def test_a_job_that_waits_beyond_the_change_goes_the_old_way_to_its_end(world):
    _tally, hand, shelf = world(old_program)
    job_id = shelf.submit().id
    run_all(hand)
    new, hand, shelf = world(new_program)
    old_job, new_job = new.job(job_id), shelf.submit()
    for name in ("wood", "paint"):
        new.send_many([old_job, new_job], name, name)
        run_all(hand)
    assert old_job.result(5) == ["measured 1", "wood", "paint"]
    assert new_job.result(5) == ["measured 1", "sanded", "wood", "paint"]


def test_a_job_that_has_recorded_what_comes_later_goes_the_old_way(world):
    _tally, hand, shelf = world(old_program)
    job = shelf.submit()
    job.send("wood", "wood")
    run_all(hand)
    new, hand, _shelf = world(new_program)
    new.job(job.id).send("paint", "paint")
    run_all(hand)
    assert new.job(job.id).result(5) == ["measured 1", "wood", "paint"]


def test_a_job_that_has_not_come_so_far_goes_the_new_way(world):
    """Its worker died right after the step before the change."""

    def dying(app):
        @app.step
        def measure() -> int:
            return 1

        @app.workflow
        def shelf() -> None:
            measure()
            raise Death

        return shelf

    _tally, hand, shelf = world(dying)
    job = shelf.submit()
    assert hand.work() == "died"
    hand.expire()
    new, hand, _shelf = world(new_program)
    for name in ("wood", "paint"):
        new.job(job.id).send(name, name)
    run_all(hand)
    assert new.job(job.id).result(5) == ["measured 1", "sanded", "wood", "paint"]


def test_the_answer_is_kept_through_a_crash_and_the_same_at_every_call(timed, hand, clock):
    deaths, answers = [1], []

    @timed.step
    def work(n: int) -> int:
        return n

    @timed.workflow
    def flow() -> bool:
        answers.append(patched("new"))
        work(1)
        answers.append(patched("new"))
        if deaths:
            deaths.pop()
            raise Death
        return patched("new")

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    run_all(hand)
    assert job.result(5) is True
    assert answers == [True] * 4


def test_a_turn_of_a_loop_decides_anew(world):
    def old(app):
        @app.workflow
        def loop(turn: int = 1) -> list[int]:
            wait("tick", bool)
            return again(turn + 1)

        return loop

    def new(app):
        @app.workflow
        def loop(turn: int = 1) -> list[int]:
            is_new = patched("stop")
            wait("tick", bool)
            return [turn] if is_new else again(turn + 1)

        return loop

    _tally, hand, loop = world(old)
    job = loop.submit()
    run_all(hand)
    tally, hand, _loop = world(new)
    for _ in range(2):
        tally.job(job.id).send("tick", True)
        run_all(hand)
    assert tally.job(job.id).result(5) == [2]


def test_a_step_that_is_to_be_tried_again_was_passed(world, clock):
    def old(app):
        @app.step(retry=Retry(3, first="1h"))
        def fragile() -> str:
            raise OSError("away")

        @app.workflow
        def flow() -> str:
            return fragile()

        return flow

    def new(app):
        @app.step(retry=Retry(3, first="1h"))
        def fragile() -> str:
            return "there"

        @app.workflow
        def flow() -> str:
            return "new" if patched("other-way") else fragile()

        return flow

    _tally, hand, flow = world(old)
    job = flow.submit()
    run_all(hand)
    tally, hand, _flow = world(new)
    clock.advance(2 * 3_600_000)
    run_all(hand)
    assert tally.job(job.id).result(5) == "there"


def test_children_that_are_waited_for_were_passed_in_async_workflows_too(world):
    def old(app):
        @app.workflow
        async def child() -> int:
            return await aio.wait("go", int)

        @app.workflow
        async def flow() -> int:
            return sum(await aio.gather(child.child()))

        return flow

    def new(app):
        @app.workflow
        async def child() -> int:
            return await aio.wait("go", int)

        @app.workflow
        async def flow() -> int:
            if aio.patched("without-children"):
                return 0
            return sum(await aio.gather(child.child()))

        return flow

    _tally, hand, flow = world(old)
    job = flow.submit()
    run_all(hand)
    tally, hand, _flow = world(new)
    tally.job(f"{job.id}.0.1.00000000").send("go", 5)
    run_all(hand)
    assert tally.job(job.id).result(5) == 5


def test_outside_a_workflow_everything_is_new_and_inside_a_step_the_question_is_refused(timed, hand):
    @timed.step
    def curious() -> bool:
        return patched("new")

    @timed.workflow
    def flow() -> str:
        try:
            curious()
        except StepFailed as error:
            return str(error)
        return "answered"

    assert patched("new") is True
    job = flow.submit()
    run_all(hand)
    assert "question of the workflow" in job.result(5)


def test_gather_is_not_needed_for_a_patch_to_be_recorded(timed, hand):
    """The note is in the books, with the next thing that is written."""

    @timed.workflow
    def flow() -> tuple[int, ...]:
        patched("noted")
        return gather()

    job = flow.submit()
    run_all(hand)
    assert any('"patched:noted":true' in event.payload for event in job.history())


def test_a_job_whose_worker_died_in_a_step_of_the_new_way_does_not_go_the_old_way(timed, hand, clock):
    """It was woken before the change, and after the crash it looks like one that was woken beyond it."""
    effects, deaths = [], [1]

    @timed.step
    def sand() -> str:
        effects.append("sanded")
        if deaths:
            deaths.pop()
            raise Death
        return "sanded"

    @timed.step
    def paint() -> str:
        effects.append("painted")
        return "painted"

    @timed.workflow
    def shelf() -> str:
        wait("wood", str)
        return sand() if patched("sanding") else paint()

    job = shelf.submit()
    run_all(hand)
    job.send("wood", "oak")
    assert hand.work() == "died"
    hand.expire()
    run_all(hand)
    assert job.result(5) == "sanded"
    assert effects == ["sanded", "sanded"]


def test_a_job_that_goes_the_old_way_goes_it_at_the_next_call_with_this_name_too(world):
    answers = []

    def asking_twice(app):
        @app.step
        def measure() -> int:
            return 1

        @app.workflow
        def shelf() -> list[str]:
            measure()
            answers.append(patched("sanding"))
            wait("wood", str)
            answers.append(patched("sanding"))
            measure()
            answers.append(patched("sanding"))
            wait("paint", str)
            return []

        return shelf

    _tally, hand, shelf = world(old_program)
    job = shelf.submit()
    run_all(hand)
    new, hand, _shelf = world(asking_twice)
    new.job(job.id).send("wood", "oak")
    run_all(hand)
    assert answers == [False, False, False]
