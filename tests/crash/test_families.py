"""Many children in two groups, workers killed at random: each child counts once, each group closes once."""

from __future__ import annotations

import random

import pytest

from tallystick.engine.audit import audit
from tests.crash.family import app, parent
from tests.crew import Crew
from tests.patience import wait_until
from tests.postgres.subject import fresh_schema

WORKERS = 2
# Without the three digits that count how often a parent came to it: a spawn that was cut short is made again.
LEDGER_OF_A_JOINED_GROUP = 111_100_000_001


@pytest.fixture
def opened(url):
    app.bind(url)
    yield app
    app.close()


@pytest.fixture
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/family.db"
    return request.getfixturevalue("server").url(schema=fresh_schema())


def ended(db) -> int:
    """Return how many children have been counted, from the two rows that count them."""
    return sum(
        ledger % 100_000_000 for (ledger,) in db.execute("select ledger from steps where kind = 'group'")
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("url", "children", "kills"),
    [
        ("sqlite", 2_000, 6),
        pytest.param("sqlite", 5_000, 6, marks=pytest.mark.long),
        ("postgres", 300, 3),
    ],
    indirect=["url"],
)
def test_children_under_random_kills_are_counted_once_and_wake_their_parent_once_a_group(
    opened, url, children, kills
):
    """Nothing is lost, doubled or stuck: every child has one message, every group one closer and one word."""
    job = parent.submit(children)
    chance = random.Random(5)
    crew = Crew(WORKERS, "tests.crash.family", url)
    try:
        with opened.connect() as db:
            for share in sorted(chance.uniform(0, 0.9) for _ in range(kills)):
                wait_until(lambda share=share: ended(db) >= share * 2 * children)
                crew.kill(chance)
        assert job.result(240) == [sum(range(children)), -sum(range(children))]
    finally:
        crew.dismiss()
    with opened.connect() as db:
        groups = db.execute(
            "select ledger % 1000000000000, semaphore, failed, state from steps where kind = 'group'"
        )
        told = db.execute(
            "select occurrence, count(*), count(distinct ledger % 100000000), max(ledger % 100000000),"
            " sum(ledger / 100000000000 % 10), sum(ledger / 1000000000 % 10)"
            " from messages where kind = 'child' group by occurrence order by occurrence"
        )
        words = db.execute(
            "select occurrence, count(*) from messages where kind = 'resume' group by occurrence"
        )
        states = db.execute("select state, semaphore, count(*) from jobs group by state, semaphore")
        done = db.execute("select count(*) from attempts where status = 'DONE'")
        killed = db.execute("select count(*) from attempts where reason = 'EXPIRED'")
    assert groups == [(LEDGER_OF_A_JOINED_GROUP + children, 0, 0, "SUCCEEDED")] * 2
    assert told == [(group, children, children, children, 1, children) for group in (1, 2)]
    assert sorted(words) == [(1, 1), (2, 1)]
    assert states == [("SUCCEEDED", 0, 2 * children + 1)]
    assert done == [(2 * children + 1,)]
    assert killed[0][0] > 0, "the kills must have hit somebody at work"
    assert [event.name for event in job.history()].count("group") == 2
    assert not audit(opened.runtime().store).findings
