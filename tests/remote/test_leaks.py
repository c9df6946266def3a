"""Where a service is and what its address holds: no tenant reads of it, and no secret is kept or logged."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from tallystick import Nats, Pull, RedisStream, Tally, Webhook
from tallystick.app.remote.api_keys import make_key
from tallystick.clock import VirtualClock
from tallystick.errors import BadInput
from tallystick.http import http_app
from tallystick.remote.publishers.endpoint import Endpoint
from tests.patience import wait_until
from tests.remote.receiver import receiving
from tests.remote.test_publish import LOCAL, SECRET, command, declare, directive, look
from tests.surfaces.dashboard.visiting import Site, visiting

# The port is that of `discard`, where nothing listens.
HOST = "127.0.0.1:9"
CANARY = "CANARY-7f3a"
WAYS: dict[str, Endpoint] = {
    "webhook": Webhook(f"http://{HOST}/hook?code={CANARY}", secret=SECRET, allow_networks=LOCAL),
    "nats": Nats(f"nats://someone:{CANARY}@{HOST}", stream="WORK"),
    "redis": RedisStream(f"redis://someone:{CANARY}@{HOST}/0?password={CANARY}", prefix="work"),
}


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'books.db'}"
    from tests.postgres.databases import fresh_schema

    monkeypatch.setenv("TALLYSTICK_CALLBACK_KEYS", f"k1:{'s' * 32}")
    return request.getfixturevalue("server").url(schema=fresh_schema())


def fail(url: str, endpoint: Endpoint, clock: VirtualClock, *, published: bool) -> tuple[Tally, str]:
    """Let all tries of a directive fail: none reaches its service, or no worker knows the endpoint."""
    maker = declare(url, clock=clock, scan=endpoint)
    job = maker.command(command())
    relay = maker if published else declare(url, clock=clock, scan=Pull())
    with relay.worker():
        for tries, wait_ms in enumerate((0, 30_000, 120_000, 600_000), start=1):
            clock.advance(wait_ms if published else 660_001)
            wait_until(lambda so_far=tries: directive(maker, job.id).tries == so_far)
            if published:
                wait_until(lambda so_far=tries: failures(relay, endpoint) == so_far)
        wait_until(lambda: look(maker, job.id).job.state == "FAILED_FINAL")
    if relay is not maker:
        relay.close()
    return maker, job.id


def failures(app: Tally, endpoint: Endpoint) -> int:
    """Return how many tries have failed in this process."""
    relay = app.runtime().relay
    assert relay is not None
    return relay.lines[endpoint.address].failures


def books(app: Tally) -> str:
    """Return every row of every table, as text."""
    with app.connect() as db:
        if app.runtime().store.url.startswith("sqlite"):
            tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
        else:
            query = "select table_name from information_schema.tables where table_schema = current_schema()"
            tables = [name for (name,) in db.execute(query)]
        return "\n".join(str(row) for table in tables for row in db.execute(f"select * from {table}"))


def seen_by_tenant(app: Tally, job_id: str) -> str:
    """Return all that the tenant of a job reads of it over HTTP."""

    async def ask() -> str:
        runtime = app.runtime()
        _kept, key = make_key(runtime.committer, runtime.ids, "acme", ["jobs:read"], [])
        api: Any = http_app(app, hosts=["api.test"])
        headers = {"Authorization": f"Bearer {key}"}
        transport = httpx.ASGITransport(app=api)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://api.test", headers=headers
        ) as http:
            places = [
                "/v1/jobs",
                *(f"/v1/jobs/{job_id}{part}" for part in ("", "/steps", "/history", "/why")),
            ]
            told = [await http.get(place) for place in places]
        await api.api.stop()
        assert {answer.status_code for answer in told} == {200}
        return "\n".join(answer.text for answer in told)

    return asyncio.run(ask())


@pytest.mark.parametrize("published", [True, False], ids=["away", "stray"])
@pytest.mark.parametrize("way", WAYS)
def test_a_service_that_is_away_gives_nothing_away(
    url: str, way: str, published: bool, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "tallystick")
    app, job_id = fail(url, WAYS[way], VirtualClock(), published=published)
    told = seen_by_tenant(app, job_id)
    error = look(app, job_id).job.error_message or ""
    assert error.startswith("the service scan ")
    for secret in (CANARY, "127.0.0.1", "Errno", "someone"):
        assert secret not in error
        assert secret not in told.replace(job_id, "")
    # Operators see the host, and which try met what.
    row = directive(app, job_id)
    assert HOST in row.via
    assert HOST in (row.reason or "") or "Connect" in (row.reason or "") or "nats" in (row.reason or "")
    assert CANARY not in books(app)
    assert CANARY not in caplog.text
    assert CANARY not in repr(WAYS[way])
    if published:
        assert HOST in caplog.text
    app.close()


@pytest.mark.parametrize("page", ["/outbox?show=dead", "/attention"])
def test_a_tenant_sees_no_address_in_the_dashboard(tmp_path: Path, page: str):
    app, _job_id = fail(f"sqlite:///{tmp_path / 'books.db'}", WAYS["webhook"], VirtualClock(), published=True)

    async def test(site: Site) -> None:
        tenant = await site.visitor("jobs:read", tenant="acme")
        operator = await site.visitor("jobs:read", "admin", tenant="acme")
        seen, known = (await tenant.get(page)).text, (await operator.get(page)).text
        assert "its service could not be given it" in seen
        assert "127.0.0.1" not in seen
        assert "127.0.0.1" in known

    visiting(app, test)


def test_a_directive_that_an_older_version_has_made_still_goes_to_its_webhook(tmp_path: Path):
    with receiving() as receiver:
        hook = Webhook(f"{receiver.url}?code={CANARY}", secret=SECRET, allow_networks=LOCAL)
        app = declare(f"sqlite:///{tmp_path / 'books.db'}", scan=Older(hook))
        job = app.command(command())
        assert directive(app, job.id).via == f"webhook {receiver.url}?code={CANARY}"
        app.close()
        newer = declare(f"sqlite:///{tmp_path / 'books.db'}", scan=hook)
        with newer.worker():
            wait_until(lambda: directive(newer, job.id).state == "SENT")
        newer.close()
        assert [got.directive["jobId"] for got in receiver.got] == [job.id]


class Older(Endpoint):
    """An endpoint as versions up to 0.1 named it: with its query."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.connect = endpoint.connect  # type: ignore[method-assign]  # as the other

    @property
    def address(self) -> str:
        return self._endpoint.older_address or ""

    def connect(self) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    "wrong",
    [
        f"ftp://example.com/?code={CANARY}",
        f"https://someone:{CANARY}@example.com/hook",
        f"https://example.com:{CANARY}/hook",
        f"https://example.com/a hook?code={CANARY}",
        f"https://someone:{CANARY}@ex\u2100mple.com/hook",
    ],
)
def test_a_wrong_address_is_refused_without_its_secrets(wrong: str):
    for make in (
        lambda: Webhook(wrong, secret=SECRET),
        lambda: Nats(wrong, stream="WORK"),
        lambda: RedisStream(wrong),
    ):
        with pytest.raises(BadInput) as refused:
            make()
        assert CANARY not in f"{refused.value!r} {refused.value.fields}"
