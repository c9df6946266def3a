"""`tally send` and `tally cancel`: what is said to a job is durable when the command has ended."""

from __future__ import annotations

import getpass

import pytest

from tests.patience import wait_until
from tests.surfaces.commands import Shop, Work

WAITING = """
from dataclasses import dataclass
from pathlib import Path
import time
from tallystick import Cancelled, Tally, again, sleep, wait

app = Tally("sqlite:///shop.db")

@dataclass
class Address:
    city: str

@app.step
def tick() -> None:
    Path("began").touch()
    time.sleep(0.01)

@app.step
def clean_up() -> None:
    Path("cleaned").touch()

@app.workflow
def approval() -> str:
    answer = wait("approve", bool, timeout="2d")
    sleep("1ms")  # over before the job could be put away, or not
    return f"{answer} {wait('address', Address).city}"

@app.workflow
def endless() -> None:
    try:
        while True:
            tick()
    except Cancelled:
        clean_up()
        raise

@app.workflow
def turning(n: int) -> int:
    return again(n + 1) if n < 3 else n
"""


@pytest.fixture
def shop(tmp_path) -> Shop:
    made = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(WAITING)
    return made


def facts(shop: Shop, job: str) -> list[str]:
    lines = shop.tally("history", job, "shop").out.splitlines()
    return [line.split("Z")[1].split("  took ")[0].split("  ")[-1] for line in lines]


def test_signals_wake_a_waiting_job_and_the_history_says_so_in_words(shop):
    job = shop.submit("shop:approval")
    with Work(shop, "--verbose") as work:
        wait_until(lambda: "waits for approve, without a worker" in facts(shop, job), "the job waits")
        first = shop.tally("send", job, "approve", "true", "shop", "--id", "click-1")
        assert (first.code, first.out, first.err) == (0, "stored; the job is due now\n", "")
        again = shop.tally("send", job, "approve", "false", "shop", "--id", "click-1", "--json")
        assert again.data == {"job_id": job, "signal": "approve", "delivered": "KNOWN"}
        sent = shop.tally("send", job, "address", "-", "shop", "--json", stdin='{"city": "Turin"}')
        assert sent.data["delivered"] in {"WOKE", "KEPT"}
        work.wait_for("done", job_id=job)
    assert shop.tally("show", job, "shop", "--json").data["result"] == "True Turin"
    told = facts(shop, job)
    for sentence in (
        "wait approve got true",
        "sleep is over",
        'wait address got {"city":"Turin"}',
    ):
        assert sentence in told


def test_a_job_that_waits_or_turns_is_no_trouble_and_show_says_what_it_waits_for(shop):
    job = shop.submit("shop:approval")
    turning = shop.submit("shop:turning", "0")
    assert "it has waited since" in shop.tally("show", job, "shop").out
    with Work(shop) as work:
        wait_until(lambda: "waits for approve, without a worker" in facts(shop, job), "the job waits")
        shown = shop.tally("show", job, "shop")
        assert "why         it has waited since" in shown.out
        assert "for the signal approve until" in shown.out
        assert shop.tally("show", job, "shop", "--json").data["why"] in shown.out
        shop.tally("send", job, "approve", "true", "shop")
        shop.tally("send", job, "address", '{"city": "Turin"}', "shop")
        wait_until(lambda: shop.state(job) == "SUCCEEDED", "the job ends")
        wait_until(lambda: shop.state(turning) == "SUCCEEDED", "the other ends")
        assert work.stop() == 0
    assert "why " not in shop.tally("show", job, "shop").out
    assert {event["event"] for event in work.seen} <= {"serving", "progress", "stopping", "stopped"}


def test_a_signal_without_a_value_and_without_a_worker_is_kept(shop):
    job = shop.submit("shop:approval")
    done = shop.tally("send", job, "approve", "--url", "sqlite:///shop.db")
    assert (done.code, done.out) == (0, "stored; a live attempt or a later wait takes it\n")
    found = shop.tally("send", job, "approve", "--json", TALLY_URL="sqlite:///shop.db")
    assert found.data["delivered"] == "KEPT"


def test_a_job_that_nobody_runs_is_cancelled_at_once_and_then_hears_no_more(shop):
    job = shop.submit("shop:approval")
    for _ in range(2):
        done = shop.tally("cancel", job, "shop", "--by", "ann")
        assert (done.code, done.out, done.err) == (0, "CANCELLED\n", "")
    late = shop.tally("send", job, "approve", "true", "shop", "--json")
    assert (late.code, late.out, late.error["code"]) == (4, "", "JOB_ENDED")
    plain = shop.tally("send", job, "approve", "true", "shop")
    assert plain.err == f"error: job {job} has ended, and the signal was dropped\n"
    said = [*[" ann: cancel, grace 30 s"] * 2, *[f" {getpass.getuser()}: send, approve"] * 2]
    assert facts(shop, job)[-5:] == ["cancelled by ann", *said]


def test_a_running_job_of_another_process_cleans_up_and_is_cancelled(shop):
    job = shop.submit("shop:endless")
    with Work(shop):
        wait_until((shop.folder / "began").exists, "the job runs")
        done = shop.tally("cancel", job, "shop", "--grace", "30s", "--json")
        assert done.data == {"job_id": job, "state": "CANCELLING"}
        wait_until(lambda: shop.state(job) == "CANCELLED", "the job is cancelled")
    assert (shop.folder / "cleaned").exists()


def test_a_job_that_has_succeeded_cannot_be_cancelled(shop):
    job = shop.submit("shop:turning", "1")
    with Work(shop, "--verbose") as work:
        work.wait_for("done", job_id=job)
    done = shop.tally("cancel", job, "shop", "--json")
    assert (done.code, done.out) == (4, "")
    assert (done.error["code"], done.error["state"]) == ("JOB_ENDED", "SUCCEEDED")
    assert [text for text in facts(shop, job) if text.startswith("begins")] == [
        "begins again: turn 2",
        "begins again: turn 3",
    ]


@pytest.mark.parametrize("words", [["send", "no\x1b[31mbody", "go", "1"], ["cancel", "no\x1b[31mbody"]])
def test_a_job_that_is_not_there_is_exit_code_three(shop, words):
    shop.submit("shop:approval")
    done = shop.tally(*words, "shop")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: there is no job no\\x1b[31mbody; an id has 36")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("a b", [], "cannot be a signal"),
        ("go", ["--id", "a b"], "signal id"),
        ("go", [], "bytes"),
    ],
    ids=["name", "id", "size"],
)
def test_what_cannot_be_sent_is_refused_in_one_line(shop, name, options, says):
    job = shop.submit("shop:approval")
    value = '"' + "x" * (2_000_000 if says == "bytes" else 2) + '"'
    done = shop.tally("send", job, name, "-", "shop", *options, stdin=value)
    assert (done.code, done.out) == (4, "")
    assert says in done.err
    assert done.err.count("\n") == 1
