"""What every test can rely on: no setting leaks in from the shell, and a busy machine fails no property."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from tallystick.testing.azurite_server import Azurite
from tests.azure.emulator import fresh_prefix, the_azurite
from tests.postgres.server import Server, shared_server

for name in ("TALLY_URL", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
    os.environ.pop(name, None)

# Started in the background of a script, or with `nohup` there, this process ignores Ctrl-C, and so would any
# program that a test starts and interrupts. A signal that is handled is not inherited: what we start gets it
# as it is in a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, lambda _number, _frame: None)

# An example has no deadline of its own; pytest-timeout ends what hangs.
settings.register_profile("tallystick", deadline=None, print_blob=True)
settings.load_profile("tallystick")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Leave out doctests of tests: they have none, and looking takes as long as finding the tests."""
    found = yield
    return [each for each in found if not isinstance(each, DoctestModule)]


SHARE = 3
"""With `--share` one of so many tests that have run on a file runs on a server too; the others are long."""

WHOLE = (
    "tests/app/books/",
    "tests/app/faults/",
    "tests/engine/test_moved_clocks.py",
    "tests/engine/test_nothing_waits_for_ever.py",
    "tests/engine/test_refused_writes.py",
    "tests/engine/test_row_budget.py",
    "tests/engine/test_row_budget_of_waits.py",
    "tests/worker/test_reclaiming.py",
    "tests/worker/test_store_away.py",
    "tests/worker/test_unreadable_rows.py",
)
"""Tests that run whole on each store: digits, faults, and what a database refuses are not shared out."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what is slow or needs a server")
    parser.addoption(
        "--share", action="store_true", help="of tests that run on two stores, a share on the server"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("share"):
        for item in items:
            if _runs_on_a_file_too(item) and crc32(item.nodeid.encode()) % SHARE:
                item.add_marker(pytest.mark.long)
    if config.getoption("quick"):
        left_out = [item for item in items if _takes_long(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    items[:] = _slow_ones_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _slow_ones_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests so that none of the workers has a slow one left when the others have nothing to do.

    With `--dist worksteal` each begins with as many of the list as any other. Tests of one file stay
    together: they share what is made for the file.
    """
    slow = [item for item in items if item.get_closest_marker("slow") or item.get_closest_marker("timeout")]
    known = set(slow)
    quick = [item for item in items if item not in known]
    shares = (
        part
        for worker in range(workers)
        for part in (_share(slow, worker, workers), _share(quick, worker, workers))
    )
    return [item for share in shares for item in share]


def _share(items: list[pytest.Item], worker: int, workers: int) -> list[pytest.Item]:
    return items[len(items) * worker // workers : len(items) * (worker + 1) // workers]


def _runs_on_a_file_too(item: pytest.Item) -> bool:
    """Tell whether this is the second run of a test, on PostgreSQL, and the stores are not its subject.

    What a store promises is in the conformance suite, which runs whole on each. A test that chooses its
    stores by itself is about them.
    """
    if item.nodeid.startswith(WHOLE):
        return False
    call = getattr(item, "callspec", None)
    chosen = {name for mark in item.iter_markers("parametrize") for name in str(mark.args[0]).split(",")}
    return call is not None and call.params.get("url") == "postgres" and "url" not in chosen


def _takes_long(item: pytest.Item) -> bool:
    """Tell whether a test is marked as slow, or needs a server."""
    call = getattr(item, "callspec", None)
    parameters = call.params.values() if call else ()
    needed = getattr(item, "fixturenames", ())
    return (
        item.get_closest_marker("slow") is not None
        or not {"server", "azurite"}.isdisjoint(needed)
        or "postgres" in parameters
    )


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Server:
    """One real PostgreSQL for the whole run, started by whoever needs it first."""
    base = tmp_path_factory.getbasetemp()
    return shared_server(base if worker_id == "master" else base.parent)


@pytest.fixture
def azure_url(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> str:
    """An address without tables, and what a program needs in its environment to open it."""
    monkeypatch.setenv("TALLYSTICK_AZURE_CONNECTION_STRING", azurite.connection())
    monkeypatch.setenv("TALLYSTICK_CALLBACK_KEYS", "k1:" + "s" * 32)
    return azurite.url(fresh_prefix())


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Azurite:
    """One real emulator of Azure Tables for the whole run, started by whoever needs it first."""
    base = tmp_path_factory.getbasetemp()
    return the_azurite(base if worker_id == "master" else base.parent)


@pytest.fixture
def store_url(
    store: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Return the address of an empty store of the kind `store`, with secrets for reports."""
    if store == "sqlite":
        yield f"sqlite:///{tmp_path / 'books.db'}"
        return
    from tests.postgres.subject import PostgresSubject  # most runs need no driver

    monkeypatch.setenv("TALLYSTICK_CALLBACK_KEYS", "k1:" + "s" * 32)
    subject = PostgresSubject(request.getfixturevalue("server"))
    yield subject.url
    subject.close()
