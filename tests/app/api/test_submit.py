"""A submission is a job once for each key, and never without its reservation."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tallystick import Tally, Tx
from tallystick.errors import BadInput, IdempotencyConflict, JobFailed, Misuse, NotFound, StoreMisused
from tallystick.testing.stepping import count_flushes, count_jobs


@pytest.fixture
def flow(app):
    @app.workflow
    def flow(order: int, note: str = "none") -> int:
        return order

    return flow


def test_two_plain_submissions_are_two_jobs(app, flow):
    first, second = flow.submit(1), flow.submit(1)
    assert first.id != second.id
    assert first.created
    assert second.created


def test_one_key_is_one_job_however_the_arguments_are_written(app, flow):
    keyed = flow.opts(idempotency_key="o-1")
    first = keyed.submit(1, note="x")
    second = keyed.submit(note="x", order=1)
    assert (first.id, first.created) == (second.id, True)
    assert not second.created


def test_another_content_under_one_key_is_refused_and_names_both_hashes(app, flow):
    flow.opts(idempotency_key="o-1").submit(1)
    with pytest.raises(IdempotencyConflict) as conflict:
        flow.opts(idempotency_key="o-1").submit(2)
    fields = conflict.value.fields
    assert len(fields["existing_hash"]) == len(fields["submitted_hash"]) == 64
    assert fields["existing_hash"] != fields["submitted_hash"]
    assert count_jobs(app) == {"QUEUED": 1}


def test_an_idempotent_workflow_is_one_job_for_each_content(app):
    @app.workflow(idempotent=True)
    def once(order: int) -> int:
        return order

    assert once.submit(1).id == once.submit(order=1).id
    assert once.submit(2).created


def test_a_hundred_threads_with_one_key_make_one_job(app, flow):
    with ThreadPoolExecutor(max_workers=25) as pool:
        jobs = list(pool.map(lambda n: flow.opts(idempotency_key=f"k{n % 4}").submit(n % 4), range(100)))
    assert len({job.id for job in jobs}) == 4
    assert sum(job.created for job in jobs) == 4
    assert count_jobs(app) == {"QUEUED": 4}


def test_many_submissions_share_flushes_and_are_all_durable(app, flow):
    jobs = flow.submit_many([(n,) for n in range(2_500)])
    assert len({job.id for job in jobs}) == 2_500
    assert count_jobs(app) == {"QUEUED": 2_500}
    assert count_flushes(app) <= 10


def test_a_list_submitted_in_a_transaction_exists_exactly_if_the_transaction_does(app, flow):
    with app.transaction() as db:
        kept = flow.opts(within=db).submit_many([(1,), (2,)])
    with pytest.raises(RuntimeError, match="changed my mind"), app.transaction() as db:  # noqa: PT012 (one block)
        flow.opts(within=db).submit_many([(3,), (4,)])
        raise RuntimeError("changed my mind")
    assert count_jobs(app) == {"QUEUED": 2}
    with app.worker():
        assert [job.result(10) for job in kept] == [1, 2]


def test_a_list_with_keys_finds_what_is_there_and_makes_the_rest(app):
    @app.workflow(idempotent=True)
    def once(order: int) -> int:
        return order

    first = once.submit(2)
    jobs = once.submit_many([(1,), (2,), (1,)])
    assert [job.created for job in jobs] == [True, False, False]
    assert jobs[1].id == first.id
    assert jobs[0].id == jobs[2].id


def test_a_list_of_nothing_is_no_job(app, flow):
    assert flow.submit_many([]) == []
    assert count_jobs(app) == {}


def test_a_list_in_which_one_cannot_be_encoded_submits_none(app, flow):
    with pytest.raises(BadInput):
        flow.submit_many([(1,), (object(),)])
    assert count_jobs(app) == {}


def test_a_workflow_cannot_submit_a_list_that_every_replay_would_submit_again(app, flow):
    @app.workflow
    def outer() -> int:
        return len(flow.submit_many([(1,)]))

    with app.worker(), pytest.raises(JobFailed, match=r"flow\.child"):
        outer.submit().result(10)
    assert set(count_jobs(app)) == {"FAILED_FINAL"}


def test_a_list_is_submitted_from_a_loop_without_blocking_it(app, flow):
    async def main():
        with app.worker():
            jobs = await flow.submit_many_aio([(n,) for n in range(50)])
            return await asyncio.gather(*jobs)

    assert asyncio.run(main()) == list(range(50))


@pytest.mark.parametrize("verb", ["submit_aio", "submit_many_aio"])
def test_a_transaction_is_not_left_out_silently_on_a_loop(app, flow, verb):
    with app.transaction() as db, pytest.raises(Misuse, match="belongs to its thread"):
        asyncio.run(getattr(flow.opts(within=db), verb)([(1,)]))


def test_submitting_from_a_loop_does_not_block_it(app, flow):
    async def main():
        with app.worker():
            jobs = await asyncio.gather(*(flow.submit_aio(n) for n in range(50)))
            return await asyncio.gather(*jobs)

    assert asyncio.run(main()) == list(range(50))


def test_a_job_submitted_in_a_transaction_exists_exactly_if_the_transaction_does(app, flow):
    with app.transaction() as db:
        db.execute("create table orders (n integer)")
    with app.transaction() as db:
        db.execute("insert into orders values (1)")
        kept = flow.opts(within=db).submit(1)
    with pytest.raises(RuntimeError, match="changed my mind"), app.transaction() as db:  # noqa: PT012 (one block)
        db.execute("insert into orders values (2)")
        dropped = flow.opts(within=db).submit(2)
        raise RuntimeError("changed my mind")
    with app.transaction() as db:
        assert db.execute("select n from orders") == [(1,)]
    assert kept.state() == "QUEUED"
    with pytest.raises(NotFound):
        dropped.row()
    with app.worker():
        assert kept.result(10) == 1


def test_a_transaction_step_can_submit_together_with_its_rows(app):
    @app.workflow
    def follow_up(order: int) -> int:
        return order + 1

    @app.tx
    def place(db: Tx, order: int) -> str:
        return follow_up.opts(within=db).submit(order).id

    @app.workflow
    def start(order: int) -> str:
        return place(order)

    with app.worker():
        child = start.submit(4).result(10)
        assert app.job(child).result(10) == 5


def test_a_transaction_on_loan_ends_with_its_block(app):
    with app.transaction() as db:
        db.execute("create table orders (n integer)")
    with pytest.raises(StoreMisused, match="has ended"):
        db.execute("insert into orders values (1)")


def test_a_job_of_another_version_waits_for_a_worker_that_has_it(url):
    old, new = Tally(url), Tally(url)

    @old.workflow(version="1")
    def flow() -> str:
        return "old"

    @new.workflow(version="2", name="flow")
    def flow_2() -> str:
        return "new"

    first, second = flow.submit(), flow_2.submit()
    with new.worker():
        assert second.result(10) == "new"
        assert first.state() == "QUEUED"
    with old.worker():
        assert first.result(10) == "old"
    old.close()
    new.close()


def test_jobs_are_claimed_by_priority_and_then_in_the_order_of_their_submission(timed, hand, clock):
    ran = []

    @timed.workflow
    def flow(name: str) -> None:
        ran.append(name)

    for name, priority in [("b", 5), ("c", 5), ("z", 9), ("a", 0)]:
        flow.opts(priority=priority).submit(name)
        clock.advance(1)
    flow.opts(priority=0, delay="1h").submit("later")
    hand.work_all()
    assert ran == ["a", "b", "c", "z"]
    clock.advance(3_600_000)
    assert hand.work() == "EndJob"
    assert ran[-1] == "later"
