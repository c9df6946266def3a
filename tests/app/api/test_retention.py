"""Retention from a user's chair: finished jobs go in batches, keys are free, workers do not notice."""

from __future__ import annotations

import pytest

from tallystick import Tally, gather, wait
from tallystick.errors import BadDuration, BadInput, NotFound, StoreMissing
from tallystick.testing.stepping import check_books, count_jobs, open_store
from tests.patience import wait_until

DAY_MS = 86_400_000


def test_what_ended_long_ago_goes_and_its_key_is_free(timed, hand, clock):
    @timed.workflow
    def flow(n: int) -> int:
        return n

    old = flow.opts(idempotency_key="k").submit(1)
    hand.work()
    clock.advance(DAY_MS)
    young = flow.submit(2)
    hand.work()
    waiting = flow.submit(3)
    assert timed.prune(older_than="1d") == 1
    assert timed.prune(older_than="1d") == 0
    with pytest.raises(NotFound):
        old.state()
    assert young.result() == 2
    again = flow.opts(idempotency_key="k").submit(4)
    assert again.created
    assert again.id != old.id
    assert waiting.state() == "QUEUED"


def test_a_family_goes_from_the_youngest_up_in_one_call(app):
    @app.workflow
    def leaf(n: int) -> int:
        return n

    @app.workflow
    def branch(n: int) -> int:
        return sum(gather(*(leaf.child(k) for k in range(n))))

    @app.workflow
    def tree(n: int) -> int:
        return sum(gather(*(branch.child(n) for _ in range(n))))

    with app.worker():
        job = tree.submit(3)
        other = leaf.submit(7)
        assert job.result(30) == 9
        assert other.result(30) == 7
    assert app.prune(older_than=0, limit=4) == 4
    assert check_books(app) == []
    assert app.prune(older_than=0) == 1 + 3 + 9 + 1 - 4
    assert count_jobs(app) == {}


def test_children_stay_while_an_open_fork_reads_what_they_returned(timed, hand, clock):
    @timed.workflow
    def child(n: int) -> int:
        return n

    @timed.step
    def add(numbers: list[int]) -> int:
        return sum(numbers)

    @timed.workflow
    def parent() -> int:
        numbers = gather(child.child(1), child.child(2))
        wait("go", bool)
        return add(list(numbers))

    job = parent.submit()
    job.send("go", True)
    hand.work_all()
    second = job.fork(at="add").fork(at="go")
    hand.work_all()
    clock.advance(DAY_MS)
    # The fork in the middle has ended, and has copies only.
    assert timed.prune(older_than="1d") == 1
    second.send("go", True)
    hand.work_all()
    assert second.result(5) == 3
    assert timed.prune(older_than="1d") == 3
    assert check_books(timed) == []


def test_a_limit_of_nothing_and_a_store_that_is_not_there_are_errors(app, url, tmp_path):
    open_store(app)
    with pytest.raises(BadInput, match="limit"):
        app.prune(older_than="1d", limit=0)
    with pytest.raises(BadInput):
        app.prune(older_than="soon")
    nowhere = Tally(f"sqlite:///{tmp_path}/nowhere.db")
    with pytest.raises(StoreMissing):
        nowhere.prune(older_than="1d")
    assert not (tmp_path / "nowhere.db").exists()


def test_workers_go_on_while_finished_jobs_are_removed(app):
    @app.workflow
    def flow(n: int) -> int:
        return n

    seen = 0
    with app.worker():
        for start in range(0, 60, 20):
            jobs = flow.submit_many([(n,) for n in range(start, start + 20)])
            assert [job.result(30) for job in jobs] == list(range(start, start + 20))
            seen += app.prune(older_than=0)
    assert seen + app.prune(older_than=0) == 60


@pytest.mark.parametrize("keep", ["30", "0s", "", "-1d", 30])
def test_a_retention_that_says_too_little_is_refused(keep):
    with pytest.raises(BadDuration):
        Tally(keep=keep)


def test_the_worker_of_a_tally_that_keeps_jobs_for_a_time_prunes_by_itself(url):
    app = Tally(url, keep="50ms")

    @app.workflow
    def flow() -> int:
        return 1

    with app.worker():
        flow.submit().result(30)
        wait_until(lambda: not count_jobs(app))
    app.close()
