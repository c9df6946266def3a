"""Attention: what waits for a person is shown, whatever else waits in this tenant or in others."""

from __future__ import annotations

import re

import pytest

from tallystick import Tally
from tallystick.core.verbs.holds import Hold
from tallystick.dashboard.pages import attention as page_of
from tallystick.dashboard.pages import job as page_of_job
from tallystick.store.api import ClaimJobs, HoldJob, Searched
from tests.patience import wait_until
from tests.surfaces.dashboard.visiting import Site, url_in, visiting


@pytest.fixture
def app(tmp_path):
    app = Tally(url_in(tmp_path))

    @app.workflow
    def idle(number: int) -> int:
        return number

    vars(app).update(idle=idle)
    return app


def section(page: str, name: str) -> str:
    found = re.search(rf'<section [^>]*aria-label="{name}">(.*?)</section>', page, re.DOTALL)
    return found[1] if found else ""


def test_an_effect_in_doubt_is_shown_however_many_jobs_are_held_after_it(app):
    doubtful, *others = app.idle.opts(idempotent=False).submit_many([(number,) for number in range(231)])
    runtime = app.runtime()
    runtime.committer.call((HoldJob(doubtful.id, Hold.IN_DOUBT, "it is not known whether charge happened"),))
    for job in others:
        job.pause("maintenance")

    async def test(site: Site) -> None:
        page = (await (await site.visitor("jobs:read")).get("/attention")).text
        assert doubtful.id in section(page, "In doubt")
        assert "whether charge happened" in section(page, "In doubt")
        held = section(page, "Held")
        assert doubtful.id not in held
        assert f"{page_of.SHOWN}+" in held
        assert "And more: the newest 25 are shown." in held
        assert "And more" not in section(page, "In doubt")

    visiting(app, test)


def test_late_and_lost_jobs_of_a_tenant_are_shown_however_many_others_have(app):
    runtime = app.runtime()
    for tenant, number in (("big", 30), ("acme", 1)):
        app.idle.opts(tenant=tenant, queue="left", idempotent=False).submit_many(
            [(n,) for n in range(number)]
        )
        known = frozenset({("idle", "")})
        claims = runtime.committer.call((ClaimJobs("ghost", ("left",), known, 99, 1, runtime.ids.token),))
        assert len(claims) == number
        lost = claims[-1].fence.job_id
    late = app.idle.opts(tenant="big", deadline="1ms", idempotent=False)
    late.submit_many([(number,) for number in range(30)])
    mine = app.idle.opts(tenant="acme", deadline="1ms").submit(1)
    store = runtime.store
    assert isinstance(store, Searched)
    wait_until(lambda: store.late_jobs("acme", limit=1).rows, "the deadline")
    wait_until(lambda: store.lost_jobs("acme", limit=1), "the end of the lease")

    async def test(site: Site) -> None:
        page = (await (await site.visitor("jobs:read", tenant="acme")).get("/attention")).text
        assert section(page, "Late").count("troubles") == 1
        assert mine.id in section(page, "Late")
        assert lost in section(page, "Expired leases")
        big = (await (await site.visitor("jobs:read", tenant="big")).get("/attention")).text
        for name in ("Late", "Expired leases"):
            assert "And more" in section(big, name), name
            assert mine.id not in section(big, name)

    visiting(app, test)


def test_attention_says_where_late_jobs_of_others_are_too_many_to_be_looked_at(app, monkeypatch):
    late = app.idle.opts(tenant="big", deadline="1ms", idempotent=False)
    late.submit_many([(number,) for number in range(5)])
    store = app.runtime().store
    wait_until(lambda: len(store.late_jobs("big", limit=9).rows) == 5, "the deadlines")
    monkeypatch.setattr(type(store).late_jobs, "__kwdefaults__", {"window": 5})

    async def test(site: Site) -> None:
        page = (await (await site.visitor("jobs:read", tenant="acme")).get("/attention")).text
        assert "others are late too" in section(page, "Late")

    visiting(app, test)


def test_books_are_checked_once_for_a_click_and_not_with_every_look_at_the_page(app, monkeypatch):
    job, other = app.idle.submit(1), app.idle.submit(2)
    checks = []

    def counting(check):
        def counted(*args, **options):
            checks.append(check.__name__)
            return check(*args, **options)

        return counted

    monkeypatch.setattr(page_of, "audit", counting(page_of.audit))
    monkeypatch.setattr(page_of_job, "verify", counting(page_of_job.verify))

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        assert "were true" not in (await visitor.get("/attention?verify=1")).text
        assert (await visitor.post("/attention/verify")).headers["location"] == "/attention"
        sent = await visitor.post(f"/jobs/{job.id}/verify")
        assert sent.headers["location"] == f"/jobs/{job.id}?tab=books"
        again = {"HX-Request": "true"}
        for headers in ({}, again, again):
            books = (await visitor.get(f"/jobs/{job.id}?tab=books", headers=headers)).text
            assert "The books were true" in books
        assert "were true" not in (await visitor.get(f"/jobs/{other.id}?tab=books")).text
        await visitor.post("/attention/verify")
        for headers in ({}, again, again):
            assert "The books of the newest 2 jobs were true" in (
                (await visitor.get("/attention", headers=headers)).text
            )
        assert checks == ["audit", "verify", "audit"]
        stranger = await site.visitor("jobs:read", tenant="acme")
        assert (await stranger.post("/attention/verify")).status_code == 403
        assert (await stranger.post(f"/jobs/{job.id}/verify")).status_code == 404

    visiting(app, test)
