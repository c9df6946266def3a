"""Queues with limits on both stores: what may run, what may begin, and what people can do."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from tallystick import Tally, sleep, wait
from tallystick.errors import BadInput, DuplicateHandler, NoSuchQueue
from tallystick.testing.stepping import check_books
from tests.patience import wait_until


class Gate:
    """Jobs that run until they are let go, and who they are."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.peak = 0
        self._go = threading.Semaphore(0)
        self._lock = threading.Lock()

    def stay(self, name: str) -> str:
        with self._lock:
            self.running.append(name)
            self.peak = max(self.peak, len(self.running))
        assert self._go.acquire(timeout=30)
        with self._lock:
            self.running.remove(name)
        return name

    def let_go(self, number: int = 1) -> None:
        self._go.release(number)


@pytest.fixture
def gate():
    return Gate()


def declare(app: Tally, gate: Gate):
    @app.workflow(queue="emails")
    def mail(name: str) -> str:
        return gate.stay(name)

    return mail


def test_no_more_jobs_of_a_queue_run_than_its_concurrency(app, gate):
    app.queue("emails", concurrency=2)
    mail = declare(app, gate)
    with app.worker(queues=["emails", "default"]):
        jobs = mail.submit_many([(str(n),) for n in range(6)])
        wait_until(lambda: len(gate.running) == 2)
        assert app.queues.get("emails").running == 2
        gate.let_go(6)
        assert sorted(job.result(timeout=30) for job in jobs) == [str(n) for n in range(6)]
    assert gate.peak == 2
    assert app.queues.get("emails").running == 0
    check_books(app)


def test_a_job_that_is_submitted_where_a_slot_is_free_waits_for_its_queue_too(app, gate):
    app.queue("emails", concurrency=1)
    mail = declare(app, gate)
    with app.worker(queues=["emails"]):
        first, second = mail.submit("a"), mail.submit("b")
        wait_until(lambda: gate.running == ["a"])
        assert second.state() == "QUEUED"
        gate.let_go(2)
        assert [first.result(timeout=30), second.result(timeout=30)] == ["a", "b"]
    assert gate.peak == 1


def test_a_limit_that_a_person_sets_counts_for_workers_that_run(app, gate):
    mail = declare(app, gate)
    with app.worker(queues=["emails"]):
        mail.submit("a")
        wait_until(lambda: gate.running == ["a"])
        app.queues.set("emails", concurrency=1)
        second = mail.submit("b")
        assert app.queues.get("emails").running == 1
        assert second.state() == "QUEUED"
        gate.let_go(2)
        assert second.result(timeout=30) == "b"
    assert gate.peak == 1


def test_a_paused_queue_is_not_claimed_until_it_is_resumed(app, gate):
    mail = declare(app, gate)
    gate.let_go(10)

    @app.workflow
    def other() -> str:
        return "done"

    app.queues.pause("emails", by="ada")
    with app.worker(queues=["emails", "default"]):
        job = mail.submit("a")
        assert other.submit().result(timeout=30) == "done"
        assert job.state() == "QUEUED"
        view = app.queues.get("emails")
        assert (view.paused_by, view.declared) == ("ada", False)
        app.queues.resume("emails")
        assert job.result(timeout=30) == "a"
    assert app.queues.get("emails").paused_at is None


def test_a_pause_stops_wakes_and_lets_cancellations_through(timed, hand):
    @timed.workflow(queue="emails")
    def mail() -> str:
        return wait("go", str)

    hand.queues = ("emails",)
    job, other = mail.submit(), mail.submit()
    assert [hand.work() for _ in range(2)] == ["Await", "Await"]
    timed.queues.pause("emails")
    job.send("go", "now")
    assert hand.work() == "idle"
    assert other.cancel() == "CANCELLED"
    timed.queues.resume("emails")
    assert hand.work() == "EndJob"
    assert job.result() == "now"


def test_what_a_person_has_set_wins_until_it_is_reset(app):
    app.queue("emails", concurrency=5, rate="100/1m")
    app.declare_queues()
    app.queues.set("emails", concurrency=2)
    app.declare_queues()
    view = app.queues.get("emails")
    assert (view.limits.concurrency, view.limits.rate, view.chosen) == (2, "100/1m", {"concurrency": 2})
    assert app.queues.set("emails", concurrency=None).limits.concurrency is None
    assert app.queues.reset("emails").limits.concurrency == 5
    with pytest.raises(NoSuchQueue):
        app.queues.resume("other")


@pytest.mark.parametrize(
    "limits",
    [
        {"concurrency": 0},
        {"concurrency": "many"},
        {"per_key": -1},
        {"rate": "100"},
        {"rate": "0/1s"},
        {"rate": "5/soon"},
        {"order": "lifo"},
        {"hold_slots": "yes"},
        {"size": 3},
    ],
)
def test_limits_that_mean_nothing_are_refused(app, limits):
    with pytest.raises(BadInput):
        app.queues.set("emails", **limits)
    assert app.queues.all() == []


def test_a_queue_is_declared_once(app):
    app.queue("emails", concurrency=1)
    with pytest.raises(DuplicateHandler):
        app.queue("emails", concurrency=2)


def test_jobs_begin_at_the_rate_of_their_queue(timed, clock, hand):
    @timed.workflow(queue="emails")
    def mail() -> int:
        return clock.wall_ms()

    timed.queue("emails", rate="10/1s", burst=2)
    timed.declare_queues()
    hand.queues = ("emails",)
    jobs = [mail.submit() for _ in range(5)]
    began = []
    for _ in range(40):
        while hand.work() != "idle":
            began.append(clock.wall_ms())
        clock.advance(20)
    assert len({job.result() for job in jobs}) == 4
    assert [later - first for first, later in pairwise(began)] == [0, 100, 100, 100]


def test_keys_take_turns(timed, hand):
    order = []

    @timed.workflow(queue="emails")
    def mail(name: str) -> None:
        order.append(name)

    timed.queue("emails", concurrency=1)
    timed.declare_queues()
    hand.queues = ("emails",)
    for n in range(4):
        mail.opts(limit_key="acme").submit(f"acme{n}")
    mail.opts(limit_key="zeta").submit("zeta0")
    mail.submit("none0")
    while hand.work() != "idle":
        pass
    assert order == ["acme0", "zeta0", "none0", "acme1", "acme2", "acme3"]


def test_a_key_whose_jobs_are_all_woken_keeps_no_other_from_its_turn(timed, clock, hand):
    """What has begun goes first, and not twice in a row before a job of another key."""
    said = []

    @timed.step
    def note(word: str) -> None:
        said.append(word)

    @timed.workflow(queue="emails")
    def mail(name: str) -> None:
        note(f"{name} begins")
        sleep("10m")
        note(f"{name} goes on")

    timed.queue("emails", concurrency=1)
    timed.declare_queues()
    hand.queues = ("emails",)
    for _ in range(5):
        mail.opts(limit_key="acme").submit("acme")
    hand.work_all()
    clock.advance(600_000)
    said.clear()
    for key in ("acme", "young", "zeta"):
        mail.opts(limit_key=key).submit(key)
    mail.submit("none")
    hand.work_all()
    others = ["young begins", "zeta begins", "none begins"]
    assert said[:6] == [word for other in others for word in ("acme goes on", other)]
    assert said[6:] == ["acme goes on", "acme goes on", "acme begins"]


def test_each_key_has_its_own_slots_and_rate(timed, clock, hand):
    order = []

    @timed.workflow(queue="emails")
    def mail(name: str) -> None:
        order.append(name)

    timed.queue("emails", key_rate="1/1s")
    timed.declare_queues()
    hand.queues = ("emails",)
    for n in range(2):
        mail.opts(limit_key="a").submit(f"a{n}")
        mail.opts(limit_key="b").submit(f"b{n}")
    while hand.work() != "idle":
        pass
    assert order == ["a0", "b0"]
    clock.advance(1_000)
    while hand.work() != "idle":
        pass
    assert order == ["a0", "b0", "a1", "b1"]


def test_a_job_that_waits_gives_its_slot_to_another(timed, hand):
    @timed.workflow(queue="emails")
    def mail(name: str) -> str:
        return name + wait("go", str)

    timed.queue("emails", concurrency=1)
    timed.declare_queues()
    hand.queues = ("emails",)
    first, second = mail.submit("a"), mail.submit("b")
    assert [hand.work(), hand.work(), hand.work()] == ["Await", "Await", "idle"]
    running = hand.claim
    first.send("go", "1")
    second.send("go", "2")
    claimed = running()
    assert running() is None
    hand.run(claimed)
    hand.work_all()
    assert (first.result(), second.result()) == ("a1", "b2")
    assert check_books(timed) == []


def test_a_woken_job_pays_no_second_token(timed, clock, hand):
    @timed.workflow(queue="emails")
    def mail() -> str:
        return wait("go", str)

    timed.queue("emails", rate="1/1h")
    timed.declare_queues()
    hand.queues = ("emails",)
    first, second = mail.submit(), mail.submit()
    assert [hand.work(), hand.work()] == ["Await", "idle"]
    first.send("go", "now")
    assert [hand.work(), hand.work()] == ["EndJob", "idle"]
    assert (first.result(), second.state()) == ("now", "QUEUED")
    clock.advance(3_600_000)
    assert hand.work() == "Await"


def test_no_key_is_left_out_where_there_are_more_than_one_look_goes_past(timed, clock, hand, monkeypatch):
    monkeypatch.setattr("tallystick.store.sql.queueing.managed.KEYS_LOOKED_AT_MAX", 10)
    order = []

    @timed.workflow(queue="emails")
    def mail(name: str) -> None:
        order.append(name)

    timed.queue("emails", key_rate="1/1h")
    timed.declare_queues()
    hand.queues = ("emails",)
    for n in range(60):
        mail.opts(limit_key=f"k{n:02}").submit(f"k{n:02}")
        mail.opts(limit_key=f"k{n:02}").submit("later")
    for _ in range(200):
        hand.work()
    assert sorted(order) == [f"k{n:02}" for n in range(60)]
    mail.opts(limit_key="k59x").submit("new")
    for _ in range(12):
        hand.work()
    assert order[-1] == "new"


def test_why_tells_of_limits_and_of_a_pause(timed, hand):
    @timed.workflow(queue="emails")
    def mail(name: str) -> str:
        return name

    timed.queue("emails", concurrency=1)
    timed.declare_queues()
    hand.queues = ("emails",)
    mail.submit("a")
    second = mail.submit("b")
    claimed = hand.claim()
    assert second.why().endswith("; 1 job of the queue emails runs, and it lets 1 run at once")
    hand.run(claimed)
    timed.queues.pause("emails", by="ada")
    assert "; the queue emails has been paused by ada since 2023-11-14" in second.why()
    timed.queues.resume("emails")
    timed.queues.set("emails", rate="5/1m")
    assert second.why().endswith("; it begins at the rate of 5/1m of the queue")
