"""Many worker processes on one server, killed at random: nothing is lost, doubled or stuck."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tallystick import Tally
from tallystick.testing.conformance.drafts import check_chain
from tests.patience import wait_until
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

WORKERS, KILLS, JOBS = 8, 10, 400

SHOP = """
import sys
from tallystick import Tally, Tx
from tests.patience import wait_until

app = Tally(sys.argv[1])

@app.step
def quote(n: int) -> int:
    return n * 2

@app.tx
def charge(db: Tx, n: int) -> int:
    db.execute("INSERT INTO effects VALUES (%s)", [n])
    return n

@app.workflow(attempts=50)
def checkout(n: int) -> int:
    return quote(n) + charge(n) + quote(n)

if __name__ == "__main__":
    app.work(concurrency=4, lease="2s")
"""


class Crew:
    """Worker processes that are replaced when they die."""

    def __init__(self, script: Path, url: str) -> None:
        self._command = [sys.executable, str(script), url]
        self._workers = [self._start() for _ in range(WORKERS)]

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stderr=subprocess.DEVNULL)

    def kill(self, chance: random.Random) -> None:
        """Kill one as `kill -9` does, and start another."""
        index = chance.randrange(WORKERS)
        self._workers[index].kill()
        self._workers[index].wait(30)
        self._workers[index] = self._start()

    def dismiss(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait(30)


@pytest.mark.timeout(240)
def test_eight_workers_under_random_kills_do_everything_once(server: Server, tmp_path: Path) -> None:
    schema = fresh_schema()
    url = server.url(schema=schema, options=f"-c%20search_path%3D{schema}")
    script = tmp_path / "shop.py"
    script.write_text(SHOP, "utf-8")
    app = Tally(url)

    @app.workflow(attempts=50)
    def checkout(n: int) -> int:
        raise AssertionError("only the workers run it")

    with app.transaction() as db:
        db.execute("CREATE TABLE effects (n INTEGER)")
    jobs = checkout.submit_many([(n,) for n in range(JOBS)])
    crew = Crew(script, url)
    chance = random.Random(4)
    store = app.runtime().store
    try:
        for kill in range(KILLS):
            share = JOBS * (kill + 1) // (KILLS + 2)
            wait_until(lambda share=share: store.counts().get("SUCCEEDED", 0) >= share)
            crew.kill(chance)
        results = [job.result(120) for job in jobs]
    finally:
        crew.dismiss()
    assert results == [n * 5 for n in range(JOBS)]
    with psycopg.connect(server.dsn, options=f"-c search_path={schema}") as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT n) FROM effects").fetchone() == (
            JOBS,
            JOBS,
        )
        killed = connection.execute("SELECT count(*) FROM attempts WHERE reason = 'EXPIRED'").fetchone()
        live = "SELECT count(*) FROM attempts WHERE status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED')"
        assert connection.execute(live).fetchone() == (0,)
        states = connection.execute("SELECT DISTINCT state, semaphore, start_ledger FROM jobs").fetchall()
    assert states == [("SUCCEEDED", 0, 111_100_000_001)]
    assert killed is not None
    assert killed[0] > 0, "the kills must have hit somebody at work"
    for job in jobs:
        check_chain(store.history(job.id))
    app.close()
