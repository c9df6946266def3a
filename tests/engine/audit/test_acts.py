"""What people did and who they were is kept with what they did: on running jobs, queues and schedules too."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from tallystick import JobCancelled, Tally, current, wait
from tallystick.engine.audit.sealing import seal
from tallystick.engine.audit.whole_store import verify
from tallystick.errors import BadInput, NotFound
from tests.engine.audit.forging import Forger
from tests.patience import wait_until

PATIENCE = 30


def told(acts) -> list[tuple[str, str, str]]:
    return [(act.verb, act.who, act.told) for act in reversed(acts)]


def test_a_job_that_runs_keeps_who_paused_resumed_and_cancelled_it(app: Tally):
    """It is the author of its own history, so its facts do not name them."""
    begun, go = threading.Event(), threading.Event()

    @app.step
    def work() -> None:
        begun.set()
        go.wait(PATIENCE)
        wait_until(lambda: current().cancelled, "the request")

    @app.workflow
    def flow() -> None:
        work()
        work()

    with app.worker():
        job = flow.submit()
        assert begun.wait(PATIENCE)
        job.pause("a fire drill", by="ann")
        job.resume(by="bob")
        asyncio.run(job.cancel_aio(grace="1m", by="cem"))
        go.set()
        with pytest.raises(JobCancelled):
            job.result(PATIENCE)
    expected = [("pause", "ann", "a fire drill"), ("resume", "bob", ""), ("cancel", "cem", "grace 60 s")]
    assert told(app.acts(job=job)) == expected
    assert told(asyncio.run(app.acts_aio(job=job.id))) == expected
    newest, *_rest = app.acts(limit=1)
    assert (newest.about, newest.name) == ("job", job.id)
    assert abs(newest.at - datetime.now(UTC)) < timedelta(minutes=5)
    assert told(app.acts(job=job, after=newest)) == expected[:2]


def test_a_job_keeps_who_sent_it_a_signal(app: Tally):
    @app.workflow
    def flow() -> list[int]:
        return [wait("first", int), wait("second", int), wait("third", int)]

    with app.worker():
        job = flow.submit()
        job.send("first", 1, by="ann")
        job.send("second", 2)
        asyncio.run(job.send_aio("third", 3, by="bob"))
        assert job.result(PATIENCE) == [1, 2, 3]
    assert told(app.acts(job=job)) == [("send", "ann", "first"), ("send", "bob", "third")]
    for sending in (
        lambda: app.job("nobody").send("first", 1, by="ann"),
        lambda: asyncio.run(app.job("nobody").send_aio("first", 1, by="ann")),
    ):
        with pytest.raises(NotFound):
            sending()
    assert len(app.acts()) == 2
    assert verify(app.runtime().store).findings_total == 0


def test_an_act_without_an_author_and_one_that_is_refused_are_not_kept(app: Tally):
    @app.workflow
    def flow() -> None: ...

    job = flow.submit()
    job.pause()
    job.resume()
    with pytest.raises(NotFound):
        app.job("nobody").cancel(by="ann")
    assert app.acts() == []
    job.cancel(by="ann")
    assert told(app.acts()) == [("cancel", "ann", "grace 30 s")]


def test_many_jobs_and_one_that_ended_by_force(app: Tally):
    @app.workflow
    def flow() -> None:
        wait("never", bool)

    jobs = [flow.submit() for _ in range(3)]
    assert app.pause_many(workflow="flow", why="lunch", by="ann") == 3
    assert app.resume_many(workflow="flow", by="ann") == 3
    jobs[0].cancel(force=True, by="bob")
    assert [told(app.acts(job=job)) for job in jobs[1:]] == [
        [("pause", "ann", "lunch"), ("resume", "ann", "")]
    ] * 2
    assert told(app.acts(job=jobs[0]))[2:] == [("cancel", "bob", "by force")]


def test_queues_keep_who_changed_them(app: Tally):
    app.queues.set("emails", concurrency=3, by="ann")
    app.queues.pause("emails", by="bob")
    asyncio.run(app.queues.resume_aio("emails", by="cem"))
    app.queues.reset("emails")
    app.queues.set("other", rate="1/1s", by="ann")
    assert told(app.acts(queue="emails")) == [
        ("set", "ann", "concurrency=3"),
        ("pause", "bob", ""),
        ("resume", "cem", ""),
        ("reset", "a person", ""),
    ]
    assert len(app.acts()) == 5


def test_schedules_keep_who_changed_them(timed: Tally):
    @timed.workflow
    def report() -> None: ...

    those = timed.schedules
    since = datetime(2027, 1, 1, tzinfo=UTC)
    those.add("nightly", report, "0 3 * * *", by="ann")
    those.pause("nightly", by="bob")
    those.resume("nightly", by="cem")
    job = those.trigger("nightly", by="dan")
    before = timed.runtime().committer.bundles
    those.backfill("nightly", since, since + timedelta(days=2), by="eve")
    assert timed.runtime().committer.bundles == before + 2, "the act is in the bundle of the first tick"
    those.backfill("nightly", since, since + timedelta(hours=1), by="eve")  # no tick, so nothing was done
    those.remove("nightly", by="fay")
    assert told(timed.acts(schedule="nightly")) == [
        ("add", "ann", "0 3 * * *"),
        ("pause", "bob", ""),
        ("resume", "cem", ""),
        ("trigger", "dan", f"job {job.id}"),
        ("backfill", "eve", "2027-01-01T00:00:00+00:00 until 2027-01-03T00:00:00+00:00, 2 ticks"),
        ("remove", "fay", ""),
    ]


def test_a_word_to_a_job_that_has_ended_is_kept_too(app: Tally):
    @app.workflow
    def flow() -> None: ...

    job = flow.submit()
    job.cancel(by="ann")
    job.pause(by="bob")
    assert [(act.verb, act.who) for act in app.acts(job=job)] == [("pause", "bob"), ("cancel", "ann")]


def test_what_was_said_to_a_job_goes_with_it_and_nothing_else_changes(app: Tally):
    @app.workflow
    def flow() -> None: ...

    jobs = [flow.submit() for _ in range(2)]
    jobs[0].cancel(by="ann")
    app.queues.pause("emails", by="ann")
    jobs[1].pause(by="ann")
    for change, why in (
        ("update acts set who = 'somebody else'", "an act is a fact and cannot change"),
        ("update acts set verb = '', who = '', told = ''", "an act is a fact and cannot change"),
        ("delete from acts", "what people did is remembered"),
    ):
        with pytest.raises(Exception, match=why), app.transaction() as db:
            db.execute(change)
    assert app.prune(older_than="0s") == 1
    assert told(app.acts()) == [("pause", "ann", ""), ("pause", "ann", "paused by hand")]
    assert app.acts(job=jobs[0]) == []
    assert verify(app.runtime().store).findings == []


def test_acts_of_two_processes_at_once_are_one_chain(app: Tally, url):
    """Both speak to the same jobs, so that each may hold what the other waits for."""

    @app.workflow
    def flow() -> None: ...

    jobs = [flow.submit().id for _ in range(4)]

    def speak(order: list[str]) -> None:
        other = Tally(url)
        for _ in range(5):
            for job_id in order:
                other.job(job_id).pause(by="ann")
            other.resume_many(by="ann", everything=True)
        other.close()

    threads = [threading.Thread(target=speak, args=(order,)) for order in (jobs, jobs[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(app.acts(limit=500)) >= 40
    assert verify(app.runtime().store).findings == []


def test_a_seal_misses_the_newest_act(app: Tally, url):
    app.queues.pause("emails", by="ann")
    app.queues.resume("emails", by="ann")
    store = app.runtime().store
    sealed = seal(store, 1)
    app.queues.pause("emails", by="ann")
    assert verify(store, sealed=sealed).findings == []
    forger = Forger(url)
    forger.run("delete from acts where seq > 1")
    forger.close()
    assert verify(store).findings == []
    assert [each.message for each in verify(store, sealed=sealed).findings] == [
        "act 2 is not there as it was sealed"
    ]


def test_one_thing_is_asked_for_at_a_time(app: Tally):
    with pytest.raises(BadInput, match="one job, one queue or one schedule"):
        app.acts(queue="a", schedule="b")
