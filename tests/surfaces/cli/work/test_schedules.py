"""`tally schedules`: what a person does about schedules is durable when the command has ended."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tallystick import Tally
from tallystick.clock import SystemClock, VirtualClock
from tallystick.testing.stepping import tick_schedules
from tests.patience import wait_until
from tests.surfaces.commands import Shop, Work

SCHEDULED = """
from tallystick import Tally

app = Tally("sqlite:///shop.db")

@app.workflow
def report(name: str) -> str:
    return name
"""


DAY_MS = 86_400_000


def report() -> int:
    return 1


@pytest.fixture
def shop(tmp_path) -> Shop:
    made = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(SCHEDULED)
    return made


def test_a_schedule_is_added_for_a_tenant(shop: Shop):
    about = ("shop:report", "nightly", "0 3 * * *", "name=ada", "--tenant", "acme")
    assert shop.tally("schedules", "add", *about).out.startswith("nightly  report of acme  0 3 * * *  next ")
    (listed,) = shop.tally("schedules", "list", "shop", "--json").data
    assert listed["tenant"] == "acme"
    shop.tally("schedules", "trigger", "nightly", "shop")
    (job,) = shop.tally("list", "shop", "--json").data["jobs"]
    assert job["tenant_id"] == "acme"


def test_a_schedule_is_added_looked_at_paused_resumed_and_removed(shop: Shop):
    added = shop.tally(
        "schedules", "add", "shop:report", "nightly", "0 3 * * *", "name=ada", "--tz", "Europe/Berlin"
    )
    assert added.code == 0, added.err
    assert added.out.startswith("nightly  report  0 3 * * * (Europe/Berlin)  next ")
    (listed,) = json.loads(shop.tally("schedules", "list", "shop", "--json").out)
    assert (listed["id"], listed["declared"], listed["last_job"]) == ("nightly", False, None)
    assert (listed["missed"], listed["overlap"], listed["jitter"]) == ("last", "allow", "0s")
    paused = shop.tally("schedules", "pause", "nightly", "shop", "--by", "ann").out
    assert "paused by ann" in paused
    assert "next 2" in shop.tally("schedules", "resume", "nightly", "shop").out
    job_id = shop.tally("schedules", "trigger", "nightly", "shop").out.strip()
    span = ("2027-01-01T00:00Z", "2027-01-03T00:00Z")
    made = shop.tally("schedules", "backfill", "nightly", *span, "shop").out.split()
    assert len(made) == 2
    again = shop.tally("schedules", "backfill", "nightly", *span, "shop", "--json")
    assert json.loads(again.out) == [{"job_id": each, "created": False} for each in made]
    jobs = shop.tally("list", "shop", "--json").data["jobs"]
    assert {job["job_id"] for job in jobs} == {job_id, *made}
    assert shop.tally("schedules", "remove", "nightly", "shop").out == "removed\n"
    assert shop.tally("schedules", "list", "shop").out == "no schedules\n"


def test_mistakes_are_told_in_one_line(shop: Shop):
    for arguments, code, words in (
        (("add", "shop:report", "nightly", "0 3 * *", "name=ada"), 4, "five fields"),
        (("add", "shop:report", "nightly", "0 3 * * *", "name=ada", "--tz", "Mars"), 4, "not a time zone"),
        (("add", "shop:report", "nightly", "0 3 * * *", "name=ada", "--missed", "some"), 2, "--missed"),
        (("add", "shop:report", "nightly", "2020-01-01T00:00Z", "name=ada"), 4, "that has passed"),
        (("backfill", "nightly", "2027-01-02T00:00Z", "2027-01-01T00:00Z", "shop"), 2, "is not before UNTIL"),
    ):
        said = shop.tally("schedules", *arguments)
        assert said.code == code
        assert words in said.err
    shop.tally("schedules", "add", "shop:report", "nightly", "0 3 * * *", "name=ada")
    missing = shop.tally("schedules", "pause", "weekly", "shop")
    assert (missing.code, missing.err) == (3, "error: there is no schedule weekly\n")
    bad = shop.tally("schedules", "backfill", "nightly", "2027-01-01", "2027-01-02T00:00Z", "shop")
    assert "has no time zone" in bad.err


DECLARED = """
from tallystick import Tally

app = Tally("sqlite:///shop.db")
app.queue("mails", concurrency=2)

@app.schedule("0 3 * * *")
@app.workflow(queue="mails")
def report() -> int:
    return 1
"""


def test_what_a_program_declares_is_in_force_when_tally_work_has_started(tmp_path):
    shop = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(DECLARED)
    with Work(shop) as work:
        assert work.wait_for("serving")
        wait_until(lambda: "report" in shop.tally("schedules", "list", "shop").out, "the schedule is there")
    assert shop.tally("queues", "list", "shop").out.startswith("mails  concurrency=2")
    (listed,) = json.loads(shop.tally("schedules", "list", "shop", "--json").out)
    assert (listed["workflow"], listed["declared"]) == ("report", True)


def test_who_changes_or_removes_what_a_program_declares_is_warned_that_its_next_start_restores_it(tmp_path):
    shop = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(DECLARED)
    warning = "warning: report is declared by the program; its next start restores it\n"
    added = shop.tally("schedules", "add", "shop:report", "report", "every 15m", "--jitter", "30s")
    assert (added.code, added.err) == (0, warning)
    assert added.out.startswith("report  report  every 15m  next ")
    other = shop.tally("schedules", "add", "shop:report", "other", "every 15m")
    assert (other.code, other.err) == (0, "")
    app = Tally(f"sqlite:///{tmp_path}/shop.db")
    app.schedule("0 3 * * *")(app.workflow(report))
    app.declare_schedules()
    app.close()
    assert shop.tally("schedules", "remove", "other", "shop").err == ""
    assert shop.tally("schedules", "remove", "report", "shop").err == warning


def test_the_doctor_finds_a_held_schedule_and_names_an_instant_that_has_passed(tmp_path):
    shop, clock = Shop(tmp_path), VirtualClock(SystemClock().wall_ms() - 30 * DAY_MS)
    (tmp_path / "shop.py").write_text(DECLARED)
    app = Tally(f"sqlite:///{tmp_path}/shop.db", clock=clock)
    app.schedule("every 1m", missed="all")(app.workflow(report))
    app.schedule(datetime(2020, 1, 1, tzinfo=UTC), id="once")(app.workflows["report", ""])
    app.declare_schedules()
    well = shop.tally("doctor", "shop")
    assert "warning: the schedule once never ran: its instant 2020-01-01T00:00:00Z had passed" in well.out
    assert (well.code, "tallystick_schedules_held 0.0" in shop.tally("metrics", "shop").out) == (0, True)
    clock.advance(2 * DAY_MS)
    tick_schedules(app)
    app.close()
    ill = shop.tally("doctor", "shop")
    assert ill.code == 6
    assert "problem: the schedule report is held: more than 1000 ticks were missed since" in ill.out
    assert "tallystick_schedules_held 1.0" in shop.tally("metrics", "shop").out
