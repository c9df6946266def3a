"""The oracle finds what is wrong with the falsified books of jobs that waited."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tallystick.clock import SystemClock
from tallystick.engine.audit import audit
from tallystick.store.sqlite.store import SqliteStore
from tests.crash.fresh import trial
from tests.crash.sweep import books
from tests.crash.sweep.obligations import ended_from_outside
from tests.crash.sweep.oracle import Wrong
from tests.crash.sweep.place import Place
from tests.crash.test_oracle import falsify, judged


def job(handler: str) -> str:
    return f"(SELECT min(job_id) FROM jobs WHERE handler = '{handler}')"


APPROVAL, FAMILY, TWINS, ROUNDS = map(job, ("approval", "family", "twins", "rounds"))
TURNS = f"name = 'again' AND job_id = {ROUNDS}"
PATIENT, STUBBORN = map(job, ("patient", "stubborn"))
FIRST_CHILD = f"job_id = {FAMILY} AND kind = 'child' AND occurrence = 1 AND ledger % 100000000 = 1"
CLOSING_CHILD = f"job_id = {FAMILY} AND kind = 'child' AND occurrence = 1 AND ledger / 100000000000 = 1"
LATE_CHILD = f"job_id = {FAMILY} AND kind = 'child' AND occurrence = 2 AND ledger = 0"
JOB_CLOSER = f"job_id = {APPROVAL} AND ledger / 100000000000 = 1"
FIRST_JOIN = f"job_id = {FAMILY} AND guid LIKE 'join:%' AND occurrence = 1"


LAST_ATTEMPT = f"(SELECT job_id, max(attempt) FROM attempts WHERE job_id = {STUBBORN})"


def doubled(which: str) -> str:
    """Return the statement that makes a second message of one."""
    columns = "job_id, dimension, name, occurrence, kind, payload, due_at, ledger, created_at, acked_at"
    return f"INSERT INTO messages (guid, {columns}) SELECT guid || 'x', {columns} FROM messages WHERE {which}"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a trial of jobs that wait, in which nobody died.

    A slow machine may cancel the patient job before it has come to its wait, send a signal before its wait
    has a timer, and end the stubborn job before it has done so itself, which is right too; to falsify that
    it must be there, so the trial is made again until it is.
    """
    for _ in range(10):
        folder = tmp_path_factory.mktemp("waited")
        trial("Case(kind=Kind.WAITING, jobs=WAITING)", folder)
        found = books.read(Place(folder))
        timers = {m.name for job in found.messages.values() for m in job if m.kind == "timer"}
        if {"never", "somebody"} <= timers and not any(_is_cut_short(job, found) for job in found.jobs):
            return folder
    pytest.fail("what is to be falsified did not come about, ten times in a row")


def _is_cut_short(job: books.JobBook, found: books.Books) -> bool:
    return job.handler == "stubborn" and ended_from_outside(job, found)


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory) -> Path:
    """The folder of a trial whose job waits for ever: it did not look for the signal that was there."""
    folder = tmp_path_factory.mktemp("waiting")
    trial("next(c.case for c in CONTROLS if c.case.mutant == 'suspend_without_looking')", folder)
    return folder


@pytest.fixture
def place(finished: Path, tmp_path: Path) -> Place:
    return Place(Path(shutil.copytree(finished, tmp_path / "copy")))


@pytest.fixture
def waiting(broken_off: Path, tmp_path: Path) -> Place:
    return Place(Path(shutil.copytree(broken_off, tmp_path / "copy")))


def test_the_books_of_jobs_that_waited_are_right(place: Place):
    assert judged(place) == []
    assert judged(place, finished=False) == []
    found = books.read(place)
    kinds = {message.kind for messages in found.messages.values() for message in messages}
    assert kinds == {"signal", "timer", "child", "resume"}
    assert {job.dimension for job in found.jobs} == {0, 2}
    assert {job.state for job in found.jobs} == {"SUCCEEDED", "FAILED_FINAL", "CANCELLED"}


def test_the_engines_own_check_of_the_books_agrees(place: Place):
    clock = SystemClock()
    store = SqliteStore(place.database, clock)
    done = audit(store)
    store.close()
    assert done.findings == []
    assert done.jobs == len(books.read(place).jobs)


@pytest.mark.parametrize(
    ("wrong", "words", "statement"),
    [
        (Wrong.BROKEN, "with semaphore 1", f"UPDATE jobs SET semaphore = 1 WHERE job_id = {FAMILY}"),
        (
            Wrong.BROKEN,
            "starts with 000011000000002",
            f"UPDATE jobs SET start_ledger = 11000000002 WHERE job_id = {APPROVAL}",
        ),
        (
            Wrong.BROKEN,
            "has the digits 001111100000001 instead of 001111100000002",
            f"UPDATE jobs SET root_ledger = root_ledger - 1 WHERE job_id = {PATIENT}",
        ),
        (
            Wrong.BROKEN,
            "whose turns were the entries {1: 3, 2: 2}",
            f"UPDATE messages SET ledger = ledger + 3 - 2 * dimension WHERE {TURNS}",
        ),
        (
            Wrong.BROKEN,
            "has the digits 001111000000002 instead of 001111100000002",
            f"UPDATE jobs SET root_ledger = root_ledger - 100000000 WHERE job_id = {PATIENT}",
        ),
        (
            Wrong.BROKEN,
            "with the closers [], last driven by ['cancel:",
            f"UPDATE messages SET ledger = ledger - 100100000000 WHERE guid = 'cancel:' || {PATIENT}",
        ),
        (
            Wrong.BROKEN,
            "last driven by ['start']",
            f"UPDATE attempts SET guid = 'start' WHERE job_id = {APPROVAL}",
        ),
        (
            Wrong.BROKEN,
            "was entry 1 of the occurrence None",
            f"UPDATE messages SET occurrence = NULL WHERE job_id = {APPROVAL} AND name = 'late'",
        ),
        (
            Wrong.BROKEN,
            "the wait late#1, SUCCEEDED, was answered by []",
            f"UPDATE messages SET occurrence = 2 WHERE job_id = {APPROVAL} AND name = 'late'",
        ),
        (
            Wrong.BROKEN,
            "has the digits 001111100000001 instead of 001111000000001",
            "UPDATE steps SET ledger = 1111100000001 WHERE name = 'late'",
        ),
        (
            Wrong.BROKEN,
            "the wait late#1, SUCCEEDED, has the digits 001110000000001",
            "UPDATE steps SET ledger = 1110000000001 WHERE name = 'late'",
        ),
        (
            Wrong.BROKEN,
            "the step wobble has the digits 001111000000001 after 1 failures",
            "UPDATE steps SET ledger = 1111000000001 WHERE name = 'wobble'",
        ),
        (
            Wrong.BROKEN,
            "the sleep sleep#1, SUCCEEDED, has the digits",
            "UPDATE steps SET ledger = 1111000000002 WHERE kind = 'sleep'",
        ),
        (
            Wrong.BROKEN,
            "the wait never#1, CANCELLED, has the digits",
            "UPDATE steps SET ledger = 1111000000001 WHERE name = 'never'",
        ),
        (
            Wrong.BROKEN,
            "the group gather#1, SUCCEEDED, after 3 of 3 children, has the digits 001111100000005",
            f"UPDATE steps SET ledger = ledger + 1 WHERE kind = 'group' AND job_id = {FAMILY}",
        ),
        (
            Wrong.BROKEN,
            "the group gather#1, SUCCEEDED, after 3 of 3 children, has the digits 001111000000004",
            f"UPDATE steps SET ledger = ledger - 100000000 WHERE kind = 'group' AND job_id = {FAMILY}",
        ),
        (
            Wrong.BROKEN,
            "the group gather#1 has semaphore 1",
            f"UPDATE steps SET semaphore = semaphore + 1 WHERE kind = 'group' AND job_id = {FAMILY}",
        ),
        (
            Wrong.BROKEN,
            "counts 0 failed children",
            f"UPDATE steps SET failed = 0 WHERE kind = 'group' AND job_id = {FAMILY}",
        ),
        (Wrong.BROKEN, "the signals taken were []", "UPDATE messages SET ledger = 0 WHERE name = 'late'"),
        (
            Wrong.BROKEN,
            "has the digits 000010000000001",
            f"UPDATE messages SET ledger = 10000000001 WHERE {JOB_CLOSER}",
        ),
        (
            Wrong.BROKEN,
            "its timer did not fire",
            "UPDATE messages SET ledger = 0 WHERE kind = 'timer' AND name = 'nobody'",
        ),
        (
            Wrong.BROKEN,
            "its timer fired",
            "UPDATE messages SET ledger = 11000000001 WHERE kind = 'timer' AND name = 'somebody'",
        ),
        (
            Wrong.BROKEN,
            "has 2 timers",
            doubled("kind = 'timer'"),
        ),
        (
            Wrong.BROKEN,
            "its timer is still set",
            "UPDATE messages SET acked_at = NULL WHERE kind = 'timer' AND name = 'somebody'",
        ),
        (
            Wrong.BROKEN,
            "after 3 of 3 children, has the entries [2, 2, 3, 4]",
            f"UPDATE messages SET ledger = ledger + 1 WHERE {FIRST_CHILD}",
        ),
        (
            Wrong.BROKEN,
            "the children of the group",
            f"UPDATE messages SET ledger = ledger + 100100000000 WHERE {FIRST_CHILD}",
        ),
        (
            Wrong.BROKEN,
            "the children of the group",
            f"UPDATE messages SET ledger = ledger - 100100000000 WHERE {CLOSING_CHILD}",
        ),
        (
            Wrong.BROKEN,
            "the children of the group",
            f"UPDATE messages SET ledger = ledger - 100000000 WHERE {CLOSING_CHILD}",
        ),
        (Wrong.BROKEN, "after 2 of 3 children", f"DELETE FROM messages WHERE {FIRST_CHILD}"),
        (Wrong.BROKEN, "did not count it", f"DELETE FROM messages WHERE {LATE_CHILD}"),
        (Wrong.BROKEN, "is not acknowledged", f"UPDATE messages SET acked_at = NULL WHERE {LATE_CHILD}"),
        (
            Wrong.BROKEN,
            "the children of the group",
            f"UPDATE messages SET ledger = 11000000003 WHERE {LATE_CHILD}",
        ),
        (
            Wrong.BROKEN,
            "was counted as CANCELLED",
            f"UPDATE messages SET payload = 'CANCELLED' WHERE {FIRST_CHILD}",
        ),
        (
            Wrong.BROKEN,
            "is none of its children",
            f"UPDATE messages SET guid = 'child:x' WHERE {FIRST_CHILD}",
        ),
        (Wrong.BROKEN, "is not acknowledged", f"UPDATE messages SET acked_at = NULL WHERE {FIRST_CHILD}"),
        (Wrong.BROKEN, "has 0 words for its parent", f"DELETE FROM messages WHERE {FIRST_JOIN}"),
        (
            Wrong.BROKEN,
            "has 2 words for its parent",
            doubled(FIRST_JOIN),
        ),
        (Wrong.BROKEN, "with the closers []", f"UPDATE messages SET ledger = 11000000001 WHERE {JOB_CLOSER}"),
        (
            Wrong.BROKEN,
            "with the closers [",
            f"UPDATE messages SET ledger = 111100000001 WHERE job_id = {APPROVAL} AND name = 'early'",
        ),
        (
            Wrong.BROKEN,
            "is not acknowledged and its job has ended",
            "UPDATE messages SET acked_at = NULL WHERE name = 'unread'",
        ),
        (
            Wrong.BROKEN,
            "is open in a job that has ended",
            "UPDATE steps SET state = 'IN_PROGRESS', completed_at = NULL WHERE name = 'never'",
        ),
        (
            Wrong.BROKEN,
            "was told to turn to [2]",
            f"DELETE FROM messages WHERE guid = 'again:' || {ROUNDS} || ':1'",
        ),
        (
            Wrong.DUPLICATED,
            "the effect note_turn@1 happened 2 times",
            "INSERT INTO effects SELECT * FROM effects WHERE effect = 'note_turn@1'",
        ),
        (
            Wrong.LOST,
            "note_turn@2 is marked as done",
            "DELETE FROM effects WHERE effect = 'note_turn@2'",
        ),
        (
            Wrong.DUPLICATED,
            "the effect do_chore happened 2 times",
            "INSERT INTO effects SELECT * FROM effects WHERE effect = 'do_chore'",
        ),
        (
            Wrong.LOST,
            "turn 2 was given x",
            "UPDATE effects SET token = 'x' WHERE effect = 'note_turn@1'",
        ),
        (Wrong.LOST, "instead of e l None s", f"UPDATE jobs SET result = '\"e\"' WHERE job_id = {APPROVAL}"),
        (Wrong.LOST, "approve was given x", "UPDATE effects SET token = 'x' WHERE effect = 'approve'"),
        (Wrong.LOST, "its groups were joined", f"UPDATE jobs SET result = '\"0\"' WHERE job_id = {FAMILY}"),
        (Wrong.LOST, "its groups were joined", f"UPDATE jobs SET result = '\"0\"' WHERE job_id = {TWINS}"),
        (Wrong.LOST, "the signal 1 was acknowledged", "DELETE FROM messages WHERE name = 'unread'"),
        (
            Wrong.DUPLICATED,
            "the signal unread",
            doubled("name = 'unread'"),
        ),
        (
            Wrong.LOST,
            "its cancellation was acknowledged",
            f"UPDATE jobs SET state = 'SUCCEEDED' WHERE job_id = {PATIENT}",
        ),
        (Wrong.LOST, "without its clean_up", "DELETE FROM effects WHERE effect = 'clean_up'"),
        (Wrong.BROKEN, "were answered by", "UPDATE steps SET result = '\"x\"' WHERE name = 'late'"),
        (
            Wrong.BROKEN,
            "the chain breaks",
            f"UPDATE steps SET completed_at = completed_at + 1 WHERE kind = 'group' AND job_id = {FAMILY}",
        ),
        (
            Wrong.BROKEN,
            "committed attempts",
            f"UPDATE attempts SET status = 'DONE', reason = NULL WHERE (job_id, attempt) = {LAST_ATTEMPT}",
        ),
    ],
)
def test_falsified_books_of_waits_are_found(place: Place, wrong: Wrong, words: str, statement: str):
    falsify(place, statement)
    found = judged(place)
    assert any(finding.wrong is wrong and words in finding.text for finding in found), found


def test_jobs_that_still_wait_are_stuck_and_otherwise_right(waiting: Place):
    assert judged(waiting, finished=False) == []
    assert {finding.wrong for finding in judged(waiting)} == {Wrong.STUCK}


@pytest.mark.parametrize(
    ("words", "statement"),
    [
        ("with semaphore 0 and 1 open", f"UPDATE jobs SET semaphore = 0 WHERE job_id = {APPROVAL}"),
        ("with semaphore 2 and 1 open", f"UPDATE jobs SET semaphore = 2 WHERE job_id = {APPROVAL}"),
        ("with the closers", f"UPDATE jobs SET start_ledger = 111100000001 WHERE job_id = {APPROVAL}"),
        (
            "the start start, acknowledged, has the digits",
            f"UPDATE jobs SET start_ledger = 1 WHERE job_id = {APPROVAL}",
        ),
        (
            "instead of 001111000000001",
            f"UPDATE jobs SET root_ledger = 1100000000001 WHERE job_id = {APPROVAL}",
        ),
        ("IN_PROGRESS, has the digits", "UPDATE steps SET ledger = 1111000000001 WHERE completed_at IS NULL"),
        (
            "not acknowledged, has the digits",
            "UPDATE messages SET ledger = 11000000001 WHERE kind = 'signal'",
        ),
    ],
)
def test_falsified_books_of_open_waits_are_found(waiting: Place, words: str, statement: str):
    falsify(waiting, statement)
    found = judged(waiting, finished=False)
    assert any(finding.wrong is Wrong.BROKEN and words in finding.text for finding in found), found
