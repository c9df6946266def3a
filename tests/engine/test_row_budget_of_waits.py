"""What waiting may cost: the rows that each bundle of a waiting job writes, on every store.

A row that one bundle changes twice is one row; how often a row is written is told where it is more than once.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tallystick import Tally, aio, wait
from tallystick.testing.stepping import SteppedWorker

# Each table with its key; what else there is, a waiting job does not write.
TABLES = {
    "jobs": ("job_id",),
    "attempts": ("job_id", "attempt"),
    "steps": ("job_id", "dimension", "name", "occurrence"),
    "messages": ("guid",),
    "events": ("job_id", "n"),
}


class Meter:
    """The rows that were written since the last reading, told by triggers of the test's own."""

    def __init__(self, app: Tally, url: str) -> None:
        self._app = app
        self._seen: list[str] = []
        self._is_sqlite = url.startswith("sqlite")
        self._watch_file() if self._is_sqlite else self._watch_server()

    def _watch_file(self) -> None:
        """Triggers that call a function change nothing, so the store counts its own changes alone."""
        writer = self._app.runtime().store._writer  # type: ignore[attr-defined]  # SQLite's, as the address said
        writer.create_scalar_function("noted", lambda *row: self._seen.append(" ".join(map(str, row))))
        for table, key in TABLES.items():
            row = ", ".join(f"NEW.{column}" for column in key)
            for verb in ("INSERT", "UPDATE"):
                writer.execute(
                    f"CREATE TEMP TRIGGER noted_{table}_{verb} AFTER {verb} ON main.{table} "
                    f"BEGIN SELECT noted('{table}', {row}); END"
                )

    def _watch_server(self) -> None:
        with self._app.transaction() as db:
            db.execute("CREATE TABLE noted (place SERIAL, what TEXT)")
            for table, key in TABLES.items():
                row = ", ".join(f"NEW.{column}" for column in key)
                db.execute(
                    f"CREATE FUNCTION note_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    f"INSERT INTO noted (what) VALUES (concat_ws(' ', '{table}', {row})); RETURN NULL; END $$"
                )
                db.execute(
                    f"CREATE TRIGGER noted AFTER INSERT OR UPDATE ON {table} "
                    f"FOR EACH ROW EXECUTE FUNCTION note_{table}()"
                )

    def read(self) -> Counter[str]:
        """Return how often each row was written, and begin anew."""
        if not self._is_sqlite:
            with self._app.transaction() as db:
                self._seen = [what for (what,) in db.execute("DELETE FROM noted RETURNING what")]
        found, self._seen[:] = Counter(self._seen), []
        return found


@pytest.fixture
def meter(timed, url):
    return Meter(timed, url)


def by_table(rows: Counter[str]) -> dict[str, int]:
    return dict(Counter(row.partition(" ")[0] for row in rows))


ENDED = {"jobs": 1, "attempts": 1, "events": 1}


@pytest.mark.parametrize("waits", [1, 2, 3])
def test_a_suspension_writes_three_rows_and_one_for_each_wait(timed, hand: SteppedWorker, meter, waits):
    @timed.workflow
    async def flow() -> None:
        await asyncio.gather(*(aio.wait(f"go{n}", bool) for n in range(waits)))

    flow.submit()
    segment = hand.claim()
    meter.read()
    hand.run(segment)
    assert by_table(meter.read()) == {**ENDED, "steps": waits}


def test_a_wait_through_all_its_bundles(timed, hand: SteppedWorker, meter):
    """Delivery two rows, a woken claim five, the answer two and its event, which is the row of the wait."""

    @timed.step
    def look() -> None:
        seen["answer"] = meter.read()

    @timed.workflow
    def flow() -> None:
        wait("go", bool)
        look()
        wait("more", bool)

    seen: dict[str, Counter[str]] = {}
    job = flow.submit()
    hand.work()
    meter.read()
    job.send("go", True)
    assert by_table(meter.read()) == {"messages": 1, "jobs": 1}
    segment = hand.claim()
    assert by_table(meter.read()) == {**ENDED, "messages": 1, "steps": 1}
    hand.run(segment)
    assert by_table(seen["answer"]) == {"messages": 1, "steps": 1}
    # The step, and a suspension with one wait and a driver other than the start.
    assert by_table(meter.read()) == {**ENDED, "steps": 1 + 1 + 1, "messages": 1}


def test_a_message_for_a_job_that_runs_or_is_due_is_one_row(timed, hand: SteppedWorker, meter):
    @timed.workflow
    def flow() -> None:
        wait("go", bool)
        wait("go", bool)

    job = flow.submit()
    hand.work()
    job.send("go", True)
    meter.read()
    job.send("go", True)
    assert by_table(meter.read()) == {"messages": 1}


def test_a_wait_that_is_met_again_is_counted_in_the_bundle_that_suspends(
    timed, hand: SteppedWorker, meter, statements, url
):
    @timed.workflow
    async def flow() -> None:
        await asyncio.gather(*(aio.wait(f"go{n}", bool) for n in range(4)))

    job = flow.submit()
    hand.work()
    job.send("go0", True)
    segment = hand.claim()
    meter.read()
    statements.clear()
    hand.run(segment)
    rows = meter.read()
    # The answered wait, three that are met again, and no other.
    assert by_table(rows) == {**ENDED, "steps": 4, "messages": 1}
    # Those that are met again are written once, with the suspension; the answer was written before.
    assert sorted(often for row, often in rows.items() if row.startswith("steps")) == [1, 1, 1, 2]
    if url.startswith("postgres"):
        assert [name for name in statements if name == "move"] == ["move", "move"]


def test_a_message_that_is_taken_with_the_end_of_its_job_is_written_once(timed, hand: SteppedWorker, meter):
    @timed.workflow
    def flow() -> bool:
        return wait("go", bool)

    job = flow.submit()
    hand.work()
    job.send("go", True)
    segment = hand.claim()
    meter.read()
    hand.run(segment)
    assert job.result(1) is True
    assert [often for row, often in meter.read().items() if row.startswith("messages")] == [1]
