"""The whole matrix of access, made of the table of routes: whose key, which scope, by which way."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import httpx
import pytest

from tallystick.core.limits import CALLBACK_BYTES_MAX
from tallystick.core.remote.keys import SCOPES
from tallystick.core.remote.requests import StepFence
from tallystick.core.remote.tokens import TOKEN_GRACE_MS
from tallystick.core.watching.searching import FoundJobs
from tallystick.http.routes import ENDPOINTS, ApiRoute
from tallystick.store.api import JobRow
from tests.surfaces.http.served import ALL_SCOPES, COMMAND, Client, World, serving, sqlite_url

PARAMETER = re.compile(r"\{(\w+)\}")
# What a body has to say, beside what is about the job.
BODIES = {
    "/v1/commands": COMMAND,
    "/v1/jobs": {"workflow": "doubled", "arguments": [1]},
    "/v1/jobs/{job_id}/fork": {"at": "double"},
    "/v1/jobs/{job_id}/resolve": {"says": "did_not_happen"},
    "/v1/jobs/bulk": {"verb": "pause", "workflow": "none"},
    "/v1/schedules/{schedule}/backfill": {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T01:00:00Z"},
}
RESULT = {"status": "SUCCEEDED", "value": 1}
KEYED = [endpoint for endpoint in ENDPOINTS if endpoint.scope]
CALLBACKS = [endpoint for endpoint in ENDPOINTS if endpoint.reporter]
OF_A_JOB = [endpoint for endpoint in KEYED if "_id}" in endpoint.path]
LISTS = [endpoint for endpoint in KEYED if endpoint.query and hasattr(endpoint.query, "tenant")]
OPEN = [endpoint for endpoint in ENDPOINTS if not endpoint.scope and not endpoint.reporter]
# Ways in which somebody may name a tenant that is not the one of his key.
HEADERS = ("X-Tenant", "X-Tenant-Id", "Tenant", "X-Forwarded-User", "Cookie")


def name(endpoint: ApiRoute) -> str:
    return f"{endpoint.method} {endpoint.path}"


async def ask(client: Client, endpoint: ApiRoute, job_id: str, **said: object) -> httpx.Response:
    named = {
        "job_id": job_id,
        "name": "go",
        "outbox_id": f"{job_id}:ocr:1",
        "queue": "emails",
        "schedule": "s",
    }
    path = PARAMETER.sub(lambda found: named[found[1]], endpoint.path)
    if endpoint.path == "/v1/directives":
        path += "?worker=w1&service=ocr"
    if endpoint.method == "POST" and "content" not in said:
        said.setdefault("json", BODIES.get(endpoint.path, {}))
    return await client(endpoint.method, path, **said)


async def job_of(world: World, tenant: str) -> str:
    """Return a job of a tenant that has ended badly enough for every verb."""
    made = await world.known(tenant)(
        "POST", "/v1/jobs", json={"workflow": "waits", "idempotent": False, "arguments": {}}
    )
    return str(made.json()["jobId"])


def image(world: World) -> list[tuple]:
    """Return every row that a stranger must not change."""
    tables = ("jobs", "steps", "outbox", "messages", "events", "idempotency", "attempts")
    with world.app.connect() as db:
        return [tuple(map(tuple, db.execute(f"SELECT * FROM {table} ORDER BY 1, 2"))) for table in tables]


def test_every_route_is_in_the_matrix():
    assert {name(endpoint) for endpoint in ENDPOINTS} == {
        name(endpoint) for endpoint in (*KEYED, *CALLBACKS, *OPEN)
    }
    assert {endpoint.path for endpoint in LISTS} == {"/v1/jobs", "/v1/effects"}
    assert {endpoint.path for endpoint in OPEN} == {"/healthz", "/readyz"}


def test_no_key_no_live_key_and_no_scope_open_nothing(tmp_path: Path):
    async def test(world: World) -> None:
        job_id = await job_of(world, "acme")
        expired = world.key(lives_ms=1)
        revoked = world.key()
        from tallystick.core.remote.keys import RevokeKey

        world.app.runtime().committer.call((RevokeKey(revoked.partition(".")[0]),))
        live = world.key()
        kid, _, secret = live.partition(".")
        wrong = f"{kid}.{secret[:-1]}{'0' if secret[-1] != '0' else '1'}"
        before = image(world)
        strangers = {
            "none": None,
            "expired": expired,
            "revoked": revoked,
            "wrong secret": wrong,
            "no form": "x",
            "unknown": f"nobody.{secret}",
            "empty": "",
        }
        for endpoint, (who, key) in product(KEYED, strangers.items()):
            answer = await ask(world.client(key), endpoint, job_id)
            assert (answer.status_code, answer.json()["code"]) == (401, "NOT_KNOWN"), (name(endpoint), who)
            assert answer.headers["www-authenticate"] == "Bearer"
            in_query = await ask(world.client(), endpoint, job_id, params={"key": live, "token": live})
            assert in_query.status_code == 401, name(endpoint)
        for endpoint, scope in product(KEYED, SCOPES):
            if scope == endpoint.scope:
                continue
            # A route that two scopes open is judged by its body, and this one asks for nothing special.
            answer = await ask(world.known(scopes=(scope,)), endpoint, job_id)
            assert (answer.status_code, answer.json()["code"]) == (403, "NOT_ALLOWED"), (
                name(endpoint),
                scope,
            )
        assert image(world) == before

    serving(sqlite_url(tmp_path), test)


def test_an_operator_ends_a_job_by_force_and_does_nothing_else_to_it(tmp_path: Path):
    async def test(world: World) -> None:
        writer, operator = world.known(), world.known(scopes=("admin",))
        by_protocol = str((await writer("POST", "/v1/commands", json=COMMAND)).json()["jobId"])
        for job_id in (await job_of(world, "acme"), by_protocol):
            path = f"/v1/jobs/{job_id}/cancel"
            for client, body in ((operator, {}), (operator, {"force": False}), (writer, {"force": True})):
                refused = await client("POST", path, json=body)
                assert (refused.status_code, refused.json()["code"]) == (403, "NOT_ALLOWED")
            elsewhere = await world.known("other", ("admin",))("POST", path, json={"force": True})
            assert elsewhere.status_code == 404
            ended = await operator("POST", path, json={"force": True})
            assert (ended.status_code, ended.json()["state"]) == (200, "CANCELLED")

    serving(sqlite_url(tmp_path), test)


def test_two_scopes_open_one_route_alone():
    assert [(endpoint.path, endpoint.or_scope) for endpoint in ENDPOINTS if endpoint.or_scope] == [
        ("/v1/jobs/{job_id}/cancel", "admin")
    ]


def test_a_job_of_another_tenant_is_not_there_whatever_is_said(tmp_path: Path):
    async def test(world: World) -> None:
        theirs = await job_of(world, "other")
        clients = {scope: world.known("acme", (scope,)) for scope in SCOPES}
        client = world.known("acme")
        missing = "00000000-0000-7000-8000-000000000000"
        before = image(world)
        for endpoint in OF_A_JOB:
            ways: dict[str, dict[str, object]] = {
                "path": {},
                "header": {"headers": dict.fromkeys(HEADERS, "other")},
                "host": {"headers": {"X-Forwarded-Host": "other"}},
            }
            for way, said in ways.items():
                answer = await ask(clients[endpoint.scope], endpoint, theirs, **said)
                nobody = await ask(clients[endpoint.scope], endpoint, missing, **said)
                assert answer.status_code == nobody.status_code == 404, (name(endpoint), way)
                said_of = [
                    each.text.replace(theirs, "ID").replace(missing, "ID") for each in (answer, nobody)
                ]
                assert said_of[0] == said_of[1], (name(endpoint), way)
        for endpoint, tenant in product(LISTS, ("other", "*")):
            listed = await client(endpoint.method, endpoint.path, params={"tenant": tenant})
            assert listed.status_code in (404, 422), name(endpoint)
        body = await client("POST", "/v1/commands", json={**COMMAND, "tenant_id": "other"})
        assert body.status_code == 404
        for tenant, status in (("other", 404), ("*", 422), ("", 422), (7, 422)):
            named = await client("POST", "/v1/jobs", json={**BODIES["/v1/jobs"], "tenant": tenant})
            assert named.status_code == status, tenant
        for endpoint in LISTS:
            own = (await client(endpoint.method, endpoint.path)).json()
            assert own == {endpoint.path.removeprefix("/v1/"): [], "after": None}
        assert image(world) == before

    serving(sqlite_url(tmp_path), test)


def test_a_job_that_changes_hands_between_the_look_and_the_write_is_not_there(tmp_path: Path):
    """No identifier is used twice; if one were, what is written would still be judged by the row it meets."""

    async def test(world: World) -> None:
        store = world.app.runtime().store
        look = store.job

        def look_of_before(job_id: str) -> JobRow | None:
            row = look(job_id)
            return None if row is None else row._replace(tenant_id="acme")

        client, owner = world.known("acme", (*ALL_SCOPES, "admin")), world.known("other")
        workflow = await job_of(world, "other")
        command = await owner("POST", "/v1/commands", json={**COMMAND, "tenant_id": "other"})
        changing = [each for each in OF_A_JOB if "/jobs/{job_id}/" in each.path and each.method == "POST"]
        asked = [(each, BODIES.get(each.path, {})) for each in changing]
        asked += [(each, {"force": True}) for each in changing if each.path.endswith("/cancel")]
        found = FoundJobs([row for row in [look_of_before(workflow)] if row is not None], None)
        before = image(world)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "job", look_of_before)
            patch.setattr(store, "jobs_found", lambda *_asked, **_more: found)
            for (endpoint, body), job_id in product(asked, (workflow, command.json()["jobId"])):
                answer = await ask(client, endpoint, job_id, json=body)
                assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), name(endpoint)
            for verb in ("cancel", "pause"):
                told = await client("POST", "/v1/jobs/bulk", json={"verb": verb, "workflow": "waits"})
                assert told.json() == {"reached": 0, "passed_by": 1}, verb
        assert image(world) == before

    serving(sqlite_url(tmp_path), test)


def test_a_key_for_all_tenants_says_whose_job_it_makes(tmp_path: Path):
    async def test(world: World) -> None:
        everywhere = world.known("*", ("admin", "jobs:write", "jobs:read"))
        wanted = BODIES["/v1/jobs"]
        unsaid = await everywhere("POST", "/v1/jobs", json=wanted)
        assert (unsaid.status_code, unsaid.json()["path"]) == (422, "tenant")
        for tenant in ("acme", "other"):
            made = await everywhere("POST", "/v1/jobs", json={**wanted, "tenant": tenant})
            assert made.status_code == 202, made.text
            job = f"/v1/jobs/{made.json()['jobId']}"
            assert (await world.known(tenant)("GET", job)).json()["tenant_id"] == tenant
            # The tenant itself may say so too, and means the same job.
            own = await world.known(tenant)("POST", "/v1/jobs", json={**wanted, "tenant": tenant})
            assert own.json() == {"jobId": made.json()["jobId"], "created": False}
            assert (await world.known("third")("GET", job)).status_code == 404
        command = await everywhere("POST", "/v1/commands", json={**COMMAND, "tenant_id": "other"})
        assert command.status_code == 202

    serving(sqlite_url(tmp_path), test)


def test_own_jobs_open_with_the_scope_of_the_route(tmp_path: Path):
    async def test(world: World) -> None:
        job_id = await job_of(world, "acme")
        for endpoint in KEYED:
            assert endpoint.scope
            answer = await ask(world.known(scopes=(endpoint.scope,)), endpoint, job_id)
            assert answer.status_code in {*endpoint.answers, 404, 409}, (name(endpoint), answer.text)
            if answer.status_code == 404:
                missing = {"outbox": "NOT_FOUND", "queues": "NO_SUCH_QUEUE", "schedules": "NO_SUCH_SCHEDULE"}
                kind = endpoint.path.split("/")[2]
                assert answer.json()["code"] == missing.get(kind, "NO_SUCH_STEP"), name(endpoint)
        for endpoint in OPEN:
            assert (await ask(world.client(), endpoint, job_id)).status_code == 200

    serving(sqlite_url(tmp_path), test)


def test_what_a_key_does_to_a_job_is_kept_with_the_key(tmp_path: Path):
    async def test(world: World) -> None:
        client = world.known("acme", scopes=("jobs:write", "jobs:read", "admin"))
        made = await client("POST", "/v1/commands", json=COMMAND)
        by_protocol = str(made.json()["jobId"])
        workflow = await job_of(world, "acme")
        sent = await client("POST", f"/v1/jobs/{workflow}/signals/approve", json={"value": True})
        assert sent.status_code == 202
        for verb, body in (("pause", {"why": "lunch"}), ("resume", {}), ("cancel", {"grace": "1s"})):
            assert (await client("POST", f"/v1/jobs/{workflow}/{verb}", json=body)).status_code == 200
        assert (
            await client("POST", f"/v1/jobs/{by_protocol}/cancel", json={"force": True})
        ).status_code == 200
        acts = await world.app.acts_aio()
        assert [(act.verb, act.told) for act in reversed(acts)] == [
            ("send", "approve"),
            ("pause", "lunch"),
            ("resume", ""),
            ("cancel", "grace 1 s"),
            ("cancel", "by force"),
        ]
        assert [act.name for act in acts] == [by_protocol, *[workflow] * 4]
        assert len({act.who for act in acts}) == 1
        assert acts[0].who.startswith("key ")

    serving(sqlite_url(tmp_path), test)


def test_directives_of_other_tenants_and_services_are_given_to_nobody_else(tmp_path: Path):
    async def test(world: World) -> None:
        await world.known("other")("POST", "/v1/commands", json={**COMMAND, "tenant_id": "other"})
        mine = world.known("acme")
        assert (await mine("GET", "/v1/directives?worker=w")).json() == {"directives": []}
        foreign = await mine("GET", "/v1/directives?worker=w&service=secret")
        assert (foreign.status_code, foreign.json()["code"]) == (403, "NOT_ALLOWED")
        everybody = world.known("*", ("work",))
        (directive,) = (await everybody("GET", "/v1/directives?worker=w")).json()["directives"]
        assert directive["tenant_id"] == "other"
        # Another key with the same name of a worker is another worker.
        again = world.known("*", ("work",))
        assert (await again("GET", "/v1/directives?worker=w")).json() == {"directives": []}

    serving(sqlite_url(tmp_path), test)


def unreadable(body: dict) -> list[dict]:
    """Return reports that cannot be read: no JSON, no form, another media type, too large."""
    as_json = {"Content-Type": "application/json"}
    text = json.dumps(body).encode()
    many = json.dumps({**body, "value": {str(n): n for n in range(1_001)}}).encode()
    return [
        {"content": text[:-1] + b",", "headers": as_json},
        {"content": b"\xff" + text, "headers": as_json},
        {"json": {**body, "status": 7}},
        {"content": text, "headers": {"Content-Type": "text/plain"}},
        {"content": text + b" " * CALLBACK_BYTES_MAX, "headers": as_json},
        {"content": many, "headers": as_json},
    ]


@pytest.mark.parametrize("endpoint", CALLBACKS, ids=name)
def test_what_is_wrong_with_a_report_is_said_to_the_bearer_of_its_token(tmp_path: Path, endpoint: ApiRoute):
    async def test(world: World) -> None:
        client = world.known("acme")
        await client("POST", "/v1/commands", json=COMMAND)
        (given,) = (await client("GET", "/v1/directives?worker=w")).json()["directives"]
        body = {part: given[part] for part in ("jobId", "stepId", "attempt_no", "lease_id")}
        said = [await ask(world.client(given["token"]), endpoint, "", **each) for each in unreadable(body)]
        assert [answer.status_code for answer in said] == [400, 400, 422, 415, 413, 400]
        assert all(answer.json()["code"] for answer in said)
        # A report that names no attempt proves nothing.
        for content in (b"", b"{", b"[]", b"{}", b" " * (CALLBACK_BYTES_MAX + 1)):
            headers = {"Content-Type": "application/json"}
            answer = await ask(world.client(given["token"]), endpoint, "", content=content, headers=headers)
            assert (answer.status_code, answer.content) == (401, b""), content[:9]

    serving(sqlite_url(tmp_path), test)


@pytest.mark.parametrize("endpoint", CALLBACKS, ids=name)
def test_a_callback_is_opened_by_the_token_of_its_attempt_alone(tmp_path: Path, endpoint: ApiRoute):
    async def test(world: World) -> None:
        client = world.known("acme")
        for page in (1, 2):
            await client("POST", "/v1/commands", json={**COMMAND, "payload": {"page": page}})
        first, second = (await client("GET", "/v1/directives?worker=w&max=2")).json()["directives"]
        fence = {part: first[part] for part in ("jobId", "stepId", "attempt_no", "lease_id")}
        body = {**fence, **(RESULT if endpoint.path.endswith("result") else {})}
        runtime = world.app.runtime()
        own = StepFence(fence["jobId"], fence["stepId"], fence["attempt_no"], fence["lease_id"])
        over = world.api.api.token("acme", own, runtime.clock.wall_ms() - TOKEN_GRACE_MS - 1)
        other = world.api.api.token("other", own._replace(attempt_no=2), runtime.clock.wall_ms())
        bad = {
            "none": None,
            "of another attempt": second["token"],
            "expired": over,
            "of another tenant and attempt": other,
            "a key": world.key("acme"),
            "an admin's key": world.key("*", ("admin",)),
            "cut": first["token"][:-1],
            "longer": first["token"] + "A",
            "empty": "",
        }
        before = image(world)
        for who, token in bad.items():
            answer = await ask(world.client(token), endpoint, "", json=body)
            assert (answer.status_code, answer.content) == (401, b""), who
            in_query = await ask(
                world.client(token), endpoint, "", json=body, params={"token": first["token"]}
            )
            assert in_query.status_code == 401, who
            for said in unreadable(body):
                answer = await ask(world.client(token), endpoint, "", **said)
                assert (answer.status_code, answer.content) == (401, b""), who
        in_body = await ask(world.client(), endpoint, "", json={**body, "token": first["token"]})
        assert in_body.status_code == 401
        for part, changed in {"jobId": second["jobId"], "stepId": "embed", "attempt_no": 2}.items():
            answer = await ask(world.client(first["token"]), endpoint, "", json={**body, part: changed})
            assert (answer.status_code, answer.content) == (401, b""), part
        assert image(world) == before
        good = await ask(world.client(first["token"]), endpoint, "", json=body)
        assert (good.status_code, good.json()["status"]) == (200, "ACCEPTED")

    serving(sqlite_url(tmp_path), test)
