"""One word to many jobs: it reaches those that match and are in a state for it, and no others."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import Fatal, Tally, wait
from tallystick.errors import BadInput


class Shop:
    """Two workflows on a store, one that waits and one that fails the first time."""

    def __init__(self, app: Tally) -> None:
        self.app = app
        self.mended = False

        @app.workflow
        def order(n: int) -> int:
            wait("go", bool)
            return n

        @app.workflow
        def bill(n: int) -> int:
            if not self.mended:
                raise Fatal("no")
            return n

        self.order, self.bill = order, bill


@pytest.fixture
def shop(app) -> Shop:
    return Shop(app)


def states(jobs) -> list[str]:
    return [job.state().value for job in jobs]


def test_queued_jobs_of_a_workflow_are_cancelled_and_others_stay(shop):
    orders = [shop.order.submit(n) for n in range(3)]
    tagged = shop.order.opts(tags=["keep"]).submit(9)
    bill = shop.bill.submit(1)
    assert shop.app.cancel_many(workflow="bill", tag="keep") == 0
    assert shop.app.cancel_many(tag="keep") == 1
    assert shop.app.cancel_many(workflow="order") == 3
    assert states([*orders, tagged, bill]) == ["CANCELLED"] * 4 + ["QUEUED"]
    assert shop.app.cancel_many(workflow="order") == 0, "what has ended is not reached again"


def test_older_means_submitted_longer_ago(shop):
    shop.order.submit(1)
    assert shop.app.cancel_many(older="1h") == 0
    assert shop.app.cancel_many(older="0s") == 1


def test_paused_jobs_are_resumed_together(shop):
    jobs = [shop.order.submit(n) for n in range(3)]
    jobs[0].pause("by itself")
    assert shop.app.pause_many(states=["queued"], why="stock-taking") == 2, "one is held already"
    assert shop.app.resume_many(states=["QUEUED"]) == 3
    assert shop.app.resume_many(everything=True) == 0


def test_failed_jobs_are_retried_once_each(shop):
    jobs = [shop.bill.submit(n) for n in range(3)]
    with shop.app.worker():
        for job in jobs:
            with pytest.raises(Exception, match="no"):
                job.result(timeout=30)
        shop.mended = True
        assert shop.app.retry_many(workflow="bill") == 3
        assert shop.app.retry_many(workflow="bill") == 0
        retried = [job for job in shop.app.jobs(workflow="bill") if job.id not in {each.id for each in jobs}]
        assert sorted(job.result(timeout=30) for job in retried) == [0, 1, 2]


def test_more_jobs_than_a_page_are_reached(shop):
    shop.order.submit_many([(n,) for n in range(1_201)])
    assert shop.app.cancel_many(workflow="order") == 1_201


def test_on_a_loop_too(shop):
    shop.order.submit(1)
    assert asyncio.run(shop.app.pause_many_aio(everything=True)) == 1
    assert asyncio.run(shop.app.resume_many_aio(everything=True)) == 1
    assert asyncio.run(shop.app.cancel_many_aio(everything=True)) == 1
    assert asyncio.run(shop.app.retry_many_aio(everything=True)) == 0


def test_a_state_that_is_none_is_refused(shop):
    with pytest.raises(BadInput, match="'broken' is not a state of a job"):
        shop.app.cancel_many(states=["broken"])


VERBS = ["cancel_many", "pause_many", "resume_many", "retry_many"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_word_that_is_none_is_refused_instead_of_reaching_all_jobs(shop, verb):
    job = shop.order.submit(1)
    with pytest.raises(BadInput, match=r"'tags' says nothing about jobs; .* states, workflow, tag, older"):
        getattr(shop.app, verb)(tags="gone")
    assert (job.state(), job.row().hold) == ("QUEUED", None)


@pytest.mark.parametrize("which", [{}, {"tag": None}, {"states": []}, {"tenant": "default"}], ids=str)
@pytest.mark.parametrize("verb", VERBS)
def test_all_jobs_are_reached_only_if_everything_is_said(shop, verb, which):
    job = shop.order.submit(1)
    with pytest.raises(BadInput, match="write everything=True to mean all jobs of the tenant"):
        getattr(shop.app, verb)(**which)
    assert (job.state(), job.row().hold) == ("QUEUED", None)


def test_filters_that_contradict_each_other_are_refused(shop):
    with pytest.raises(BadInput, match="everything=True is all jobs, and tag is not"):
        shop.app.cancel_many(everything=True, tag="gone")
    with pytest.raises(BadInput, match="search stands instead of tag"):
        shop.app.cancel_many(search=object(), tag="gone")


@pytest.mark.parametrize("verb", ["cancel_many", "pause_many", "resume_many", "retry_many"])
def test_states_that_a_word_cannot_reach_reach_no_job(shop, verb):
    job = shop.order.submit(1)
    assert getattr(shop.app, verb)(states=["SUCCEEDED"]) == 0
    assert (job.state(), job.row().hold) == ("QUEUED", None)
