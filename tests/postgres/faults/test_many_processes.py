"""Many worker processes on one server, killed at random: nothing is lost, doubled or stuck."""

from __future__ import annotations

import random

import psycopg
import pytest

from tallystick import Tally
from tallystick.testing.conformance.drafts import check_chain
from tests.crew import Crew
from tests.patience import wait_until
from tests.postgres.server import Server
from tests.postgres.shop import LIVE, make_effects, shop_on
from tests.postgres.subject import fresh_schema


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("workers", "kills", "count"), [(4, 5, 150), pytest.param(8, 10, 400, marks=pytest.mark.long)]
)
def test_workers_under_random_kills_do_everything_once(
    server: Server, workers: int, kills: int, count: int
) -> None:
    schema = fresh_schema()
    url = server.url(schema=schema, options=f"-c%20search_path%3D{schema}")
    app = Tally(url)
    checkout = shop_on(app)
    make_effects(app)
    jobs = checkout.submit_many([(n,) for n in range(count)])
    crew = Crew(workers, "tests.postgres.shop", url)
    chance = random.Random(4)
    store = app.runtime().store
    try:
        for kill in range(kills):
            share = count * (kill + 1) // (kills + 2)
            wait_until(lambda share=share: store.counts().get("SUCCEEDED", 0) >= share)
            crew.kill(chance)
        results = [job.result(120) for job in jobs]
    finally:
        crew.dismiss()
    assert results == [n * 5 for n in range(count)]
    with psycopg.connect(server.dsn, options=f"-c search_path={schema}") as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT n) FROM effects").fetchone() == (
            count,
            count,
        )
        killed = connection.execute("SELECT count(*) FROM attempts WHERE reason = 'EXPIRED'").fetchone()
        live = f"SELECT count(*) FROM attempts WHERE {LIVE}"
        assert connection.execute(live).fetchone() == (0,)
        states = connection.execute("SELECT DISTINCT state, semaphore, start_ledger FROM jobs").fetchall()
    assert states == [("SUCCEEDED", 0, 111_100_000_001)]
    assert killed is not None
    assert killed[0] > 0, "the kills must have hit somebody at work"
    for job in jobs:
        check_chain(store.history(job.id))
    app.close()
