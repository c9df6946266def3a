"""A command becomes a job, remote workers ask for directives and report, and the books show it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tallystick.engine.audit import audit
from tests.patience import wait_until
from tests.surfaces.http.served import COMMAND, Client, World, serving, sqlite_url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    from tests.postgres.databases import fresh_schema

    monkeypatch.setenv("TALLYSTICK_CALLBACK_KEYS", f"k1:{'s' * 32}")
    return request.getfixturevalue("server").url(schema=fresh_schema())


async def poll(client: Client, service: str, worker: str = "w1", **asked: object) -> list[dict]:
    said = {"service": service, "worker": worker, "max": 8, **asked}
    answer = await client("GET", "/v1/directives", params=said)
    assert answer.status_code == 200, answer.text
    return answer.json()["directives"]


def fence(directive: dict) -> dict:
    return {name: directive[name] for name in ("jobId", "stepId", "attempt_no", "lease_id")}


async def report(world: World, what: str, directive: dict, token: str | None = None, **said: object):
    headers = {"Authorization": f"Bearer {token or directive['token']}"}
    return await world.client()(
        "POST", f"/v1/callbacks/{what}", json={**fence(directive), **said}, headers=headers
    )


def test_a_job_goes_through_two_services_and_its_books_balance(url: str):
    async def test(world: World) -> None:
        client = world.known()
        made = await client("POST", "/v1/commands", json=COMMAND)
        assert made.status_code == 202
        again = await client("POST", "/v1/commands", json=COMMAND)
        assert again.status_code == 200
        assert again.json() == {"jobId": made.json()["jobId"], "created": False}
        job = f"/v1/jobs/{made.json()['jobId']}"
        for service in ("ocr", "embed"):
            (directive,) = await poll(client, service)
            assert directive["stepId"] == service
            assert directive["callback_urls"]["ack"] == "http://api.test/v1/callbacks/ack"
            assert await poll(client, service, worker="w2") == []
            (same,) = await poll(client, service)
            assert same["outbox_id"] == directive["outbox_id"]
            heard = await report(world, "ack", directive)
            assert (heard.status_code, heard.json()["status"]) == (200, "ACCEPTED")
            assert 0 < heard.json()["lease_ms"] <= 900_000
            assert await poll(client, service) == []
            beat = await report(world, "heartbeat", directive, heard.json()["token"])
            assert beat.json()["status"] == "ACCEPTED"
            done = await report(
                world, "result", directive, beat.json()["token"], status="SUCCEEDED", value={"by": service}
            )
            assert (done.status_code, done.json()) == (200, {"status": "ACCEPTED", "cancelling": False})
            again = await report(world, "result", directive, status="SUCCEEDED", value={"by": service})
            assert (again.status_code, again.json()["status"]) == (200, "DUPLICATE")
            other = await report(world, "result", directive, status="SUCCEEDED", value="other")
            assert (other.status_code, other.json()["status"]) == (409, "CONFLICT")
        shown = (await client("GET", job)).json()
        assert (shown["state"], shown["result"], shown["error_code"]) == ("SUCCEEDED", {"by": "embed"}, None)
        steps = (await client("GET", f"{job}/steps")).json()["steps"]
        assert {step["stepId"]: (step["state"], step["attempt_no"]) for step in steps} == {
            "ocr": ("SUCCEEDED", 1),
            "embed": ("SUCCEEDED", 1),
        }
        assert {step["decision_source"] for step in steps} == {"global"}
        assert {step["routing_key_used"] for step in steps} == {"acme"}
        history = (await client("GET", f"{job}/history")).json()["history"]
        assert [fact["type"] for fact in history] == ["submit", *["sent", "ack", "result"] * 2]
        assert (await client("GET", f"{job}/why")).json()["why"].startswith("it succeeded")
        assert audit(world.app.runtime().store).findings == []

    serving(url, test)


def test_references_travel_from_step_to_step_and_can_be_read(url: str):
    async def test(world: World) -> None:
        client = world.known()
        sent = {**COMMAND, "input_ref": {"uri": "s3://in", "version_id": 1}}
        made = await client("POST", "/v1/commands", json=sent)
        other = {**sent, "input_ref": {"uri": "s3://in", "version_id": 2}}
        assert (await client("POST", "/v1/commands", json=other)).status_code == 202
        job = f"/v1/jobs/{made.json()['jobId']}"
        (first, _other) = await poll(client, "ocr")
        assert first["input_ref"] == sent["input_ref"]
        left = {"output_ref": {"uri": "s3://mid", "etag": "e"}, "workspace_ref": "s3://space"}
        artifacts = ["s3://log", {"uri": "s3://text", "lines": 7}]
        await report(world, "result", first, status="SUCCEEDED", artifact_refs=artifacts, **left)
        (second,) = await poll(client, "embed")
        assert (second["input_ref"], second["workspace_ref"]) == tuple(left.values())
        shown = (await client("GET", f"{job}/steps")).json()["steps"]
        # Not by their names.
        assert [(step["step_index"], step["stepId"]) for step in shown] == [(0, "ocr"), (1, "embed")]
        assert {name: shown[0][name] for name in left} == left
        assert [step["artifact_refs"] for step in shown] == [artifacts, None]
        page = (await client("GET", f"{job}/steps", params={"limit": 1})).json()
        rest = (await client("GET", f"{job}/steps", params={"after": page["after"]})).json()
        assert [step["stepId"] for step in page["steps"] + rest["steps"]] == ["ocr", "embed"]
        assert rest["after"] is None

    serving(url, test)


def test_nothing_is_given_out_of_a_job_that_is_paused(url: str):
    async def test(world: World) -> None:
        client = world.known()
        made = await client("POST", "/v1/commands", json=COMMAND)
        job = f"/v1/jobs/{made.json()['jobId']}"
        assert (await client("POST", f"{job}/pause", json={})).json()["hold"] == "PAUSED"
        assert await poll(client, "ocr") == []
        await client("POST", f"{job}/resume", json={})
        (first,) = await poll(client, "ocr")
        await client("POST", f"{job}/pause", json={})
        assert (await report(world, "result", first, status="SUCCEEDED")).json()["status"] == "ACCEPTED"
        assert await poll(client, "embed") == []
        assert (await client("GET", job)).json()["state"] == "IN_PROGRESS"
        assert audit(world.app.runtime().store).findings == []

    serving(url, test)


def test_who_waits_for_work_is_told_when_there_is_some(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        asking = asyncio.create_task(poll(client, "ocr", wait=30))
        await asyncio.to_thread(wait_until, lambda: world.api.api.news.waiting, "a poll that waits")
        await client("POST", "/v1/commands", json=COMMAND)
        (directive,) = await asyncio.wait_for(asking, 20)
        assert directive["stepId"] == "ocr"
        assert await poll(client, "ocr", worker="w2", wait=0.01) == []

    serving(sqlite_url(tmp_path), test)


def test_two_workers_never_get_one_directive(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        for page in range(20):
            await client("POST", "/v1/commands", json={**COMMAND, "payload": {"page": page}})
        polls = [poll(client, "ocr", worker=f"w{n}", max=3, wait=5 if n < 6 else 0.5) for n in range(8)]
        given = [each["outbox_id"] for found in await asyncio.gather(*polls) for each in found]
        assert len(given) == len(set(given)) == 20

    serving(sqlite_url(tmp_path), test)


def test_a_cancelled_job_tells_its_worker(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        job_id = (await client("POST", "/v1/commands", json=COMMAND)).json()["jobId"]
        (directive,) = await poll(client, "ocr")
        token = (await report(world, "ack", directive)).json()["token"]
        cancelled = await client("POST", f"/v1/jobs/{job_id}/cancel")
        assert (cancelled.status_code, cancelled.json()["state"]) == (200, "CANCELLING")
        beat = await report(world, "heartbeat", directive, token)
        assert (beat.status_code, beat.json()["status"], beat.json()["cancelling"]) == (
            200,
            "CANCELLING",
            True,
        )
        await report(world, "result", directive, token, status="SUCCEEDED")
        assert (await client("GET", f"/v1/jobs/{job_id}")).json()["state"] == "CANCELLED"
        late = await report(world, "heartbeat", directive, token)
        assert (late.status_code, late.json()["status"]) == (409, "STALE")

    serving(sqlite_url(tmp_path), test)


def test_a_tenant_has_no_more_jobs_in_flight_than_it_may(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        for page in range(3):
            made = await client("POST", "/v1/commands", json={**COMMAND, "payload": {"page": page}})
            assert made.status_code == 202
        full = await client("POST", "/v1/commands", json={**COMMAND, "payload": {"page": 3}})
        assert (full.status_code, full.json()["code"]) == (429, "TOO_MANY_IN_FLIGHT")
        assert full.headers["retry-after"] == "1"
        same = await client("POST", "/v1/commands", json={**COMMAND, "payload": {"page": 2}})
        assert same.status_code == 200
        other = await world.known("other")("POST", "/v1/commands", json={**COMMAND, "tenant_id": "other"})
        assert other.status_code == 202
        await client("POST", f"/v1/jobs/{same.json()['jobId']}/cancel")
        room = await client("POST", "/v1/commands", json={**COMMAND, "payload": {"page": 3}})
        assert room.status_code == 202

    serving(sqlite_url(tmp_path), test, in_flight_max=3)


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"request_type": "unknown"}, 400, "BAD_COMMAND"),
        ({"mode": "BURST"}, 400, "BAD_COMMAND"),
        ({"payload": 1}, 422, "BAD_VALUE"),
        ({"tenant_id": "other"}, 404, "NOT_FOUND"),
        ({"idempotency_key": "a b"}, 422, "BAD_NAME"),
    ],
)
def test_a_command_that_cannot_be_taken_is_told_why(tmp_path: Path, changed: dict, status: int, code: str):
    async def test(world: World) -> None:
        answer = await world.known()("POST", "/v1/commands", json={**COMMAND, **changed})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status

    serving(sqlite_url(tmp_path), test)


def test_a_signal_to_a_job_that_waits_for_none_is_refused(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        job_id = (await client("POST", "/v1/commands", json=COMMAND)).json()["jobId"]
        answer = await client("POST", f"/v1/jobs/{job_id}/signals/go", json={"value": 1})
        assert (answer.status_code, answer.json()["code"]) == (409, "TAKES_NO_SIGNALS")
        assert "no signal" in answer.json()["detail"]

    serving(sqlite_url(tmp_path), test)


def test_one_key_with_two_contents_is_a_conflict_that_names_both_hashes(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        keyed = {**COMMAND, "idempotency_key": "k"}
        assert (await client("POST", "/v1/commands", json=keyed)).status_code == 202
        answer = await client("POST", "/v1/commands", json={**keyed, "payload": {}})
        assert (answer.status_code, answer.json()["code"]) == (409, "IDEMPOTENCY_CONFLICT")
        assert answer.json()["existing_hash"] != answer.json()["submitted_hash"]

    serving(sqlite_url(tmp_path), test)
