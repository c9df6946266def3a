"""What a job costs in requests is what the guide says, and a look costs the same among any number of jobs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tallystick.clock import SystemClock
from tallystick.core.remote.requests import RenewStep
from tallystick.store.azure import keys
from tallystick.store.azure.changing import LOOK_MS
from tallystick.testing.conformance.drafts import bundles
from tallystick.testing.conformance.protocol_runs import PULLED, PUSHED, RunningProtocol, command
from tests.azure.counting import WAYS, requests_of, total
from tests.azure.worlds import ModelSubject

USD_PER_10_000 = 0.00036
"""What the guide assumes."""
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "azure.md"


def test_three_steps_cost_at_most_fifty_requests():
    assert total(requests_of(3, PUSHED, one_process=True)) <= 44
    assert total(requests_of(3, PULLED, one_process=True)) <= 51


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("steps", [1, 3])
def test_the_guide_says_what_a_job_costs(way: str, steps: int):
    mine, others = (
        total(requests_of(steps, WAYS[way], one_process=one_process)) for one_process in (True, False)
    )
    rows = re.findall(r"^\| (\d) steps?, (\w+) \| (\d+) \| (\d+) \|", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert (str(steps), way, str(mine), str(others)) in rows


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("steps", [1, 3])
def test_the_guide_says_what_a_million_jobs_cost(way: str, steps: int):
    least, most = (
        total(requests_of(steps, WAYS[way], one_process=one_process)) for one_process in (True, False)
    )
    usd = [f"{requests * 1_000_000 / 10_000 * USD_PER_10_000:.2f}" for requests in (least, most)]
    name = f"{steps} step{'s' * (steps > 1)}, {way}"
    row = f"| {name} | {least} to {most} | {' to '.join(usd)} |"
    assert row in GUIDE.read_text("utf-8")


def test_a_look_asks_once_for_each_partition_however_many_jobs_are_open():
    subject = ModelSubject()
    for jobs in (1, 300):
        subject.store.apply(bundles(*(command(1, PULLED) for _ in range(jobs))))
        before = subject.client.requests
        assert subject.store.due_steps(100) == []
        assert subject.client.requests - before == keys.DUE_PARTITIONS


def test_a_job_that_waits_costs_five_requests_every_quarter_of_an_hour():
    subject = ModelSubject()
    subject.store.apply(bundles(command(1, PULLED)))
    looks = []
    for ms in (30_000, *[LOOK_MS] * 3):
        subject.clock.advance(ms - 1)
        assert subject.store.due_steps(100) == []
        subject.clock.advance(1)
        before = subject.client.requests
        assert subject.store.due_steps(100) == []
        looks.append(subject.client.requests - before - keys.DUE_PARTITIONS)
    assert looks == [5, 5, 5, 5]
    assert "adds 5 requests every 15 minutes" in GUIDE.read_text("utf-8")


def test_the_sums_of_the_guide_are_those_of_its_price():
    month_s, idle = 30 * 86_400, keys.DUE_PARTITIONS * (1 + 1 / 5)  # a look per second, a sweep every five
    said = GUIDE.read_text("utf-8")
    assert f"{USD_PER_10_000:.5f} USD for 10,000 requests" in said
    assert f"some {idle * month_s / 1_000_000:.0f} million requests a month" in said
    assert f"A worker that idles is {idle * month_s / 10_000 * USD_PER_10_000:.1f}0 USD a month" in said
    jobs = 1_000_000_000
    least, most = (total(requests_of(3, PUSHED, one_process=each)) for each in (True, False))
    assert f"{jobs / month_s:.0f} jobs and" in said
    assert f"{least * jobs / 1_000_000:,.0f} to {most * jobs / 1_000_000:,.0f} million requests are" in said
    usd = [requests * jobs / 10_000 * USD_PER_10_000 for requests in (least, most)]
    assert f"{round(usd[0], -2):,.0f} to {usd[1]:,.0f} USD a month" in said


def test_jobs_in_flight_are_counted_up_to_a_limit_by_tenant():
    subject = ModelSubject()
    subject.store.apply(bundles(*(command(1) for _ in range(30))))
    run = RunningProtocol(subject)
    assert subject.store.in_flight("acme", 100) == 31
    assert subject.store.in_flight("acme", 7) == 7
    assert subject.store.in_flight("other", 7) == 0
    run.answer()
    assert subject.store.in_flight("acme", 100) == 30


def test_a_list_has_the_newest_jobs_first_page_by_page():
    subject = ModelSubject()
    # Identifiers have the time of this machine in front.
    subject.clock.advance(SystemClock().wall_ms() - subject.clock.wall_ms())
    made = []
    for _ in range(25):
        run = RunningProtocol(subject)
        made.append(run.job_id)
    run.answer()
    about = {"tenant_id": "acme", "handler": None}
    first = subject.store.jobs(states=(), after=None, limit=10, **about)  # type: ignore[arg-type]  # each has its own type
    second = subject.store.jobs(states=(), after=first[-1].job_id, limit=100, **about)  # type: ignore[arg-type]  # each has its own type
    assert [row.job_id for row in (*first, *second)] == made[::-1]
    ended = subject.store.jobs(states=("SUCCEEDED",), after=None, limit=100, **about)  # type: ignore[arg-type]  # each has its own type
    assert [row.job_id for row in ended] == [made[-1]]


def test_a_late_report_that_is_sent_again_and_again_is_kept_once():
    subject = ModelSubject()
    run = RunningProtocol(subject)
    for _ in range(50):
        subject.clock.advance(1_000)
        run.apply(RenewStep(run.fence._replace(lease_id="lost")))
    (kept,) = subject.stale_reports()
    assert (kept.lease_id, kept.report) == ("lost", "RenewStep s0")
