"""Real jobs of many kinds in one store: ended in every way, and open at every point where one can stand."""

from __future__ import annotations

import asyncio

from tallystick import Fatal, Retry, again, aio, gather, sleep, wait
from tallystick.testing.stepping import Death, cancel_overdue, die
from tests.cut_spawn import behind_each_bundle, small_spawns


class Kinds:
    """A store that is lived in, by hand; what is due comes last, or another claim would take it."""

    def __init__(self, app, hand, clock, monkeypatch) -> None:
        self.app, self.hand, self.clock, self.monkeypatch = app, hand, clock, monkeypatch
        self.deadly = False
        self._declare()

    def live(self) -> None:
        """Bring jobs of every kind to where they stay."""
        self._end_plainly()
        self._wait_and_end()
        self._turn()
        self._gather()
        self._spawn_cut_short()
        self._fork()
        self._die()
        self._cancel()
        self.stay_open()

    def _declare(self) -> None:
        app, kinds = self.app, self

        @app.step(retry=Retry(3, first="1ms"))
        def flaky(n: int) -> int:
            kinds.tries += 1
            if kinds.tries % 3 and n:
                raise ValueError("not yet")
            return n

        @app.step
        def work() -> int:
            if kinds.deadly:
                raise Death
            return 1

        @app.tx
        def book(db) -> int:
            return 1

        @app.workflow
        def plain(n: int = 0) -> int:
            return flaky(n) + book()

        @app.workflow
        def broken() -> None:
            work()
            raise Fatal("no")

        @app.workflow(retry=Retry(2, first="1h"))
        def stubborn() -> None:
            raise ValueError("again")

        @app.workflow(attempts=2)
        def deadly() -> None:
            wait("go", bool, timeout="1d")
            raise Death

        @app.workflow
        def waits(more: int = 0) -> None:
            wait("go", bool, timeout="1h")
            work()
            for _ in range(more):
                wait("more", bool)

        @app.workflow
        def sleeps() -> None:
            sleep("1m")

        @app.workflow
        async def both() -> None:
            await asyncio.gather(aio.wait("a", bool), aio.wait("b", bool))

        @app.workflow
        async def abandons() -> None:
            tasks = [asyncio.ensure_future(aio.wait(name, bool)) for name in "ab"]
            _done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in left:
                task.cancel()
            await aio.wait("c", bool)

        @app.workflow
        def loop(n: int, turns: int) -> int:
            if n:
                wait("turn", int, timeout="1d")
            return again(n + 1, turns) if n < turns else n

        @app.workflow
        def child(n: int) -> int:
            if n < 0:
                raise ValueError("negative")
            return n

        @app.workflow
        def parent(ns: list[int], enough: int | None = None, fail_fast: bool = False) -> int:
            good = gather(*(child.child(n) for n in ns), enough=enough, fail_fast=fail_fast)
            wait("go", bool)
            return len(good)

        @app.workflow(version="2")
        def versioned(codes: set[int]) -> int:
            return len(codes)

        self.tries = 0
        self.plain, self.broken, self.stubborn, self.deadly_flow = plain, broken, stubborn, deadly
        self.waits, self.sleeps, self.both, self.abandons, self.loop = waits, sleeps, both, abandons, loop
        self.parent, self.versioned = parent, versioned

    def _end_plainly(self) -> None:
        self.plain.submit(1)
        self.broken.submit()
        self.versioned.opts(idempotency_key="k").submit({8, 0})
        self.versioned.opts(idempotent=True).submit({0, 8})
        self.hand.work_all()
        self.stubborn.submit()
        self.hand.work_all()

    def _wait_and_end(self) -> None:
        answered, early, timed_out, asleep = (
            w.submit() for w in (self.waits, self.waits, self.waits, self.sleeps)
        )
        early.send("go", True)
        early.send("unread", True)
        self.hand.work_all()
        answered.send("go", True)
        self.hand.work_all()
        self.clock.advance(3_600_000)
        self.hand.work_all()
        assert {job.state() for job in (answered, early, timed_out, asleep)} == {"SUCCEEDED"}
        together, first = self.both.submit(), self.abandons.submit()
        self.hand.work_all()
        together.send("a", True)
        first.send("b", True)
        self.hand.work_all()
        together.send("b", True)
        first.send("c", True)
        self.hand.work_all()
        assert {together.state(), first.state()} == {"SUCCEEDED"}

    def _turn(self) -> None:
        over, open_ = self.loop.submit(0, 2), self.loop.submit(0, 3)
        self.hand.work_all()
        for job in (over, open_):
            for n in range(2):
                job.send("turn", n, id=str(n))
        self.hand.work_all()
        assert (over.state(), open_.state()) == ("SUCCEEDED", "IN_PROGRESS")

    def _gather(self) -> None:
        jobs = [
            self.parent.submit([0, 1, 2]),
            self.parent.submit([0, 1, -1], enough=1),
            self.parent.submit([-1, 1, 2], fail_fast=True),
        ]
        self.hand.work_all()
        jobs[0].send("go", True)
        jobs[1].cancel()
        self.hand.work_all()
        assert [job.state() for job in jobs] == ["SUCCEEDED", "CANCELLED", "FAILED_FINAL"]

    def _spawn_cut_short(self) -> None:
        """One goes on when it is taken over; of another the ledger is full by then."""
        with self.monkeypatch.context() as patch:
            small_spawns(patch.setattr, 2)
            behind_each_bundle(patch.setattr, die)
            jobs = [self.parent.submit([0, 1, 2, 3]) for _ in range(2)]
            self.hand.work_all()
            with self.app.transaction() as db:
                db.execute(
                    f"update steps set ledger = 999000000000000, rev = 999 where job_id = '{jobs[1].id}'"
                )
            patch.undo()
            small_spawns(patch.setattr, 2)
            self.hand.expire()
            self.hand.work_all()
        assert jobs[0].row().ready_at is None
        assert jobs[1].row().error_code == "LEDGER_CEILING"

    def _fork(self) -> None:
        job = self.waits.submit(1)
        self.hand.work_all()
        job.send("go", True)
        self.hand.work_all()
        job.fork(at="more")
        group = self.parent.submit([1])
        self.hand.work_all()
        group.fork(at="go", id="one")
        failed = self.broken.submit()
        self.hand.work_all()
        failed.retry()
        self.hand.work_all()

    def _die(self) -> None:
        job = self.deadly_flow.submit()
        self.hand.work_all()
        job.send("go", True)
        while self.hand.work() == "died":
            self.hand.expire()
        assert job.row().error_code == "ATTEMPTS_SPENT"
        taken_over = self.waits.submit()
        self.hand.work_all()
        taken_over.send("go", True)
        self.deadly = True
        self.hand.work_all()
        self.hand.expire()
        self.deadly = False
        self.hand.work_all()
        assert taken_over.state() == "SUCCEEDED"

    def _cancel(self) -> None:
        self.plain.submit().cancel()
        job = self.waits.submit()
        self.hand.work_all()
        job.cancel()
        at_work = self.waits.submit()
        self.hand.work_all()
        at_work.send("go", True)
        self.deadly = True
        self.hand.work_all()
        self.hand.expire()
        at_work.cancel()
        forced = self.waits.submit()
        self.hand.work_all()
        forced.send("go", True)
        self.hand.work_all()
        forced.cancel(grace=0)
        self.clock.advance(1)
        assert len(cancel_overdue(self.app)) == 1
        self.deadly = False
        assert {j.state() for j in (job, at_work, forced)} == {"CANCELLED"}

    def stay_open(self) -> None:
        """What holds leases, or is due, comes last."""
        met_again = self.both.submit()
        self.hand.work_all()
        met_again.send("a", True)
        self.hand.work_all()
        group = self.parent.submit([0, 1, 2])
        self.hand.work()
        one, *_others = self.hand.claim_many(3)
        self.hand.run(one)
        assert group.state() == "IN_PROGRESS"
        entered, answered, asked = (self.waits.submit() for _ in range(3))
        self.hand.work_all()
        entered.send("go", True)
        assert self.hand.claim() is not None
        self.deadly = True
        for job in (answered, asked):
            job.send("go", True)
            assert self.hand.work() == "died"
        asked.cancel(grace="1h")
        with self.monkeypatch.context() as patch:
            small_spawns(patch.setattr, 2)
            behind_each_bundle(patch.setattr, die)
            self.parent.submit([0, 1, 2, 3])
            assert [self.hand.work() for _ in range(3)] == ["died", "EndJob", "EndJob"]
        self.plain.submit()
        self.hand.claim()
        told, unread = self.waits.submit(), self.waits.submit()
        self.hand.work_all()
        unread.send("other", True)
        self.plain.submit().pause()
        for _ in range(2):
            # One turn has begun, another one is about to.
            self.loop.submit(0, 1)
            assert self.hand.work() == "Cycle"
            begun = self.hand.claim()
        assert begun is not None
        self.loop.submit(0, 1)
        self.hand.work()
        told.send("go", True)
        self.plain.submit(1)
