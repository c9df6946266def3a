"""What is refused before anything is looked for: names, sites, media types, sizes, depths, double keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tallystick import errors
from tallystick.core.limits import HEADER_BYTES_MAX, JSON_KEYS_MAX, PAYLOAD_BYTES_MAX
from tallystick.errors import TallyError
from tallystick.http.openapi import document
from tallystick.http.problems import problem
from tallystick.http.routes import ENDPOINTS
from tests.surfaces.http.served import COMMAND, World, serving, sqlite_url


@pytest.fixture
def url(tmp_path: Path) -> str:
    return sqlite_url(tmp_path)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Host": "evil.example"}, 421, "WRONG_HOST"),
        ({"Host": "api.test.evil.example"}, 421, "WRONG_HOST"),
        ({"Host": ""}, 421, "WRONG_HOST"),
        ({"Host": "127.0.0.1"}, 421, "WRONG_HOST"),
        ({"Origin": "http://evil.example"}, 403, "CROSS_SITE"),
        ({"Origin": "null"}, 403, "CROSS_SITE"),
        ({"Origin": "http://api.test.evil.example"}, 403, "CROSS_SITE"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "CROSS_SITE"),
        ({"Sec-Fetch-Site": "same-site"}, 403, "CROSS_SITE"),
    ],
)
@pytest.mark.parametrize("path", ["/healthz", "/v1/jobs", "/nothing", "/openapi.json"])
def test_foreign_names_and_foreign_pages_are_refused_on_every_route(
    url: str, path: str, headers: dict, status: int, code: str
):
    async def test(world: World) -> None:
        answer = await world.known()("GET", path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (status, code)

    serving(url, test)


def test_the_own_name_and_the_own_page_are_let_in(url: str):
    async def test(world: World) -> None:
        for headers in ({"Host": "API.test:8000"}, {"Origin": "http://api.test"}, {"Sec-Fetch-Site": "none"}):
            assert (await world.known()("GET", "/v1/jobs", headers=headers)).status_code == 200

    serving(url, test)


def test_a_mounted_app_is_guarded_too(url: str):
    async def test(world: World) -> None:
        import httpx

        outer = Starlette(routes=[Mount("/books", app=world.api)])
        transport = httpx.ASGITransport(app=outer)
        async with httpx.AsyncClient(transport=transport, base_url="http://api.test") as http:
            bearer = {"Authorization": f"Bearer {world.key()}"}
            assert (await http.get("/books/v1/jobs", headers=bearer)).status_code == 200
            assert (await http.get("/books/v1/jobs")).status_code == 401
            foreign = await http.get("/books/v1/jobs", headers={**bearer, "Origin": "http://evil.example"})
            assert foreign.status_code == 403
            made = await http.post("/books/v1/commands", headers=bearer, json=COMMAND)
            assert made.status_code == 202
            (given,) = (await http.get("/books/v1/directives?worker=w", headers=bearer)).json()["directives"]
            assert given["callback_urls"]["ack"] == "http://api.test/books/v1/callbacks/ack"

    serving(url, test)


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        ({"content": b"{}", "headers": {"Content-Type": "text/plain"}}, 415, "WRONG_MEDIA_TYPE"),
        ({"content": b"{}"}, 415, "WRONG_MEDIA_TYPE"),
        (
            {"content": b"a=1", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
            415,
            "WRONG_MEDIA_TYPE",
        ),
        (
            {"content": b"x", "headers": {"Content-Type": "application/json", "Content-Encoding": "gzip"}},
            415,
            "WRONG_MEDIA_TYPE",
        ),
        ({"content": b"[" * 100_000, "headers": {"Content-Type": "application/json"}}, 400, "BAD_JSON"),
        ({"content": b'{"a":1,"a":2}', "headers": {"Content-Type": "application/json"}}, 400, "BAD_JSON"),
        ({"content": b"{", "headers": {"Content-Type": "application/json"}}, 400, "BAD_JSON"),
        ({"content": b"\xff", "headers": {"Content-Type": "application/json"}}, 400, "BAD_JSON"),
        ({"content": b"", "headers": {"Content-Type": "application/json"}}, 422, "BAD_VALUE"),
        (
            {"content": b" " * (PAYLOAD_BYTES_MAX + 1), "headers": {"Content-Type": "application/json"}},
            413,
            "PAYLOAD_TOO_LARGE",
        ),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(url: str, said: dict, status: int, code: str):
    async def test(world: World) -> None:
        answer = await world.known()("POST", "/v1/jobs", **said)
        assert (answer.status_code, answer.json()["code"]) == (status, code)

    serving(url, test)


def test_an_object_of_a_request_has_so_many_keys_and_what_a_program_submits_has_more(url: str):
    async def test(world: World) -> None:
        most = {str(n): n for n in range(JSON_KEYS_MAX)}
        for payload, status in ((most, 202), ({**most, "one": 1}, 400), ({"in": [{**most, "one": 1}]}, 400)):
            answer = await world.known()("POST", "/v1/commands", json={**COMMAND, "payload": payload})
            assert answer.status_code == status, answer.text
        refused = await world.known()(
            "POST", "/v1/jobs", json={"workflow": "doubled", "arguments": [most | {"": 0}]}
        )
        assert (refused.status_code, refused.json()["code"]) == (400, "BAD_JSON")
        assert "1,000 keys" in refused.json()["detail"]

        @world.app.workflow
        def counted(of: dict[str, int]) -> int:
            return len(of)

        assert counted.submit({**most, "one": 1}).created
        assert world.app.command({**COMMAND, "payload": {**most, "two": 2}}).created

    serving(url, test)


@pytest.mark.parametrize("headers", [{"X-A": "x" * 20_000}, {f"X-{n:03}": "x" * 25 for n in range(600)}])
@pytest.mark.parametrize("path", ["/healthz", "/v1/jobs", "/nothing"])
def test_a_whole_head_that_is_too_large_is_refused_on_every_route(url: str, path: str, headers: dict):
    async def test(world: World) -> None:
        answer = await world.known()("GET", path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (431, "HEADERS_TOO_LARGE")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["bytes_max"] == HEADER_BYTES_MAX
        large = {"X-A": "x" * (HEADER_BYTES_MAX - 1_000)}
        assert (await world.known()("GET", "/v1/jobs", headers=large)).status_code == 200

    serving(url, test)


def test_unknown_addresses_and_methods_are_problems_too(url: str):
    async def test(world: World) -> None:
        client = world.known()
        nothing = await client("GET", "/v1/nothing")
        assert (nothing.status_code, nothing.json()["code"]) == (404, "NO_SUCH_ROUTE")
        wrong = await client("DELETE", "/v1/jobs")
        assert (wrong.status_code, wrong.json()["code"]) == (405, "WRONG_METHOD")
        assert wrong.headers["allow"] == "GET, POST"

    serving(url, test)


@pytest.mark.parametrize(
    "query",
    ["state=NONE", "limit=0", "limit=1001", "limit=x", "unknown=1", "limit=1&limit=2", "tenant=a%20b"],
)
def test_a_query_that_means_nothing_is_refused(url: str, query: str):
    async def test(world: World) -> None:
        answer = await world.known()("GET", f"/v1/jobs?{query}")
        assert answer.status_code == 422, answer.text

    serving(url, test)


def test_lists_come_in_pages_that_neither_repeat_nor_leave_out(url: str):
    async def test(world: World) -> None:
        client = world.known()
        made = []
        for n in range(7):
            answer = await client("POST", "/v1/jobs", json={"workflow": "doubled", "arguments": {"n": n}})
            made.append(answer.json()["jobId"])
        seen, after = [], None
        while True:
            page = (
                await client("GET", "/v1/jobs", params={"limit": 3, **({"after": after} if after else {})})
            ).json()
            seen += [job["jobId"] for job in page["jobs"]]
            after = page["after"]
            if after is None:
                break
            await client("POST", "/v1/jobs", json={"workflow": "doubled", "arguments": [100 + len(seen)]})
        assert seen == made[::-1]

    serving(url, test)


def test_the_status_of_every_error_is_the_one_that_is_sent():
    for name in errors.__all__:
        kind = getattr(errors, name)
        made = kind.__new__(kind)
        TallyError.__init__(made, "a message", about="a field")
        answer = problem(made)
        assert answer.status_code == kind.http_status
        assert answer.media_type == "application/problem+json"
        shown = b"a message" in bytes(answer.body)
        assert shown is (kind.http_status < 500), name


def test_an_error_that_is_not_ours_shows_nothing():
    answer = problem(ValueError("the password is 1234"))
    assert answer.status_code == 500
    assert b"1234" not in bytes(answer.body)


def test_the_document_has_every_route_and_every_reference_leads_somewhere():
    made = document()
    told = {(method.upper(), path) for path, methods in made["paths"].items() for method in methods}
    others = {("GET", "/openapi.json"), ("GET", "/metrics")}
    assert told == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS} | others
    import json
    import re

    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(made)))
    assert references <= set(made["components"]["schemas"])
    names = [operation["operationId"] for methods in made["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))


def test_the_document_needs_a_key_unless_it_is_open(url: str):
    async def test(world: World) -> None:
        assert (await world.client()("GET", "/openapi.json")).status_code == 401
        assert (await world.known()("GET", "/openapi.json")).json()["openapi"] == "3.1.0"

    serving(url, test)


def test_an_open_document_opens_nothing_else(url: str):
    async def test(world: World) -> None:
        assert (await world.client()("GET", "/openapi.json")).status_code == 200
        assert (await world.client()("GET", "/metrics")).status_code == 401
        assert (await world.client()("GET", "/v1/jobs")).status_code == 401

    serving(url, test, open_docs=True)
