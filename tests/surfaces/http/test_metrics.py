"""`/metrics` tells of all tenants, so off a loopback address a key must be an operator's."""

from __future__ import annotations

from pathlib import Path

from tests.surfaces.http.served import World, serving, sqlite_url


def test_series_are_told_to_operators_and_to_nobody_else(tmp_path: Path):
    async def test(world: World) -> None:
        tenant = await world.known()("GET", "/metrics")
        assert (tenant.status_code, tenant.json()["code"]) == (403, "NOT_ALLOWED")
        stranger = await world.client()("GET", "/metrics")
        assert stranger.status_code == 401
        assert b"tallystick_" not in stranger.content
        operator = await world.known(scopes=("admin",))("GET", "/metrics")
        assert operator.status_code == 200
        assert operator.headers["content-type"].startswith("text/plain")
        assert "tallystick_jobs_running 0.0" in operator.text.splitlines()

    serving(sqlite_url(tmp_path), test)


def test_series_can_be_opened_by_themselves(tmp_path: Path):
    async def test(world: World) -> None:
        assert (await world.client()("GET", "/metrics")).status_code == 200
        assert (await world.client()("GET", "/openapi.json")).status_code == 401

    serving(sqlite_url(tmp_path), test, open_metrics=True)
