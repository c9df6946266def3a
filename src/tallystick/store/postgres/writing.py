"""An open transaction on PostgreSQL, statement by statement, for verbs that read before they write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from tallystick.core.chain import Chain, Link
from tallystick.core.effects.requests import SettleEffect
from tallystick.core.watching.acts import NoteAct
from tallystick.errors import TallyError
from tallystick.store.api import Bundle, Fact, Fence, RecordStep, StoredEvent
from tallystick.store.chains import Places
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import ServerAnswer, Talk, begin
from tallystick.store.postgres.server.migrations import refuse_newer
from tallystick.store.postgres.statements import sql
from tallystick.store.refusals import Refused, stale

# Statements after which there may be work for a worker.
WAKING = ("insert_fork", "put_queue")
# What may append to the chain of acts.
_APPENDING: Final = frozenset({NoteAct, SettleEffect})

_encode = msgspec.json.Encoder().encode


class Times(NamedTuple):
    """On which clock leases are, and its instants if it is not the server's own."""

    epoch: str = "postgres"
    lease: str | None = None
    wall: str | None = None


def begin_batch(connection: Talk, address: Address, batch: Sequence[Bundle]) -> None:
    """Begin; the end of the chain of acts is held first, so that its holder never waits for a row."""
    begin(connection, address)
    if not all(_APPENDING.isdisjoint(map(type, bundle)) for bundle in batch):
        connection.execute(sql("hold_acts"))


def number_of(answer: ServerAnswer, address: Address) -> tuple[str | None, str]:
    """Return the number of a transaction and its server; go no further if the schema is newer by now."""
    ((xid, server, version, *_notified),) = answer.fetchall()
    refuse_newer(version, address)
    return xid, server


def use_own_path(connection: Talk, address: Address) -> None:
    """Let our names mean our tables in a user's transaction, unless their schema is a newer one by now."""
    with connection.pipeline():
        connection.execute(sql("use_path"), (address.path,))
        schema = connection.execute(sql("schema_version"))
    ((version,),) = schema.fetchall()
    refuse_newer(version, address)


class PostgresWriting:
    """One transaction, its clock, and its statements by name."""

    def __init__(self, connection: Talk, times: Times) -> None:
        """Begin nothing yet."""
        self.connection = connection
        self.times = times
        self.wakes = False
        self.held: frozenset[str] = frozenset()
        self.in_rounds = False
        self._places = Places()
        self._wall: int | None = None
        self._expected: list[tuple[ServerAnswer, TallyError]] = []

    def ask(self, name: str, rows: Sequence[object], *parameters: object) -> ServerAnswer:
        """Send a list to a statement."""
        return self.connection.execute(sql(name), (_encode(rows).decode(), *parameters))

    @property
    def wall(self) -> int:
        """Return the time by the store's clock, read once in this transaction."""
        self.take_wall(self.ask_wall())
        assert self._wall is not None
        return self._wall

    def ask_wall(self) -> ServerAnswer | None:
        """Ask for the time, unless it is known."""
        return self.connection.execute(sql("now"), (self.times.wall,)) if self._wall is None else None

    def take_wall(self, asked: ServerAnswer | None) -> None:
        """Keep the time that was asked for."""
        if asked is not None:
            ((self._wall,),) = asked.fetchall()

    def moment(self, at: int, told_at: int) -> int:
        """Return an instant on the store's clock that a caller named at `told_at` by its own."""
        return at + self.wall - told_at

    def lock(self, job_id: str) -> None:
        """Hold a job's row until this transaction ends."""
        if job_id not in self.held:
            self.connection.execute(sql("lock_job"), (job_id,))

    def rows(self, name: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return self.connection.execute(sql(name), parameters).fetchall()

    def changed(self, name: str, parameters: Sequence[object]) -> int:
        """Run a statement and return how many rows it changed."""
        count = self.connection.execute(sql(name), parameters).rowcount
        self.wakes = self.wakes or (name in WAKING and count > 0)
        return count

    def run(self, name: str, parameters: Sequence[object]) -> None:
        """Run a statement, whatever it finds to change."""
        self.connection.execute(sql(name), parameters)
        self.wakes = self.wakes or name in WAKING

    def many(self, name: str, rows: Sequence[Sequence[Any]], fence: Fence) -> None:
        """Write rows and insist that each changes exactly one; in rounds that is seen when all is sent."""
        for row in rows:
            self.expect(name, row, stale(fence))

    def expect(self, name: str, parameters: Sequence[object], otherwise: TallyError) -> None:
        """Run a statement and refuse the bundle unless it changes one row; in rounds that is seen later."""
        self._expected.append((self.connection.execute(sql(name), parameters), otherwise))
        self.wakes = self.wakes or name in WAKING
        if not self.in_rounds:
            self.settle()

    def settle(self) -> None:
        """Refuse the bundle if a guard that had to hold did not."""
        expected, self._expected = self._expected, []
        for cursor, otherwise in expected:
            if cursor.rowcount != 1:
                raise Refused(otherwise)

    def placed(self, fact: Fact) -> StoredEvent:
        """Give a fact its place in the chain."""
        return self._places.fact(fact)

    def give_back(self, chain: Chain, link: Link) -> None:
        """Give the place of a fact back that was refused."""
        self._places.give_back(chain, link)

    def placed_link(self, fact: Fact) -> Link:
        """Give a fact its place in the chain and return the place alone."""
        return self._places.link(fact)

    def placed_step(self, step: RecordStep) -> Link:
        """Give a step, whose row is its own event, its place in the chain."""
        return self._places.step(step)

    def written(self) -> list[tuple[str, int, bytes]]:
        """Return job, place and hash of every fact that is part of this transaction."""
        return self._places.written()


def storable(text: str | None) -> str | None:
    """Return text that a column can hold: PostgreSQL knows no NUL character."""
    return None if text is None else text.replace("\0", "\ufffd")
