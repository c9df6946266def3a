"""P01, P02: the connection is cut before and after COMMIT; what became of it is asked, never guessed."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tallystick.clock import SystemClock
from tallystick.core.chain import Chain
from tallystick.errors import OutcomeUnknown, StaleLease
from tallystick.store.api import RecordStep, Transaction
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.server.commit_outcome import fate
from tallystick.store.postgres.store import PostgresStore
from tallystick.testing.conformance.drafts import (
    check_chain,
    claim,
    claimed,
    done,
    finish,
    held_job,
    release,
    step,
    submission,
)
from tests.postgres.proxy import Plan, Proxy
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

# The long tests cut five hundred commits, with the claims and the stale reports below.
FLUSHES = (60, pytest.param(320, marks=pytest.mark.long))
TRANSACTIONS = (30, pytest.param(165, marks=pytest.mark.long))
CLOCK = SystemClock()
LONG_MS = 600_000
FAULTS = [Plan.BEFORE, Plan.AFTER, Plan.AT_ONCE]


class Cut:
    """A store behind a proxy, and a connection around it."""

    def __init__(self, server: Server) -> None:
        self.proxy = Proxy(server)
        schema = fresh_schema()
        self.url = server.url(port=self.proxy.port, schema=schema, sslmode="disable", gssencmode="disable")
        self.store = PostgresStore(self.url, CLOCK)
        self.by_hand = psycopg.connect(server.dsn, autocommit=True, options=f"-c search_path={schema}")
        self.by_hand.execute("CREATE TABLE effects (value TEXT NOT NULL)")
        self.schema = schema

    def count(self, query: str) -> int:
        ((number,),) = self.by_hand.execute(query).fetchall()
        return int(number)

    def close(self) -> None:
        self.proxy.plan = Plan.PASS
        self.store.close()
        self.by_hand.close()
        self.proxy.close()


@pytest.fixture
def cut(server: Server) -> Iterator[Cut]:
    made = Cut(server)
    yield made
    made.close()


@pytest.mark.parametrize("flushes", FLUSHES)
def test_a_lost_commit_of_a_flush_is_neither_lost_nor_doubled(cut: Cut, flushes: int) -> None:
    """A third never reaches the server, a third is answered into the void, a third is cut in between."""
    store = cut.store
    held = held_job(store, CLOCK, lease_ms=LONG_MS)
    for number in range(flushes):
        cut.proxy.plan = FAULTS[number % 3]
        wish = submission(CLOCK, key=f"key-{number}")
        batch = [(step(held, CLOCK, f"step-{number}"),), (wish,)]
        assert store.apply(batch) == [None, None], number
    assert cut.proxy.fired == flushes
    check_chain(store.history(held.fence.job_id))
    assert cut.count("SELECT count(*) FROM steps") == flushes
    assert cut.count("SELECT count(*) FROM jobs") == flushes + 1
    done(store, finish(held, CLOCK))


@pytest.mark.parametrize("transactions", TRANSACTIONS)
def test_a_lost_commit_of_a_users_transaction_is_one_effect(cut: Cut, transactions: int) -> None:
    store = cut.store
    held = held_job(store, CLOCK, lease_ms=LONG_MS)
    for number in range(transactions):
        cut.proxy.plan = FAULTS[number % 3]

        def body(db: Transaction, number: int = number) -> RecordStep:
            db.execute(f"INSERT INTO {cut.schema}.effects VALUES (%s)", [str(number)])
            return step(held, CLOCK, f"tx-{number}")

        assert isinstance(store.run_tx(held.fence, body, 10_000, 0), RecordStep)
    assert cut.proxy.fired == transactions
    assert cut.count("SELECT count(*) FROM effects") == transactions
    assert cut.count("SELECT count(DISTINCT value) FROM effects") == transactions
    check_chain(store.history(held.fence.job_id))


def test_a_claim_whose_answer_was_lost_is_known_to_its_worker(cut: Cut) -> None:
    """Otherwise the job would wait for its lease to run out, held by nobody."""
    store = cut.store
    for number in range(12):
        done(store, submission(CLOCK))
        cut.proxy.plan = FAULTS[number % 3]
        (held,) = claimed(store, claim())
        done(store, release(held, CLOCK, delay_ms=3_600_000))
        check_chain(store.history(held.fence.job_id))
    assert cut.count("SELECT count(*) FROM attempts") == 12
    assert cut.proxy.fired == 12


def test_a_stale_report_stays_stale_when_its_answer_is_lost(cut: Cut) -> None:
    store = cut.store
    held = held_job(store, CLOCK)
    chain = Chain(held.fence.job_id, held.chain.n, held.chain.head)
    gone = held._replace(fence=held.fence._replace(lease_id="another"), chain=chain)
    for plan in FAULTS:
        cut.proxy.plan = plan
        late, fresh = store.apply([(step(gone, CLOCK),), (step(held, CLOCK, plan.name),)])
        assert isinstance(late, StaleLease)
        assert fresh is None
    assert cut.count("SELECT count(*) FROM steps") == 3
    assert cut.count("SELECT count(*) FROM stale_reports") == 3


def test_a_cut_between_flushes_costs_nothing(cut: Cut) -> None:
    held = held_job(cut.store, CLOCK)
    for number in range(10):
        cut.proxy.cut()
        done(cut.store, step(held, CLOCK, f"step-{number}"))
        assert cut.store.counts() == {"IN_PROGRESS": 1}
    check_chain(cut.store.history(held.fence.job_id))


def test_the_fate_on_another_timeline_is_called_unknown(cut: Cut) -> None:
    """P05: a server that took over counts its transactions anew; the same number is another transaction."""
    address = parse_address(cut.url)
    ((xid,),) = cut.by_hand.execute("SELECT pg_current_xact_id()::text").fetchall()
    with pytest.raises(OutcomeUnknown):
        fate(address, xid, "00000099 0", [])
