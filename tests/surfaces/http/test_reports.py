"""Many reports in one request: each has its own token and its own answer, and they share a flush."""

from __future__ import annotations

from pathlib import Path

from tallystick.core.limits import CALLBACK_BYTES_MAX, REPORTS_MAX
from tallystick.engine.audit import audit
from tests.surfaces.http.served import COMMAND, Client, World, serving, sqlite_url
from tests.surfaces.http.test_access import image
from tests.surfaces.http.test_remote_work import fence, poll, report


async def given(client: Client, count: int) -> list[dict]:
    for page in range(count):
        await client("POST", "/v1/commands", json={**COMMAND, "payload": {"page": page}})
    return await poll(client, "ocr", max=count)


def said(kind: str, directive: dict, token: str | None = None, **members: object) -> dict:
    body = {**fence(directive), **members}
    return {"kind": kind, "token": directive["token"] if token is None else token, "report": body}


async def reported(client: Client, *reports: dict) -> list[dict]:
    answer = await client("POST", "/v1/callbacks", json={"reports": list(reports)})
    assert answer.status_code == 200, answer.text
    return answer.json()["answers"]


def test_each_report_has_its_own_answer(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        one, two, three = await given(client, 3)
        flushes = world.app.runtime().committer.flushes
        answers = await reported(
            client,
            said("ack", one),
            said("result", two, status="SUCCEEDED", value=1),
            said("ack", three, token=one["token"]),
            said("result", three),
            said("ack", {**three, "lease_id": "other"}),
        )
        assert world.app.runtime().committer.flushes == flushes + 1
        assert [answer["status"] for answer in answers] == [200, 200, 401, 422, 401]
        assert (answers[0]["heard"], answers[1]["heard"]) == ("ACCEPTED", "ACCEPTED")
        assert 0 < answers[0]["lease_ms"] <= 900_000
        assert answers[2] == answers[4] == {"status": 401}
        assert (answers[3]["code"], "status" in answers[3]["detail"]) == ("BAD_VALUE", True)
        # The token that an answer brings is good for what follows, as a report of its own too.
        beat = await report(world, "heartbeat", one, answers[0]["token"])
        assert beat.json()["status"] == "ACCEPTED"
        before = image(world)
        copies = await reported(
            client,
            said("ack", one),
            said("result", two, status="SUCCEEDED", value=1),
            said("result", two, status="SUCCEEDED", value=2),
        )
        assert [(answer["status"], answer["heard"]) for answer in copies] == [
            (200, "DUPLICATE"),
            (200, "DUPLICATE"),
            (409, "CONFLICT"),
        ]
        assert image(world) == before
        assert audit(world.app.runtime().store).findings == []

    serving(sqlite_url(tmp_path), test)


def test_reports_on_one_directive_are_taken_in_their_order(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        (one,) = await given(client, 1)
        done = {"status": "SUCCEEDED", "value": 1}
        reports = [said("ack", one), said("heartbeat", one), said("result", one, **done), said("ack", one)]
        answers = await reported(client, *reports)
        assert [answer["heard"] for answer in answers] == ["ACCEPTED", "ACCEPTED", "ACCEPTED", "DUPLICATE"]
        history = (await client("GET", f"/v1/jobs/{one['jobId']}/history")).json()["history"]
        assert [fact["type"] for fact in history] == ["submit", "sent", "ack", "result"]

    serving(sqlite_url(tmp_path), test)


def test_a_report_that_is_too_large_is_refused_alone(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        one, two = await given(client, 2)
        large = "x" * CALLBACK_BYTES_MAX
        answers = await reported(
            client,
            said("result", one, status="SUCCEEDED", value=large),
            said("result", two, status="SUCCEEDED", value=1),
        )
        assert [(answer["status"], answer.get("code")) for answer in answers] == [
            (413, "PAYLOAD_TOO_LARGE"),
            (200, None),
        ]

    serving(sqlite_url(tmp_path), test)


def test_there_is_a_limit_to_reports_in_one_request(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        (one,) = await given(client, 1)
        answer = await client(
            "POST", "/v1/callbacks", json={"reports": [said("ack", one)] * (REPORTS_MAX + 1)}
        )
        assert (answer.status_code, answer.json()["code"]) == (422, "BAD_VALUE")

    serving(sqlite_url(tmp_path), test)


def test_a_worker_that_has_all_answers_gets_no_copies(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        one, _two = await given(client, 2)
        assert {each["outbox_id"] for each in await poll(client, "ocr")} >= {one["outbox_id"]}
        assert await poll(client, "ocr", again="false") == []

    serving(sqlite_url(tmp_path), test)


def test_an_answer_says_when_there_may_be_more_that_the_worker_was_given_before(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known()
        ids = [each["outbox_id"] for each in await given(client, 3)]
        for most, more in ((2, {"more": True}), (4, {})):
            asked = f"/v1/directives?worker=w1&service=ocr&max={most}"
            said = (await client("GET", asked)).json()
            assert [each["outbox_id"] for each in said.pop("directives")] == ids[:most]
            assert said == more

    serving(sqlite_url(tmp_path), test)
