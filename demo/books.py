"""The audit: every promise of the demo, counted again from the file and from nothing else.

It opens the file read-only after everybody has gone, takes no worker's word for anything, and recomputes
digits and hash chains from the first fact on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from demo.shop import CALLS_A_JOB, price_of
from tallystick.core.chain import GENESIS, event_hash, step_payload
from tallystick.core.ledger.promises import PROMISES

_BUNDLES = {promise.name: promise.bundles[-1] for promise in PROMISES}
STEP_DIGITS = int(_BUNDLES["step"].activity or 0)
START_DIGITS = int(_BUNDLES["whole job"].guid or 0)

_EFFECTS = {
    "reserved": "SELECT order_id FROM reserved",
    "payments": "SELECT order_id FROM payments",
    "parcels": "SELECT order_id FROM parcels",
}
_FACTS = """
    SELECT job_id, n, type, at, attempt, payload, NULL, NULL, NULL, NULL, NULL, NULL, prev_hash, event_hash
      FROM events
    UNION ALL
    SELECT job_id, n, kind, completed_at, attempt, name, occurrence, state, ledger, result, error, notes,
           prev_hash, event_hash
      FROM steps
     ORDER BY 1, 2
"""


class Entry(NamedTuple):
    """One line of the audit: what was counted, what it should be, and whether they agree."""

    title: str
    found: str
    wrong: tuple[str, ...] = ()


def audit(path: Path, calls: Path, orders: int) -> list[Entry]:
    """Count everything and return one entry a promise; an entry with something `wrong` does not balance."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        with connection:
            entries = [
                _jobs(connection, orders),
                _effects(connection, orders),
                _money(connection, orders),
                _attempts(connection),
                _digits(connection, orders),
                _chains(connection),
                _calls(connection, calls, orders),
            ]
    finally:
        connection.close()
    return entries


def _jobs(connection: apsw.Connection, orders: int) -> Entry:
    states = dict(connection.execute("SELECT state, count(*) FROM jobs GROUP BY state"))
    wrong = [f"{count} jobs are {state}" for state, count in states.items() if state != "SUCCEEDED"]
    if sum(states.values()) != orders:
        wrong.append(f"{orders} orders were submitted and {sum(states.values())} jobs are in the file")
    return Entry("every order was finished", f"{states.get('SUCCEEDED', 0)} of {orders} jobs", tuple(wrong))


def _effects(connection: apsw.Connection, orders: int) -> Entry:
    wrong = []
    rows = 0
    for table, statement in _EFFECTS.items():
        counted = Counter(order for (order,) in connection.execute(statement))
        rows += counted.total()
        for order in sorted({*range(1, orders + 1), *counted}):
            wanted = 1 if 1 <= order <= orders else 0
            if counted[order] != wanted:
                wrong.append(f"{table}: order {order} is there {counted[order]} times instead of {wanted}")
    return Entry(
        "every effect is there exactly once",
        f"{rows} rows, no unique keys",
        tuple(wrong),
    )


def _money(connection: apsw.Connection, orders: int) -> Entry:
    booked = connection.execute("SELECT coalesce(sum(cents), 0) FROM payments").get
    due = sum(price_of(order) for order in range(1, orders + 1))
    wrong = () if booked == due else (f"payments add up to {booked} cents, the orders cost {due}",)
    return Entry("the till agrees with the price list", f"{booked / 100:,.2f} booked", wrong)


def _attempts(connection: apsw.Connection) -> Entry:
    statuses = dict(connection.execute("SELECT status, count(*) FROM attempts GROUP BY status"))
    several = connection.execute(
        "SELECT job_id FROM jobs EXCEPT "
        "SELECT job_id FROM attempts WHERE status = 'DONE' GROUP BY job_id HAVING count(*) = 1"
    )
    wrong = [f"job {job_id} does not have exactly one DONE attempt" for (job_id,) in several]
    wrong += [
        f"{count} attempts are still {status}"
        for status, count in statuses.items()
        if status not in {"DONE", "ABORTED"}
    ]
    found = f"{statuses.get('DONE', 0)} done, {statuses.get('ABORTED', 0)} cut short"
    return Entry("one attempt a job crossed the line", found, tuple(wrong))


def _digits(connection: apsw.Connection, orders: int) -> Entry:
    steps = list(connection.execute("SELECT job_id, name, ledger FROM steps"))
    starts = list(connection.execute("SELECT job_id, start_ledger, semaphore FROM jobs"))
    wrong = [f"{name} of job {job}: {held:015d}" for job, name, held in steps if held != STEP_DIGITS]
    wrong += [f"start of job {job}: {held:015d}" for job, held, _ in starts if held != START_DIGITS]
    wrong += [f"job {job} has {open_} open obligations" for job, _, open_ in starts if open_]
    if len(steps) != orders * len(CALLS_A_JOB):
        wrong.append(f"{len(steps)} calls are recorded instead of {orders * len(CALLS_A_JOB)}")
    return Entry(
        "all digits are set",
        f"{len(steps)} calls, {len(starts)} messages",
        tuple(wrong),
    )


def _chains(connection: apsw.Connection) -> Entry:
    """Recompute every hash chain; the last hash must be the one that the job's row names."""
    wrong = []
    heads: dict[str, tuple[int, bytes]] = {}
    facts = 0
    for job, n, kind, at, attempt, payload, *rest, prev, own in connection.execute(_FACTS):
        facts += 1
        last_n, last = heads.get(job, (0, GENESIS))
        text = payload if rest[0] is None else step_payload(payload, *rest)
        if n != last_n + 1 or prev != last or own != event_hash(last, job, n, kind, at, attempt, text):
            wrong.append(f"job {job}: fact {n} ({kind}) is not what was written, or one before it is missing")
        heads[job] = (n, own)
    for job, n, head in connection.execute("SELECT job_id, head_n, head_hash FROM jobs"):
        if heads.get(job) != (n, head):
            wrong.append(f"job {job}: its row ends at fact {n}, its facts do not")
    return Entry(
        "no fact was changed, removed or added", f"{facts} facts, {len(heads)} hash chains", tuple(wrong)
    )


def _calls(connection: apsw.Connection, calls: Path, orders: int) -> Entry:
    """Compare results with calls: a step may be called again only where its worker died over it."""
    called = Counter(tuple(line.split()[:2]) for line in calls.read_text("ascii").splitlines())
    interrupted = {
        str(order)
        for (order,) in connection.execute(
            "SELECT DISTINCT j.payload ->> 'order' FROM jobs AS j JOIN attempts AS a USING (job_id) "
            "WHERE a.status = 'ABORTED'"
        )
    }
    wrong = [
        f"{name} of order {order} was called {count} times and nobody died over it"
        for (name, order), count in called.items()
        if count > 1 and order not in interrupted
    ]
    results = 2 * orders
    again = called.total() - len(called)
    if len(called) != results:
        wrong.append(f"{len(called)} different calls for {results} results")
    return Entry(
        "each result is kept (step: at least once)",
        f"{results} of {called.total()} calls, {again} repeated",
        tuple(wrong),
    )


def faults(entries: list[Entry]) -> Iterator[str]:
    """Return everything that is wrong, one line each."""
    for entry in entries:
        for line in entry.wrong:
            yield f"{entry.title}: {line}"
