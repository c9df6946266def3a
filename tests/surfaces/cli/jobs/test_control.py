"""`tally pause`, `resume`, `fork`, `retry` and `dead`: what is said is durable when the command has ended."""

from __future__ import annotations

import json

import pytest

from tests.patience import wait_until
from tests.surfaces.commands import Shop, Work

CONTROLLED = """
from pathlib import Path
import time
from tallystick import Fatal, Tally, wait

app = Tally("sqlite:///shop.db")

@app.step
def quote(order: int) -> int:
    with open("quoted", "a") as file:
        file.write("x")
    return order * 2

@app.step
def charge(price: int) -> str:
    if not Path("mended").exists():
        raise Fatal("card declined")
    return f"paid {price}"

@app.step
def tick() -> None:
    Path("began").touch()
    time.sleep(0.01)

@app.workflow
def checkout(order: int) -> str:
    return charge(quote(order))

@app.workflow
def approval() -> bool:
    return wait("approve", bool)

@app.workflow
def endless() -> None:
    while True:
        tick()
"""


@pytest.fixture
def shop(tmp_path) -> Shop:
    made = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(CONTROLLED)
    return made


def told(shop: Shop, job: str) -> str:
    return shop.tally("history", job, "shop").out


def failed(shop: Shop, *arguments: str) -> str:
    job = shop.submit("shop:checkout", "21", *arguments)
    with Work(shop) as work:
        work.wait_for("failed", job_id=job)
    return job


def test_a_paused_job_waits_for_its_resumption(shop):
    job = shop.submit("shop:approval")
    done = shop.tally("pause", job, "shop", "--why", "lunch", "--by", "ann")
    assert (done.code, done.out, done.err) == (0, "held; workers do not claim it until it is resumed\n", "")
    again = shop.tally("pause", job, "shop", "--json")
    assert again.data == {"job_id": job, "paused": "ALREADY"}
    assert shop.tally("list", "shop").out.rstrip().endswith("held: PAUSED")
    assert ": lunch (by ann); resume it" in shop.tally("show", job, "shop").out
    assert shop.tally("send", job, "approve", "true", "shop").code == 0
    doctor = shop.tally("doctor", "shop")
    assert (doctor.code, f"job {job} is paused; tally resume lets it go on" in doctor.out) == (0, True)
    resumed = shop.tally("resume", job, "shop", "--json")
    assert resumed.data == {"job_id": job, "resumed": "FREE"}
    assert shop.tally("resume", job, "shop").out == "it was not held\n"
    with Work(shop, "--verbose") as work:
        work.wait_for("done", job_id=job)
    assert "paused: lunch (by ann)" in told(shop, job)
    assert "resumed (PAUSED)" in told(shop, job)
    for verb in ("pause", "resume"):
        late = shop.tally(verb, job, "shop", "--json")
        assert (late.code, late.out, late.error["code"]) == (4, "", "JOB_ENDED")


def test_a_running_job_of_another_process_stops_and_says_so(shop):
    job = shop.submit("shop:endless")
    with Work(shop) as work:
        wait_until((shop.folder / "began").exists, "the job runs")
        done = shop.tally("pause", job, "shop", "--json")
        assert done.data == {"job_id": job, "paused": "ASKED"}
        assert "is paused" in work.wait_for("held", job_id=job)["message"]
    assert "stopped at a call: the job is held" in told(shop, job)
    assert shop.tally("cancel", job, "shop").out == "CANCELLED\n"


def test_a_fork_goes_on_where_it_was_told_to(shop):
    job = failed(shop)
    done = shop.tally("fork", job, "--at", "charge", "shop", "--json")
    fork = done.data["job_id"]
    assert done.data == {"job_id": fork, "fork_of": job, "at": "charge", "created": True}
    assert f"fork of     {job}" in shop.tally("show", fork, "shop").out
    assert f"forked from {job} at charge, with 1 of its records" in told(shop, fork)
    (shop.folder / "mended").touch()
    with Work(shop, "--verbose") as work:
        work.wait_for("done", job_id=fork)
    assert shop.tally("show", fork, "shop", "--json").data["result"] == "paid 42"
    assert (shop.folder / "quoted").read_text() == "x"
    plain = shop.tally("fork", job, "--at", "quote", "--url", "sqlite:///shop.db")
    assert (plain.code, len(plain.out.splitlines())) == (0, 1)
    assert shop.tally("doctor", "shop").code == 0


def test_a_fork_with_an_id_is_made_once(shop):
    job = failed(shop)
    first = shop.tally("fork", job, "--at", "charge", "shop", "--id", "ticket-7")
    again = shop.tally("fork", job, "--at", "charge", "shop", "--id", "ticket-7")
    assert (again.out, again.err) == (first.out, "already forked\n")
    other = shop.tally("fork", job, "--at", "quote", "shop", "--id", "ticket-7", "--json")
    told_why = json.loads(other.err)["error"]
    assert (other.code, told_why["code"]) == (4, "IDEMPOTENCY_CONFLICT")
    assert first.out.strip() in told_why["message"]


def test_dead_letters_are_listed_until_they_are_retried(shop):
    assert shop.tally("dead", "shop").code == 5
    job = failed(shop, "--key", "o-42")
    listed = shop.tally("dead", "shop")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.startswith(job)
    assert "card declined" in listed.out
    (row,) = shop.tally("dead", "shop", "--json").data["jobs"]
    assert (row["job_id"], row["state"], row["workflow"]) == (job, "FAILED_FINAL", "checkout")
    assert shop.tally("dead", "shop", "--workflow", "other", "--json").data["jobs"] == []
    (shop.folder / "mended").touch()
    retry = shop.tally("retry", job, "shop", "--json").data
    assert (retry["retry_of"], retry["created"]) == (job, True)
    again = shop.tally("retry", job, "shop")
    assert (again.code, again.out, again.err) == (
        0,
        f"{retry['job_id']}\n",
        f"job {job} was retried before\n",
    )
    empty = shop.tally("dead", "shop")
    assert (empty.code, empty.out, empty.err) == (0, "", "no dead letters\n")
    with Work(shop, "--verbose") as work:
        work.wait_for("done", job_id=retry["job_id"])
    assert (shop.folder / "quoted").read_text() == "x"
    data = shop.tally("show", job, "shop", "--json").data
    assert data["retried_as"] == retry["job_id"]
    assert f"takes the place of {job} at charge" in told(shop, retry["job_id"])
    assert shop.submit("shop:checkout", "21", "--key", "o-42") == retry["job_id"]


@pytest.mark.parametrize(
    "words",
    [["pause"], ["resume"], ["fork", "--at", "charge"], ["retry"]],
    ids=lambda words: words[0],
)
def test_a_job_that_is_not_there_is_exit_code_three(shop, words):
    shop.submit("shop:approval")
    done = shop.tally(words[0], "no\x1b[31mbody", *words[1:], "shop")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: there is no job no\\x1b[31mbody; an id has 36")


@pytest.mark.parametrize("at", ["charge", "", "#", "x" * 5000, "charge#999999999999999999999"])
def test_a_step_that_is_not_there_is_exit_code_three(shop, at):
    job = shop.submit("shop:approval")
    done = shop.tally("fork", job, "--at", at, "shop", "--json")
    assert (done.code, done.out, done.error["code"]) == (3, "", "NO_SUCH_STEP")


def test_a_job_that_has_not_failed_is_not_retried(shop):
    job = shop.submit("shop:approval")
    done = shop.tally("retry", job, "shop", "--json")
    assert (done.code, done.out, done.error["code"], done.error["state"]) == (4, "", "NOT_FAILED", "QUEUED")


def test_a_fork_needs_a_step(shop):
    job = shop.submit("shop:approval")
    done = shop.tally("fork", job, "shop")
    assert (done.code, done.out) == (2, "")
    assert "--at" in done.err
