"""`:name` on PostgreSQL: what is a placeholder, and what is left alone."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tallystick import Tally, Tx
from tallystick.store.postgres.user_transactions.placeholders import as_psycopg
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

# A statement, its parameters, and its one value: each is run on the server.
MEANT = [
    ("SELECT :a", {"a": 7}, 7),
    ("SELECT :a + :b * :a", {"a": 2, "b": 3}, 8),
    ("SELECT :a::text || '%'", {"a": 7}, "7%"),
    ("SELECT :a::int % 4", {"a": 7}, 3),
    ("SELECT 'x%:a' || :a::text", {"a": 7}, "x%:a7"),
    ("SELECT 'it''s :a' || :a::text", {"a": 7}, "it's :a7"),
    (r"SELECT E'it\'s :a' || :a::text", {"a": 7}, "it's :a7"),
    ('SELECT :a AS ":a"', {"a": 7}, 7),
    ("SELECT $$ :a % $$ || :a::text", {"a": 7}, " :a % 7"),
    ("SELECT $of$ $$ :a $$ $of$ || :a::text", {"a": 7}, " $$ :a $$ 7"),
    ("SELECT :a -- :b and 5%\n + 1", {"a": 7}, 8),
    ("SELECT :a /* :b /* 5% */ :c */ + 1", {"a": 7}, 8),
    ("SELECT (ARRAY[1, 2, 3])[1:2] = ARRAY[1, 2] AND :a", {"a": True}, True),
    ("SELECT n[lo:hi] FROM (SELECT ARRAY[1, 2] AS n, 1 AS lo, 1 AS hi) AS s WHERE :a", {"a": True}, [1]),
    ("SELECT '12:30'::time = :at::time", {"at": "12:30"}, True),
    ("SELECT 1 WHERE 'abc' LIKE 'a%' AND 1 = :a", {"a": 1}, 1),
    # psycopg's own, as before
    ("SELECT %(a)s || ':b %%'", {"a": "x"}, "x:b %"),
    ("SELECT %s || '%%'", ["x"], "x%"),
    ("SELECT 'x%'", (), "x%"),
    ("SELECT 'x%'", {}, "x%"),
]


@pytest.fixture(scope="module")
def app(server: Server) -> Iterator[Tally]:
    tally = Tally(server.url(schema=fresh_schema()))
    yield tally
    tally.close()


@pytest.mark.parametrize(("sql", "parameters", "value"), MEANT)
def test_the_server_sees_what_was_meant(app: Tally, sql: str, parameters, value) -> None:
    with app.transaction() as db:
        assert db.execute(sql, parameters) == [(value,)]


def test_rows_of_named_parameters_are_written_one_by_one(app: Tally) -> None:
    with app.transaction() as db:
        db.execute("CREATE TEMP TABLE pairs (a INTEGER, b TEXT) ON COMMIT DROP")
        db.executemany("INSERT INTO pairs VALUES (:a, :b)", [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
        assert db.execute("SELECT a, b FROM pairs ORDER BY a") == [(1, "x"), (2, "y")]


def test_a_name_without_a_value_is_an_error_that_names_it(app: Tally) -> None:
    with pytest.raises(psycopg.ProgrammingError, match="b"), app.transaction() as db:
        db.execute("SELECT :a, :b", {"a": 1})


@pytest.mark.parametrize(
    "open_end", ["SELECT :a, 'no end", "SELECT :a /* no end", 'SELECT :a "', "SELECT :a $x$ "]
)
def test_a_text_without_an_end_is_left_to_the_server(open_end: str) -> None:
    assert as_psycopg(open_end).startswith("SELECT %(a)s")


def test_the_same_transaction_function_runs_on_both_stores(server: Server, tmp_path) -> None:
    for url in (f"sqlite:///{tmp_path}/shop.db", server.url(schema=fresh_schema())):
        app = Tally(url)

        @app.tx
        def total(db: Tx, a: int, b: int) -> int:
            return int(db.execute("SELECT :a * 10 + :b % 7", {"a": a, "b": b})[0][0])

        @app.workflow
        def flow(a: int, b: int) -> int:
            return total(a, b)

        with app.worker():
            assert flow.submit(4, 9).result(30) == 42
        app.close()
