"""What ten workers without work cost a server: statements a second, and transactions that are open."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg

from bench.on_postgres.draining import say_go, start, stop, told
from bench.on_postgres.server import counts_statements, database
from bench.on_postgres.sides import Member
from tallystick.testing.postgres_server import Server

WORKERS = 10
SETTLE_SECONDS = 3


def idle_workers(server: Server, member: Member, *, seconds: float) -> dict[str, float]:
    """Start workers on an empty queue and return what they do once they have settled."""
    exact = counts_statements(Path(server.binaries))
    with database(server) as dsn:
        order = {"jobs": 0, "steps": 1, "in_flight": 64, "dsn": dsn, "case": "work"}
        workers = []
        try:
            workers += [start(member, order) for _ in range(WORKERS)]
            for worker in workers:
                told(worker, member)
            for worker in workers:
                say_go(worker)
            time.sleep(SETTLE_SECONDS)
            with psycopg.connect(server.dsn, autocommit=True) as watching:
                return watch(watching, dsn.rpartition("/")[2], seconds, exact=exact)
        finally:
            for worker in workers:
                stop(worker)


def watch(connection: psycopg.Connection, name: str, seconds: float, *, exact: bool) -> dict[str, float]:
    """Count over some seconds; without pg_stat_statements transactions are counted instead of statements."""
    if exact:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    before = counted(connection, name, exact=exact)
    begun = time.perf_counter()
    longest = open_at_once = 0.0
    while (passed := time.perf_counter() - begun) < seconds:
        ((number, oldest),) = connection.execute(
            "SELECT count(*), coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)"
            "  FROM pg_stat_activity WHERE datname = %s AND xact_start IS NOT NULL AND state <> 'active'",
            [name],
        ).fetchall()
        open_at_once, longest = max(open_at_once, number), max(longest, float(oldest))
        time.sleep(0.05)
    statements = counted(connection, name, exact=exact) - before
    ((connections,),) = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [name]
    ).fetchall()
    return {
        "statements_per_second": statements / passed,
        "open_transactions": open_at_once,
        "longest_seconds": longest,
        "connections": connections,
    }


def counted(connection: psycopg.Connection, name: str, *, exact: bool) -> int:
    if exact:
        question = (
            "SELECT coalesce(sum(s.calls), 0) FROM pg_stat_statements AS s"
            "  JOIN pg_database AS d ON d.oid = s.dbid WHERE d.datname = %s"
        )
    else:
        question = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s"
    ((number,),) = connection.execute(question, [name]).fetchall()
    return int(number)
