"""The oracle finds what is wrong with the falsified books of jobs that were forked and retried."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tallystick.clock import SystemClock
from tallystick.engine.audit import audit
from tallystick.store.sqlite.store import SqliteStore
from tests.crash.fresh import trial
from tests.crash.sweep.oracle import Wrong
from tests.crash.sweep.place import Place
from tests.crash.test_oracle import falsify, judged

RETRY = "(SELECT retried_as FROM jobs WHERE retried_as IS NOT NULL)"
RETRIED = "(SELECT job_id FROM jobs WHERE retried_as IS NOT NULL)"
FORK = "(SELECT job_id FROM jobs WHERE handler = 'draft' AND retry_of IS NOT NULL)"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("forked")
    trial("Case(kind=Kind.WAITING, jobs=('nap', 'brittle', 'draft'))", folder)
    return folder


@pytest.fixture
def place(finished: Path, tmp_path: Path) -> Place:
    return Place(Path(shutil.copytree(finished, tmp_path / "copy")))


def test_the_books_of_forks_are_right_and_the_engines_own_check_agrees(place: Place):
    assert judged(place) == []
    store = SqliteStore(place.database, SystemClock())
    assert not audit(store).findings
    assert store.counts() == {"SUCCEEDED": 4, "FAILED_FINAL": 1}
    store.close()


@pytest.mark.parametrize(
    ("wrong", "words", "statement"),
    [
        (
            Wrong.BROKEN,
            "is like no record of another job",
            f"UPDATE steps SET result = '\"x\"' WHERE job_id = {FORK} AND kind = 'wait'",
        ),
        (
            Wrong.BROKEN,
            "is like no record of another job",
            f"UPDATE steps SET origin_job_id = 'nobody' WHERE job_id = {FORK} AND kind = 'wait'",
        ),
        (
            Wrong.BROKEN,
            "the chain breaks",
            f"UPDATE steps SET result = '\"x\"' WHERE job_id = {FORK} AND n = 3",
        ),
        (Wrong.BROKEN, "does not know of it", f"UPDATE jobs SET retry_of = NULL WHERE job_id = {RETRY}"),
        (
            Wrong.DUPLICATED,
            "was retried 2 times",
            f"UPDATE jobs SET handler = 'brittle', retry_of = {RETRIED} WHERE job_id = {FORK}",
        ),
        (
            Wrong.DUPLICATED,
            "belongs to another job",
            f"UPDATE idempotency SET job_id = {RETRIED}",
        ),
        (
            Wrong.LOST,
            "its fork was acknowledged",
            f'UPDATE jobs SET retry_of = NULL, payload = \'{{"label":"x"}}\' WHERE job_id = {FORK}',
        ),
        (
            Wrong.LOST,
            "ended without its effect mend",
            "DELETE FROM effects WHERE effect = 'mend'",
        ),
        (
            Wrong.DUPLICATED,
            "the effect brace happened 2 times",
            "INSERT INTO effects SELECT * FROM effects WHERE effect = 'brace'",
        ),
        (
            Wrong.STUCK,
            "hold PAUSED",
            "UPDATE jobs SET hold = 'PAUSED', state = 'QUEUED', completed_at = NULL WHERE handler = 'nap'",
        ),
    ],
)
def test_falsified_books_of_forks_are_found(place: Place, wrong: Wrong, words: str, statement: str):
    falsify(place, statement)
    assert [text for found, text in judged(place) if found is wrong and words in text]
