"""A key whose job is pruned while somebody submits under it is free, and it is his."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from tallystick.store.api import HeldUp, Outcome, Pruned, PruneJobs, SubmitJob
from tallystick.testing.conformance.drafts import claim, claimed, done, finish, submission
from tests.patience import wait_until
from tests.postgres.subject import PostgresSubject

SECONDS = 30
GATE = 7_321


@contextmanager
def gate(subject: PostgresSubject) -> Iterator[None]:
    """Stop whoever has looked for a key, before he asks who holds it, until this ends."""
    body = f"BEGIN PERFORM pg_advisory_xact_lock_shared({GATE}); RETURN NULL; END"
    for statement in (
        f"CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$",
        "CREATE TRIGGER gate AFTER INSERT ON idempotency FOR EACH STATEMENT EXECUTE FUNCTION wait_at_gate()",
    ):
        subject.by_hand.execute(statement.encode())
    with psycopg.connect(subject.dsn, autocommit=True) as keeper:
        keeper.execute("SELECT pg_advisory_lock(%s)", [GATE])
        yield


def prune_at_gate(subject: PostgresSubject) -> None:
    """Remove what has ended, as soon as somebody stands at the gate."""
    standing = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
    wait_until(lambda: subject.by_hand.execute(standing, [GATE]).fetchone() == (1,), "a wait at the gate")
    assert done(subject.store, PruneJobs(0, 100)) == Pruned(1, None)


@pytest.fixture
def ended(subject: PostgresSubject) -> SubmitJob:
    """A job that was submitted with the key `k`, and has ended."""
    wish = submission(subject.clock, key="k", idempotency_key="k")
    done(subject.store, wish)
    (held,) = claimed(subject.store, claim())
    done(subject.store, finish(held, subject.clock))
    return wish


@pytest.mark.usefixtures("ended")
def test_a_flush_whose_key_is_pruned_meanwhile_is_begun_again(subject: PostgresSubject) -> None:
    store = subject.open(subject.clock)
    batch = [(submission(subject.clock, key="k", idempotency_key="k"),), (submission(subject.clock),)]
    with ThreadPoolExecutor(1) as thread:
        with gate(subject):
            flush = thread.submit(store.apply, batch)
            prune_at_gate(subject)
        came = flush.result(SECONDS)
    # If the gate was shut for longer than a bundle may keep others waiting, the committer sends it again.
    if isinstance(came[0], HeldUp):
        came = [*store.apply(batch[:1]), *came[1:]]
    assert came == [None, None]
    assert len(subject.rows("jobs")) == len(subject.rows("events")) == 2
    store.close()


@pytest.mark.usefixtures("ended")
def test_a_users_transaction_whose_key_is_pruned_meanwhile_goes_on(subject: PostgresSubject) -> None:
    store = subject.open(subject.clock)

    def submit() -> Outcome:
        with store.transaction() as db:
            subject.put_effect(db, "once")
            outcome = db.apply((submission(subject.clock, key="k", idempotency_key="k"),))
            subject.put_effect(db, "then")
            return outcome

    with ThreadPoolExecutor(1) as thread:
        with gate(subject):
            submitted = thread.submit(submit)
            prune_at_gate(subject)
        assert submitted.result(SECONDS) is None
    assert subject.effects() == ["once", "then"]
    assert len(subject.rows("jobs")) == len(subject.rows("events")) == 1
    store.close()
