"""The check of the books: silent about every honest history, and loud about each kind of change."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tallystick import Fatal, JobFailed, Retry, Tally
from tallystick.clock import VirtualClock
from tallystick.core.limits import HISTORY_WARN_RECORDS
from tallystick.engine.audit import FINDINGS_KEPT_MAX, Audit, audit
from tallystick.engine.sweep import sweep


class Shop:
    """An app with a workflow of each kind of ending."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.app = app = Tally(f"sqlite:///{path}")
        self.failures = 0

        @app.step(retry=Retry(3, first="1ms"))
        def quote(order: int) -> int:
            if order == 13 and self.failures < 2:
                self.failures += 1
                raise ValueError("not yet")
            return order

        @app.workflow
        def checkout(order: int, count: int = 2) -> int:
            return sum(quote(order) for _ in range(count))

        @app.workflow
        def fails(why: str) -> None:
            raise Fatal(why)

        @app.workflow(retry=Retry(6, first="1ms"))
        def stubborn(order: int) -> int:
            self.failures += 1
            if self.failures < order:
                raise ValueError("again")
            return order

        self.checkout, self.fails, self.stubborn = checkout, fails, stubborn

    def audit(self, jobs_max: int | None = None) -> Audit:
        return audit(self.app.runtime().store, jobs_max=jobs_max)

    def tamper(self, *statements: str) -> None:
        """Change rows by hand, with every trigger taken away first."""
        connection = apsw.Connection(str(self.path))
        try:
            for (name,) in list(connection.execute("select name from sqlite_master where type = 'trigger'")):
                connection.execute(f"drop trigger {name}")
            connection.execute("pragma ignore_check_constraints = 1")
            for statement in statements:
                connection.execute(statement)
        finally:
            connection.close()


@pytest.fixture
def shop(tmp_path) -> Iterator[Shop]:
    shop = Shop(tmp_path / "shop.db")
    yield shop
    shop.app.close()


def end_some(shop: Shop) -> None:
    with shop.app.worker():
        assert shop.checkout.submit(13).result(30) == 26
        with pytest.raises(JobFailed):
            shop.fails.submit("no").result(30)


def test_honest_books_balance(shop):
    end_some(shop)
    shop.checkout.submit(1)
    seen = shop.audit()
    assert (seen.jobs, seen.findings_total) == (3, 0)
    assert seen.facts == 7 + 3 + 1


def test_only_the_newest_are_checked_when_asked(shop):
    for order in range(5):
        shop.checkout.submit(order)
    assert (shop.audit(3).jobs, shop.audit(0).jobs, shop.audit().jobs) == (3, 0, 5)


def test_a_job_that_its_own_policy_tries_more_often_than_its_budget_is_no_finding(shop):
    with shop.app.worker():
        job = shop.stubborn.submit(5)
        assert job.result(30) == 5
    assert shop.audit().findings == []
    shop.failures = -1_000
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.is_set():
            found.extend(shop.audit(1).findings)

    found: list[object] = []
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        with shop.app.worker(), pytest.raises(JobFailed):
            shop.stubborn.submit(5).result(30)
    finally:
        stopped.set()
        thread.join()
    assert found == []


def test_jobs_that_change_while_they_are_read_are_no_finding(shop):
    """The check takes no lock; what moved meanwhile is read again."""
    with shop.app.worker(concurrency=8):
        jobs = shop.checkout.submit_many([(order,) for order in range(300)])
        seen = [shop.audit()]
        for job in jobs:
            job.result(60)
            if len(seen) < 20:
                seen.append(shop.audit(50))
    assert not [finding for one in seen for finding in one.findings]


def test_a_job_whose_workers_died_balances_at_every_moment(tmp_path):
    """Claimed, expired, reclaimed, and failed for good when the budget is spent."""
    clock = VirtualClock()
    app = Tally(f"sqlite:///{tmp_path / 'shop.db'}", clock=clock)

    @app.workflow(attempts=2)
    def never() -> None:
        raise AssertionError("nobody runs it here")

    from tallystick.store.api import ClaimJobs

    job = never.submit()
    runtime = app.runtime()
    for attempt in (1, 2):
        claim = ClaimJobs(
            "w", ("default",), frozenset({("never", "")}), 1, 1_000, lambda n=attempt: f"lease-{n}"
        )
        (outcome,) = runtime.store.apply([(claim,)])
        assert len(outcome) == 1
        assert audit(runtime.store).findings == []
        clock.advance(1_000)
        assert audit(runtime.store).findings == []
        assert sweep(runtime.store, runtime.committer) == 1
        assert audit(runtime.store).findings == []
    assert job.state() == "FAILED_FINAL"
    app.close()


@pytest.mark.parametrize(
    ("change", "check", "message"),
    [
        ("update steps set result = '99' where occurrence = 1", "chain", "fact 5 (step quote#1) was changed"),
        ("update events set payload = '{}' where n = 3", "chain", "fact 3 (try) was changed"),
        ("update events set at = at + 1 where n = 2", "chain", "fact 2 (claim) was changed"),
        ("delete from events where n = 3", "chain", "fact 3 is missing"),
        ("delete from events where type = 'return'", "chain", "ends with fact 7, and it has 6"),
        ("update jobs set head_hash = x'00'", "chain", "says its history ends"),
        ("update jobs set state = 'FAILED_FINAL'", "state", "the job says FAILED_FINAL"),
        ("update jobs set attempt = 2", "attempts", "counts 2 attempts, there are 1 rows"),
        (
            "update attempts set status = 'COMMITTED'",
            "attempts",
            "attempt 1 is COMMITTED, the facts say DONE",
        ),
        (
            "update jobs set start_ledger = 1",
            "digits",
            "000000000000001, acknowledged, in a job SUCCEEDED",
        ),
        ("update jobs set start_ledger = 111100000000", "digits", "the message has no entry"),
        ("update jobs set start_ledger = 911100000001", "digits", "its top is 1"),
        ("update steps set ledger = 1100000000001", "digits", "says it is not complete"),
        ("update steps set ledger = 11000000001", "digits", "leg 1 is not complete"),
        ("update jobs set semaphore = 1", "semaphore", "the semaphore is 1, open obligations are 0"),
        ("update attempts set status = 'ABORTED', reason = 'EXPIRED'", "view", "its attempts say PENDING"),
        ("delete from attempts", "attempts", "there are 0 rows"),
    ],
)
def test_each_change_by_hand_is_found(shop, change, check, message):
    with shop.app.worker():
        shop.checkout.submit(13).result(30)
    shop.tamper(change)
    found = shop.audit().findings
    assert [finding for finding in found if finding.check == check and message in finding.message], found


def test_an_open_job_with_a_wrong_semaphore_or_entry_is_found(shop):
    shop.checkout.submit(1)
    shop.tamper("update jobs set semaphore = 0, start_ledger = 1")
    assert {finding.check for finding in shop.audit().findings} == {"semaphore", "digits"}


def test_of_many_findings_the_first_are_kept_and_all_are_counted(shop):
    shop.checkout.submit_many([(order,) for order in range(FINDINGS_KEPT_MAX + 5)])
    shop.tamper("update jobs set semaphore = 7")
    seen = shop.audit()
    assert (len(seen.findings), seen.findings_total) == (FINDINGS_KEPT_MAX, FINDINGS_KEPT_MAX + 5)


@pytest.mark.slow
def test_the_memory_of_a_check_does_not_grow_with_the_store(shop):
    """One page at a time: if it kept every job it would need several megabytes here."""
    shop.checkout.submit_many([(order,) for order in range(4_000)])
    tracemalloc.start()
    try:
        assert shop.audit().jobs == 4_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_long_history_is_a_warning_and_is_read_in_pages(shop):
    with shop.app.worker():
        job = shop.checkout.submit(1, HISTORY_WARN_RECORDS)
        job.result(60)
    seen = shop.audit()
    assert seen.findings == []
    assert seen.long_histories == [(job.id, HISTORY_WARN_RECORDS + 3)]
