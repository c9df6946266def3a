"""Schedules and keys have no history: what cannot be is found, and what agrees with nothing else any more."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tallystick import Tally
from tallystick.cli.main import main
from tallystick.core.audit.free_columns import BOUND_SETTINGS
from tallystick.core.remote.keys import new_key
from tallystick.core.schedules.rows import Schedule
from tallystick.engine.audit.whole_store import verify
from tallystick.testing.stepping import tick_schedules
from tests.engine.audit.tampering import Books

DAY = 86_400_000
# Of each column a value that another lawful schedule could have.
LAWFUL: dict[str, Any] = {
    "handler": "other",
    "version": "2",
    "payload": '{"n":2}',
    "instant_as": None,
    "options": '{"queue":"other"}',
    "timetable": '{"kind":"every","ms":1800000}',
    "missed": "all",
    "overlap": "skip",
    "declared": 0,
    "paused_by": "Eve",
    "hold_reason": "because",
    "last_job_id": "another",
    "created_at": 1,
    "rev": 77,
}


@pytest.fixture
def books(timed, clock, url):
    """A schedule that has ticked, one that is paused, and a key."""

    @timed.schedule("every 1h", jitter="10m")
    @timed.workflow
    def report(scheduled_at: datetime) -> str:
        return scheduled_at.isoformat()

    @timed.schedule("0 3 * * *")
    @timed.workflow
    def nightly() -> None:
        pass

    timed.declare_schedules()
    clock.advance(DAY)
    tick_schedules(timed)
    timed.schedules.pause("nightly", by="Ada")
    timed.runtime().committer.call((new_key("k1", "s", "acme", ["work"], ["ocr"], 1_000),))
    assert verify(timed.runtime().store).findings == []
    made = Books(url, timed.runtime().store.inspect())
    yield made
    made.close()


def seen(app: Tally, books: Books, table: str, which: str, **to: Any) -> list[str]:
    """What is found while a row says something else."""
    key = {"schedules": "schedule_id", "api_keys": "kid"}[table]
    names = ", ".join(to)
    (before,) = books.db.run(f"select {names} from {table} where {key} = ?", (which,))
    sets = ", ".join(f"{name} = ?" for name in to)
    books.db.run(f"update {table} set {sets} where {key} = ?", (*to.values(), which))
    found = [finding.message for finding in verify(app.runtime().store).findings]
    books.db.run(f"update {table} set {sets} where {key} = ?", (*before, to.get(key, which)))
    return found


@pytest.mark.slow
def test_what_a_schedule_says_of_its_ticks_agrees_with_its_timetable_and_its_last_job(timed, books):
    row = timed.runtime().store.schedule("report")
    later = {name: getattr(row, name) + 1 for name in ("next_at", "due_at", "last_at")}
    others = {"schedule_id": "reports", "tenant_id": "other", "jitter_ms": 0, "waits_since": 1, **later}
    assert set(others) == set(BOUND_SETTINGS)
    for column, value in others.items():
        assert seen(timed, books, "schedules", "report", **{column: value}), column


@pytest.mark.slow
def test_every_other_column_of_a_schedule_may_change_unseen(timed, books):
    assert {*LAWFUL, *BOUND_SETTINGS} == set(Schedule._fields)
    paused = {"paused_by", "hold_reason"}  # a schedule that ticks cannot be
    for column, value in LAWFUL.items():
        which = "nightly" if column in paused else "report"
        assert seen(timed, books, "schedules", which, **{column: value}) == [], column


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "to", "said"),
    [
        ("schedules", {"timetable": "{}"}, "cannot be read"),
        ("schedules", {"timetable": '{"kind": "every", "ms": 3600000}'}, "not as it was written"),
        ("schedules", {"timetable": '{"kind":"every","ms":3600001}'}, "none of its timetable"),
        ("schedules", {"paused_by": "Eve"}, "next tick says otherwise"),
        ("schedules", {"last_job_id": None}, "do not go together"),
        ("schedules", {"last_job_id": "another", "last_at": 3_600_000}, "no removal is noted"),
        ("api_keys", {"scopes": '["all"]'}, "is not a scope"),
        ("api_keys", {"scopes": '["jobs:read"]'}, "services are for keys"),
        ("api_keys", {"services": "[]"}, "names its services"),
        ("api_keys", {"services": '["b","a"]'}, "not as they were written"),
        ("api_keys", {"tenant_id": ""}, "no key is for"),
        ("api_keys", {"secret_hash": "open"}, "not kept as a hash"),
        ("api_keys", {"expires_at": 1}, "over before it was made"),
        ("api_keys", {"revoked_at": 1}, "revoked before it was made"),
    ],
)
def test_what_no_schedule_and_no_key_can_be_is_found(timed, books, table, to, said):
    which = "report" if table == "schedules" else "k1"
    (found,) = seen(timed, books, table, which, **to)
    assert said in found


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_finding_that_is_of_no_job_names_none(timed, books, url, capsys):
    books.db.run("update api_keys set secret_hash = 'open'")
    assert main(("verify", url)) == 1
    assert "finding: keys: the key k1: its secret is not kept as a hash" in capsys.readouterr().out
