"""What buttons do: the same as the command line, once, and with who did it in the history."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tallystick.dashboard.pages.acting import VERBS
from tallystick.http.routes import ENDPOINTS
from tests.patience import wait_until
from tests.surfaces.dashboard.seeds import QUEUES, World, seed
from tests.surfaces.dashboard.visiting import Site, url_in, visiting


@pytest.mark.slow
def test_every_act_does_what_it_says_and_names_its_author(tmp_path):
    world = World(url_in(tmp_path))
    stuck = seed(world)
    app = world.app

    def said(job_id: str, kind: str) -> str:
        return next(event.payload for event in app.job(job_id).history() if event.name == kind)

    async def test(site: Site) -> None:
        visitor = await site.visitor()

        async def act(which: str, verb: str, **fields: str) -> str:
            answer = await visitor.post(f"/jobs/{stuck[which]}/{verb}", **fields)
            assert answer.status_code == 303, answer.text
            return answer.headers["location"].removeprefix("/jobs/")

        await act("paused", "resume")
        assert "(dashboard)" in said(stuck["paused"], "resume")
        await act("paused", "pause", why="again")
        assert app.job(stuck["paused"]).row().hold_reason.startswith("again (by key ")
        assert "(dashboard)" in app.job(stuck["paused"]).history()[-1].payload
        new = await act("failed", "retry")
        assert "(dashboard)" in said(new, "fork")
        fork = await act("mismatch", "fork", at="quote")
        assert "(dashboard)" in said(fork, "fork")
        await act("signal", "send", name="approve", value="true")
        (sent,) = app.acts(job=stuck["signal"])
        assert (sent.verb, sent.told, sent.who.endswith("(dashboard)")) == ("send", "approve", True)
        await act("in doubt", "resolve", effect="charge#1", says="happened", value='"receipt"')
        assert "(dashboard)" in said(stuck["in doubt"], "resolve")
        await act("cancelling", "force")
        assert app.job(stuck["cancelling"]).state().value == "CANCELLED"
        await act("child", "cancel", grace="0")
        assert "(dashboard)" in said(stuck["child"], "cancel")
        did = [(each.verb, each.who.endswith("(dashboard)")) for each in app.acts(job=stuck["paused"])]
        assert did == [("pause", True), ("resume", True)]
        shown = (await visitor.get(f"/jobs/{stuck['cancelling']}?tab=history")).text
        assert "What people did" in shown
        assert "by force" in shown
        for bad in ({"name": "approve", "value": "{"}, {"value": "1"}):
            assert (await visitor.post(f"/jobs/{stuck['signal']}/send", **bad)).status_code in (400, 422)
        assert (await visitor.post(f"/jobs/{stuck['signal']}/explode")).status_code == 404
        world.is_broken = False
        with app.worker(queues=QUEUES):
            assert app.job(stuck["signal"]).result(30) == "approved"
            assert app.job(stuck["in doubt"]).result(30) == "parcel 77"
            assert app.job(new).result(30) == "parcel 13"

    visiting(app, test)


NOT_LIMITS = (
    ("colour", "2", "a queue has no limit 'colour'"),
    ("by", "mallory", "a queue has no limit 'by'"),
    ("concurrency", "two", "concurrency is a whole number from 1 on, or none, not 'two'"),
    ("concurrency", "0", "from 1 to"),
    ("burst", "", "burst is a whole number from 1 on, not ''"),
    ("hold_slots", "perhaps", "hold_slots is true or false, not 'perhaps'"),
    ("order", "", "order is priority or fifo, not ''"),
    ("rate", "5", "write how many jobs may begin in which time"),
)
LIMITS = (
    ("hold_slots", "false", False),
    ("hold_slots", "True", True),
    ("order", "fifo", "fifo"),
    ("rate", "5/1m", "5/1m"),
    ("rate", "none", None),
    ("per_key", "7", 7),
    ("per_key", "", None),
)


@pytest.mark.slow
def test_queues_schedules_and_directives_are_looked_after(tmp_path):
    world = World(url_in(tmp_path))
    stuck = seed(world)
    app = world.app

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        assert (await visitor.post("/queues/emails/resume")).status_code == 303
        assert app.queues.get("emails").paused_by is None
        assert (await visitor.post("/queues/reports/set", limit="concurrency", value="2")).status_code == 303
        assert app.queues.get("reports").limits.concurrency == 2
        for limit, value, says in NOT_LIMITS:
            refused = await visitor.post("/queues/reports/set", limit=limit, value=value)
            assert (refused.status_code, says in unescape(refused.text)) == (422, True), refused.text
        for limit, value, kept in LIMITS:
            set_so = await visitor.post("/queues/reports/set", limit=limit, value=value)
            assert set_so.status_code == 303, set_so.text
            assert getattr(app.queues.get("reports").limits, limit) == kept
        await visitor.post("/queues/reports/pause")
        assert "(dashboard)" in (app.queues.get("reports").paused_by or "")
        await visitor.post("/schedules/quarterly/pause")
        assert "(dashboard)" in (app.schedules.get("quarterly").paused_by or "")
        await visitor.post("/schedules/quarterly/resume")
        made = await visitor.post("/schedules/quarterly/trigger")
        assert made.headers["location"].startswith("/jobs/")
        filled = {"since": "2026-01-01T00:00", "until": "2026-01-01T01:00"}
        assert (await visitor.post("/schedules/quarterly/backfill", **filled)).status_code == 303
        assert "4 ticks of quarterly: 4 new jobs" in (await visitor.get("/schedules")).text
        for about, page in (({"queue": "reports"}, "/queues"), ({"schedule": "quarterly"}, "/schedules")):
            acts = app.acts(**about)
            assert {each.who.endswith("(dashboard)") for each in acts if each.who != "a person"} == {True}
            shown = (await visitor.get(page)).text
            assert all(f": {each.verb} {each.name}" in shown for each in acts)
        assert [each.verb for each in app.acts(queue="reports")][:2] == ["pause", "set"]
        dead = f"{stuck['dead directive']}:ocr:1"
        redriven = await visitor.post("/outbox/redrive", directive=dead)
        assert redriven.status_code == 303, redriven.text
        new = redriven.headers["location"].removeprefix("/jobs/")
        assert app.job(new).row().retry_of == stuck["dead directive"]
        with app.worker(queues=QUEUES):
            wait_until(lambda: app.job(stuck["paused queue"]).row().completed_at, "the end of the queued job")

    visiting(app, test)


SHEET = re.compile(r'<form method="post"[^>]*class="sheet"[^>]*>.*?</form>', re.DOTALL)
REQUEST = re.compile(r"<code>POST (/v1/\S+)  ")
ROUTES = [re.compile(re.sub(r"\{\w+\}", "[^ ]+", each.path)) for each in ENDPOINTS if each.method == "POST"]


@pytest.mark.slow
def test_every_button_shows_a_command_and_a_request_that_exist(tmp_path):
    world = World(url_in(tmp_path))
    stuck = seed(world)

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        pages = [f"/jobs/{job_id}" for job_id in stuck.values()]
        shown = set()
        for path in (*pages, "/queues", "/schedules", "/attention", "/outbox?show=dead"):
            for sheet in SHEET.findall((await visitor.get(path)).text):
                assert "<code>tally " in sheet, (path, sheet)
                requests = REQUEST.findall(unescape(sheet))
                assert len(requests) == 1, (path, sheet)
                assert [route for route in ROUTES if route.fullmatch(requests[0])], requests
                shown.add(requests[0].rpartition("/")[2])
        assert {
            "resolve",
            "pause",
            "resume",
            "cancel",
            "retry",
            "fork",
            "redrive",
            "trigger",
            "backfill",
        } <= shown
        bulk = unescape((await visitor.get("/bulk/cancel?state=QUEUED&tag=a")).text)
        assert 'POST /v1/jobs/bulk  {"verb":"cancel"' in bulk
        assert "everything" not in bulk
        assert '"everything":true}' in unescape((await visitor.get("/bulk/cancel")).text)

    visiting(world.app, test)


def test_a_form_about_a_job_needs_what_the_same_request_needs():
    asked = {each.path: each for each in ENDPOINTS if each.method == "POST"}
    for name, verb in VERBS.items():
        path = {"send": "signals/{name}", "force": "cancel"}.get(name, name)
        request = asked[f"/v1/jobs/{{job_id}}/{path}"]
        assert verb.scope == (request.or_scope if name == "force" else request.scope), name


@pytest.mark.slow
def test_a_key_sees_the_buttons_that_it_may_press_and_no_other(tmp_path):
    world = World(url_in(tmp_path))
    stuck = seed(world)

    async def test(site: Site) -> None:
        doubtful = f"/jobs/{stuck['in doubt']}"
        writes = {f"{doubtful}/{verb}" for verb in ("resume", "cancel", "fork")}
        operates = {f"{doubtful}/{verb}" for verb in ("resolve", "force")}
        for scopes, seen, says in (
            (("jobs:read",), set(), "This key only reads."),
            (("jobs:read", "jobs:write"), writes, ""),
            (("jobs:read", "admin"), operates, "This key has no scope <code>jobs:write</code>"),
            (("jobs:read", "jobs:write", "admin"), writes | operates, ""),
        ):
            visitor = await site.visitor(*scopes)
            page = (await visitor.get(doubtful)).text
            assert set(re.findall(rf'action="({doubtful}/\w+)"', page)) == seen, scopes
            assert ("This key" in page) == bool(says), scopes
            assert says in page
        operator = await site.visitor("jobs:read", "admin")
        settled = await operator.post(f"{doubtful}/resolve", effect="charge#1", says="happened", value='"r"')
        assert settled.status_code == 303, settled.text
        assert (await operator.post(f"{doubtful}/cancel", grace="0")).status_code == 403
        assert (await operator.post(f"/jobs/{stuck['cancelling']}/force")).status_code == 303
        assert world.app.job(stuck["cancelling"]).state().value == "CANCELLED"

    visiting(world.app, test)
