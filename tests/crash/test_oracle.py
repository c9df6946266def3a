"""The oracle shares no code with the engine, and finds what is wrong with falsified books."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from tests.crash.fresh import HARNESS, python, trial
from tests.crash.sweep import books, oracle
from tests.crash.sweep.oracle import Finding, Wrong
from tests.crash.sweep.place import Place
from tests.crash.sweep.trial import wall_minus_boot_ms

LIMITED = "(SELECT job_id FROM jobs WHERE handler IN ('receipt', 'crawl'))"
ORDER = "(SELECT min(job_id) FROM jobs WHERE handler = 'order')"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a trial in which nobody died."""
    folder = tmp_path_factory.mktemp("finished")
    trial("Case()", folder)
    return folder


@pytest.fixture
def place(finished: Path, tmp_path: Path) -> Place:
    return Place(Path(shutil.copytree(finished, tmp_path / "copy")))


def judged(place: Place, *, finished: bool = True) -> list[Finding]:
    ahead = wall_minus_boot_ms(place)
    return oracle.judge(place, books.read(place), finished=finished, wall_minus_boot_ms=ahead)


def falsify(place: Place, *statements: str) -> None:
    """Change the books as no engine would: without triggers."""
    connection = apsw.Connection(str(place.database))
    for (name,) in list(connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_the_books_of_a_quiet_trial_are_right(place: Place):
    assert judged(place) == []
    assert judged(place, finished=False) == []
    assert {job.handler for job in books.read(place).jobs} >= {
        "order",
        "crawl",
        "moody",
        "refused",
        "receipt",
    }


@pytest.mark.parametrize(
    ("wrong", "words", "statement"),
    [
        (Wrong.LOST, "acknowledged", f"DELETE FROM jobs WHERE job_id = {ORDER}"),
        (
            Wrong.DUPLICATED,
            "happened 2 times",
            "INSERT INTO effects SELECT * FROM effects WHERE effect = 'ship'",
        ),
        (Wrong.LOST, "its effect is not there", "DELETE FROM effects WHERE effect = 'keep_page'"),
        (Wrong.BROKEN, "without its marker", "DELETE FROM steps WHERE name = 'reserve'"),
        (Wrong.LOST, "the transaction is there", "DELETE FROM jobs WHERE handler = 'receipt'"),
        (Wrong.BROKEN, "the transaction that submitted", "DELETE FROM effects WHERE effect = 'booked'"),
        (Wrong.BROKEN, "facts are numbered", f"DELETE FROM events WHERE n = 2 AND job_id = {ORDER}"),
        (
            Wrong.BROKEN,
            "the chain breaks at fact 2",
            f"UPDATE events SET at = at + 1 WHERE n = 2 AND job_id = {ORDER}",
        ),
        (
            Wrong.BROKEN,
            "the chain breaks",
            f"UPDATE steps SET result = '\"x\"' WHERE name = 'quote' AND job_id = {ORDER}",
        ),
        (
            Wrong.LOST,
            "no call returned",
            f"UPDATE steps SET result = '\"x\"' WHERE name = 'quote' AND job_id = {ORDER}",
        ),
        (Wrong.LOST, "the job returned", f"UPDATE jobs SET result = '\"x\"' WHERE job_id = {ORDER}"),
        (Wrong.LOST, "was given", "UPDATE effects SET token = 'x' WHERE effect = 'ship'"),
        (Wrong.BROKEN, "the digits", "UPDATE steps SET ledger = 1011000000001 WHERE name = 'quote'"),
        (Wrong.BROKEN, "digits", f"UPDATE jobs SET start_ledger = 11100000001 WHERE job_id = {ORDER}"),
        (Wrong.BROKEN, "semaphore", f"UPDATE jobs SET semaphore = 1 WHERE job_id = {ORDER}"),
        (
            Wrong.BROKEN,
            "committed attempts",
            f"UPDATE attempts SET status = 'IN_PROGRESS' WHERE job_id = {ORDER}",
        ),
        (Wrong.BROKEN, "live attempts", f"UPDATE attempts SET status = 'IN_PROGRESS' WHERE job_id = {ORDER}"),
        (Wrong.BROKEN, "after its lease", f"UPDATE attempts SET lease_expires_at = 1 WHERE job_id = {ORDER}"),
        (Wrong.BROKEN, "attempts", f"UPDATE attempts SET attempt = 7 WHERE job_id = {ORDER}"),
        (Wrong.BROKEN, "ends its chain", f"UPDATE jobs SET head_n = 1 WHERE job_id = {ORDER}"),
        (
            Wrong.STUCK,
            "still IN_PROGRESS",
            f"UPDATE jobs SET state = 'IN_PROGRESS', completed_at = NULL WHERE job_id = {ORDER}",
        ),
        (Wrong.LOST, "ended FAILED_FINAL", f"UPDATE jobs SET state = 'FAILED_FINAL' WHERE job_id = {ORDER}"),
        (
            Wrong.BROKEN,
            "jobs of bulk ran at once",
            f"UPDATE attempts SET finished_at = finished_at + 60000 WHERE job_id IN {LIMITED}",
        ),
        (Wrong.DUPLICATED, "belongs to another job", "UPDATE idempotency SET job_id = 'x'"),
        (Wrong.DUPLICATED, "jobs for one submission", 'UPDATE jobs SET payload = \'{"label":"x"}\''),
    ],
)
def test_falsified_books_are_found(place: Place, wrong: Wrong, words: str, statement: str):
    falsify(place, statement)
    found = judged(place)
    assert any(finding.wrong is wrong and words in finding.text for finding in found), found


def test_a_file_without_a_schema_is_only_missing_what_was_acknowledged(place: Place):
    for file in place.folder.glob("tally.db*"):
        file.unlink()
    assert {finding.wrong for finding in judged(place)} == {Wrong.LOST}


def test_looking_changes_no_byte(place: Place):
    before = {file.name: file.read_bytes() for file in place.folder.glob("tally.db*")}
    judged(place)
    assert {file.name: file.read_bytes() for file in place.folder.glob("tally.db*")} == before


def test_the_oracle_loads_nothing_of_the_package():
    script = f"import sys, {HARNESS}.oracle; print(*(m for m in sys.modules if m.startswith('tallystick')))"
    answer = python("-c", script)
    assert (answer.returncode, answer.stdout.split()) == (0, []), answer.stderr
