"""Jobs are found by the tags they were submitted with."""

from __future__ import annotations

import pytest

from tallystick import gather
from tallystick.errors import BadInput, BadName


def test_jobs_are_listed_by_tag_newest_first_a_page_at_a_time(timed, hand):
    @timed.workflow
    def flow(n: int) -> int:
        return n

    @timed.workflow
    def other() -> None: ...

    jobs = [flow.opts(tags=["customer:42", f"n{n}"]).submit(n) for n in range(3)]
    other.opts(tags=["customer:42"]).submit()
    flow.submit(9)
    assert jobs[0].tags == ("customer:42", "n0")
    assert flow.submit(0).tags == ()
    found = timed.jobs(tag="customer:42", workflow="flow")
    assert [job.id for job in found] == [job.id for job in reversed(jobs)]
    assert [job.id for job in timed.jobs(tag="n1")] == [jobs[1].id]
    assert timed.jobs(tag="n") == []
    first = timed.jobs(tag="customer:42", workflow="flow", limit=2)
    assert [job.id for job in timed.jobs(tag="customer:42", workflow="flow", after=first[-1])] == [jobs[0].id]
    hand.work()
    assert [job.id for job in timed.jobs(tag="customer:42", states=["SUCCEEDED"])] == [jobs[0].id]
    assert len(timed.jobs(limit=2)) == 2


def test_a_child_has_the_tags_of_its_own_options(timed, hand):
    @timed.workflow
    def leaf() -> int:
        return 1

    @timed.workflow
    def parent() -> int:
        return sum(gather(leaf.opts(tags=["leaf"]).child(), leaf.child()))

    job = parent.submit()
    hand.work_all()
    assert job.result(5) == 2
    (found,) = timed.jobs(tag="leaf")
    assert found.tags == ("leaf",)


def test_tags_are_few_and_visible(timed):
    @timed.workflow
    def flow() -> None: ...

    with pytest.raises(BadInput, match="at most 16 tags"):
        flow.opts(tags=[str(n) for n in range(17)]).submit()
    with pytest.raises(BadName):
        flow.opts(tags=["two words"]).submit()
    with pytest.raises(BadInput, match=r"tags=\['abc'\]"):
        flow.opts(tags="abc")
    assert flow.opts(tags=["twice", "twice"]).submit().tags == ("twice",)


def test_a_fork_has_the_tags_of_its_original(timed, hand):
    @timed.step
    def work() -> int:
        return 1

    @timed.workflow
    def flow() -> int:
        return work()

    job = flow.opts(tags=["a", "b"]).submit()
    hand.work()
    fork = job.fork(at="work")
    assert fork.tags == ("a", "b")
    assert [found.id for found in timed.jobs(tag="b")] == [fork.id, job.id]


def test_pruned_jobs_take_their_tags_along(timed, hand, clock):
    @timed.workflow
    def flow() -> None: ...

    flow.opts(tags=["a", "b"]).submit()
    flow.opts(tags=["a"]).submit()
    hand.work_all()
    clock.advance(10 * 86_400_000)
    assert timed.prune(older_than="1d") == 2
    assert timed.jobs(tag="a") == []
    with timed.connect() as db:
        assert db.execute("select count(*) from job_tags") == [(0,)]
