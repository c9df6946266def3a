"""A worker that may not claim says so, once a reason, and ends where it could never begin."""

from __future__ import annotations

import logging
import threading

import psycopg
import pytest

from tallystick import Tally
from tallystick.errors import StoreGone, StoreReadOnly
from tests.patience import wait_until


class Reader:
    """A Tally that may only read its store, until it is allowed to write."""

    def __init__(self, url: str) -> None:
        self.owner = Tally(url)
        self.owner.runtime()
        self._dsn = None
        if url.startswith("sqlite"):
            self.app = Tally(url)
            self._say("PRAGMA query_only = ON")
            return
        self._dsn, _, options = url.partition("?")
        self._schema = options.partition("schema=")[2].partition("&")[0]
        # A role is one of the whole server, whose databases all have this schema.
        self._role = f"reader_{self._dsn.rpartition('/')[2]}"
        self._say(
            f"CREATE ROLE {self._role} LOGIN; GRANT USAGE ON SCHEMA {self._schema} TO {self._role}; "
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {self._schema} TO {self._role}"
        )
        self.app = Tally(url.replace("tally@", f"{self._role}@"))

    def allow(self) -> None:
        """Let it write."""
        if self._dsn is None:
            self._say("PRAGMA query_only = OFF")
        else:
            self._say(f"GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA {self._schema} TO {self._role}")

    def _say(self, words: str) -> None:
        if self._dsn is None:
            self.app.runtime().store._writer.execute(words)  # type: ignore[attr-defined]  # SQLite's, as the address said
            return
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(words.encode())

    def close(self) -> None:
        self.app.close()
        self.owner.close()


@pytest.fixture
def reader(url):
    made = Reader(url)
    yield made
    made.close()


def looks_counted(app: Tally) -> list[type[BaseException] | None]:
    """Return what became of every flush of this Tally, as they come."""
    store, seen = app.runtime().store, []
    apply = store.apply

    def counted(batch):
        try:
            outcomes = apply(batch)
        except BaseException as error:
            seen.append(type(error))
            raise
        seen.append(None)
        return outcomes

    store.apply = counted
    return seen


def told(caplog) -> list[str]:
    return [record.message for record in caplog.records if record.action == "claim.failed"]


def test_it_is_logged_once_and_the_worker_goes_on_when_it_may(reader, caplog):
    def flow() -> int:
        return 1

    reader.app.workflow(flow)
    job = reader.owner.workflow(flow).submit()
    looks = looks_counted(reader.app)
    with caplog.at_level(logging.WARNING, "tallystick"), reader.app.worker():
        wait_until(lambda: looks.count(StoreReadOnly) >= 3, "three looks")
        assert len(told(caplog)) == 1
        assert told(caplog)[0].startswith("worker: no job can be claimed: ")
        reader.allow()
        assert job.result(30) == 1


def test_work_ends_with_the_error_when_its_first_look_fails_for_good(reader):
    @reader.app.workflow
    def flow() -> int:
        return 1

    with pytest.raises(StoreReadOnly):
        reader.app.work()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_store_that_is_away_for_a_while_is_waited_for(app: Tally, tmp_path, caplog):
    @app.workflow
    def flow() -> int:
        return 1

    job = flow.submit()
    looks, until = looks_counted(app), threading.Event()
    here, away = tmp_path / "shop.db", tmp_path / "away.db"
    here.rename(away)
    working = threading.Thread(target=app.work, kwargs={"until": until})
    working.start()
    try:
        wait_until(lambda: looks.count(StoreGone) >= 2, "two looks")
        away.rename(here)
        assert app.job(job.id).result(30) == 1
    finally:
        until.set()
        working.join()
    assert len(told(caplog)) == 1
