"""A loop keeps its newest turns: the oldest go, with a trace, and everything that is left still verifies."""

from __future__ import annotations

import asyncio
import json

import pytest

from tallystick import Key, Tally, again, aio, gather, wait
from tallystick.cli.commands.jobs.history import facts_of
from tallystick.cli.render.history_words import in_words
from tallystick.core.verbs import trimming
from tallystick.engine import trimming as engine_trimming
from tallystick.errors import BadInput, StoreBusy
from tallystick.store.api import Delivered, TrimTurns, TurnEnd
from tallystick.testing.remote_hand import RemoteHand
from tallystick.testing.stepping import SteppedWorker, check_books, check_store
from tests.patience import wait_until

TABLES = ("events", "steps", "messages", "attempts")


@pytest.fixture
def looping(url, clock):
    """A Tally that keeps two turns."""
    tally = Tally(url, clock=clock, keep_turns=2)
    yield tally
    tally.close()


@pytest.fixture
def hand(looping, clock):
    return SteppedWorker(looping, clock)


def counted(app):
    """How many rows of each kind are there."""
    with app.transaction() as db:
        return {table: db.execute(f"select count(*) from {table}")[0][0] for table in TABLES}


def lines(app, job):
    return [
        (line.whole, line.dimension, line.last_n, line.who)
        for line in app.runtime().store.inspect().removals_of(job.id)
    ]


def loop_of(app):
    @app.step
    def work(n: int) -> int:
        return n

    @app.workflow
    def loop(n: int = 0, turns: int = 10) -> int:
        work(n)
        return n if n == turns else again(n + 1, turns)

    return loop


def test_the_oldest_turns_go_when_twice_as_many_are_there(looping, hand):
    job = loop_of(looping).submit()
    most = dict.fromkeys(TABLES, 0)
    while hand.work() == "Cycle":
        now = counted(looping)
        most = {table: max(most[table], now[table]) for table in TABLES}
        assert check_store(looping) == []
    assert job.result(5) == 10
    # A turn is a claim, a step, an attempt, the word to turn and its fact; some have that of a trimming.
    assert most["steps"] <= 4
    assert most["attempts"] <= 4
    assert most["events"] <= 4 * 2 + 2
    assert [line[:2] for line in lines(looping, job)] == [(0, 1), (0, 3), (0, 5), (0, 7)]
    assert {line[3] for line in lines(looping, job)} == {trimming.TRIMMING}
    assert check_store(looping) == []


def test_the_history_says_what_was_trimmed(looping, hand):
    job = loop_of(looping).submit(0, 4)
    hand.work_all()
    first, *_rest = facts = job.history()
    (told,) = [json.loads(fact.payload) for fact in facts if fact.name == trimming.TRIM]
    assert (first.n, told["turns"], told["first"]["type"]) == (told["last_n"] + 1, 2, "submit")
    (fact,) = [
        fact for fact, _took in facts_of(looping.runtime().store, job.id) if fact.type == trimming.TRIM
    ]
    assert in_words(fact) == f"turns 1 to 2 are trimmed, with facts 1 to {told['last_n']}"


def test_without_a_number_every_turn_is_kept(url, clock):
    app = Tally(url, clock=clock, keep_turns=None)
    hand = SteppedWorker(app, clock)
    job = loop_of(app).submit(0, 12)
    hand.work_all()
    assert job.history()[0].name == "submit"
    assert lines(app, job) == []
    app.close()


@pytest.mark.parametrize("wrong", [0, -1, True, "100", 1.5])
def test_what_is_no_number_of_turns_is_refused(wrong):
    with pytest.raises(BadInput, match="keep_turns is a whole number of at least 1"):
        Tally("sqlite:///never.db", keep_turns=wrong)


def test_waits_groups_and_timers_of_old_turns_go_with_them(looping, hand, clock):
    @looping.workflow
    def child(n: int) -> int:
        return n

    @looping.workflow
    def loop(n: int, turns: int) -> int:
        wait("never", int, timeout="1s")
        gather(child.child(n), child.child(n))
        return n if n == turns else again(n + 1, turns)

    job = loop.submit(0, 9)
    for _ in range(11):
        hand.work_all()
        clock.advance(1_000)
        assert check_store(looping) == []
    assert job.result(5) == 9
    # Of each turn that is kept a wait and a group, with a timer, two words of children and one of the group.
    with looping.transaction() as db:
        assert db.execute("select count(*) from steps") <= [(4 * 2,)]
        # The children themselves are jobs of their own, and retention removes those.
        assert db.execute("select count(*) from jobs") == [(21,)]


def test_a_child_that_ends_after_its_turn_was_trimmed_is_no_trouble(looping, hand, clock):
    @looping.workflow
    def child() -> None:
        wait("go", bool)

    @looping.workflow
    async def loop(n: int, turns: int) -> int:
        if n == 0:
            left = asyncio.ensure_future(aio.gather(child.child()))
            await aio.wait("begun", bool)
            left.cancel()
        if n < turns:
            again(n + 1, turns)
        await aio.wait("end", bool)
        return n

    job = loop.submit(0, 8)
    hand.work_all()
    job.send("begun", True)
    hand.work_all()
    assert lines(looping, job)
    (born,) = job.children()
    born.send("go", True)
    hand.work_all()
    assert born.state() == "SUCCEEDED"
    assert check_store(looping) == []
    job.send("end", True)
    hand.work_all()
    assert job.result(5) == 8
    assert check_store(looping) == []


def test_a_signal_that_is_sent_again_is_known_after_its_turn_was_trimmed(looping, hand):
    @looping.workflow
    def loop(n: int, turns: int) -> int:
        wait("go", int)
        return n if n == turns else again(n + 1, turns)

    job = loop.submit(0, 9)
    for n in range(9):
        hand.work_all()
        job.send("go", n, id=f"s{n}") if n % 2 else job.send("go", n)
    hand.work_all()
    assert len(lines(looping, job)) >= 3
    assert job.send("go", 1, id="s1") is Delivered.KNOWN
    assert hand.work() == "idle"
    with looping.transaction() as db:
        kept = db.execute("select count(*) from messages where kind = 'signal' and acked_at is not null")
    # Those with an id, and those of turns that are kept.
    assert kept[0][0] < 9
    assert check_store(looping) == []


def test_signals_that_nobody_took_stay(looping, hand):
    @looping.workflow
    def loop(n: int, turns: int) -> int:
        return wait("late", int) if n == turns else again(n + 1, turns)

    job = loop.submit(0, 8)
    job.send("late", 42)
    hand.work_all()
    assert lines(looping, job)
    assert job.result(5) == 42


def test_a_trimmed_loop_is_forked_retried_and_pruned_like_any_other(looping, hand, clock):
    @looping.step
    def work(n: int) -> int:
        return n

    @looping.workflow
    def loop(n: int, turns: int) -> int:
        work(n)
        if n == turns:
            raise ValueError("the end")
        return again(n + 1, turns)

    job = loop.opts(idempotency_key="k", tags=["red"]).submit(0, 7)
    hand.work_all()
    retried = job.retry()
    forked = job.fork(at="work")
    hand.work_all()
    assert (retried.state(), forked.state()) == ("FAILED_FINAL", "FAILED_FINAL")
    assert check_store(looping) == []
    clock.advance(1_000)
    assert looping.prune(older_than="1s") == 3
    assert check_store(looping) == []
    assert not any(counted(looping).values())


def test_a_fork_that_loops_is_trimmed_too(looping, hand):
    @looping.step
    def record(n: int) -> int:
        return n

    @looping.workflow
    def other(n: int) -> int:
        record(n)
        go_on = wait("go", int)
        return n if n >= go_on else again(n + 1)

    job = other.submit(0)
    hand.work_all()
    fork = job.fork(at="go")
    for _ in range(10):
        hand.work_all()
        fork.send("go", 9)
    hand.work_all()
    assert fork.result(5) == 9
    assert fork.history()[0].n > 1
    assert fork.history()[-1].name == "return"
    assert check_store(looping) == []


def test_turns_that_do_not_fit_one_bundle_go_in_several(looping, hand, monkeypatch):
    monkeypatch.setattr(engine_trimming, "TRIM_BATCH_RECORDS_MAX", 1)
    job = loop_of(looping).submit(0, 6)
    hand.work_all()
    assert [line[1] for line in lines(looping, job)] == [0, 1, 2, 3]
    assert check_store(looping) == []


def test_a_loop_that_was_paused_between_its_turns_verifies(looping, hand):
    job = loop_of(looping).submit(0, 9)
    for _ in range(9):
        assert hand.work() == "Cycle"
        job.pause()
        job.resume()
        assert check_store(looping) == []
    hand.work_all()
    assert check_store(looping) == []


def test_what_the_store_refuses_is_trimmed_at_a_later_turn(looping, hand, monkeypatch, caplog):
    call = type(looping.runtime().committer).call
    refused = []

    def away(committer, bundle):
        if type(bundle[-1]) is TrimTurns and not refused:
            refused.append(bundle)
            raise StoreBusy("another process writes")
        return call(committer, bundle)

    monkeypatch.setattr(type(looping.runtime().committer), "call", away)
    job = loop_of(looping).submit(0, 6)
    hand.work_all()
    assert job.result(5) == 6
    assert [record.action for record in caplog.records if hasattr(record, "action")] == ["trim.refused"]
    assert [line[1] for line in lines(looping, job)] == [3]
    assert check_store(looping) == []


def test_a_worker_that_lost_its_lease_trims_nothing(looping, hand, clock):
    loop = loop_of(looping)
    job = loop.submit(0, 9)
    for _ in range(3):
        hand.work()
    segment = hand.claim()
    hand.expire()
    before = counted(looping)
    assert hand.run(segment) == "lost"
    assert counted(looping)["events"] >= before["events"]
    assert lines(looping, job) == []


def test_a_turn_that_has_not_ended_is_not_removed(looping, hand):
    """The store looks for the fact that ended the turn, whoever asks."""
    job = loop_of(looping).submit(0, 9)
    hand.work()
    with pytest.raises(Exception, match="no turn has ended with fact 2"):
        looping.runtime().committer.call((TrimTurns(job.id, TurnEnd(0, 2, b"", 1)),))
    assert lines(looping, job) == []


def test_the_database_keeps_what_no_line_of_the_log_names(looping, hand, url):
    job = loop_of(looping).submit(0, 9)
    for _ in range(5):
        hand.work()
    assert lines(looping, job)
    for table in TABLES:
        with pytest.raises(Exception, match="DELETE"), looping.transaction() as db:
            db.execute(f"delete from {table}")


def test_async_loops_in_a_worker_are_trimmed(url):
    app = Tally(url, keep_turns=3)

    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def loop(n: int, turns: int) -> int:
        await work(n)
        return n if n == turns else again(n + 1, turns)

    with app.worker():
        job = loop.submit(0, 20)
        assert job.result(30) == 20
    wait_until(lambda: job.history()[0].n > 1, "a trimmed history")
    assert counted(app)["attempts"] <= 6
    assert check_books(app) == []
    app.close()


def test_remote_steps_and_effects_of_old_turns_go_and_their_keys_stay(looping, hand):
    """A key outlives its turn, so that the act is never repeated; nothing else of the turn is left."""
    depot = RemoteHand(looping, "depot")

    @looping.remote("depot")
    def fetch(n: int) -> int: ...

    @looping.effect(key="act:{n}")
    def act(key: Key, n: int) -> int:
        return n

    @looping.workflow
    def loop(n: int = 0) -> int:
        act(fetch(n))
        return again(n + 1) if n < 8 else n

    job = loop.submit()
    for n in range(9):
        hand.work_all()
        depot.take().succeed(n)
        assert check_store(looping) == []
    hand.work_all()
    assert job.result(5) == 8
    with looping.connect() as db:
        keys = db.execute("select key from effect_keys order by key")
        units = db.execute("select unit from attempts where unit <> '' order by unit")
        steps = db.execute("select distinct dimension from steps order by dimension")
        messages = db.execute("select distinct dimension from messages order by dimension")
    kept = [dimension for (dimension,) in steps]
    assert [key for (key,) in keys] == [f"act:{n}" for n in range(9)]
    assert kept[-1] == 8
    assert len(kept) <= 4
    assert [unit for (unit,) in units] == [f"{dimension}/act#1" for dimension in kept]
    assert [dimension for (dimension,) in messages] == kept
    assert check_store(looping) == []
