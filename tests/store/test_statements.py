"""Statements of both SQL stores: what they say alike is written once, and each uses what it declares."""

from __future__ import annotations

import re

import pytest

from tallystick.store.postgres.statements import DIALECT as POSTGRES
from tallystick.store.sql.statements import Dialect, find, parse
from tallystick.store.sqlite.statements import DIALECT as SQLITE
from tallystick.store.sqlite.statements import TABLES
from tests.store.sqlite_subject import SqliteSubject
from tests.tidy.tree import SRC, python_files

STORE = SRC / "store"
COMMON = {file.stem for file in (STORE / "sql" / "statements").glob("*.sql")}
OWN = {
    dialect: {file.stem for file in (STORE / name / "statements").glob("*.sql")}
    for dialect, name in ((SQLITE, "sqlite"), (POSTGRES, "postgres"))
}
FILES = sorted(STORE.glob("*/statements/*.sql"))


def name_of(value: object) -> str:
    return value.package.rpartition(".")[2] if isinstance(value, Dialect) else str(value)


@pytest.mark.parametrize("dialect", OWN, ids=name_of)
def test_a_statement_uses_every_parameter_that_it_declares_and_no_other(dialect: Dialect):
    sign = "?" if dialect is SQLITE else "$"
    for name in sorted(COMMON | OWN[dialect]):
        source = find(dialect, name)
        said = source.said(dialect)
        used = {int(number) for number in re.findall(rf"\{sign}(\d+)", said)}
        assert "@" not in said.replace("@>", ""), name
        # A database counts up to the last that is used.
        assert not source.takes or max(used) == len(source.takes), name
        assert ":" not in re.sub(r"::|'[^']*'", "", said), f"{name}: a name was not declared"


def test_a_statement_begins_with_its_name():
    assert not [file for file in FILES if not file.read_text("utf-8").startswith(f"-- {file.stem}: ")]


def test_what_both_stores_say_alike_is_written_once():
    assert not COMMON & (OWN[SQLITE] | OWN[POSTGRES]), "a statement of one store hides the common one"
    both = OWN[SQLITE] & OWN[POSTGRES]
    alike = [name for name in both if plain(find(SQLITE, name).text) == plain(find(POSTGRES, name).text)]
    assert not alike


def plain(text: str) -> str:
    return re.sub(r"[?$](\d+)(::\w+)?", r":\1", text)


def test_a_verb_has_one_name():
    """Where one store has a list of what the other does singly, the verb is the same."""
    singles, plurals = OWN[SQLITE] - OWN[POSTGRES], OWN[POSTGRES] - OWN[SQLITE]
    assert not {name for name in singles if f"{name}s" in plurals or name.removesuffix("s") in plurals}


@pytest.mark.parametrize("dialect", OWN, ids=name_of)
def test_every_statement_is_run(dialect: Dialect):
    code = "".join(path.read_text("utf-8") for path in python_files(STORE))
    built = ("prune_", "forget_sqlite_")
    assert not [
        name for name in COMMON | OWN[dialect] if f'"{name}"' not in code and not name.startswith(built)
    ]


def test_no_pattern_is_looked_for_in_sql_at_run_time():
    speaking = [
        *python_files(STORE / "sql"),
        *(path for path in python_files(STORE) if path.stem == "statements"),
    ]
    assert not [
        path
        for path in speaking
        if re.search(r"^(import re|from re)\b", path.read_text("utf-8"), re.MULTILINE)
    ]


def test_the_tables_are_those_of_a_file(subject: SqliteSubject):
    found = subject.by_hand.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'effects'"
    )
    assert {name for (name,) in found if not name.startswith("sqlite_")} == set(TABLES)


@pytest.mark.parametrize(
    ("dialect", "said"),
    [
        (
            SQLITE,
            "SELECT n FROM t WHERE a = ?1 OR b IN (SELECT wanted.value FROM json_each(?2) AS wanted)",
        ),
        (
            POSTGRES,
            "SELECT n FROM t WHERE a = $1::bigint OR b = ANY (ARRAY(SELECT jsonb_array_elements_text($2::text::jsonb)))",  # noqa: E501 (one text)
        ),
    ],
    ids=name_of,
)
def test_a_statement_is_said_in_the_words_of_its_database(dialect: Dialect, said: str):
    source = parse("-- t: it.\n-- takes: a int, b list\nSELECT n\n  FROM t\n WHERE a = :a OR b IN :b\n")
    assert source.said(dialect) == said


def test_rows_are_written_as_often_as_there_are():
    source = parse(
        "-- t: it.\n-- takes: a, b\n-- row: (:a, 'x:y', :b, :a)\nINSERT INTO t (@takes) VALUES @rows\n"
    )
    assert source.said(SQLITE, 2) == "INSERT INTO t (a, b) VALUES (?1, 'x:y', ?2, ?1), (?3, 'x:y', ?4, ?3)"


def test_a_name_that_was_not_declared_is_refused():
    with pytest.raises(KeyError, match="limt"):
        parse("-- takes: limit int\nSELECT 1 LIMIT :limt").said(SQLITE)


def test_the_suspects_are_told_apart_by_one_rule():
    """Both databases ask it of a row of jobs, with the budget of a job that names none as a parameter."""
    said = {
        dialect: find(dialect, name).said(dialect)
        for dialect, name in ((SQLITE, "claimable"), (POSTGRES, "claim_jobs"))
    }
    for dialect, text in said.items():
        rules = re.findall(r"count\(\*\) \+ 1 >= coalesce\((?:.*?), (\?5|\$14::bigint)\)", text)
        assert rules == (["?5"] if dialect is SQLITE else ["$14::bigint"] * 2)
    assert not [file for file in FILES if "'EXPIRED'" in file.read_text("utf-8")], "the rule is a part"
