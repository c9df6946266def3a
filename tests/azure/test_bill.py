"""What a job costs in requests is what the guide says, and a look costs the same among any number of jobs."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest

from tallystick import RemoteStep, Tally
from tallystick.app.remote.api_keys import make_key
from tallystick.clock import SystemClock
from tallystick.core.remote.keys import AddKey, RevokeKey
from tallystick.core.remote.requests import CancelProtocol, RenewStep
from tallystick.http import http_app
from tallystick.store.azure import keys
from tallystick.store.azure.changing import LOOK_MS
from tallystick.store.azure.entities import bytes_of
from tallystick.store.azure.remembering import COUNT_SECONDS, KEY_SECONDS
from tallystick.store.azure.store import AzureStore
from tallystick.testing.conformance.drafts import bundles, done
from tallystick.testing.conformance.protocol_runs import PULLED, PUSHED, RunningProtocol, command
from tests.azure.counting import WAYS, requests_of, total
from tests.azure.worlds import ModelSubject
from tests.remote.test_publish import command as said

USD_PER_10_000, USD_PER_GIB = 0.00036, 0.045
"""What the guide takes for prices."""
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "azure.md"
SAID = " ".join(GUIDE.read_text("utf-8").split())
PARTITIONS = len(keys.DUE_PARTITIONS)


def test_three_steps_cost_at_most_fifty_requests():
    assert total(requests_of(3, PUSHED, one_process=True)) <= 44
    assert total(requests_of(3, PULLED, one_process=True)) <= 50


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
    row = f"| {name} | {least} to {most} | {least * 100:,} P to {most * 100:,} P | {' to '.join(usd)} |"
    assert row in GUIDE.read_text("utf-8")


def test_a_look_asks_once_for_each_partition_however_many_jobs_are_open():
    subject = ModelSubject()
    for jobs in (1, 300):
        subject.store.apply(bundles(*(command(1, PULLED) for _ in range(jobs))))
        before = subject.client.requests
        assert subject.store.due_steps(100) == []
        assert subject.client.requests - before == PARTITIONS


def test_a_look_with_much_that_is_due_costs_two_requests_for_each_job_that_it_returns():
    subject = ModelSubject()
    subject.store.apply(bundles(*(command(1) for _ in range(300))))
    subject.clock.advance(30_000)
    looks = []
    for room in (1, 10, 100):
        before = subject.client.requests
        assert len(subject.store.due_directives("webhook", room)) == room
        looks.append(subject.client.requests - before)
    assert looks == [PARTITIONS + 2 * room for room in (1, 10, 100)]
    assert "and 2 more for each job that is due" in SAID
    assert subject.store.due_steps(100) == []
    before = subject.client.requests
    assert subject.store.due_steps(100) == []
    assert subject.client.requests - before == PARTITIONS, "the sweep reads what is the relays' once"


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
        looks.append(subject.client.requests - before - PARTITIONS)
    assert looks == [5, 5, 5, 5]
    assert "adds 5 requests every 15 minutes" in GUIDE.read_text("utf-8")


def test_the_sums_of_the_guide_are_those_of_its_price():
    month_s, idle = 30 * 86_400, PARTITIONS * (1 + 1 / 5)  # a look per second, a sweep every five
    said = GUIDE.read_text("utf-8")
    assert f"takes `P` = {USD_PER_10_000:.5f} USD" in said
    assert f"some {idle * month_s / 1_000_000:.0f} million requests a month" in said
    usd = f"{idle * month_s / 10_000 * USD_PER_10_000:.1f}0 USD"
    assert f"A worker that idles is {round(idle * month_s / 10_000, -3):,.0f} P a month ({usd}" in said
    assert f"{USD_PER_GIB} USD per GiB and month" in said
    kept = 37e9 / 2**30 * USD_PER_GIB
    assert f"about 37 KB as the service counts them: a million of them cost {kept:.2f} USD" in said
    assert f"37 TB are added each month, which cost {round(1_000 * kept, -1):,.0f} USD" in said
    jobs = 1_000_000_000
    least, most = (total(requests_of(3, PUSHED, one_process=each)) for each in (True, False))
    assert f"{jobs / month_s:.0f} jobs and" in said
    priced = [requests * jobs / 10_000 for requests in (least, most)]
    usd = " to ".join(f"{round(each * USD_PER_10_000, -1):,.0f}" for each in priced)
    cost = " to ".join(f"{each:,.0f} P" for each in priced)
    millions = " to ".join(f"{each / 100:,.0f}" for each in priced)
    assert f"{millions} million requests are {cost} a month ({usd} USD" in said


def test_the_guide_says_what_a_job_keeps():
    subject = ModelSubject()
    run = RunningProtocol(subject, 3, PUSHED)
    for _step in range(3):
        run.publish()
        run.ack()
        run.answer()
    rows = subject.client.tables.rows.values()
    kb = sum(bytes_of(values) for _tag, values in rows) / 1_000
    assert f"three steps without payload keeps {len(rows)} rows and about {kb:.0f} KB" in SAID


def test_jobs_in_flight_are_counted_up_to_a_limit_by_tenant():
    subject = ModelSubject()
    subject.store.apply(bundles(*(command(1) for _ in range(30))))
    run = RunningProtocol(subject)
    assert subject.store.in_flight("acme", 100) == 31
    assert subject.store.in_flight("acme", 7) == 7
    assert subject.store.in_flight("other", 7) == 0
    run.answer()
    assert subject.store.in_flight("acme", 100) == 30
    assert subject.reopened().store.in_flight("acme", 100) == 30


def counted(subject: ModelSubject, limit: int) -> int:
    """Count the jobs in flight, and return how many requests that was."""
    before = subject.client.requests
    subject.store.in_flight("acme", limit)
    return subject.client.requests - before


def test_jobs_in_flight_are_counted_every_ten_seconds_and_at_the_limit_every_second():
    subject = ModelSubject()
    run, other = RunningProtocol(subject), subject.reopened()
    assert [counted(subject, 3) for _ in range(3)] == [PARTITIONS, 0, 0]
    RunningProtocol(subject)
    other.store.apply(bundles(command(1), command(1)))
    assert (counted(subject, 3), subject.store.in_flight("acme", 3)) == (0, 2), "others are counted later"
    subject.clock.advance(int(COUNT_SECONDS * 1_000))
    assert (counted(subject, 3), subject.store.in_flight("acme", 3)) == (PARTITIONS, 3)
    assert counted(subject, 3) == 0
    done(other.store, CancelProtocol(run.job_id, force=True))
    subject.clock.advance(1_000)
    assert counted(subject, 3) == PARTITIONS, "at the limit"


def test_a_key_is_read_every_ten_seconds_and_one_that_was_revoked_elsewhere_opens_no_longer():
    subject = ModelSubject()
    done(subject.store, AddKey("k", "acme", "jobs:read", "", "hash", None))
    other = subject.reopened()
    before = subject.client.requests
    assert [subject.store.key("k") for _ in range(100)][-1] == subject.store.key("k")
    assert subject.client.requests - before == 1
    done(other.store, RevokeKey("k"))
    subject.clock.advance(int(KEY_SECONDS * 1_000) - 1)
    assert revoked_at(subject) is None
    subject.clock.advance(1)
    assert revoked_at(subject) is not None
    assert revoked_at(other) is not None, "the process that revokes it knows at once"


def revoked_at(subject: ModelSubject) -> int | None:
    key = subject.store.key("k")
    assert key is not None
    return key.revoked_at


@pytest.mark.slow
def test_the_guide_says_what_http_adds(azure_url: str):
    app = Tally(azure_url)
    app.protocol("p", request_types=["scan"], steps=[RemoteStep("s0", service="ocr")])
    runtime = app.runtime()
    _kept, key = make_key(runtime.committer, runtime.ids, "acme", ("jobs:read", "jobs:write"), ())
    store = runtime.store
    assert isinstance(store, AzureStore)

    async def ask() -> int:
        api = http_app(app, hosts=["api.test"], sweeps=False)
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app=api), base_url="http://api.test")
        headers = {"Authorization": f"Bearer {key}"}
        async with http:
            before = store.client.requests
            for n in range(20):
                answer = await http.post("/v1/commands", headers=headers, json=said(n))
                assert answer.status_code == HTTPStatus.ACCEPTED
            asked = store.client.requests - before
        await api.api.stop()
        return asked

    (_submit, alone), *_rest = requests_of(1, PULLED, one_process=True)
    assert asyncio.run(ask()) == 20 * alone + PARTITIONS + 1
    app.close()
    assert "HTTP adds 1 request every 10 seconds for each key, and 16 for each tenant that submits" in SAID


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
