"""What the jobs of a schedule are told, whose they are, and changes of a schedule while a tick is due."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tallystick import Tally
from tallystick.errors import BadSchedule
from tallystick.testing.stepping import (
    SteppedWorker,
    check_books,
    check_store,
    ms_to_next_tick,
    tick_schedules,
)

MINUTE, HOUR = 60_000, 3_600_000


@pytest.fixture
def imports(timed):
    timed.queue("imports", per_key=1)
    timed.declare_queues()

    @timed.workflow(queue="imports")
    def imports(n: int = 0) -> int:
        return n

    return imports


def made(app: Tally, name: str, tenant: str = "default"):
    return app.jobs(tag=f"schedule:{name}", tenant=tenant)


def next_tick(app, clock):
    clock.advance(ms_to_next_tick(app))
    tick_schedules(app)


def test_the_jobs_of_a_schedule_have_the_options_of_its_workflow(timed, clock, imports):
    told = imports.opts(limit_key="acme", delay="10m", priority=2, deadline="1h", tags=["own"])
    timed.schedules.add("a", told, "every 1h")
    next_tick(timed, clock)
    (job,) = made(timed, "a")
    row = job.row()
    assert (row.limit_key, row.priority, row.queue) == ("acme", 2, "imports")
    assert (row.ready_at - row.created_at, row.deadline_at - row.created_at) == (10 * MINUTE, HOUR)
    hand = SteppedWorker(timed, clock, queues=("imports",))
    assert hand.work() == "idle"
    clock.advance(10 * MINUTE)
    assert hand.work() == "EndJob"
    assert check_books(timed) == []


def test_a_declared_schedule_has_them_as_well(url, clock):
    app = Tally(url, clock=clock)
    app.queue("imports", per_key=1)

    @app.workflow(queue="imports")
    def imports() -> None: ...

    app.schedule("every 1h")(imports.opts(limit_key="acme", tenant="acme"))
    app.declare_schedules()
    next_tick(app, clock)
    (job,) = made(app, "imports", "acme")
    assert (job.row().limit_key, job.row().tenant_id) == ("acme", "acme")
    app.close()


def test_jobs_of_two_keys_run_beside_each_other_and_of_one_key_one_by_one(timed, clock, imports):
    for name, key in (("a", "acme"), ("b", "acme"), ("c", "other")):
        timed.schedules.add(name, imports.opts(limit_key=key), "every 1h")
    next_tick(timed, clock)
    hand = SteppedWorker(timed, clock, queues=("imports",))
    assert len(hand.claim_many(3)) == 2


def test_what_a_schedule_cannot_keep_is_refused_with_advice(timed, imports):
    for options, why in (
        ({"delay": datetime(2030, 1, 1, tzinfo=UTC)}, "give a duration, which is counted from each tick on"),
        ({"idempotency_key": "k"}, "the key of its tick"),
        ({"unique": "while_active"}, "overlap= says what becomes of a tick"),
    ):
        with pytest.raises(BadSchedule, match=why):
            timed.schedules.add("a", imports.opts(**options), "every 1h")
    with timed.transaction() as db, pytest.raises(BadSchedule, match="leave out within"):
        timed.schedules.add("a", imports.opts(within=db), "every 1h")
    assert timed.schedules.all() == []


def test_the_jobs_of_a_schedule_and_their_children_belong_to_its_tenant(timed, clock, hand):
    @timed.workflow
    def child(n: int) -> int:
        return n

    @timed.workflow
    def nightly() -> int:
        return child(1) + child(2)

    view = timed.schedules.add("a", nightly.opts(tenant="acme"), "every 1h")
    assert view.tenant == timed.schedules.get("a").tenant == "acme"
    next_tick(timed, clock)
    hand.work_all()
    (job,) = made(timed, "a", "acme")
    assert job.result() == 3
    assert {one.row().tenant_id for one in timed.jobs(tenant="acme")} == {"acme"}
    assert len(timed.jobs(tenant="acme")) == 3
    assert timed.jobs() == []
    triggered = timed.schedules.trigger("a")
    first = datetime(2023, 11, 1, tzinfo=UTC)
    (filled,) = timed.schedules.backfill("a", first, first.replace(hour=1))
    assert {triggered.row().tenant_id, filled.row().tenant_id} == {"acme"}
    assert [act.verb for act in timed.acts(schedule="a")] == ["backfill", "trigger", "add"]
    assert check_books(timed) == []
    assert check_store(timed) == []


def test_two_tenants_have_schedules_of_one_workflow_with_keys_of_their_own(timed, clock, imports):
    for tenant in ("acme", "other"):
        timed.schedules.add(f"of-{tenant}", imports.opts(tenant=tenant), "every 1h")
    next_tick(timed, clock)
    assert [len(made(timed, f"of-{tenant}", tenant)) for tenant in ("acme", "other")] == [1, 1]


def test_a_schedule_that_becomes_that_of_another_tenant_loses_and_doubles_no_tick(timed, clock, imports):
    timed.schedules.add("a", imports, "every 1h", overlap="skip")
    next_tick(timed, clock)
    timed.schedules.add("a", imports.opts(tenant="acme"), "every 1h", overlap="skip")
    assert check_store(timed) == []
    assert timed.schedules.get("a").last_job is None
    next_tick(timed, clock)
    assert [len(made(timed, "a", tenant)) for tenant in ("default", "acme")] == [1, 1]
    assert check_store(timed) == []


def test_a_change_by_hand_loses_no_tick_that_is_due(timed, clock, imports):
    timed.schedules.add("b", imports, "every 1h")
    clock.advance(ms_to_next_tick(timed) + 30_000)
    due = timed.schedules.get("b").next_at
    view = timed.schedules.add("b", imports, "every 2h", by="ann")
    assert (view.when, view.last_at, len(made(timed, "b"))) == ("every 2h", due, 1)
    tick_schedules(timed)
    assert len(made(timed, "b")) == 1
    assert [act.verb for act in timed.acts(schedule="b")] == ["add", "add"]
    assert check_store(timed) == []


@pytest.mark.parametrize(
    "change", [{"when": "every 2h", "jitter": "1h"}, {"when": "every 1h", "jitter": "0s"}], ids=str
)
def test_a_change_loses_no_tick_that_only_its_jitter_keeps_back(timed, clock, imports, change):
    timed.schedules.add("b", imports, "every 1h", jitter="1h", missed="skip")
    came = timed.schedules.get("b").next_at
    clock.advance(round(came.timestamp() * 1000) - clock.wall_ms())
    assert ms_to_next_tick(timed) > MINUTE
    clock.advance(ms_to_next_tick(timed) - 1)
    tick_schedules(timed)
    assert made(timed, "b") == []
    timed.schedules.add("b", imports, missed="skip", **change)
    assert timed.schedules.get("b").last_at == came
    assert len(made(timed, "b")) == 1
    assert check_store(timed) == []


@pytest.mark.parametrize(("missed", "count"), [("skip", 0), ("last", 1), ("all", 30)])
def test_ticks_that_were_missed_before_a_change_are_made_up_for_as_planned(
    timed, clock, imports, missed, count
):
    """More of them than a change is tried again; jobs may not overlap, so each turn acts on one tick."""
    timed.schedules.add("b", imports, "every 1h", missed=missed)
    clock.advance(ms_to_next_tick(timed) + 29 * HOUR + 5 * MINUTE)
    timed.schedules.add("b", imports, "every 3h", missed=missed)
    assert len(made(timed, "b")) == count


def test_of_many_missed_ticks_those_that_overlap_are_left_out_before_a_change(timed, clock, imports):
    timed.schedules.add("b", imports, "every 1h", missed="all", overlap="skip")
    clock.advance(ms_to_next_tick(timed) + 29 * HOUR + 5 * MINUTE)
    view = timed.schedules.add("b", imports, "every 3h", missed="all", overlap="skip")
    assert (view.when, len(made(timed, "b"))) == ("every 3h", 1)
