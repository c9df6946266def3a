"""The outbox as people see it: what waits, how late it is, what is dead, and a dead letter redriven."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from tallystick.cli import place
from tallystick.cli.commands.work import outbox
from tallystick.cli.main import main
from tallystick.testing.remote_hand import RemoteHand, expire_remote
from tallystick.testing.stepping import check_books

DAY = 86_400_000


@pytest.fixture
def order(timed):
    @timed.remote("warehouse")
    def pick(order: int) -> int: ...

    noted = []

    @timed.step
    def note(order: int) -> int:
        noted.append(order)
        return order + 100

    @timed.workflow
    def order(number: int) -> int:
        return pick(note(number))

    order.noted = noted
    return order


@pytest.fixture
def patient(timed, order):
    """A workflow that goes on when its remote step has failed."""

    @timed.remote("depot")
    def fetch(order: int) -> int: ...

    @timed.workflow
    def patient(number: int) -> str:
        try:
            return str(fetch(number))
        except Exception as failed:  # noqa: BLE001 (whatever it is)
            return str(failed)

    return patient


@pytest.fixture
def by_our_clock(timed, clock, monkeypatch):
    """Let commands go by the clock of the test, too."""
    monkeypatch.setattr(place, "SystemClock", lambda: clock)
    monkeypatch.setattr(outbox, "acting", lambda _app, _url: nullcontext(timed))


@pytest.fixture
def tally(url, capsys, by_our_clock):
    """The command line on this store; it answers in JSON."""

    def run(*words: str):
        code = main(["outbox", *words, "--url", url, "--json"])
        told = capsys.readouterr()
        return json.loads(told.out) if code == 0 else json.loads(told.err)["error"]

    return run


def dead_letter(timed, clock, hand, workflow, *given):
    """Let a job ask for a step that no remote worker takes; return it, with the id of the directive."""
    job = workflow.submit(*given)
    hand.work_all()
    clock.advance(DAY)
    expire_remote(timed)
    hand.work_all()
    (dead,) = (
        row
        for row in timed.runtime().store.inspect().dead_directives(None, None, after="", limit=99)
        if row.job_id == job.id
    )
    return job, dead.outbox_id


def test_what_waits_is_listed_with_its_lag_in_pages_by_service_and_tenant(timed, clock, hand, order, tally):
    jobs = [order.submit(1), order.submit(2), order.opts(tenant="acme").submit(3)]
    hand.work_all()
    clock.advance(5_000)
    ids = [f"{job.id}:0/pick#1:1" for job in jobs]
    page = tally("list", "--limit", "2")
    assert [row["id"] for row in page["directives"]] == ids[:2]
    assert page["next_after"] == ids[1]
    (last,) = tally("list", "--after", ids[1])["directives"]
    assert (last["id"], last["tenant"], last["service"], last["via"]) == (ids[2], "acme", "warehouse", "pull")
    assert [row["id"] for row in tally("list", "--tenant", "acme")["directives"]] == ids[2:]
    assert tally("list", "--service", "depot")["directives"] == []
    assert tally("lag") == [{"service": "warehouse", "via": "pull", "waiting": 3, "lag_ms": 5_000, "dead": 0}]
    assert tally("lag", "--tenant", "acme")[0]["waiting"] == 1
    RemoteHand(timed, "warehouse").take()
    assert [row["id"] for row in tally("list")["directives"]] == ids[1:]


def test_a_dead_letter_is_redriven_once_by_a_retry_of_the_job_that_failed_with_it(
    timed, clock, hand, order, tally
):
    job, dead = dead_letter(timed, clock, hand, order, 7)
    assert job.state() == "FAILED_FINAL"
    withdrawn = order.submit(8)
    hand.work_all()
    withdrawn.cancel()
    (listed,) = tally("list", "--dead")["directives"]
    assert (listed["id"], listed["state"]) == (dead, "FAILED_FINAL")
    assert listed["reason"] == "no remote worker asked for the directive in time"
    assert tally("lag") == [{"service": "warehouse", "via": "pull", "waiting": 0, "lag_ms": None, "dead": 1}]
    assert tally("redrive", dead, "--tenant", "acme")["code"] == "NOT_FOUND"
    made = tally("redrive", dead)
    assert made["created"]
    assert tally("redrive", dead) == {**made, "created": False}
    hand.work_all()
    RemoteHand(timed, "warehouse").take().succeed(9)
    hand.work_all()
    assert timed.job(made["job_id"]).result(5) == 9
    assert order.noted == [7, 8]
    assert timed.dead() == []
    assert check_books(timed) == []
    assert tally("redrive", f"{withdrawn.id}:0/pick#1:1")["code"] == "NOT_FAILED"


def test_a_job_that_went_on_is_forked_where_its_directive_was_to_go_out(timed, clock, hand, patient, tally):
    job, dead = dead_letter(timed, clock, hand, patient, 7)
    assert "no remote worker asked" in job.result(5)
    made = tally("redrive", dead)
    assert made["job_id"] != job.id
    assert tally("redrive", dead) == {**made, "created": False}
    hand.work_all()
    RemoteHand(timed, "depot").take().succeed(9)
    hand.work_all()
    assert timed.job(made["job_id"]).result(5) == "9"
    assert check_books(timed) == []


def test_what_is_out_or_may_go_out_is_not_redriven(timed, hand, order, tally):
    job = order.submit(1)
    hand.work_all()
    directive = f"{job.id}:0/pick#1:1"
    assert tally("redrive", directive)["code"] == "NOT_FAILED"
    RemoteHand(timed, "warehouse").take()
    assert tally("redrive", directive)["code"] == "NOT_FAILED"
    assert tally("redrive", "nothing")["code"] == "NOT_FOUND"


@pytest.mark.usefixtures("by_our_clock")
def test_people_read_what_waits_and_what_is_dead(timed, clock, hand, order, url, capsys):
    dead_letter(timed, clock, hand, order, 7)
    order.submit(8)
    hand.work_all()
    clock.advance(3_000)

    def told(*words: str) -> str:
        assert main(["outbox", *words, "--url", url]) == 0
        return capsys.readouterr().out

    assert "warehouse (pull)  default  3 seconds ago  waits for a remote worker" in told("list")
    assert "dead after 0 tries: no remote worker asked for the directive in time" in told("list", "--dead")
    assert told("lag") == "warehouse (pull): 1 waiting, the first for 3 seconds, 1 dead\n"
