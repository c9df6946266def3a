"""The digits of a group of 1,200 whose parent is killed in the middle of the spawn, on every store."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.app import digits_by_hand as expected
from tests.app.programs import crowd
from tests.patience import wait_until


class Books:
    """What the tables say of the group and of the words of its children, in the order of their arrival."""

    def __init__(self, app, job) -> None:
        self._app, self._job = app, job

    def _rows(self, query: str) -> list[tuple]:
        with self._app.connect() as db:
            return db.execute(query)

    def group(self) -> str:
        ((ledger,),) = self._rows(f"select ledger from steps where job_id = '{self._job.id}'")
        return f"{ledger:015d}"

    def counts(self) -> tuple[int, int]:
        """Return how many children there are, and how many of them have ended."""
        own = f"from jobs where parent_job_id = '{self._job.id}'"
        ((born, ended),) = self._rows(f"select count(*), count(completed_at) {own}")
        return born, ended

    def words(self) -> list[str]:
        own = f"where job_id = '{self._job.id}' and kind = 'child'"
        rows = self._rows(f"select ledger from messages {own} order by arrived, ledger % 100000000")
        return [f"{ledger:015d}" for (ledger,) in rows]

    def waiting(self) -> int:
        own = f"where job_id = '{self._job.id}' and kind = 'child'"
        ((count,),) = self._rows(f"select count(*) from messages {own} and acked_at is null")
        return count


@contextmanager
def worker(url: str, queue: str, *deadly: str):
    """Run a worker process of one queue; it ends by `kill -9`, by its own hand or by ours."""
    process = subprocess.Popen([sys.executable, "-m", crowd.__name__, url, queue, *deadly])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(120)
def test_a_group_of_1200_whose_parent_dies_and_whose_first_500_children_end_before_the_takeover(app, url):
    job = crowd.declare(app).submit()
    books = Books(app, job)
    with worker(url, crowd.PARENTS, "dies") as first:
        assert first.wait(60) == -signal.SIGKILL
    assert (books.group(), books.counts()) == (expected.CROWD[0], (500, 0))
    with worker(url, crowd.CHILDREN):
        wait_until(lambda: books.counts() == (500, 500))
    assert (books.group(), books.waiting()) == (expected.CROWD[0], 500)
    assert books.words() == [expected.CROWD_EARLY] * 500
    with worker(url, crowd.PARENTS):
        wait_until(lambda: job.history()[-1].name == "suspend")
    assert (books.group(), books.counts()) == (expected.CROWD[1], (1_200, 500))
    words = books.words()
    assert (len(words), books.waiting()) == (500, 0)
    assert {place: words[place - 1] for place in expected.CROWD_ENTERED} == expected.CROWD_ENTERED
    assert words == sorted(words), "they are entered in the order of their arrival, each once"
    assert len(set(words)) == 500
    with worker(url, crowd.CHILDREN):
        wait_until(lambda: books.counts() == (1_200, 1_200))
    assert books.group() == expected.CROWD[2]
    closers = [word for word in books.words() if word[3] == "1"]
    assert closers == [expected.CROWD_CLOSER]
    with worker(url, crowd.PARENTS):
        assert job.result("60s") == sum(range(1_200))
    assert books.group() == expected.CROWD[3]
