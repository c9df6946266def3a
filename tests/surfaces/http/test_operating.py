"""What operators do over HTTP, with their key: many jobs, effects in doubt, queues and schedules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick import Key, Tally
from tests.surfaces.http.served import World, serving, sqlite_url

ADMIN = ("admin", "jobs:read")


def test_one_word_reaches_the_jobs_of_a_tenant_that_match_and_they_are_counted_before(tmp_path: Path):
    async def test(world: World) -> None:
        flow = world.app.workflows["waits", ""]
        mine = [flow.opts(tenant="acme", tags=["old"] if n else []).submit() for n in range(3)]
        other = flow.opts(tenant="other", tags=["old"]).submit()
        admin = world.known("acme", ADMIN)
        word = {"verb": "pause", "tag": "old", "state": ["QUEUED"]}
        counted = await admin("POST", "/v1/jobs/bulk", json={**word, "count": True})
        assert (counted.status_code, counted.json()) == (200, {"reached": 2, "passed_by": 0})
        assert {job.row().hold for job in mine} == {None}
        assert (await admin("POST", "/v1/jobs/bulk", json=word)).json() == {"reached": 2, "passed_by": 0}
        assert [job.row().hold for job in (*mine, other)] == [None, "PAUSED", "PAUSED", None]
        for verb, reached in (("resume", 2), ("cancel", 3), ("retry", 0)):
            answer = await admin("POST", "/v1/jobs/bulk", json={"verb": verb, "workflow": "waits"})
            assert answer.json() == {"reached": reached, "passed_by": 0}, verb
        assert other.row().completed_at is None
        acts = [act.verb for act in await world.app.acts_aio(job=mine[2])]
        assert acts == ["cancel", "resume", "pause"]
        assert (await admin("POST", "/v1/jobs/bulk", json={"verb": "explode"})).status_code == 422

    serving(sqlite_url(tmp_path), test)


def test_a_word_without_a_filter_reaches_all_jobs_only_if_it_says_so(tmp_path: Path):
    async def test(world: World) -> None:
        flow = world.app.workflows["waits", ""]
        mine, other = (flow.opts(tenant=tenant).submit() for tenant in ("acme", "other"))
        admin = world.known("acme", ADMIN)
        for refused in ({}, {"state": []}, {"everything": True, "workflow": "waits"}):
            answer = await admin("POST", "/v1/jobs/bulk", json={"verb": "cancel", **refused})
            assert (answer.status_code, answer.json()["code"]) == (422, "BAD_INPUT"), refused
            assert "everything" in answer.json()["detail"]
        assert mine.row().completed_at is None
        for filters, reached in (({"count": True}, 1), ({"everything": True}, 1), ({"everything": True}, 0)):
            answer = await admin("POST", "/v1/jobs/bulk", json={"verb": "cancel", **filters})
            assert answer.json() == {"reached": reached, "passed_by": 0}, filters
        assert mine.row().completed_at is not None
        assert other.row().completed_at is None

    serving(sqlite_url(tmp_path), test)


@pytest.mark.slow
def test_an_effect_in_doubt_is_answered_for_once(tmp_path: Path):
    async def test(world: World) -> None:
        app = Tally(sqlite_url(tmp_path))  # its workers are in another process, as it were

        @app.effect(key="charge:{order}")
        def charge(key: Key, order: int) -> str:
            raise ConnectionError("reset after it was sent")

        @app.workflow
        def shop(order: int) -> str:
            return charge(order)

        admin = world.known("acme", ADMIN)
        async with app.worker():
            job = shop.opts(tenant="acme").submit(7)
            while (await job.row_aio()).hold != "IN_DOUBT":
                await admin("GET", f"/v1/jobs/{job.id}/why")
            (told,) = (await admin("GET", "/v1/effects?stands=IN_DOUBT")).json()["effects"]
            assert (told["jobId"], told["key"], told["arguments"]) == (job.id, "charge:7", {"order": 7})
            stranger = await world.known("other")("GET", "/v1/effects", params={"job": job.id})
            assert stranger.json() == {"effects": [], "after": None}
            path, says = f"/v1/jobs/{job.id}/resolve", {"says": "happened", "value": "receipt 7"}
            assert (await admin("POST", path, json={"says": "perhaps"})).status_code == 422
            answer = await admin("POST", path, json={**says, "effect": "charge#1"})
            assert (answer.status_code, answer.json()["jobId"]) == (200, job.id)
            assert await job.result_aio("30s") == "receipt 7"
            assert (await admin("GET", "/v1/effects")).json()["effects"] == []
            (ended,) = (await admin("GET", "/v1/effects?show=ended")).json()["effects"]
            assert (ended["stands"], ended["result"]) == ("HAPPENED", "receipt 7")
            assert ended["ended_by"].startswith("key ")
            nowhere = await admin("GET", "/v1/effects", params={"show": "ended", "after": "yesterday"})
            assert (nowhere.status_code, nowhere.json()["code"]) == (422, "BAD_INPUT")
            again = await admin("POST", path, json=says)
            assert (again.status_code, again.json()["code"]) == (409, "NOT_RESOLVED")
        assert any('"by":"key ' in event.payload for event in job.history() if event.name == "resolve")
        await app.close_aio()

    serving(sqlite_url(tmp_path), test)


def test_queues_are_looked_after(tmp_path: Path):
    async def test(world: World) -> None:
        admin = world.known("acme", ADMIN)
        assert (await admin("GET", "/v1/queues")).json() == {"queues": []}
        made = await admin("POST", "/v1/queues/emails", json={"concurrency": 3, "rate": "10/1m"})
        assert (made.status_code, made.json()["limits"]["concurrency"]) == (200, 3)
        less = await admin("POST", "/v1/queues/emails", json={"concurrency": None})
        assert (less.json()["limits"]["concurrency"], less.json()["limits"]["rate"]) == (None, "10/1m")
        paused = await admin("POST", "/v1/queues/emails/pause", json={})
        assert paused.json()["paused_by"].startswith("key ")
        assert (await admin("POST", "/v1/queues/emails/resume", json={})).json()["paused_by"] is None
        assert (await admin("POST", "/v1/queues/emails/reset", json={})).json()["limits"]["rate"] is None
        (shown,) = (await admin("GET", "/v1/queues")).json()["queues"]
        assert (shown["name"], shown["running"], shown["declared"]) == ("emails", 0, False)
        assert (await admin("POST", "/v1/queues/none/resume", json={})).json()["code"] == "NO_SUCH_QUEUE"
        assert (await admin("POST", "/v1/queues/emails", json={"concurrency": -1})).status_code == 422
        verbs = [act.verb for act in reversed(await world.app.acts_aio(queue="emails"))]
        assert verbs == ["set", "set", "pause", "resume", "reset"]

    serving(sqlite_url(tmp_path), test)


def test_schedules_are_looked_after(tmp_path: Path):
    async def test(world: World) -> None:
        world.app.schedules.add("hourly", world.app.workflows["waits", ""], "every 1h", by="a test")
        admin = world.known("acme", ADMIN)
        (shown,) = (await admin("GET", "/v1/schedules")).json()["schedules"]
        assert (shown["id"], shown["workflow"], shown["paused_by"]) == ("hourly", "waits", None)
        paused = await admin("POST", "/v1/schedules/hourly/pause", json={})
        assert paused.json()["paused_by"].startswith("key ")
        assert (await admin("POST", "/v1/schedules/hourly/resume", json={})).json()["paused_by"] is None
        made = await admin("POST", "/v1/schedules/hourly/trigger", json={})
        assert (made.status_code, made.json()["created"]) == (202, True)
        time = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T03:00:00Z"}
        filled = (await admin("POST", "/v1/schedules/hourly/backfill", json=time)).json()["jobs"]
        assert [each["created"] for each in filled] == [True] * 3
        again = (await admin("POST", "/v1/schedules/hourly/backfill", json=time)).json()["jobs"]
        assert again == [{**each, "created": False} for each in filled]
        naive = {"since": "2026-01-01T00:00:00", "until": "2026-01-01T03:00:00"}
        assert (await admin("POST", "/v1/schedules/hourly/backfill", json=naive)).status_code == 422
        missing = await admin("POST", "/v1/schedules/none/pause", json={})
        assert (missing.status_code, missing.json()["code"]) == (404, "NO_SUCH_SCHEDULE")
        verbs = [act.verb for act in reversed(await world.app.acts_aio(schedule="hourly"))]
        assert verbs == ["add", "pause", "resume", "trigger", "backfill", "backfill"]

    serving(sqlite_url(tmp_path), test)
