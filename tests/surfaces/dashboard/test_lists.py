"""The list of jobs: filters in the address, pages by key, counts up to 10,000, a word to all that match."""

from __future__ import annotations

import re
import shlex
from html import unescape

import httpx
import msgspec
import pytest

from tallystick import Tally
from tallystick.cli.main import main
from tallystick.clock import VirtualClock
from tallystick.core.watching.rows import ReportWorker
from tallystick.dashboard.pages.jobs import ROWS
from tallystick.http.app import http_app
from tallystick.store.sql.watching import SearchReads
from tests.patience import wait_until
from tests.surfaces.dashboard.seeds import World
from tests.surfaces.dashboard.visiting import Site, url_in, visiting

JOB = re.compile(r'class="strong" href="/jobs/([^"]+)"')
QUEUE = re.compile(
    r'queue=(\w+)">\w+</a>(?:<br>.*?)?</td><td class="num">([\d,+]+)</td>'
    r'<td>.*?</td><td class="num">([\d,+]+)</td>'
)
OLDER = re.compile(r'href="([^"]+)" rel="next"')


@pytest.fixture
def app(tmp_path):
    app = Tally(url_in(tmp_path))

    @app.workflow
    def idle(number: int) -> int:
        return number

    @app.workflow
    def fails(number: int) -> int:
        raise ValueError(f"Trouble number {number}")

    vars(app).update(idle=idle, fails=fails)
    return app


def test_pages_follow_each_other_by_key_and_leave_nothing_out(app):
    jobs = {app.idle.opts(idempotent=False).submit(number).id for number in range(ROWS * 2 + 7)}

    async def test(site: Site) -> None:
        visitor, seen, path = await site.visitor(), [], "/jobs"
        while path:
            page = (await visitor.get(path)).text
            seen += JOB.findall(page)
            app.idle.opts(idempotent=False).submit(-1)
            older = OLDER.search(page)
            path = older[1].replace("&amp;", "&") if older else ""
        assert len(seen) == len(set(seen))
        assert jobs <= set(seen)
        assert seen == sorted(seen, reverse=True)

    visiting(app, test)


@pytest.mark.slow
def test_filters_find_what_they_say(app):
    with app.worker():
        ended = app.idle.opts(tags=["red"], idempotency_key="k1").submit(1)
        ended.result(30)
        failed = app.fails.opts(tags=["red", "blue"]).submit(2)
        wait_until(lambda: failed.row().completed_at, "its end")
    queued = app.idle.opts(queue="slow").submit(3)
    held = app.idle.submit(4)
    held.pause()

    async def test(site: Site) -> None:
        visitor = await site.visitor()

        async def found(query: str) -> set[str]:
            page = await visitor.get(f"/jobs?{query}")
            assert page.status_code == 200, page.text
            return set(JOB.findall(page.text))

        assert await found("state=SUCCEEDED") == {ended.id}
        assert await found("state=SUCCEEDED&state=FAILED_FINAL") == {ended.id, failed.id}
        assert await found("workflow=fails") == {failed.id}
        assert await found("queue=slow") == {queued.id}
        assert await found("tag=red") == {ended.id, failed.id}
        assert await found("tag=red&state=FAILED_FINAL") == {failed.id}
        assert await found("key=k1") == {ended.id}
        assert await found("key=k2") == set()
        assert await found("held=yes") == {held.id}
        assert await found("error=TROUBLE") == {failed.id}
        assert await found("dead=yes") == {failed.id}
        assert await found("dead=yes&held=yes") == set()
        assert await found("error=other") == set()
        assert await found("since=1h") == {ended.id, failed.id, queued.id, held.id}
        assert await found("until=1h") == set()
        assert (await visitor.get("/jobs?since=never")).status_code == 422
        assert (await visitor.get(f"/find?q={ended.id[:30]}")).headers["location"] == f"/jobs/{ended.id}"
        assert (await visitor.get("/find?q=k1")).headers["location"] == "/jobs?key=k1"

    visiting(app, test)


@pytest.mark.slow
def test_counts_stop_at_ten_thousand_and_a_search_says_how_far_it_looked(app):
    app.idle.opts(idempotent=False).submit_many([(number,) for number in range(10_200)])

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        page = (await visitor.get("/jobs")).text
        assert "<b>10,000+</b> jobs" in page
        nothing = (await visitor.get("/jobs?workflow=fails")).text
        assert "Looked at the newest 10,000 jobs before this point" in nothing
        further = re.search(r'href="([^"]+)">Look further back', nothing)
        assert further
        end = (await visitor.get(further[1].replace("&amp;", "&"))).text
        assert "Look further back" not in end
        assert "<b>10,000+</b> jobs would be reached" in (await visitor.get("/bulk/cancel")).text

    visiting(app, test)


def test_a_text_of_an_error_is_looked_for_in_jobs_that_match_the_other_filters(app, monkeypatch):
    with app.worker():
        failed = app.fails.submit(1)
        wait_until(lambda: failed.row().completed_at, "its end")
    app.idle.opts(idempotent=False).submit_many([(number,) for number in range(6)])
    for found in (SearchReads.jobs_found, SearchReads.count_found):
        monkeypatch.setitem(found.__kwdefaults__, "window", 5)

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        assert JOB.findall((await visitor.get("/jobs?error=trouble")).text) == [failed.id]
        assert JOB.findall((await visitor.get("/jobs?error=trouble&workflow=fails")).text) == [failed.id]
        assert JOB.findall((await visitor.get("/jobs?dead=yes")).text) == [failed.id]
        newest = (await visitor.get("/jobs?workflow=fails")).text
        assert "Looked at the newest 10,000 jobs before this point" in newest
        assert "in the newest 10,000 matches" in newest
        monkeypatch.setitem(SearchReads.jobs_found.__kwdefaults__, "window", 1)
        cut = (await visitor.get("/jobs?error=nothing")).text
        assert "Looked at the newest 10,000 jobs with an error before this point; there are older" in cut
        narrow = (await visitor.get("/jobs?error=nothing&workflow=fails")).text
        assert "until 10,000 matched the other filters or 30,000 were looked at" in narrow

    visiting(app, test)


def test_a_retry_of_many_counts_no_job_that_was_retried(app):
    with app.worker():
        jobs = [app.fails.submit(number) for number in range(3)]
        for job in jobs:
            wait_until(lambda job=job: job.row().completed_at, "its end")
    jobs[0].retry()

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        assert "<b>2</b> jobs would be reached" in (await visitor.get("/bulk/retry?workflow=fails")).text
        for query in ("retry?state=QUEUED", "cancel?state=SUCCEEDED", "pause?dead=yes"):
            assert "<b>0</b> jobs would be reached" in (await visitor.get(f"/bulk/{query}")).text, query

    visiting(app, test)


def test_a_word_to_many_says_first_how_many_and_then_reaches_those(app):
    jobs = [app.idle.opts(tags=["red"] if number < 3 else ["blue"]).submit(number) for number in range(5)]

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        asked = (await visitor.get("/bulk/cancel?tag=red")).text
        assert "<b>3</b> jobs would be reached" in asked
        assert "tally cancel APP --tag red --yes" in asked
        assert [job.state().value for job in jobs] == ["QUEUED"] * 5
        assert (await visitor.post("/bulk/pause?tag=blue")).status_code == 303
        assert "reached 2 jobs" in (await visitor.get("/jobs")).text
        assert "<b>2</b> jobs would be reached" in (await visitor.get("/bulk/resume")).text
        assert (await visitor.post("/bulk/cancel?tag=red")).status_code == 303
        assert [job.state().value for job in jobs] == ["CANCELLED"] * 3 + ["QUEUED"] * 2
        assert [bool(job.row().hold) for job in jobs] == [False] * 3 + [True] * 2
        by = [event.payload for event in jobs[0].history() if event.name == "cancel"]
        assert "(dashboard)" in by[0]

    visiting(app, test)


@pytest.mark.parametrize(
    ("query", "says", "says_not"),
    [
        ("tag=%24(id)", "tally cancel APP --tag '$(id)' --yes", "app."),
        ("state=QUEUED&tag=a;b", "tally cancel APP --tag 'a;b' --where state=QUEUED --yes", "app."),
        ("tag=red&queue=slow", "tally cancel APP --where queue=slow --tag red --yes\n", "app."),
        ("tag=red&queue=slow", '{"verb":"cancel","tenant":"default","queue":"slow","tag":"red"}', "app."),
        ("key=k1&parent=01a1", "tally cancel APP --where key=k1 --where parent=01a1 --yes\n", "app."),
        ("error=no+label&held=yes", "--where error='no label' --where held=yes --yes\n", "app."),
        ("error=no+label&held=yes", '"tenant":"default","error":"no label","held":true}', "app."),
        ("", "tally cancel APP --everything --yes\n", "app."),
        ("", '{"verb":"cancel","tenant":"default","everything":true}', "app."),
        (
            "since=2h&until=2026-01-01T00:00&tag=red",
            "tally cancel APP --tag red --since 2h --until 2026-01-01T00:00:00Z --yes\n",
            "app.",
        ),
        ("since=2026-01-01T00:00", '"tenant":"default","since":"2026-01-01T00:00:00Z"}', "app."),
        ("dead=yes", "tally cancel APP --where state=FAILED_FINAL --yes\n", "dead"),
        ("dead=yes", '{"verb":"cancel","tenant":"default","state":["FAILED_FINAL"]}', "dead"),
        ("dead=yes&state=QUEUED", "", "APP"),
    ],
)
def test_what_stands_for_a_word_to_many_reaches_the_same_jobs(app, query, says, says_not):
    async def test(site: Site) -> None:
        page = unescape((await (await site.visitor()).get(f"/bulk/cancel?{query}")).text)
        same = page.partition("The same from elsewhere")[2]
        shown = "\n".join(re.findall(r"<code>(.*?)</code></pre>", same))
        assert says in shown
        assert says_not not in shown

    visiting(app, test)


def test_the_command_and_the_request_that_are_shown_reach_what_the_page_counts(app, capsys):
    """Each filter is asked for in three ways, which find the same jobs."""
    with app.worker():
        failed = app.fails.opts(tags=["red"], queue="default").submit(1)
        wait_until(lambda: failed.row().completed_at, "its end")
    for number in range(4):
        app.idle.opts(
            queue="slow" if number else "default", tags=["red"], idempotency_key=f"k{number}"
        ).submit(number)
    app.job(app.jobs(tag="red")[0].id).pause()
    api = http_app(app, hosts=["d.test"])

    async def test(site: Site) -> None:
        visitor, reached = await site.visitor(), {}
        transport = httpx.ASGITransport(app=api)
        bearer = {"Authorization": f"Bearer {site.key()}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://d.test", headers=bearer) as http:
            for verb, query in (
                ("pause", "queue=slow"),
                ("pause", "queue=slow&state=QUEUED&tag=red"),
                ("resume", "held=yes"),
                ("retry", "error=trouble"),
                ("retry", "dead=yes"),
                ("cancel", "key=k1"),
                ("cancel", "parent=none"),
                ("cancel", "since=1h"),
                ("cancel", "until=1h"),
                ("cancel", ""),
            ):
                page = unescape((await visitor.get(f"/bulk/{verb}?{query}")).text)
                (number,) = map(int, re.findall(r"<b>(\d+)</b> jobs? would be reached", page))
                command, request = re.findall(r"<code>(.*?)</code></pre>", page)
                words = msgspec.json.decode(request.partition("  ")[2])
                answer = await http.post("/v1/jobs/bulk", json={**words, "count": True})
                assert (answer.status_code, answer.json()["reached"]) == (200, number), answer.text
                # Without --yes the command counts, and does nothing.
                arguments = [each for each in shlex.split(command)[1:] if each not in ("APP", "--yes")]
                url = ["--url", app.runtime().store.url]
                assert main([*arguments, *url]) == 4
                jobs = f"{number} job{'' if number == 1 else 's'}"
                assert f"{jobs} match; say --yes to {verb} them" in capsys.readouterr().err, command
                reached[query] = number
        assert reached["queue=slow"] == 3
        assert reached["error=trouble"] == reached["dead=yes"] == 1
        assert reached["held=yes"] == reached["key=k1"] == 1
        assert reached["since=1h"] == reached[""] == 4

    visiting(app, test)
    api.api.news.close()


def test_a_command_for_jobs_of_another_tenant_names_it(app):
    async def test(site: Site) -> None:
        visitor = await site.visitor(tenant="acme")
        assert (
            "tally cancel APP --tag red --tenant acme --yes"
            in (await visitor.get("/bulk/cancel?tag=red")).text
        )

    visiting(app, test)


def test_the_beginning_of_an_identifier_leads_to_jobs_of_the_own_tenant_alone(app):
    mine, foreign = app.idle.opts(tenant="acme").submit(1).id, app.idle.submit(2).id

    async def test(site: Site) -> None:
        acme, everyone = await site.visitor("jobs:read", tenant="acme"), await site.visitor(tenant="*")

        async def leads(visitor, text: str) -> str:
            return (await visitor.get(f"/find?q={text}")).headers["location"]

        for length in (8, 20, 30, 36):
            assert foreign not in (await leads(acme, foreign[:length])).replace(f"key={foreign}", "")
        assert await leads(acme, mine[:34]) == f"/jobs/{mine}"
        assert await leads(everyone, foreign[:34]) == f"/jobs/{foreign}"
        assert await leads(everyone, foreign) == f"/jobs/{foreign}"

    visiting(app, test)


def test_a_long_queue_is_counted_up_to_ten_thousand(tmp_path):
    app = Tally(url_in(tmp_path))

    @app.workflow(queue="long")
    def flow(number: int) -> None: ...

    flow.submit_many([(number,) for number in range(10_001)])

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        for page in ("/overview", "/queues"):
            text = (await visitor.get(page)).text
            assert "10,000+" in text
            assert "10,001" not in text
        assert (await visitor.get("/workers")).status_code == 200

    visiting(app, test)


def test_a_queue_whose_jobs_all_run_is_shown_with_how_many(tmp_path):
    world = World(url_in(tmp_path))
    for number in range(3):
        world.render.submit(number)
    world.claim("render", "gpu", 3_600_000)
    world.report.submit(1)
    world.claim("report", "reports", 3_600_000)

    async def test(site: Site) -> None:
        visitor = await site.visitor()

        async def shown(path: str) -> dict[str, tuple[str, ...]]:
            return {name: rest for name, *rest in QUEUE.findall((await visitor.get(path)).text)}

        for path in ("/overview", "/queues"):
            assert await shown(path) == {"gpu": ["2", "1"], "reports": ["0", "1"]}, path
        world.claim("render", "gpu", 3_600_000)
        world.claim("render", "gpu", 3_600_000)
        assert (await shown("/overview"))["gpu"] == ["0", "3"]
        assert "Ended by workers" in (await visitor.get("/overview")).text

    visiting(world.app, test)


def test_the_rate_of_a_queue_is_that_of_its_workers_and_a_bound_where_they_serve_others(tmp_path):
    clock = VirtualClock()
    app = Tally(url_in(tmp_path), clock=clock)
    clock.advance(-clock.wall_ms() % 60_000)
    for name in ("alone", "both", "nowhere"):
        app.queues.set(name, concurrency=9)
    for owner, queues, ended in (("a", ["alone"], 100), ("b", ["alone", "both"], 40), ("c", ["both"], 10)):
        about = (owner, "host", 7, "1", msgspec.json.encode(queues).decode(), 4, 0, "{}")
        app.runtime().committer.call((ReportWorker(*about, ended=(("SUCCEEDED", ended),)),))
    clock.advance(5_000)

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        clock.advance(4 * 60_000 + 55_000)
        for path in ("/overview", "/queues"):
            page = (await visitor.get(path)).text
            rates = dict(re.findall(r'queue=(\w+)">(?:.*?</td>){4}<td class="num">([^<]*)</td>', page))
            assert rates == {"alone": "≤ 28", "both": "≤ 10", "nowhere": "0"}, path
        page = (await visitor.get("/overview")).text
        assert re.search(r"<b>30</b><span>ended per minute", page)
        workers = (await visitor.get("/workers")).text
        rows = dict(
            re.findall(r"<tr><td><code>(\w)</code>(?:.*?</td>){4}<td class=\"num\">([^<]*)</td>", workers)
        )
        assert rows == {"a": "20", "b": "8.0", "c": "2.0"}
        clock.advance(60_000)
        assert "<b>0</b><span>ended per minute" in (await visitor.get("/overview")).text

    visiting(app, test)
