"""The committer's connection: statements that travel together are one write to the socket and one wait.

psycopg's own pipeline looks at the socket after every statement, which costs more than the statement
when a flush is small. Here they are queued, sent with one sync at the end, and read until its answer has
come. What a statement needs prepared is prepared on the way, once for each connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import errors, generators
from psycopg.abc import PipelineCommand, PQGen
from psycopg.abc import Transformer as Adapting
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from tallystick.store.postgres.connection import Answered, AnsweringConnection

# A text and the types of its parameters, for which it is prepared.
Statement = tuple[bytes, tuple[int, ...]]

_FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)


class Deferred:
    """The answer to a statement that is on its way; asking for it sends whatever is queued."""

    __slots__ = ("_adapting", "_wire", "result")

    def __init__(self, wire: Wire, adapting: Adapting) -> None:
        self._wire = wire
        self._adapting = adapting
        self.result: PGresult | None = None

    @property
    def rowcount(self) -> int:
        """Return how many rows the statement wrote or found."""
        count = self._arrived().command_tuples
        return -1 if count is None else count

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows of the statement."""
        result = self._arrived()
        if result.status != ExecStatus.TUPLES_OK:
            raise psycopg.ProgrammingError("this statement has no rows")
        self._adapting.set_pgresult(result)
        return self._adapting.load_rows(0, result.ntuples, tuple)

    def _arrived(self) -> PGresult:
        if self.result is None:
            self._wire.exchange()
        assert self.result is not None
        return self.result


class Wire:
    """One connection: statements one by one as psycopg has them, or many in one go."""

    def __init__(self, connection: AnsweringConnection, *, prepares: bool) -> None:
        """Take a connection; behind a pooler nothing that is prepared can be relied on."""
        self.connection = connection
        # After a ROLLBACK psycopg deallocates everything if it has prepared anything, and ours with it.
        connection.prepare_threshold = None
        self._prepares = prepares
        self._prepared: dict[Statement, bytes] = {}
        self._names = 0
        self._gathering = False
        self._commands: deque[PipelineCommand] = deque()
        self._expected: list[Deferred | Statement] = []

    def execute(self, query: bytes, params: Sequence[object] = ()) -> Answered:
        """Send one statement, or queue it when statements are being gathered."""
        if not self._gathering:
            return self.connection.execute(query, params)
        adapting: Adapting = Transformer(self.connection)
        values = adapting.dump_sequence(params, [PyFormat.AUTO] * len(params)) if params else None
        types, formats = (tuple(adapting.types or ()), adapting.formats) if params else ((), None)
        pgconn = self.connection.pgconn
        if self._prepares:
            name = self._name_of(query, types)
            self._commands.append(partial(pgconn.send_query_prepared, name, values, formats))
        else:
            self._commands.append(partial(pgconn.send_query_params, query, values, types or None, formats))
        deferred = Deferred(self, adapting)
        self._expected.append(deferred)
        return deferred

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        """Gather statements, which travel together when this ends; none does if it is left by an error."""
        self._gathering = True
        try:
            yield
            self.exchange()
        finally:
            self._gathering = False
            for waiting in self._expected:
                if not isinstance(waiting, Deferred):
                    del self._prepared[waiting]  # it was to be prepared on the way, and did not leave
            self._commands.clear()
            self._expected.clear()

    def exchange(self) -> None:
        """Send what is queued and read all of its answers; raise the first that is an error."""
        commands, self._commands = self._commands, deque()
        expected, self._expected = self._expected, []
        if not commands:
            return
        with self.connection.lock:
            answers = self.connection.wait(self._talk(commands))
        failure: psycopg.Error | None = None
        for waiting, (result, *_more) in zip(expected, answers[:-1], strict=True):
            if result.status in _FAILED and failure is None:
                failure = errors.error_from_result(result)
            if isinstance(waiting, Deferred):
                waiting.result = result
            elif result.status != ExecStatus.COMMAND_OK:
                del self._prepared[waiting]
        if failure is not None:
            raise failure

    def _talk(self, commands: deque[PipelineCommand]) -> PQGen[list[list[PGresult]]]:
        """Write everything and a sync, and read until the answer to the sync."""
        pgconn = self.connection.pgconn
        commands.append(pgconn.pipeline_sync)
        awaited = len(commands)
        pgconn.enter_pipeline_mode()
        answers: list[list[PGresult]] = yield from generators.pipeline_communicate(pgconn, commands)
        while len(answers) < awaited:
            answers.append((yield from generators.fetch_many(pgconn)))
        pgconn.exit_pipeline_mode()
        return answers

    def _name_of(self, query: bytes, types: tuple[int, ...]) -> bytes:
        """Return the name under which a statement is prepared, which may have to happen on the way."""
        statement = (query, types)
        name = self._prepared.get(statement)
        if name is None:
            self._names += 1
            name = self._prepared[statement] = b"tally_%d" % self._names
            self._commands.append(partial(self.connection.pgconn.send_prepare, name, query, types or None))
            self._expected.append(statement)
        return name
