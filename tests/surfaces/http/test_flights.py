"""The limit of jobs in flight holds for requests at the same time, and no place is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tallystick.core.remote.requests import SubmitCommand
from tallystick.errors import StoreBusy, TallyError, TooManyInFlight
from tallystick.http.flights import Flights
from tallystick.store.api import Outcome
from tests.surfaces.http.served import COMMAND, World, serving, sqlite_url

MOST = 10


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    from tests.postgres.databases import fresh_schema

    monkeypatch.setenv("TALLYSTICK_CALLBACK_KEYS", f"k1:{'s' * 32}")
    return request.getfixturevalue("server").url(schema=fresh_schema())


def asked(page: int) -> dict[str, object]:
    return {**COMMAND, "payload": {"page": page}}


def in_books(world: World) -> int:
    return world.app.runtime().store.in_flight("acme", 10**6)


def test_many_commands_at_once_make_no_more_jobs_than_may_be_in_flight(url: str):
    async def test(world: World) -> None:
        client = world.known()
        answers = await asyncio.gather(
            *(client("POST", "/v1/commands", json=asked(page)) for page in range(200))
        )
        assert Counter(answer.status_code for answer in answers) == {202: MOST, 429: 200 - MOST}
        assert in_books(world) == MOST
        job_id = next(answer.json()["jobId"] for answer in answers if answer.status_code == 202)
        await client("POST", f"/v1/jobs/{job_id}/cancel")
        again = await asyncio.gather(
            *(client("POST", "/v1/commands", json=asked(page)) for page in range(200, 250))
        )
        assert Counter(answer.status_code for answer in again) == {202: 1, 429: 49}
        assert in_books(world) == MOST

    serving(url, test, in_flight_max=MOST)


def test_copies_at_once_take_one_place_and_are_all_answered(url: str):
    async def test(world: World) -> None:
        client = world.known()
        for page in range(MOST - 1):
            assert (await client("POST", "/v1/commands", json=asked(page))).status_code == 202
        answers = await asyncio.gather(*(client("POST", "/v1/commands", json=asked(99)) for _ in range(40)))
        assert Counter(answer.status_code for answer in answers) == {202: 1, 200: 39}
        assert len({answer.json()["jobId"] for answer in answers}) == 1
        both = await asyncio.gather(
            *(client("POST", "/v1/commands", json=asked(page)) for page in (99, 0, 100, 101))
        )
        assert [answer.status_code for answer in both] == [200, 200, 429, 429]

    serving(url, test, in_flight_max=MOST)


def test_a_command_that_could_not_be_written_gives_its_place_back(tmp_path: Path):
    async def test(world: World) -> None:
        runtime = world.app.runtime()
        flights = Flights(runtime.store, runtime.clock, 1)
        protocol = world.app.protocols["ocr-embed"]

        async def fails() -> Outcome:
            await asyncio.sleep(0)
            raise StoreBusy("the store is busy")

        async def submit(request: SubmitCommand) -> Outcome:
            return await flights.submit(request, lambda: world.api.api.write(request))

        requests = [protocol.request(asked(page)) for page in range(3)]
        with pytest.raises(TallyError, match="busy"):
            await flights.submit(requests[0], fails)
        await submit(requests[1])
        with pytest.raises(TooManyInFlight):
            await submit(requests[2])
        assert in_books(world) == 1

    serving(sqlite_url(tmp_path), test)
