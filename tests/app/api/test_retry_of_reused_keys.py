"""Retry of a job whose key another job has by now: refused with that job's name, and passed by in bulk."""

from __future__ import annotations

import pytest

from tallystick import Fatal, wait
from tallystick.errors import KeyMoved
from tallystick.testing.stepping import check_books, check_store


@pytest.fixture
def imports(timed):
    @timed.workflow
    def imports(n: int) -> int:
        raise Fatal(f"no {n}")

    return imports


RULES = {
    "reuse": {"idempotency_key": "k", "reuse": "after_end"},
    "unique": {"idempotency_key": "k", "unique": "while_active"},
    "debounce": {"idempotency_key": "k", "debounce": "1ms"},
    "the arguments": {"unique": "while_active"},
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_job_whose_key_another_has_is_not_retried(timed, clock, hand, imports, rule):
    keyed = imports.opts(**rule)
    first, second = (failed(keyed, clock, hand) for _ in range(2))
    assert first.id != second.id
    with pytest.raises(KeyMoved, match=rf"belongs to job {second.id} by now.*or fork this one") as refused:
        first.retry()
    assert refused.value.code == "KEY_MOVED"
    assert (refused.value.fields["job_id"], refused.value.fields["holder"]) == (first.id, second.id)
    assert first.row().retried_as is None
    assert second.retry().created, "the one that has the key is retried"
    assert check_books(timed) == []
    assert check_store(timed) == []


def test_while_the_other_job_waits_its_retry_is_refused_as_well(timed, clock, hand, imports):
    keyed = imports.opts(idempotency_key="k", unique="while_active")
    first = failed(keyed, clock, hand)
    waiting = keyed.submit(2)
    with pytest.raises(KeyMoved, match=waiting.id):
        first.retry()
    assert keyed.submit(3).id == waiting.id


def test_many_jobs_are_retried_around_those_whose_key_another_has(timed, clock, hand, imports):
    keyed = imports.opts(idempotency_key="k", reuse="after_end")
    lost = [failed(keyed, clock, hand) for _ in range(3)]
    others = [failed(imports, clock, hand) for _ in range(2)]
    reached = timed.retry_many(workflow="imports")
    assert (reached, reached.passed_by) == (3, 2)
    assert [job.row().retried_as is None for job in lost] == [True, True, False]
    assert all(job.row().retried_as for job in others)
    again = timed.retry_many(workflow="imports")
    assert (again, again.passed_by) == (0, 2)
    assert check_books(timed) == []


def test_later_pages_are_reached_too(timed, clock, hand, imports, monkeypatch):
    """The newest job is first: it is of the last page, and those before it are passed by."""
    monkeypatch.setattr("tallystick.app.asking.many._PAGE", 2)
    oldest = failed(imports, clock, hand)
    keyed = imports.opts(idempotency_key="k", reuse="after_end")
    lost = [failed(keyed, clock, hand) for _ in range(5)]
    reached = timed.retry_many(workflow="imports")
    assert (reached, reached.passed_by) == (2, 4)
    assert oldest.row().retried_as
    assert lost[-1].row().retried_as


def test_a_key_that_is_free_again_is_taken_by_the_retry(timed, clock, hand):
    """The job that took it has ended and was removed while the one before it still waited."""

    @timed.workflow
    def slow(n: int) -> None:
        if n:
            wait("go", bool)
            raise Fatal("no")

    keyed = slow.opts(idempotency_key="k", debounce="1ms")
    first = keyed.submit(1)
    clock.advance(10)
    assert hand.work() == "Await"
    second = keyed.submit(0)
    clock.advance(10)
    hand.work_all()
    assert second.state() == "SUCCEEDED"
    clock.advance(2 * 86_400_000)
    assert timed.prune(older_than="1d") == 1
    first.send("go", True)
    hand.work_all()
    retry = first.retry()
    assert slow.opts(idempotency_key="k").submit(1).id == retry.id
    assert check_books(timed) == []
    assert check_store(timed) == []


def failed(keyed, clock, hand):
    """Submit a job and let it fail; what was debounced begins a moment later."""
    job = keyed.submit(1)
    clock.advance(10)
    hand.work_all()
    assert job.state() == "FAILED_FINAL"
    return job
