"""Addresses: whatever libpq takes is taken, nothing that could be a secret is shown, and texts stay texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from tallystick import Tally
from tallystick.clock import SystemClock
from tallystick.errors import BadInput, StoreError, StoreMissing
from tallystick.store.opening import open_store
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.store import PostgresStore
from tallystick.testing.conformance.drafts import claim, claimed, done, finish, step, submission
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject, fresh_schema

CLOCK = SystemClock()
TEXT = "½ 日本 𝄞"


@pytest.fixture
def database(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database in the encoding that the test names."""
    name = f"db_{fresh_schema()}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        query = "CREATE DATABASE {} ENCODING {} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        connection.execute(sql.SQL(query).format(sql.Identifier(name), sql.Literal(request.param)))
        yield name
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.mark.parametrize(
    "query", ["schema=Shop", "schema=a%3Bdrop", "schema=", "pooler=session", "answer=soon", "nonsense=1"]
)
def test_an_address_that_cannot_be_meant_is_refused(server: Server, query: str) -> None:
    with pytest.raises(BadInput):
        PostgresStore(f"postgresql://127.0.0.1:{server.port}/postgres?{query}", CLOCK)


def test_an_option_that_nobody_knows_is_named() -> None:
    with pytest.raises(BadInput, match="nonsense"):
        parse_address("postgresql://host/db?schema=a&nonsense=1")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:///postgres?host={folder}&port={port}&user=tally",
        "postgresql://tally@{quoted}:{port}/postgres",
        "postgresql://?host={folder}&port={port}&user=tally&dbname=postgres",
        "postgres://tally@127.0.0.1:{port}/postgres?",
        "postgresql://tally@/postgres?host=127.0.0.1&port={port}",
    ],
)
def test_an_address_means_what_it_means_to_libpq(server: Server, address: str) -> None:
    url = address.format(folder=server.folder, quoted=quote(server.folder, safe=""), port=server.port)
    mark = "&" if "?" in url else "?"
    store = open_store(f"{url}{mark}schema={fresh_schema()}", CLOCK, create=True)
    done(store, submission(CLOCK))
    assert store.counts() == {"QUEUED": 1}
    store.close()


def test_a_host_may_come_from_the_environment_or_a_service(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    services = tmp_path / "services"
    services.write_text(f"[shop]\nhost={server.folder}\nport={server.port}\nuser=tally\ndbname=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    store = PostgresStore(f"postgresql://?service=shop&schema={fresh_schema()}", CLOCK)
    assert store.url.startswith("postgresql:///?service=shop")
    store.close()
    for name, value in (("PGHOST", server.folder), ("PGPORT", str(server.port)), ("PGUSER", "tally")):
        monkeypatch.setenv(name, value)
    PostgresStore(f"postgresql:///postgres?schema={fresh_schema()}", CLOCK).close()


SECRETS = ["word", "w#rd", "w?rd", "w[rd", "w]rd", "w%23rd", "w:rd", "w&rd=1", "w%zzrd", "w rd"]


@pytest.mark.parametrize("secret", [*SECRETS, "w/rd", "w@rd", "1/2@rd", "?a=w/rd", "w/rd?x", "/w?a=rd"])
@pytest.mark.parametrize("query", ["", "?schema=Wrong", "?sslpassword={secret}&password={secret}"])
def test_no_password_is_shown(server: Server, secret: str, query: str) -> None:
    """Neither in the address of a store nor in an error, whatever is in it and whether it can be read."""
    place = f"127.0.0.1:{server.port}/nothing_here"
    with pytest.raises((BadInput, StoreError)) as refused:
        open_store(f"postgresql://tally:{secret}@{place}{query.format(secret=secret)}", CLOCK, create=True)
    shown = repr((str(refused.value), refused.value.fields))
    assert "rd" not in shown.replace("password", ""), shown


def test_no_password_of_another_database_is_shown() -> None:
    with pytest.raises(BadInput, match="mysql") as refused:
        open_store("mysql://tally:secret@host/db", CLOCK, create=True)
    assert "secret" not in repr((str(refused.value), refused.value.fields))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:secret@host:5433/shop?sslmode=require", "postgresql://me@host:5433/shop"),
        ("postgresql://a,b:2/shop?schema=books", "postgresql://a,b:2/shop?schema=books"),
        ("postgresql://[::1]:7/shop", "postgresql://[::1]:7/shop"),
        ("postgresql:///shop?host=/run/pg", "postgresql://%2Frun%2Fpg/shop"),
        ("postgresql:///shop", "postgresql:///shop"),
    ],
)
def test_an_address_is_shown_as_who_where_and_what(address: str, shown: str) -> None:
    assert parse_address(address).url == shown


def test_the_address_of_a_store_shows_no_password(subject: PostgresSubject) -> None:
    url = subject.url.replace("tally@", "tally:secret@") + "&password=secret"
    store = PostgresStore(url, CLOCK)
    assert "secret" not in store.url
    store.close()


def test_a_schema_of_any_length_that_is_accepted_can_be_used(server: Server) -> None:
    name = f"{fresh_schema()}_".ljust(52, "s")
    app = Tally(server.url(schema=name))

    @app.workflow
    def flow(n: int) -> int:
        return n

    with app.worker():
        assert flow.submit(1).result(20) == 1
    app.close()
    with pytest.raises(BadInput, match="52"):
        parse_address(server.url(schema=f"{name}s"))


def test_a_database_that_is_not_there_is_missing_and_to_be_created(server: Server) -> None:
    url = server.url().replace("/postgres?", "/nothing_here?")
    for create in (True, False):
        with pytest.raises(StoreMissing, match="create it first"):
            open_store(url, CLOCK, create=create)


def texts_of_a_job(url: str) -> set[str]:
    """Let a job with texts of any script live and end; return all of its texts, and one that was read."""
    store = PostgresStore(url, CLOCK)
    done(store, submission(CLOCK, key=TEXT, payload=f'"{TEXT}"'))
    (held,) = claimed(store, claim())
    done(store, step(held, CLOCK), finish(held, CLOCK, result=f'"{TEXT}"'))
    row = store.job(held.fence.job_id)
    assert row is not None
    with store.connect() as db:
        ((read,),) = db.execute("SELECT %s::text", [TEXT])
    store.close()
    return {row.payload, str(row.result), f'"{read}"'}


@pytest.mark.parametrize("database", ["SQL_ASCII", "UTF8"], indirect=True)
def test_texts_are_texts_whatever_encoding_a_client_is_told_to_use(
    server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.url().replace("/postgres?", f"/{database}?")
    assert texts_of_a_job(f"{url}schema=a") == {f'"{TEXT}"'}
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    assert texts_of_a_job(f"{url}schema=b") == {f'"{TEXT}"'}
    assert texts_of_a_job(f"{url}schema=c&client_encoding=latin1") == {f'"{TEXT}"'}


@pytest.mark.parametrize("database", ["LATIN1"], indirect=True)
def test_a_database_that_cannot_hold_every_text_is_refused_when_it_is_opened(
    server: Server, database: str
) -> None:
    with pytest.raises(StoreError, match=r"LATIN1.*UTF8"):
        PostgresStore(server.url().replace("/postgres?", f"/{database}?"), CLOCK)


def test_a_users_connection_that_gives_bytes_for_texts_is_refused(subject: PostgresSubject) -> None:
    with psycopg.connect(subject.dsn, client_encoding="SQL_ASCII") as connection:
        connection.execute("SELECT 1")
        with pytest.raises(BadInput, match="client_encoding"):
            subject.store.join(connection)
