"""A newer Tallystick brings the schema up to date under a process that runs: that process writes no more."""

from __future__ import annotations

import threading
from contextlib import closing

import apsw
import psycopg
import pytest

from tallystick import Tally, Tx
from tallystick.errors import StoreTooNew
from tallystick.store.api import Fence, RenewLeases
from tests.postgres.databases import SCHEMA

NEWER = 9_999


class Deploy:
    """The schema of a newer version, which comes and goes."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._before = 0

    def begin(self) -> None:
        if self._url.startswith("sqlite"):
            with closing(apsw.Connection(self._url.removeprefix("sqlite:///"))) as connection:
                self._before = connection.pragma("user_version")
                connection.pragma("user_version", NEWER)
        else:
            self._say(f"INSERT INTO {SCHEMA}.tallystick_migrations (version, name) VALUES ({NEWER}, 'later')")

    def undo(self) -> None:
        """Let this version work again, to see what is left."""
        if self._url.startswith("sqlite"):
            with closing(apsw.Connection(self._url.removeprefix("sqlite:///"))) as connection:
                connection.pragma("user_version", self._before)
        else:
            self._say(f"DELETE FROM {SCHEMA}.tallystick_migrations WHERE version = {NEWER}")

    def _say(self, words: str) -> None:
        with psycopg.connect(self._url.partition("?")[0], autocommit=True) as connection:
            connection.execute(words.encode())


class Program:
    """A workflow whose step waits for the test, and what it has done."""

    def __init__(self, url: str) -> None:
        self.app = Tally(url)
        self.called = 0
        self.begun, self.may_end = threading.Event(), threading.Event()

        @self.app.step
        def work() -> int:
            self.called += 1
            self.begun.set()
            self.may_end.wait(30)
            return self.called

        @self.app.workflow
        def job() -> int:
            return work()

        self.job = job


@pytest.fixture
def deploy(url):
    return Deploy(url)


@pytest.fixture
def program(url):
    made = Program(url)
    yield made
    made.app.close()


def test_nothing_is_submitted_to_a_newer_schema(program, deploy):
    program.job.submit()
    deploy.begin()
    with pytest.raises(StoreTooNew, match=str(NEWER)):
        program.job.submit()
    with pytest.raises(StoreTooNew), program.app.transaction() as tx:
        program.job.opts(within=tx).submit()
    deploy.undo()
    assert len(list(program.app.jobs())) == 1


def test_a_worker_ends_and_what_its_steps_return_is_done_again(program, deploy, url):
    job = program.job.submit()
    worked: list[BaseException] = []

    def work() -> None:
        try:
            program.app.work(lease="1s", grace="1s")
        except StoreTooNew as error:
            worked.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    assert program.begun.wait(30)
    deploy.begin()
    program.may_end.set()
    worker.join(60)
    assert [str(NEWER) in str(error) for error in worked] == [True]
    program.app.close()

    deploy.undo()
    later = Program(url)
    later.may_end.set()
    with closing(later.app), later.app.worker(lease="1s"):
        assert later.app.job(job.id).result(timeout=60) == 1
    assert (program.called, later.called) == (1, 1)


def test_a_process_that_may_write_no_more_does_not_keep_its_leases(program, deploy):
    """Else the jobs that it cannot end would be nobody's as long as it runs."""
    program.job.submit()
    with program.app.worker(grace="1s"):
        assert program.begun.wait(30)
        store, renewal = program.app.runtime().store, RenewLeases((Fence("job", 1, "lease"),), 1_000)
        assert store.apply([(renewal,)]) == [set()]
        deploy.begin()
        with pytest.raises(StoreTooNew):
            store.apply([(renewal,)])
        program.may_end.set()


def test_the_function_of_a_tx_is_not_called_on_a_newer_schema(url, deploy):
    app, called = Tally(url), threading.Event()
    begun, may_go_on, left = threading.Event(), threading.Event(), threading.Event()

    @app.tx
    def write(db: Tx) -> None:
        called.set()

    @app.workflow
    def job() -> None:
        begun.set()
        may_go_on.wait(30)
        try:
            write()
        finally:
            left.set()

    with closing(app):
        submitted = job.submit()
        with app.worker(lease="1s", grace="1s"):
            assert begun.wait(30)
            deploy.begin()
            may_go_on.set()
            assert left.wait(30)
        assert not called.is_set()
        deploy.undo()
        assert app.job(submitted.id).state() == "IN_PROGRESS"
