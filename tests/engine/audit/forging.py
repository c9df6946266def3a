"""Somebody who can write to the database and knows every rule: changes that leave all books consistent."""

from __future__ import annotations

import apsw
import psycopg

from tallystick.core.chain import event_hash, step_payload

_BOOKS = ("events", "steps", "messages", "attempts", "job_values", "jobs")


class Forger:
    """A connection without guards."""

    def __init__(self, url: str) -> None:
        self._sqlite = url.startswith("sqlite")
        if self._sqlite:
            self._db = apsw.Connection(url.removeprefix("sqlite:///"))
            self._db.execute("pragma ignore_check_constraints = 1; pragma synchronous = off")
            for (name,) in list(self._db.execute("select name from sqlite_master where type = 'trigger'")):
                self._db.execute(f"drop trigger {name}")
            return
        address, _, options = url.partition("?")
        schema = dict(part.split("=", 1) for part in options.split("&"))["schema"]
        self._db = psycopg.connect(address, autocommit=True)
        self._db.execute("set session_replication_role = replica")
        self._db.execute(f"set search_path = {schema}")

    def run(self, statement: str, parameters: tuple = ()) -> None:
        self._db.execute(statement if self._sqlite else statement.replace("?", "%s"), parameters)

    def rows(self, statement: str, parameters: tuple = ()) -> list[tuple]:
        return list(self._db.execute(statement if self._sqlite else statement.replace("?", "%s"), parameters))

    def remove(self, job_id: str) -> None:
        """Take a job away, and all that would miss it."""
        for table in _BOOKS:
            self.run(f"delete from {table} where job_id = ?", (job_id,))

    def rewrite(self, job_id: str) -> None:
        """Let a job have happened a millisecond earlier in its first fact, and hash everything anew."""
        facts = self.rows("select n, type, at, attempt, payload from events where job_id = ?", (job_id,))
        steps = self.rows(
            "select n, kind, completed_at, attempt, name, occurrence, state, ledger, result, error, notes "
            "from steps where job_id = ? and n is not null",
            (job_id,),
        )
        history = {n: ("events", kind, at, attempt, payload) for n, kind, at, attempt, payload in facts}
        for n, kind, at, attempt, *said in steps:
            history[n] = ("steps", kind, at, attempt, step_payload(*said))
        before = b""
        for n in sorted(history):
            table, kind, at, attempt, payload = history[n]
            if n == 1:
                at -= 1
                self.run("update events set at = ? where job_id = ? and n = 1", (at, job_id))
            made = event_hash(before, job_id, n, kind, at, attempt, payload)
            self.run(
                f"update {table} set prev_hash = ?, event_hash = ? where job_id = ? and n = ?",
                (before, made, job_id, n),
            )
            self.run("update jobs set head_hash = ? where job_id = ? and head_n = ?", (made, job_id, n))
            before = made

    def close(self) -> None:
        self._db.close()
