"""The compound primitive next to its negative control: a guard that only looks is no guard."""

from __future__ import annotations

import threading

import psycopg

from tallystick.clock import SystemClock
from tallystick.store.api import CountDown
from tallystick.testing.conformance.countdown import GROUP, Obligations
from tallystick.testing.conformance.drafts import outcome_of
from tests.postgres.subject import PostgresSubject

ROUNDS = 10

# What one would write first: mark the message and move the semaphore, unless the message is marked already.
NAIVE = """
WITH fresh AS (
  SELECT guid FROM messages AS m
   WHERE guid = %(guid)s
     AND NOT EXISTS (SELECT 1 FROM messages AS marked WHERE marked.guid = m.guid AND ledger / 1000000000 %%
     10 = 1)
)
UPDATE steps SET semaphore = semaphore - 1
 WHERE job_id = %(job)s AND EXISTS (SELECT 1 FROM fresh)
"""
MARK = """
UPDATE messages SET ledger = ledger + 1000000000
 WHERE guid = %(guid)s AND ledger / 1000000000 %% 10 = 0
"""


def both(first, second) -> None:
    """Run two functions at once."""
    threads = [threading.Thread(target=function, daemon=True) for function in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_a_guard_that_only_looks_counts_one_message_twice(subject: PostgresSubject) -> None:
    """The negative control: two deliveries of one message, neither of which sees the other yet."""
    open_here = Obligations(subject, GROUP, semaphore=5, messages=1)
    names = {"guid": open_here.guids[0], "job": open_here.job_id}
    options = f"-c search_path={subject.schema}"
    with (
        psycopg.connect(subject.dsn, options=options) as one,
        psycopg.connect(subject.dsn, options=options) as two,
    ):
        one.execute(NAIVE, names)
        second = threading.Thread(target=lambda: two.execute(NAIVE, names), daemon=True)
        second.start()
        while not waits(subject, two.info.backend_pid):
            pass
        one.execute(MARK, names)
        one.commit()
        second.join(30)
        two.commit()
    assert open_here.semaphore == 3, "counted twice: this is what the compound primitive is for"


def waits(subject: PostgresSubject, pid: int) -> bool:
    """Tell whether a backend waits for a row."""
    query = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"
    return subject.by_hand.execute(query, [pid]).fetchone() == (True,)


def test_the_compound_primitive_counts_one_message_once(subject: PostgresSubject) -> None:
    """The same two deliveries at once, many times: one counts, the other is told that it is late."""
    stores = [subject.open(SystemClock()) for _ in range(2)]
    open_here = Obligations(subject, GROUP, semaphore=ROUNDS, messages=ROUNDS)
    for number, guid in enumerate(open_here.guids):
        request: CountDown = open_here.request(guid)
        outcomes: list[object] = []

        def deliver(store, request=request, outcomes=outcomes) -> None:
            outcomes.append(outcome_of(store, request))

        both(lambda: deliver(stores[0]), lambda: deliver(stores[1]))
        assert sum(isinstance(outcome, bool) for outcome in outcomes) == 1
        assert open_here.semaphore == ROUNDS - number - 1
    assert len(open_here.closers) == 1
    for store in stores:
        store.close()
