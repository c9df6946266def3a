"""The audit: silent about real jobs of every kind, at every commit, and loud about each wrong value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import apsw
import psycopg
import pytest

from tallystick.engine.audit import audit, check_job
from tests.app.kinds_of_jobs import Kinds


class Tamper:
    """A connection by which a test changes what the database would refuse, and puts it back."""

    def __init__(self, url: str) -> None:
        self._sqlite = url.startswith("sqlite")
        if self._sqlite:
            self._db = apsw.Connection(url.removeprefix("sqlite:///"))
            self._db.execute("pragma ignore_check_constraints = 1; pragma synchronous = off")
            for (name,) in self.rows("select name from sqlite_master where type = 'trigger'"):
                self.run(f"drop trigger {name}")
            return
        address, _, options = url.partition("?")
        schema = dict(part.split("=", 1) for part in options.split("&"))["schema"]
        self._db = psycopg.connect(address, autocommit=True)
        self.run("set session_replication_role = replica; set synchronous_commit = off")
        self.run(f"set search_path = {schema}")
        checks = self.rows(
            "select conrelid::regclass::text, conname from pg_constraint "
            f"where contype = 'c' and connamespace = '{schema}'::regnamespace"
        )
        for table, name in checks:
            self.run(f"alter table {table} drop constraint {name}")

    def rows(self, query: str) -> list[tuple]:
        return list(self._db.execute(query))

    def run(self, statement: str) -> None:
        self._db.execute(statement)

    @contextmanager
    def planted(self, table: str, column: str, key: str, value: str, before: str):
        """Have one wrong value in one row for a while."""
        self.run(f"update {table} set {column} = {value} where {key}")
        try:
            yield
        finally:
            self.run(f"update {table} set {column} = {before} where {key}")

    def close(self) -> None:
        self._db.close()


@pytest.fixture
def kinds(timed, hand, clock, monkeypatch):
    return Kinds(timed, hand, clock, monkeypatch)


def found_in(timed, jobs_max: int | None = None) -> list[str]:
    """Everything that the audit finds, as `doctor` says it."""
    findings = audit(timed.runtime().store, jobs_max=jobs_max).findings
    return [f"job {job_id}: {check}: {message}" for job_id, check, message in findings]


@pytest.mark.slow
def test_jobs_of_every_kind_balance_after_every_commit(timed, kinds, monkeypatch, url):
    store = timed.runtime().store
    apply, commits = store.apply, []

    def audited(*arguments, **named):
        outcome = apply(*arguments, **named)
        # Those that are older than a chapter of their life do not change any more; a server answers slowly.
        commits.append(found_in(timed, 10 if url.startswith("sqlite") else 3))
        return outcome

    monkeypatch.setattr(store, "apply", audited)
    kinds.live()
    assert len(commits) > 200
    assert [found for found in commits if found] == []
    assert found_in(timed) == []


def test_what_doctor_called_well(timed, hand, kinds, url):
    """A second closer in a group, a semaphore of 2 for 3 open children, entries that no message made."""
    job = kinds.parent.submit([0, 1, 2])
    hand.work()
    waiting = kinds.waits.submit()
    hand.claim_many(3)
    hand.work()
    joined = kinds.parent.submit([0, 1])
    hand.work_all()
    assert found_in(timed) == []
    tamper = Tamper(url)
    of = f"job_id = '{job.id}'"
    with tamper.planted("steps", "semaphore", of, "2", "3"):
        (found,) = found_in(timed)
        assert (
            found
            == f"job {job.id}: semaphore: group gather#1: the semaphore is 2, and of 3 children 0 are counted"
        )
    of = f"job_id = '{waiting.id}'"
    with tamper.planted("steps", "ledger", of, "1100000000005", "1100000000000"):
        assert f"job {waiting.id}: digits: wait go#1: 001100000000005, and 0 messages entered" in found_in(
            timed
        )
    guid = f"child:{joined.id}.0.1.00000000"
    with tamper.planted("messages", "ledger", f"guid = '{guid}'", "111100000001", "11000000001"):
        found = found_in(timed)
        assert f"job {joined.id}: closer: group gather#1: closed by the entries [1, 2], " in found[0]
    assert found_in(timed) == []
    tamper.close()


class Plant(NamedTuple):
    """One wrong value in one cell, and how a finding may name its row."""

    job_id: str
    table: str
    column: str
    key: str
    before: object
    value: object
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}.{self.column} of {self.names[0]}, {self.before} to {self.value}"


def digits_changed(ledger: int) -> list[int]:
    """Every ledger that differs in one digit: a marker set or cleared, a count one more or less."""
    text = f"{ledger:015d}"
    return [
        int(text[:place] + ("1" if digit == "0" else str(int(digit) - 1)) + text[place + 1 :])
        for place, digit in enumerate(text)
    ]


def plants(tamper: Tamper) -> Iterator[Plant]:
    """Every digit of every ledger, every semaphore, state and acknowledgement, one at a time."""
    columns = "job_id, state, attempt, dimension, semaphore, root_ledger, start_ledger, start_acked_at"
    for job_id, state, attempt, dimension, semaphore, root, start, acked in tamper.rows(
        f"select {columns} from jobs"
    ):
        of = (job_id, "jobs"), (f"job_id = '{job_id}'",)
        for column, ledger, name in (("root_ledger", root, "root"), ("start_ledger", start, "start")):
            for value in digits_changed(ledger):
                yield Plant(*of[0], column, *of[1], ledger, value, (name,))
        for value in (semaphore + 1, semaphore - 1):
            yield Plant(*of[0], "semaphore", *of[1], semaphore, value, ("the semaphore",))
        for value in {*STATES, "CANCELLING"} - {state}:
            yield Plant(*of[0], "state", *of[1], f"'{state}'", f"'{value}'", ("the job",))
        yield Plant(*of[0], "start_acked_at", *of[1], acked, *((None,) if acked else (1,)), ("start",))  # type: ignore[call-arg]  # one of two tuples of one
        yield Plant(*of[0], "attempt", *of[1], attempt, attempt + 1, ("the job",))
        yield Plant(*of[0], "dimension", *of[1], dimension, dimension + 1, ("the job",))
    columns = "job_id, dimension, name, occurrence, kind, state, ledger, semaphore, failed, origin_job_id"
    for job_id, dimension, name, occurrence, kind, state, ledger, semaphore, failed, origin in tamper.rows(
        f"select {columns} from steps"
    ):
        place = f"dimension = {dimension} and name = '{name}' and occurrence = {occurrence}"
        key = f"job_id = '{job_id}' and {place}"
        names = (f"{kind} {name}#{occurrence}",)
        for value in digits_changed(ledger):
            yield Plant(job_id, "steps", "ledger", key, ledger, value, names)
        for value in {*STATES, "PENDING"} - {state}:
            yield Plant(job_id, "steps", "state", key, f"'{state}'", f"'{value}'", names)
        # How many children there will be is written nowhere before all are born, nor what a copy counted.
        if kind == "group" and f"{ledger:015d}"[3] == "1":
            yield Plant(job_id, "steps", "semaphore", key, semaphore, semaphore + 1, names)
        if kind == "group" and origin is None:
            yield Plant(job_id, "steps", "failed", key, failed, failed + 1, names)
    columns = "job_id, guid, name, occurrence, ledger, acked_at"
    for job_id, guid, name, occurrence, ledger, acked in tamper.rows(f"select {columns} from messages"):
        key, names = f"guid = '{guid}'", (guid, f"{name}#{occurrence}", "root")
        for value in digits_changed(ledger):
            yield Plant(job_id, "messages", "ledger", key, ledger, value, names)
        yield Plant(job_id, "messages", "acked_at", key, acked, *((None,) if acked else (1,)), names)  # type: ignore[call-arg]  # one of two tuples of one


def alone(tamper: Tamper, planned: list[Plant]) -> list[Plant]:
    """Of plants into rows that are alike in jobs that are alike only the first: the others say no more."""
    jobs = tamper.rows(
        "select job_id, state, attempt, dimension, semaphore, root_ledger, start_ledger from jobs"
    )
    like = {job_id: about for job_id, *about in jobs}
    shapes = {}
    for plant in planned:
        names = tuple(name.replace(plant.job_id, "") for name in plant.names)
        about = (
            plant.table,
            plant.column,
            plant.before is None or plant.before,
            plant.value,
            *like[plant.job_id],
        )
        shape = (
            (*about, names[1:] or names) if plant.column != "acked_at" else (*about[:2], plant.value, names)
        )
        shapes.setdefault(shape, plant)
    return list(shapes.values())


STATES = ("IN_PROGRESS", "SUCCEEDED", "FAILED_FINAL", "CANCELLED")


@pytest.mark.parametrize(
    "share", [pytest.param(6, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.long)]
)
def test_each_wrong_value_is_found_with_its_job_row_and_rule(timed, kinds, url, share):
    kinds.live()
    inspection = timed.runtime().store.inspect()
    now = inspection.lease_clock()
    tamper = Tamper(url)
    missed, unnamed, total = [], [], 0
    for plant in alone(tamper, list(plants(tamper)))[::share]:
        value, before = ("null" if each is None else str(each) for each in (plant.value, plant.before))
        total += 1
        with tamper.planted(plant.table, plant.column, plant.key, value, before):
            found = check_job(inspection, inspection.book(plant.job_id), now).findings
        if not found:
            missed.append(str(plant))
        elif not any(name in each.message for each in found for name in plant.names):
            unnamed.append(f"{plant}: {found}")
    assert found_in(timed) == []
    tamper.close()
    assert total > 2_400 // share
    assert "\n".join([*missed, *unnamed]) == ""
