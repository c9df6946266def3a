"""Every page on a store with every kind of job: its visitors, its weight, and stored text that stays text."""

from __future__ import annotations

import gzip
import re
from itertools import product

import msgspec
import pytest

from tallystick import Tally, set_value, wait
from tallystick.clock import SystemClock
from tallystick.core.lifecycles import MACHINES
from tallystick.core.remote.keys import ADMIN, SCOPES
from tallystick.dashboard.pages.job import TABS
from tallystick.dashboard.pages.table import PLACES
from tallystick.testing.conformance.drafts import submission
from tests.patience import wait_until
from tests.surfaces.dashboard.seeds import World, seed
from tests.surfaces.dashboard.visiting import ALL, Site, url_in, visiting

PAGE_BYTES_MAX = 100_000
PARAMETER = re.compile(r"\{(\w+)(:\w+)?\}")
EVIL = '<script>alert(1)</script><img src=x onerror=alert(2)>"\'><b style="color:red">'
TAGS = msgspec.json.encode([EVIL]).decode()
PAGES = ("/", "/overview?period=7d", "/jobs", "/attention", "/effects", "/effects?show=ended")
MORE = ("/outbox", "/outbox?show=dead", "/queues", "/workers", "/schedules", "/runs", "/bulk/cancel?held=yes")


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeded")
    world = World(url_in(folder))
    stuck = seed(world)
    world.app.close()
    return world.url, stuck


def addresses(job_ids) -> list[str]:
    tabs = [f"/jobs/{job_id}?tab={tab}&show=1&raw=1" for job_id in job_ids for tab in TABS]
    machines = [f"/lifecycles?machine={name}" for name in MACHINES]
    return [*PAGES, *MORE, *machines, *tabs]


@pytest.mark.slow
def test_every_page_of_every_job_is_small_and_has_nothing_inline(seeded):
    url, stuck = seeded

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        for path in addresses(stuck.values()):
            page = await visitor.get(path)
            assert page.status_code == 200, (path, page.text)
            assert len(gzip.compress(page.content)) < PAGE_BYTES_MAX, path
            assert "default-src 'self'" in page.headers["content-security-policy"]
            assert "unsafe" not in page.headers["content-security-policy"]
            assert (page.headers["x-content-type-options"], page.headers["cache-control"]) == (
                "nosniff",
                "no-store",
            )
            assert not re.search(r"<[^>]*\s(style|on\w+)\s*=", page.text), path
            assert not re.search(r"<script(?![^>]*\ssrc=)", page.text), path
            assert not re.search(r'(src|href|action|hx-get)="(?:https?:)?//', page.text), path

    visiting(World(url).app, test)


def test_pages_and_what_they_load_are_small_together(tmp_path):
    async def test(site: Site) -> None:
        visitor = await site.visitor()
        page = await visitor.get("/overview")
        size = len(gzip.compress(page.content))
        for file in re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text):
            answer = await visitor.get(file, headers={"Accept-Encoding": "gzip"})
            assert answer.status_code == 200
            size += int(answer.headers["content-length"])
        assert size < PAGE_BYTES_MAX
        tagged = re.search(r'"(/static/style[^"]+)"', page.text)
        assert tagged
        again = await visitor.get(tagged[1])
        assert "immutable" in again.headers["cache-control"]
        known = {"If-None-Match": again.headers["etag"]}
        assert (await visitor.get(tagged[1], headers=known)).status_code == 304
        for path in ("/static/../app.py", "/static/vendor", "/static/nothing.js", "/static/%2e%2e/app.py"):
            assert (await visitor.get(path)).status_code == 404

    visiting(Tally(url_in(tmp_path)), test)


@pytest.mark.slow
def test_each_place_needs_its_scope_and_places_of_operators_need_admin(seeded):
    url, stuck = seeded

    def at(path: str) -> str:
        given = {"job_id": stuck["signal"], "verb": "resume", "queue": "emails", "what": "arguments"}
        known = {**given, "schedule": "quarterly", "run_id": "r1", "name": "a"}
        return PARAMETER.sub(lambda found: known[found[1]], path)

    async def test(site: Site) -> None:
        choices = [
            tuple(s for s, has in zip(SCOPES, mask, strict=True) if has) for mask in product((0, 1), repeat=4)
        ]
        for scopes in filter(None, choices):
            visitor = await site.visitor(*scopes)
            secret = site.pages.sessions.find(visitor.http.cookies["tallystick_session"])
            assert secret is not None
            for place in PLACES:
                wanted = ADMIN if place.operator else place.scope
                path = at(place.path)
                if place.path == "/logout":
                    continue
                if place.method == "GET":
                    answer = await visitor.get(path)
                else:
                    answer = await visitor.http.post(path, data={"csrf": secret[0].csrf, "tenant": "x"})
                refused = bool(wanted) and wanted not in scopes
                assert (answer.status_code == 403) == refused, (scopes, place.name, answer.status_code)

    visiting(World(url).app, test)


def test_a_tenant_sees_its_own_jobs_and_no_pages_about_the_store(seeded):
    url, stuck = seeded

    async def test(site: Site) -> None:
        acme = await site.visitor("jobs:read", "jobs:write", tenant="acme")
        listed = await acme.get("/jobs")
        assert "<b>1</b> job" in listed.text
        assert (await acme.get("/")).headers["location"] == "/jobs"
        for job_id in stuck.values():
            assert (await acme.get(f"/jobs/{job_id}")).status_code == 404
            assert (await acme.get(f"/jobs/{job_id}/payload/arguments")).status_code == 404
            assert (await acme.post(f"/jobs/{job_id}/cancel")).status_code == 404
            assert job_id not in (await acme.get("/attention")).text
        assert (await acme.post("/tenant", tenant="default")).status_code == 404
        everyone = await site.visitor(*ALL, tenant="*")
        assert "<b>1</b> job" not in (await everyone.get("/jobs")).text
        assert (await everyone.post("/tenant", tenant="acme")).status_code == 303
        assert "<b>1</b> job" in (await everyone.get("/jobs")).text

    visiting(World(url).app, test)


def test_a_key_that_only_reads_is_shown_no_buttons(seeded):
    url, stuck = seeded

    async def test(site: Site) -> None:
        visitor = await site.visitor("jobs:read")
        for path in ("/attention", "/jobs", f"/jobs/{stuck['failed']}", f"/jobs/{stuck['in doubt']}"):
            page = (await visitor.get(path)).text
            assert (
                re.findall(r'action="([^"]+)"', page.partition("<main")[2].replace('action="/jobs"', ""))
                == []
            )

    visiting(World(url).app, test)


@pytest.mark.slow
def test_stored_text_never_becomes_part_of_a_page(tmp_path):
    app = Tally(url_in(tmp_path))

    @app.workflow
    def evil(text: str) -> str:
        set_value("progress", text)
        raise ValueError(text)

    @app.workflow
    def waits(text: str) -> str:
        return wait("go", str)

    async def test(site: Site) -> None:
        jobs = [held.id, failed.id, answered.id, raw_id]
        for visitor in (await site.visitor(), await site.visitor("jobs:read")):
            for path in [
                *addresses(jobs),
                f"/jobs?error={EVIL}",
                f"/jobs?tag={EVIL}",
                f"/jobs?workflow={EVIL}&queue={EVIL}&key={EVIL}&parent={EVIL}",
                f"/find?q={EVIL}",
                f"/jobs/{EVIL}",
                f"/lifecycles?machine={EVIL}",
                f"/jobs?state={EVIL}",
            ]:
                page = await visitor.get(path)
                if page.status_code == 303:
                    continue
                assert "<script>" not in page.text, path
                assert "<img src=x" not in page.text, path
                assert "<b style" not in page.text, path
        raw = await (await site.visitor()).get(f"/jobs/{failed.id}/payload/arguments")
        assert raw.headers["content-disposition"].startswith("attachment")
        assert raw.headers["content-security-policy"].startswith("sandbox")

    with app.worker():
        failed = evil.opts(tags=["evil"]).submit(EVIL)
        answered, held = waits.submit(EVIL), waits.submit(EVIL)
        answered.send("go", EVIL)
        answered.result(30)
        wait_until(lambda: failed.row().completed_at, "its end")
    held.pause(EVIL)
    # What no program can say, a row may hold all the same.
    columns = dict.fromkeys(("handler", "version", "queue", "idempotency_key", "options"), EVIL)
    raw = submission(SystemClock(), **columns, payload=msgspec.json.encode(EVIL).decode(), tags=TAGS)
    app.runtime().committer.call((raw,))
    raw_id = raw.job.job_id
    app.queues.pause("default", by=EVIL)
    visiting(app, test)
