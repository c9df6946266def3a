"""The committer's connection: statements that travel together are one write to the socket and one wait.

psycopg's own pipeline looks at the socket before and after every statement, which costs more than the
statement when a flush is small. Here they are queued, given to libpq one after the other with a sync at the
end, and read until its answer has come. A large one leaves at once. What a statement needs prepared is
prepared on the way, once for each connection. The plain twin sends each statement by itself.

Columns travel as arrays: one text for each, made without looking at every value. A list of rows sent as
JSON is read by the server value by value and row by row; the same columns as arrays cost it half of that. A
column that has nothing in it is an empty array: `unnest` fills it with nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait

from tallystick.store.postgres.server.connection import AnsweringConnection, ServerAnswer
from tallystick.store.postgres.statements import name_of
from tallystick.tuning import is_plain

# Values, their types (none: the statement says), their formats (none: text).
Adapted = tuple[Sequence[Any] | None, tuple[int, ...], Sequence[Any] | None]

# A text and the types of its parameters, for which it is prepared.
Statement = tuple[bytes, tuple[int, ...]]

_FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)
_SYNCED = ExecStatus.PIPELINE_SYNC

# What is this large is worth a write to the socket of its own.
_LARGE_BYTES = 32_768


class Deferred:
    """The answer to a statement that is on its way; asking for it sends whatever is queued."""

    __slots__ = ("_wire", "query", "result")

    def __init__(self, wire: Wire, query: bytes) -> None:
        self._wire = wire
        self.query = query
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
        adapting = Transformer(self._wire.connection)
        adapting.set_pgresult(result)
        return adapting.load_rows(0, result.ntuples, tuple)

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
        self._plain = connection.info.encoding == "utf-8"
        self._prepared: dict[Statement, bytes] = {}
        self._names = 0
        self._gathering = False
        self._commands: list[Callable[[], None]] = []
        self._expected: list[Deferred | Statement] = []
        self._underway = False

    def execute(self, query: bytes, params: Sequence[object] = ()) -> ServerAnswer:
        """Send one statement, or queue it when statements are being gathered."""
        if not self._gathering:
            return self._execute_now(query, params)
        values, types, formats = self._adapted(params)
        pgconn = self.connection.pgconn
        if self._prepares:
            name = self._name_of(query, types)
            self._commands.append(partial(pgconn.send_query_prepared, name, values, formats))
        else:
            self._commands.append(partial(pgconn.send_query_params, query, values, types or None, formats))
        deferred = Deferred(self, query)
        self._expected.append(deferred)
        if values and sum(len(value) for value in values if value) >= _LARGE_BYTES:
            self._set_out()
        return deferred

    def _execute_now(self, query: bytes, params: Sequence[object]) -> ServerAnswer:
        try:
            return self.connection.execute(query, params)
        except psycopg.Error as error:
            error.add_note(name_of(query))
            raise

    def _set_out(self) -> None:
        """Let what is queued leave now: the server works on it while the next statement is prepared."""
        pgconn = self.connection.pgconn
        if not self._underway:
            self._underway = True
            pgconn.enter_pipeline_mode()
        commands, self._commands = self._commands, []
        for command in commands:
            command()
        pgconn.flush()

    def _adapted(self, params: Sequence[object]) -> Adapted:
        """Return parameters as they travel: texts as they are, of the type that the statement gives them."""
        if not params:
            return None, (), None
        values: list[bytes | None] = []
        for value in params if self._plain else ():
            if value is None:
                values.append(None)
            elif type(value) is str and "\0" not in value:
                values.append(value.encode())
            else:
                break
        if len(values) == len(params):
            return values, (0,) * len(params), None
        adapting = Transformer(self.connection)
        dumped = adapting.dump_sequence(params, [PyFormat.AUTO] * len(params))
        return dumped, tuple(adapting.types or ()), adapting.formats

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        """Gather statements, which travel together when this ends, or if they are large before it does.

        If it is left by an error nothing more leaves than has left, and that is answered first.
        """
        self._gathering = True
        try:
            yield
            self.exchange()
        except BaseException:
            if self._underway:
                with suppress(psycopg.Error):
                    self.exchange()
            raise
        finally:
            self._gathering = False
            for waiting in self._expected:
                if not isinstance(waiting, Deferred):
                    del self._prepared[waiting]  # it was to be prepared on the way, and did not leave
            self._commands.clear()
            self._expected.clear()

    def exchange(self) -> None:
        """Send what is queued and read all of its answers; raise the first that is an error."""
        commands, self._commands = self._commands, []
        expected, self._expected = self._expected, []
        if not commands and not self._underway:
            return
        underway, self._underway = self._underway, False
        with self.connection.lock:
            answers = self.connection.wait(self._talk(commands, underway=underway))
        failure: psycopg.Error | None = None
        for waiting, result in zip(expected, answers, strict=True):
            if result.status in _FAILED and failure is None:
                failure = errors.error_from_result(result)
                failure.add_note(name_of(waiting.query if isinstance(waiting, Deferred) else waiting[0]))
            if isinstance(waiting, Deferred):
                waiting.result = result
            elif result.status != ExecStatus.COMMAND_OK:
                del self._prepared[waiting]
        if failure is not None:
            raise failure

    def _talk(self, commands: Sequence[Callable[[], None]], *, underway: bool) -> PQGen[list[PGresult]]:
        """Write everything and a sync, and read until the answer to the sync; return the first of each."""
        pgconn = self.connection.pgconn
        if not underway:
            pgconn.enter_pipeline_mode()
        for command in commands:
            command()
        pgconn.pipeline_sync()
        while pgconn.flush():
            # The server may be waiting for us to read before it reads on.
            if (yield Wait.RW) & Ready.R:
                pgconn.consume_input()
        answers = yield from _answers(pgconn)
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


class PlainWire(Wire):
    """The plain twin: each statement is a round trip of psycopg's own."""

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        """Gather nothing."""
        yield


def wire(connection: AnsweringConnection, *, prepares: bool) -> Wire:
    """Return the wire of this process over a connection."""
    kind = PlainWire if is_plain() else Wire
    return kind(connection, prepares=prepares)


def _answers(pgconn: PGconn) -> PQGen[list[PGresult]]:
    """Read up to the answer to the sync; each statement answers once, and then says that it has."""
    answers: list[PGresult] = []
    answered = False
    while True:
        while pgconn.is_busy():
            if (yield Wait.R):
                pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            if not answered:
                raise psycopg.OperationalError("the connection was lost before the server had answered")
            answered = False
        elif result.status == _SYNCED:
            return answers
        elif not answered:
            answers.append(result)
            answered = True


# A character that a value has only if a caller put it there; then the values are quoted one by one.
_BETWEEN: Final = "\x1f"
_EMPTY: Final = "{}"


def texts(values: Sequence[str | None]) -> str:
    r"""Return texts as PostgreSQL reads an array of them.

    >>> texts(['{"a":1}', "b"])
    '{"{\\"a\\":1}","b"}'
    >>> texts([None, "b"]), texts([None, None])
    ('{NULL,"b"}', '{}')
    """
    try:
        joined = _BETWEEN.join(values)  # type: ignore[arg-type]  # a null is what the except is for
    except TypeError:
        return _one_by_one(values)
    if joined.count(_BETWEEN) != len(values) - 1:
        return _one_by_one(values)
    return '{"' + _escaped(joined).replace(_BETWEEN, '","') + '"}'


def numbers(values: Sequence[int | None]) -> str:
    """Return whole numbers as PostgreSQL reads an array of them.

    >>> numbers([1, None]), numbers([None])
    ('{1,NULL}', '{}')
    """
    if values[0] is None and not _any(values):
        return _EMPTY
    return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"


def hashes(values: Iterable[bytes]) -> str:
    r"""Return bytes as PostgreSQL reads an array of them.

    >>> hashes([b"\x00\xff", b""])
    '{"\\\\x00ff","\\\\x"}'
    """
    return '{"\\\\x' + '","\\\\x'.join(map(bytes.hex, values)) + '"}'


def _one_by_one(values: Sequence[str | None]) -> str:
    if not _any(values):
        return _EMPTY
    return "{" + ",".join("NULL" if value is None else f'"{_escaped(value)}"' for value in values) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _any(values: Iterable[object]) -> bool:
    return any(value is not None for value in values)
