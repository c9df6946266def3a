"""The command line on PostgreSQL: who works, whether the books are true, and what belongs to files alone."""

from __future__ import annotations

import pytest

from tests.patience import wait_until
from tests.postgres.subject import fresh_schema
from tests.surfaces.commands import Shop, Work


@pytest.fixture
def url(server) -> str:
    return server.url(schema=fresh_schema())


@pytest.fixture
def shop(tmp_path, url) -> Shop:
    """A shop whose address is that of a server."""
    shop = Shop(tmp_path)
    program = tmp_path / "shop.py"
    program.write_text(program.read_text().replace("sqlite:///shop.db", url))
    return shop


def test_workers_are_shown_and_the_books_are_true(shop, url):
    job = shop.submit("shop:letter", '"Ada"')
    with Work(shop, "--concurrency", "3") as work:
        wait_until(lambda: shop.tally("workers", "--url", url, "--json").data, "the worker has reported")
        (worker,) = shop.tally("workers", "--url", url, "--json").data
        assert (worker["pid"], worker["slots"], worker["live"]) == (work.process.pid, 3, True)
        assert " of 3 running" in shop.tally("workers", "--url", url).out
        wait_until(lambda: shop.state(job) == "SUCCEEDED", "the letter is written")
        assert work.stop() == 0
    assert shop.tally("workers", "--url", url).out == "no workers\n"
    told = shop.tally("verify", "--url", url, "--job", job, "--json")
    assert (told.code, told.data["ok"], told.data["jobs"]) == (0, True, 1)
    seen = shop.tally("doctor", "--url", url, "--json").data
    assert (seen["books"]["jobs"], seen["books"]["of_jobs"]) == (1, 1)
    assert all("fsync is off" in problem for problem in seen["problems"]), "as the server of the tests is"


def test_a_server_is_backed_up_by_its_own_means_and_a_copy_is_held_when_a_person_says_so(shop, url, tmp_path):
    job = shop.submit("shop:checkout", "1")
    refused = shop.tally("backup", str(tmp_path / "copy.db"), "--url", url)
    assert refused.code != 0
    assert "pg_dump" in refused.err
    assert not (tmp_path / "copy.db").exists()
    said = shop.tally("restored", "shop")
    told = "1 job held and 0 schedules paused; look, then tally resume --restored\n"
    assert (said.code, said.out) == (0, told)
    assert shop.tally("show", job, "shop", "--json").data["hold"] == "RESTORED"
    resumed = shop.tally("resume", "--restored", "shop")
    assert (resumed.code, resumed.out) == (0, "1 job and 0 schedules go on\n")
    assert shop.tally("verify", "shop").code == 0
