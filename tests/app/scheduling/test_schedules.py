"""Schedules on both stores: each tick is one job, and nothing that happens loses or doubles one."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from tallystick import Tally, wait
from tallystick.errors import BadInput, BadSchedule, DuplicateHandler, NoSuchSchedule
from tallystick.testing.stepping import SteppedWorker, check_books, check_store, open_store, tick_schedules
from tests.patience import wait_until

MINUTE, HOUR = 60_000, 3_600_000


def ran(app: Tally, name: str = "report") -> list[str]:
    """Return the keys of the jobs that a schedule made, oldest first, without their common part."""
    jobs = app.jobs(tag=f"schedule:{name}", limit=1000)
    return sorted(job.row().idempotency_key.removeprefix(f"schedule:{name}:") for job in jobs)


def declare(app: Tally, when: str = "every 1h", **options: object) -> None:
    @app.schedule(when, **options)
    @app.workflow
    def report(scheduled_at: datetime) -> str:
        return scheduled_at.isoformat()


@pytest.fixture
def started(timed, clock):
    """Return what declares and starts: the wall clock stands at 2023-11-14T22:13:20Z."""

    def start(when: str = "every 1h", **options: object) -> Tally:
        declare(timed, when, **options)
        timed.declare_schedules()
        return timed

    return start


def test_each_tick_becomes_one_job_that_knows_its_instant(started, clock, hand):
    app = started()
    for _ in range(3):
        tick_schedules(app)
        clock.advance(HOUR)
    tick_schedules(app)
    tick_schedules(app)
    assert ran(app) == ["2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z", "2023-11-15T01:00:00Z"]
    assert [hand.work() for _ in range(3)] == ["EndJob"] * 3
    assert {job.result() for job in app.jobs()} == {
        "2023-11-14T23:00:00+00:00",
        "2023-11-15T00:00:00+00:00",
        "2023-11-15T01:00:00+00:00",
    }
    view = app.schedules.get("report")
    assert view.last_job in {job.id for job in app.jobs()}
    assert (view.last_at, view.next_at) == (
        datetime(2023, 11, 15, 1, tzinfo=UTC),
        datetime(2023, 11, 15, 2, tzinfo=UTC),
    )
    assert check_books(app) == []


def test_many_who_look_at_once_make_one_job_of_a_tick(url, clock):
    apps = [Tally(url, clock=clock) for _ in range(4)]
    for app in apps:
        declare(app, "every 1m")
        open_store(app)
    starting = [threading.Thread(target=app.declare_schedules) for app in apps]
    for thread in starting:
        thread.start()
    for thread in starting:
        thread.join()
    for _ in range(5):
        clock.advance(MINUTE)
        looking = [threading.Thread(target=tick_schedules, args=(app,)) for app in apps]
        for thread in looking:
            thread.start()
        for thread in looking:
            thread.join()
    assert len(ran(apps[0])) == 5
    for app in apps:
        app.close()


def test_ticks_that_were_missed(url, clock):
    """Ten hours without a worker: none, the last, or all of them are made up for."""
    for missed in ("skip", "last", "all"):
        app = Tally(url, clock=clock)
        declare(app, id=missed, missed=missed)
        app.declare_schedules()
        app.close()
    clock.advance(10 * HOUR)
    for missed, count in (("skip", 0), ("last", 1), ("all", 10)):
        app = Tally(url, clock=clock)
        declare(app, id=missed, missed=missed)
        app.declare_schedules()
        tick_schedules(app)
        assert len(ran(app, missed)) == count
        app.close()


def test_more_missed_ticks_than_a_person_would_want_hold_the_schedule(started, clock):
    app = started("every 1m", missed="all")
    clock.advance(2_000 * MINUTE)
    tick_schedules(app)
    assert ran(app) == []
    view = app.schedules.get("report")
    assert "more than 1000 ticks were missed" in str(view.hold_reason)
    assert view.next_at is None
    made = app.schedules.backfill(
        "report", datetime(2023, 11, 15, tzinfo=UTC), datetime(2023, 11, 15, 0, 3, tzinfo=UTC)
    )
    assert [job.created for job in made] == [True] * 3
    assert app.schedules.resume("report").hold_reason is None
    clock.advance(MINUTE)
    tick_schedules(app)
    assert len(ran(app)) == 4


def test_a_job_that_still_runs_keeps_the_next_tick_out(started, clock):
    app = started(overlap="skip")
    clock.advance(HOUR)
    tick_schedules(app)
    clock.advance(HOUR)
    tick_schedules(app)
    assert len(ran(app)) == 1
    assert SteppedWorker(app, clock).work() == "EndJob"
    clock.advance(HOUR)
    tick_schedules(app)
    assert len(ran(app)) == 2


def test_a_job_that_still_runs_is_cancelled_and_the_next_one_begins_behind_its_end(timed, clock, hand):
    @timed.schedule("every 1h", overlap="cancel_old")
    @timed.workflow
    def report() -> None:
        wait("never", int)

    timed.declare_schedules()
    clock.advance(HOUR)
    tick_schedules(timed)
    assert hand.work() == "Await"
    (first,) = timed.jobs()
    clock.advance(HOUR)
    tick_schedules(timed)
    assert first.state() == "CANCELLED"
    assert ran(timed) == ["2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z"]


def test_a_pause_survives_starts_and_its_ticks_are_not_made_up_for(url, clock):
    app = Tally(url, clock=clock)
    declare(app)
    app.declare_schedules()
    assert app.schedules.pause("report", by="ada").paused_by == "ada"
    app.close()
    clock.advance(5 * HOUR)
    again = Tally(url, clock=clock)
    declare(again)
    again.declare_schedules()
    tick_schedules(again)
    assert ran(again) == []
    assert again.schedules.resume("report").next_at == datetime(2023, 11, 15, 4, tzinfo=UTC)
    clock.advance(HOUR)
    tick_schedules(again)
    assert ran(again) == ["2023-11-15T04:00:00Z"]
    again.close()


def test_a_changed_declaration_loses_and_doubles_no_tick(url, clock):
    """The tick that was due under the old timetable becomes a job; the new one goes on behind now."""
    old = Tally(url, clock=clock)
    declare(old, "every 1h")
    old.declare_schedules()
    old.close()
    clock.advance(47 * MINUTE)  # 23:00:20
    new = Tally(url, clock=clock)
    declare(new, "every 20m")
    new.declare_schedules()
    assert ran(new) == ["2023-11-14T23:00:00Z"]
    assert new.schedules.get("report").when == "every 20m"
    clock.advance(20 * MINUTE)
    tick_schedules(new)
    assert ran(new) == ["2023-11-14T23:00:00Z", "2023-11-14T23:20:00Z"]
    new.close()


def test_one_instant_ticks_once(started, clock):
    app = started("2023-11-15T00:00:00Z")
    clock.advance(3 * HOUR)
    tick_schedules(app)
    clock.advance(3 * HOUR)
    tick_schedules(app)
    assert ran(app) == ["2023-11-15T00:00:00Z"]
    assert app.schedules.get("report").next_at is None


def test_a_clock_that_is_set_back_doubles_no_tick(started, clock):
    app = started("every 1m")
    clock.advance(MINUTE)
    tick_schedules(app)
    clock.jump_wall(-10 * MINUTE)
    tick_schedules(app)
    clock.advance(11 * MINUTE)
    tick_schedules(app)  # passes by what was missed
    tick_schedules(app)
    keys = ran(app)
    assert len(keys) == len(set(keys)) >= 2


def test_a_tick_that_a_person_has_made_before_keeps_its_job(timed, clock):
    """The schedule names the job that is there, and goes on behind it."""

    @timed.workflow
    def report() -> None: ...

    book = timed.schedules
    book.add("mine", report, timedelta(hours=1), missed="all")
    first = book.get("mine").next_at
    (made,) = book.backfill("mine", first, first + timedelta(hours=1))
    clock.advance(3 * 3_600_000)
    for _ in range(3):
        tick_schedules(timed)
    seen = book.get("mine")
    assert seen.last_at == first + timedelta(hours=2)
    assert {job.id for job in timed.jobs()} >= {made.id, seen.last_job}
    assert len(timed.jobs()) == 3
    assert check_store(timed) == []


def test_the_last_tick_may_have_been_made_before(timed, clock):
    @timed.workflow
    def report() -> None: ...

    book = timed.schedules
    book.add("mine", report, timedelta(hours=1))
    first = book.get("mine").next_at
    (made,) = book.backfill("mine", first, first + timedelta(hours=1))
    clock.advance(3_600_000)
    tick_schedules(timed)
    assert (book.get("mine").last_at, book.get("mine").last_job) == (first, made.id)
    assert check_store(timed) == []


def test_people_add_trigger_backfill_and_remove(timed, clock, hand):
    @timed.workflow
    def report(name: str) -> str:
        return name

    book = timed.schedules
    book.add("mine", report.opts(tags=["own"]), timedelta(hours=1), args=["a"])
    assert [view.id for view in book.all()] == ["mine"]
    assert not book.get("mine").declared
    job = book.trigger("mine")
    assert hand.work() == "EndJob"
    assert job.result() == "a"
    assert [same.id for same in timed.jobs(tag="own")] == [job.id]
    since = datetime(2023, 11, 1, tzinfo=UTC)
    assert [made.created for made in book.backfill("mine", since, since + timedelta(hours=2))] == [True, True]
    assert [made.created for made in book.backfill("mine", since, since + timedelta(hours=3))] == [
        *(False, False, True)
    ]
    with pytest.raises(BadInput, match="in parts"):
        book.backfill("mine", since, since + timedelta(days=365))
    book.remove("mine")
    assert book.all() == []
    for verb in (book.get, book.pause, book.resume, book.trigger, book.remove):
        with pytest.raises(NoSuchSchedule, match="mine"):
            verb("mine")


def test_what_cannot_be_meant_is_refused_at_once(timed):
    @timed.workflow
    def report() -> None: ...

    with pytest.raises(BadSchedule, match="five fields"):
        timed.schedule("at noon")
    with pytest.raises(BadInput, match="stands above"):
        timed.schedule("0 3 * * *")(print)
    with pytest.raises(BadSchedule, match="skip, last, all"):
        timed.schedules.add("a", report, "0 3 * * *", missed="some")
    with pytest.raises(BadSchedule, match="an hour"):
        timed.schedules.add("a", report, "0 3 * * *", jitter="2h")
    with pytest.raises(BadInput):
        timed.schedules.add("a", report, "0 3 * * *", args=["too", "many"])
    timed.schedule("0 3 * * *")(report)
    with pytest.raises(DuplicateHandler):
        timed.schedule("0 4 * * *")(report)


def test_a_worker_ticks_by_itself(app):
    seen = threading.Event()

    @app.schedule("every 1s")
    @app.workflow
    def report(scheduled_at: datetime) -> None:
        seen.set()

    with app.worker():
        assert seen.wait(30)
        wait_until(lambda: len(ran(app)) >= 2, "a second tick")
    assert check_books(app) == []


def test_a_schedule_is_added_by_the_name_of_a_declared_workflow(timed):
    declare(timed)
    view = timed.schedules.add("often", "report", "every 15m", jitter="30s")
    assert (view.workflow, view.when, view.jitter) == ("report", "every 15m", "30s")
    with pytest.raises(BadInput, match="there is no workflow 'reports' here; there are: report"):
        timed.schedules.add("often", "reports", "every 15m")
    with pytest.raises(BadInput, match="7 is not a workflow"):
        timed.schedules.add("often", 7, "every 15m")


@pytest.mark.parametrize("options", [{"missed": "some"}, {"overlap": "never"}, {"jitter": "2h"}], ids=str)
def test_an_option_that_is_none_is_refused_at_the_declaration(timed, options):
    with pytest.raises(BadSchedule):
        timed.schedule("every 1h", **options)


def test_an_instant_that_has_passed_is_refused_and_the_same_one_again_changes_nothing(timed, clock):
    declare(timed)
    soon = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC) + timedelta(minutes=1)
    timed.schedules.add("once", "report", soon)
    clock.advance(2 * MINUTE)
    assert timed.schedules.add("once", "report", soon).id == "once"
    with pytest.raises(BadSchedule, match="that has passed: name an instant that is to come"):
        timed.schedules.add("again", "report", soon)
    with pytest.raises(NoSuchSchedule):
        timed.schedules.get("again")


def test_a_worker_warns_of_a_declared_instant_that_has_passed(timed, clock, caplog):
    declare(timed, datetime(2020, 1, 1, tzinfo=UTC))
    with caplog.at_level("WARNING", logger="tallystick.engine"):
        timed.declare_schedules()
    assert "schedule report never runs: its instant 2020-01-01T00:00:00Z has passed" in caplog.text


def test_a_backfill_that_ends_before_it_begins_is_refused(started):
    day = datetime(2027, 1, 1, tzinfo=UTC)
    with pytest.raises(BadInput, match="is not before until"):
        started().schedules.backfill("report", day, day)
