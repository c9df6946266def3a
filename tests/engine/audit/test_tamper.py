"""Whoever changes the books is found: every column of every table, rows that vanish, come twice or swap."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tallystick import Tally
from tallystick.core.audit.free_columns import (
    FREE,
    FREE_TABLES,
    NEWEST,
    UNREAD,
    free_table,
)
from tallystick.testing.stepping import check_store
from tests.app.effect_kinds import live_with_effects
from tests.app.kinds_of_jobs import Kinds
from tests.app.protocol_kinds import live_by_protocol
from tests.app.remote_kinds import live_remotely
from tests.engine.audit.tampering import KEYS, Books, Change

SAMPLED = 250
# The clock of a file is a table of its own; a server has one.
OF_FILES = {"sqlite": set(), "postgres": {"clock"}}
# How many turns of the loop with effects are gone.
TRIMMED = 4
ROOT = Path(__file__).parents[3]


@pytest.fixture
def timed(url, clock):
    """It keeps two turns of a loop."""
    tally = Tally(url, clock=clock, keep_turns=2)
    yield tally
    tally.close()


@pytest.fixture
def books(timed, hand, clock, monkeypatch, url):
    """A store that was lived in, with tags, keys, a trimmed loop, and jobs that retention removed."""
    kinds = Kinds(timed, hand, clock, monkeypatch)
    removed = kinds.plain.submit(0)
    kinds.plain.submit(1)
    hand.work_all()
    # What is said to a job that has ended changes nothing, and is kept.
    removed.pause(by="ann")
    began = clock.wall_ms()
    clock.advance(1_000)
    loop = kinds.loop.opts(idempotency_key="loop").submit(0, 5)
    for n in range(5):
        hand.work_all()
        loop.send("turn", n, id=str(n) if n % 2 else None)
    hand.work_all()
    assert loop.history()[0].n > 1
    for who in ("bob", "cem"):
        loop.pause(by=who)
        timed.queues.pause("emails", by=who)
    kinds.plain.opts(tags=["red", "blue"]).submit(0)
    kinds.live()
    live_remotely(timed, hand, clock)
    live_by_protocol(timed, clock)
    live_with_effects(timed, hand, clock)
    assert timed.prune(older_than=f"{clock.wall_ms() - began}ms") == 2
    assert check_store(timed) == []
    lived_in = Books(url, timed.runtime().store.inspect())
    yield lived_in
    lived_in.close()


def left_free(key: dict[str, Any]) -> tuple[str, ...]:
    """The columns that are free of an effect that its job has left open, or that ended with it."""
    if key["state"] == "COMMITTED":
        return ("phase", "due_at", "doubt", "probes", "called_at")
    return ("called_at",) if key["error"] and "before it was called again" in key["error"] else ()


def is_left(key: dict[str, Any]) -> bool:
    """Whether the turn of a key was trimmed: `keep_turns` is two, and a loop here has six."""
    return key["effect"] == "charge" and str(key["key"]) in {f"charge:{100 + n}" for n in range(TRIMMED)}


def is_free(books: Books, change: Change) -> bool:
    """Whether a change may stay unseen: of some columns that is so for some rows alone."""
    row = change.row
    if change.what == "rows swapped":
        if change.table == "messages" and {*change.columns} <= {"ledger", "arrived"}:
            return True
        unread = change.table == "messages" and "ledger" not in change.columns and is_unread(books, row)
        # Two signals of one job that change places have each the other's guid, which is free.
        named = change.table == "messages" and row["kind"] == "signal" and "job_id" not in change.columns
        return (
            (named and "kind" not in change.columns)
            or unread
            or all(is_free(books, change._replace(what=column)) for column in change.columns)
        )
    if change.table == "effect_keys" and (is_left(row) or change.what in left_free(row)):
        return True
    why = FREE.get((change.table, change.what))
    only = {
        UNREAD: lambda: is_unread(books, row),
        NEWEST: lambda: row["seq"] == books.newest(change.table),
    }
    return why is not None and only.get(why, lambda: True)()


def is_unread(books: Books, message: dict[str, Any]) -> bool:
    """Whether a signal was never taken, or by a wait that was dropped before it was answered."""
    return message["kind"] == "signal" and (not message["ledger"] or books.is_dropped(message))


def unseen(books: Books, changes: list[Change]) -> dict[tuple[str, str], str]:
    """What was changed and not found, by table and column."""
    return {(change.table, change.what): str(change) for change in changes if not books.found(change)}


@pytest.mark.slow
def test_every_change_is_found_that_is_not_named_as_free(books, url):
    """Each column of each table once on both stores; on a file, which is changed quickly, many more."""
    assert (
        books.db.tables() - {"tallystick_migrations"}
        == {
            *KEYS,
            *FREE_TABLES,
            "schedules",  # `test_tamper_settings.py`
        }
        - OF_FILES[books.kind]
    )
    changes = [change for table in KEYS for change in books.changes(table, all_rows=False)]
    bound = [change for change in changes if not is_free(books, change)]
    kept = random.Random(7).sample(bound, SAMPLED) if books.kind == "sqlite" else []
    once = {(change.table, change.what): change for change in bound}
    assert {table for table, _what in once} == set(KEYS)
    assert unseen(books, [*once.values(), *kept]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_no_column_is_named_as_free_that_is_not(books):
    """Of each one a change that is not found."""
    free: dict[tuple[str, str], list[Change]] = {}
    for table in KEYS:
        for change in books.changes(table, all_rows=table in ("pruned", "acts")):
            if (change.table, change.what) in FREE:
                free.setdefault((change.table, change.what), []).append(change)
    assert {place for place, changes in free.items() if not all(map(books.found, changes))} == set(FREE)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_change_of_every_row_is_found(books):
    changes = [change for table in KEYS for change in books.changes(table, all_rows=True)]
    bound = [change for change in changes if not is_free(books, change)]
    assert len(bound) > 8_000
    assert unseen(books, bound) == {}


def test_the_guide_has_the_list():
    assert free_table() in (ROOT / "docs" / "guides" / "verify.md").read_text("utf-8")
