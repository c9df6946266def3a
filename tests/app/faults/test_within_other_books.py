"""`within=` takes a transaction on the books of its own Tally, and refuses every other one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.errors import BadInput
from tallystick.testing.stepping import open_store
from tests.postgres.subject import fresh_schema


@pytest.fixture
def flow(app: Tally):
    @app.workflow
    def flow(n: int = 0) -> int:
        return n

    return flow


@pytest.fixture
def elsewhere(url: str, tmp_path: Path, request):
    """The address of other books, of the same kind."""
    if url.startswith("sqlite"):
        return f"sqlite:///{tmp_path}/other.db"
    return request.getfixturevalue("server").url(schema=fresh_schema())


@pytest.mark.parametrize("submit", [lambda flow: flow.submit(), lambda flow: flow.submit_many([(1,), (2,)])])
def test_a_transaction_on_other_books_is_refused_and_goes_on(app: Tally, flow, elsewhere: str, submit):
    other = Tally(elsewhere)

    @other.workflow(name="flow")
    def theirs(n: int = 0) -> int:
        return n

    with other.transaction() as db:
        with pytest.raises(BadInput, match="this Tally keeps its"):
            submit(flow.opts(within=db))
        theirs.opts(within=db).submit()
    assert len(other.jobs()) == 1
    assert app.jobs() == []
    other.close()


def test_a_transaction_of_another_tally_on_the_same_books_is_taken(
    app: Tally, flow, url: str, tmp_path: Path
):
    same = url
    if url.startswith("sqlite"):
        open_store(app)
        (tmp_path / "way").symlink_to(tmp_path, target_is_directory=True)
        same = f"sqlite:///{tmp_path}/way/shop.db"
    other = Tally(same)
    with other.transaction() as db:
        job = flow.opts(within=db).submit(7)
    other.close()
    with app.worker():
        assert job.result(30) == 7


def test_a_transaction_of_another_kind_of_store_is_refused(tmp_path: Path, server):
    one, two = Tally(f"sqlite:///{tmp_path}/shop.db"), Tally(server.url(schema=fresh_schema()))
    for app, other in ((one, two), (two, one)):

        @app.workflow
        def flow() -> int:
            return 1

        with other.transaction() as db, pytest.raises(BadInput, match="within="):
            flow.opts(within=db).submit()
    one.close()
    two.close()
