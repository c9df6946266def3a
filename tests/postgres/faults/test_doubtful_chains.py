"""After a lost answer, or on another server, the end of a chain is read before anything follows it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tallystick.clock import SystemClock
from tallystick.errors import OutcomeUnknown, StaleLease
from tallystick.store.api import ClaimedJob, RecordStep, Transaction
from tallystick.store.postgres.server import commit_outcome as fate
from tallystick.store.postgres.store import PostgresStore
from tallystick.testing.conformance.drafts import (
    asking,
    check_chain,
    claim,
    claimed,
    done,
    finish,
    held_job,
    release,
    step,
)
from tests.postgres.proxy import Plan, Proxy
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

CLOCK = SystemClock()
LONG_MS = 600_000
CUTS = [Plan.BEFORE, Plan.AFTER]


class Cut:
    """A store behind a proxy, which can lose a COMMIT and then refuse to be asked what became of it."""

    def __init__(self, server: Server, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(fate, "ASK_TRIES_MAX", 2)
        self.proxy = Proxy(server)
        self.schema = fresh_schema()
        url = server.url(port=self.proxy.port, schema=self.schema, sslmode="disable", gssencmode="disable")
        self.store = PostgresStore(url, CLOCK)
        self.by_hand = psycopg.connect(server.dsn, autocommit=True, options=f"-c search_path={self.schema}")
        self.by_hand.execute("CREATE TABLE effects (value TEXT NOT NULL)")
        self.held = held_job(self.store, CLOCK, lease_ms=LONG_MS)
        done(self.store, step(self.held, CLOCK, "first"))

    def lose(self, plan: Plan) -> None:
        """Lose the next COMMIT, before or after the server has it, and every connection that would ask."""
        self.proxy.plan = plan
        self.proxy.down.set()

    def names(self) -> list[str]:
        """Return the names of the steps that are recorded, in order."""
        rows = self.by_hand.execute("SELECT name FROM steps ORDER BY n").fetchall()
        return [name for (name,) in rows]

    def transact(self, name: str) -> RecordStep:
        """Record a step with an effect, in a user's transaction."""

        def body(db: Transaction) -> RecordStep:
            db.execute(f"INSERT INTO {self.schema}.effects VALUES (%s)", [name])
            return step(self.held, CLOCK, name)

        return self.store.run_tx(self.held.fence, body, 10_000, 0)

    def give_back_and_go_on(self) -> ClaimedJob:
        """Give the job back as its worker would, check its books, and claim it again."""
        done(self.store, release(self.held, CLOCK))
        check_chain(self.store.history(self.held.fence.job_id))
        (self.held,) = claimed(self.store, claim(lease_ms=LONG_MS))
        return self.held

    def close(self) -> None:
        self.proxy.plan = Plan.PASS
        self.proxy.down.clear()
        self.store.close()
        self.by_hand.close()
        self.proxy.close()


@pytest.fixture
def cut(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cut]:
    made = Cut(server, monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize("plan", CUTS)
def test_a_flush_of_which_nobody_knows_leaves_no_hole_and_no_place_taken_twice(cut: Cut, plan: Plan) -> None:
    cut.lose(plan)
    with pytest.raises(OutcomeUnknown):
        cut.store.apply([(step(cut.held, CLOCK, "second"),)])
    cut.proxy.down.clear()
    # A step of the same segment that was on its way already.
    (outcome,) = cut.store.apply([(step(cut.held, CLOCK, "third"),)])
    if plan is Plan.BEFORE:
        assert isinstance(outcome, OutcomeUnknown)
        assert cut.names() == ["first"]
    else:
        assert outcome is None
        assert cut.names() == ["first", "second", "third"]
    held = cut.give_back_and_go_on()
    assert [record.name for record in held.records] == cut.names()
    done(cut.store, finish(held, CLOCK))
    check_chain(cut.store.history(held.fence.job_id))


@pytest.mark.parametrize("plan", CUTS)
def test_a_users_transaction_of_which_nobody_knows_is_one_effect_and_one_place(cut: Cut, plan: Plan) -> None:
    cut.transact("second")
    cut.lose(plan)
    with pytest.raises(OutcomeUnknown):
        cut.transact("third")
    cut.proxy.down.clear()
    held = cut.give_back_and_go_on()
    kept = ["second"] if plan is Plan.BEFORE else ["second", "third"]
    assert [record.name for record in held.records] == ["first", *kept]
    assert [value for (value,) in cut.by_hand.execute("SELECT value FROM effects").fetchall()] == kept


def test_what_was_worked_out_from_lost_steps_is_refused_and_not_the_release(cut: Cut) -> None:
    """The ending and the step are refused, in one flush with the release that is not."""
    cut.lose(Plan.BEFORE)
    with pytest.raises(OutcomeUnknown):
        cut.store.apply([(step(cut.held, CLOCK, "second"),)])
    cut.proxy.down.clear()
    cut.lose(Plan.PASS)
    cut.proxy.down.clear()
    batch = [(step(cut.held, CLOCK, "third"), finish(cut.held, CLOCK)), (release(cut.held, CLOCK),)]
    outcomes = cut.store.apply(batch)
    assert isinstance(outcomes[0], OutcomeUnknown)
    assert outcomes[1] is None
    check_chain(cut.store.history(cut.held.fence.job_id))
    with pytest.raises(OutcomeUnknown, match="goes on from what is recorded"):
        raise outcomes[0]


def test_a_flush_beside_a_doubtful_chain_goes_on(cut: Cut) -> None:
    other = held_job(cut.store, CLOCK, lease_ms=LONG_MS)
    cut.lose(Plan.BEFORE)
    with pytest.raises(OutcomeUnknown):
        cut.store.apply([(step(cut.held, CLOCK, "second"),)])
    cut.proxy.down.clear()
    outcomes = cut.store.apply([(step(cut.held, CLOCK, "third"),), (step(other, CLOCK, "mine"),)])
    assert isinstance(outcomes[0], OutcomeUnknown)
    assert outcomes[1] is None
    check_chain(cut.store.history(other.fence.job_id))


@pytest.mark.parametrize("plan", CUTS)
def test_no_directive_goes_out_behind_a_step_of_which_nobody_knows(cut: Cut, plan: Plan) -> None:
    cut.lose(plan)
    with pytest.raises(OutcomeUnknown):
        cut.store.apply([(step(cut.held, CLOCK, "second"),)])
    cut.proxy.down.clear()
    (outcome,) = cut.store.apply([(asking(cut.held, '{"cents":1999}'),)])
    count = int(plan is not Plan.BEFORE)
    assert isinstance(outcome, OutcomeUnknown) is not bool(count)
    assert cut.by_hand.execute("SELECT count(*) FROM outbox").fetchall() == [(count,)]


@pytest.mark.parametrize("kind", ["transaction", "tx", "flush"])
def test_a_backend_that_is_terminated_behind_its_commit_has_committed(cut: Cut, kind: str) -> None:
    """E3: the library then loses the thread of the conversation, with an error that no server has sent."""
    cut.proxy.plan = Plan.ENDED
    if kind == "transaction":
        with cut.store.transaction() as db:
            db.execute(f"INSERT INTO {cut.schema}.effects VALUES ('paid')")
    elif kind == "tx":
        cut.transact("paid")
    else:
        done(cut.store, step(cut.held, CLOCK, "paid"))
    assert cut.proxy.fired == 1
    rows = cut.by_hand.execute("SELECT value FROM effects").fetchall()
    assert rows == ([] if kind == "flush" else [("paid",)])
    assert cut.names() == (["first"] if kind == "transaction" else ["first", "paid"])
    done(cut.store, step(cut.held, CLOCK, "last"))
    check_chain(cut.store.history(cut.held.fence.job_id))


def test_a_stale_tx_is_stale_although_the_backend_dies_that_keeps_the_report(cut: Cut) -> None:
    cut.by_hand.execute(
        "CREATE FUNCTION dies() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$"
    )
    cut.by_hand.execute("CREATE TRIGGER dies BEFORE INSERT ON stale_reports EXECUTE FUNCTION dies()")
    done(cut.store, release(cut.held, CLOCK))
    with pytest.raises(StaleLease):
        cut.transact("too late")
    cut.by_hand.execute("DROP TRIGGER dies ON stale_reports")
    with pytest.raises(StaleLease):
        cut.transact("too late")
    assert cut.by_hand.execute("SELECT count(*) FROM stale_reports").fetchall() == [(1,)]
