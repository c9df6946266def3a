"""Writes a batch in one transaction; each bundle gets its own outcome.

All requests of a kind go to the server as one list in one statement, which checks each fence under the row
lock and says which places it wrote. The statements of a flush travel together, so a flush is two round trips:
everything, then COMMIT. The answers are known before COMMIT is sent, so that an answer lost on the way can be
asked for again. If the database refuses anything, the transaction is rolled back and done again bundle by
bundle under savepoints, which finds the one and leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, get_args

from psycopg.errors import LockNotAvailable

from tallystick import crash
from tallystick.clock import SystemClock
from tallystick.core.chain import Chain, Era, Link
from tallystick.core.effects.late import report_of
from tallystick.core.remote.keys import AddKey, RevokeKey
from tallystick.core.remote.plans import StaleReport
from tallystick.core.remote.requests import ProtocolRequest, SubmitCommand
from tallystick.errors import StaleLease
from tallystick.store import planning
from tallystick.store.api import (
    Bundle,
    ClaimJobs,
    EndAttempt,
    EndJob,
    Existing,
    ForkJob,
    Outcome,
    Primitive,
    RecordEvent,
    RecordStep,
    SubmitJob,
    SubmitJobs,
)
from tallystick.store.postgres.claiming.claim_cursor import ClaimCursor
from tallystick.store.postgres.claiming.claims import ClaimSearch
from tallystick.store.postgres.crash_points import AROUND
from tallystick.store.postgres.lists.ends import (
    send_endings_of_attempts,
    send_endings_of_jobs,
    steps_with_endings,
)
from tallystick.store.postgres.lists.inserts import send_births, send_births_alike
from tallystick.store.postgres.lists.steps import send_steps
from tallystick.store.postgres.looking import PictureLook, PlannedBundles, write_whole
from tallystick.store.postgres.protocols import write_alone, write_plan, write_those
from tallystick.store.postgres.refusing import REFUSING, why_refused
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import REFUSALS, RowMoved, ServerAnswer, Talk, begin
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.writing import PostgresWriting, Times, begin_batch, number_of, use_own_path
from tallystick.store.refusals import STALE_REPORTS_MAX, UNSTORABLE, Refused, claim_apart, share_fate, stale
from tallystick.store.sql.keys import keep_keys_then
from tallystick.store.sql.one_by_one import ONE_BY_ONE

Answer = Callable[[], list[Outcome]]

MOVED_TRIES_MAX = 5

# How many milliseconds a bundle that is written alone waits for rows that others hold for longer already.
_HELD_MS = "2"


class PostgresBatch(PostgresWriting):
    """The open transaction of one flush: its connection, its clock, and how each primitive is written."""

    def __init__(
        self,
        connection: Talk,
        address: Address,
        times: Times,
        cursor: ClaimCursor | None = None,
        era: Era | None = None,
    ) -> None:
        """Begin nothing yet; chains that begin in this transaction are known in `era`."""
        super().__init__(connection, times)
        self.xid: str | None = None
        self.server = ""
        self.era = era
        self._address = address
        self._stale: list[tuple[object, ...]] = []
        self._cursor = cursor or ClaimCursor(SystemClock())
        self._by_itself = False
        self._notified = False
        self._last: list[Callable[[], None]] = []
        self.at: Primitive | None = None

    def write(self, batch: Sequence[Bundle], *, again: bool = False) -> list[Outcome | BaseException]:
        """Write every bundle and return its outcome; nothing is durable before `commit`.

        What is tried `again`, because others held its rows, is written bundle by bundle at once.
        """
        if again:
            return self.write_each(batch, held=True)
        outcomes: list[Outcome | BaseException] = [None] * len(batch)
        try:
            self._write_together(batch, outcomes)
        except (Refused, LockNotAvailable, *REFUSALS, *UNSTORABLE) as error:
            return self.write_each(batch, held=isinstance(error, LockNotAvailable))
        return outcomes

    def write_each(self, batch: Sequence[Bundle], *, held: bool = False) -> list[Outcome | BaseException]:
        """Begin again after a refusal, and write bundle by bundle: one of them is refused, and no other.

        If rows are `held` by others for longer than a moment, none of these bundles waits for them.
        """
        self.connection.execute(b"ROLLBACK")
        self.rewind()
        begin_batch(self.connection, self._address, batch)
        if held:
            self.connection.execute(sql("wait_less"), (_HELD_MS,))
        outcomes: list[Outcome | BaseException] = [None] * len(batch)
        alone, groups = planning.grouped(batch)
        # ClaimSearch last: they may take what is submitted here.
        for index in dict.fromkeys([*alone, *(index for _kind, indexes in groups for index in indexes)]):
            outcomes[index] = self.alone(batch[index])
        self.xid, self.server = number_of(self.connection.execute(sql("own_xid_and_schema")), self._address)
        return outcomes

    def _write_together(self, batch: Sequence[Bundle], outcomes: list[Outcome | BaseException]) -> None:
        """Look at what is decided from pictures; then send that, and whatever needs no look, in one go."""
        alone, groups = planning.grouped(batch)
        groups = planning.without_last_steps(batch, groups)
        answers: list[tuple[list[int], Answer]] = []
        decided = self._look_and_decide(batch, alone, groups) if alone else None
        others = [index for index in alone if not planning.is_planned(batch[index])]
        written = write_those(self, batch, others) if others else {}
        for index in others:
            outcomes[index] = written[index] if index in written else self.alone(batch[index])
        with self.connection.pipeline():
            if not alone:
                begin(self.connection, self._address)
            if decided is not None:
                decided.send()
            for kind, indexes in groups:
                answers.append((indexes, self._send(kind, [batch[index] for index in indexes])))
            number = self._number()
        answered: set[int] = set()
        for indexes, answer in answers:
            for index, value in zip(indexes, answer(), strict=True):
                if index in answered:
                    share_fate(outcomes[index], value)
                outcomes[index] = value
            answered.update(indexes)
        for index, value in decided.finished().items() if decided is not None else ():
            outcomes[index] = value
        self.xid, self.server = number_of(number, self._address)

    def _look_and_decide(
        self,
        batch: Sequence[Bundle],
        alone: list[int],
        groups: list[planning.Kind],
    ) -> PlannedBundles | None:
        """Begin, look at all jobs of the planned bundles, and decide them."""
        wants = {
            index: planning.wants_of(batch[index]) for index in alone if planning.is_planned(batch[index])
        }
        everything = [want for wanted in wants.values() for want in wanted]
        with self.connection.pipeline():
            begin_batch(self.connection, self._address, [batch[index] for index in alone])
            look = (
                PictureLook(self, everything, also=planning.ending_in_lists(batch, groups)) if wants else None
            )
        return None if look is None else PlannedBundles(self, batch, wants, look)

    def _number(self) -> ServerAnswer:
        """Ask for the number of this transaction, and with it wake the listeners when it is durable."""
        if not self.wakes or self._notified:
            return self.connection.execute(sql("own_xid_and_schema"))
        self._notified = True
        return self.connection.execute(sql("own_xid_and_notify"), (self._address.channel,))

    def _send(self, kind: type[Primitive], bundles: list[Bundle]) -> Answer:
        """Send all requests of a kind as one list."""
        parts = planning.parts_of(bundles, kind)
        if kind is EndJob:
            return self._end_jobs(parts, steps_with_endings(bundles))
        return self._writers[kind](self, parts)

    def alone(self, bundle: Bundle) -> Outcome | BaseException:
        """Write one bundle under a savepoint of its own; the outcome is that of its last primitive."""
        start, reports, wakes = len(self._places), len(self._stale), self.wakes
        outer, self._by_itself = self._by_itself, True
        self.connection.execute(b"SAVEPOINT bundle")
        try:
            value = self.sole(bundle)
        except (RowMoved, LockNotAvailable, *REFUSING) as error:
            self.connection.execute(b"ROLLBACK TO bundle")
            self._places.rewind(start)
            self.wakes = wakes
            del self._stale[reports:]
            if isinstance(error, RowMoved):
                raise
            value = why_refused(error, self._address)
            if isinstance(value, StaleLease):
                self.report(self.at)
            if type(self.at) is ClaimJobs:
                value = claim_apart(self.alone, ClaimSearch(self, self._cursor).due, self.at, value)
        finally:
            self._by_itself = outer
        self.connection.execute(b"RELEASE bundle")
        return value

    def sole(self, bundle: Bundle) -> Outcome:
        """Write one bundle and return the outcome of its last primitive; raise what refuses it."""
        value: Outcome = None
        self._expected.clear()
        # What is all decided from pictures is one decision; else each part comes after what stands before it.
        for part in [bundle] if planning.is_planned(bundle) else [(each,) for each in bundle]:
            self.at = part[-1]
            if planning.is_planned(part):
                value = write_whole(self, part)
            else:
                (value,) = self._writers[type(self.at)](self, [self.at])()
            if isinstance(value, BaseException):
                raise Refused(value)
            self.settle()
            if isinstance(value, Existing):
                break
        return value

    def between(self, bundle: Bundle) -> Outcome | BaseException:
        """Write a bundle in a user's transaction: with our search path, and then the user's again."""
        ((path,),) = self.connection.execute(sql("own_path")).fetchall()
        use_own_path(self.connection, self._address)
        outcome = self._undisturbed(bundle)
        self._keep_reports()
        self.connection.execute(sql("use_path"), (path,))
        return outcome

    def _undisturbed(self, bundle: Bundle) -> Outcome | BaseException:
        """Write a bundle alone, again if a row moved: the transaction is not ours to begin again."""
        for _ in range(MOVED_TRIES_MAX - 1):
            with suppress(RowMoved):
                return self.alone(bundle)
        return self.alone(bundle)

    def _keep_reports(self) -> None:
        """Write down the reports that came too late; part of this transaction."""
        if self._stale:
            self.ask("insert_stale_reports", self._stale, self.times.wall)
            self.connection.execute(sql("trim_stale_reports"), (str(STALE_REPORTS_MAX),))
            self._stale = []

    def send_last(self, send: Callable[[], None]) -> None:
        """Send what has no answer in front of COMMIT, which is not reached if the database refuses it."""
        if self._by_itself:
            with self.connection.pipeline():
                send()
        else:
            self._last.append(send)

    def commit(self) -> None:
        """Make it durable, and wake the workers that may find work in it."""
        with self.connection.pipeline():
            for send in self._last:
                send()
            self._keep_reports()
            self._notify()
            self.connection.execute(b"COMMIT")

    def _notify(self) -> None:
        """Wake the listeners when this is durable, once, if there may be work for them."""
        if self.wakes and not self._notified:
            self._notified = True
            self.connection.execute(sql("notify"), (self._address.channel,))

    def doubt(self) -> None:
        """Note for every chain that it is unknown whether this was written."""
        self._places.doubt()

    def rewind(self) -> None:
        """Give back every place in a chain: nothing of this was written."""
        self._places.rewind()
        self._last = []
        self._stale = []
        self.wakes = False
        self._notified = False

    def _one_by_one(self, requests: list[Any]) -> Answer:
        kind, write = ONE_BY_ONE[type(requests[0])]
        crash.point(AROUND[kind][0])
        outcomes = [write(self, request) for request in requests]
        crash.point(AROUND[kind][1])
        if kind == "queue":
            self._cursor.limited.forget()
        self.wakes = self.wakes or type(requests[0]) is ForkJob
        return lambda: outcomes

    write_plan = write_plan

    def report(self, primitive: Primitive | None) -> None:
        """Keep a stale report for people."""
        if (fence := getattr(primitive, "fence", None)) is not None:
            self._stale.append((*fence, report_of(primitive)))

    def keep_report(self, report: StaleReport) -> None:
        """Keep a report on a remote step that was refused."""
        self._stale.append(report)

    def accepted(
        self, requests: Sequence[Any], places: Sequence[Sequence[tuple[Chain, Link]]], written: set[int]
    ) -> list[Outcome]:
        """Return the outcomes of fenced requests and give back the places of the stale ones, last first."""
        outcomes: list[Outcome] = [None] * len(requests)
        if len(written) == len(requests):
            return outcomes
        for number in range(len(requests), 0, -1):
            if number in written:
                continue
            for chain, link in reversed(places[number - 1]):
                self.give_back(chain, link)
            outcomes[number - 1] = stale(requests[number - 1].fence)
        for request, outcome in zip(requests, outcomes, strict=True):
            if outcome is not None:
                self.report(request)
        return outcomes

    def steps(self, steps: list[RecordStep]) -> Answer:
        """Send steps and return how to read which of them were accepted."""
        crash.point(AROUND["step"][0])
        answer = send_steps(self, steps)
        crash.point(AROUND["step"][1])
        return answer

    def _events(self, requests: list[RecordEvent]) -> Answer:
        crash.point(AROUND["event"][0])
        events = [self._places.fact(request.fact) for request in requests]
        holders = [(request.fence.attempt, request.fence.lease_id) for request in requests]
        rows = [(event, *holder) for event, holder in zip(events, holders, strict=True)]
        cursor = self.ask("insert_fenced_events", rows, self.times.epoch, self.times.lease)
        crash.point(AROUND["event"][1])
        places = [
            [(request.fact.chain, Link(event.n, event.prev_hash, event.event_hash))]
            for request, event in zip(requests, events, strict=True)
        ]
        return lambda: self.accepted(requests, places, {place for (place,) in cursor.fetchall()})

    def _end_attempts(self, requests: list[EndAttempt]) -> Answer:
        crash.point(AROUND["end_attempt"][0])
        answer = send_endings_of_attempts(self, requests)
        self.wakes = self.wakes or any(request.ready_at is not None for request in requests)
        crash.point(AROUND["end_attempt"][1])
        return answer

    def _end_jobs(self, asked: list[EndJob], steps: Sequence[RecordStep | None] = ()) -> Answer:
        """Close plain jobs; one that was asked to end is refused here, and then decided from a picture."""
        crash.point(AROUND["end_job"][0])
        answer = send_endings_of_jobs(self, asked, steps)
        self.ask(
            "drop_unread",
            [(request.fence.job_id, request.fence.attempt) for request in asked],
            self.times.wall,
        )
        crash.point(AROUND["end_job"][1])
        return answer

    def _submits(self, requests: list[SubmitJob]) -> Answer:
        crash.point(AROUND["submit"][0])
        answer = send_births(self, requests)
        crash.point(AROUND["submit"][1])
        self.wakes = self.wakes or any(request.lease is None for request in requests)
        return answer

    def _submits_alike(self, requests: list[SubmitJobs]) -> Answer:
        crash.point(AROUND["submit"][0])
        for request in requests:
            send_births_alike(self, request)
        crash.point(AROUND["submit"][1])
        self.wakes = True
        return lambda: [None] * len(requests)

    def _claim(self, requests: list[ClaimJobs]) -> Answer:
        crash.point(AROUND["claim"][0])
        answer = ClaimSearch(self, self._cursor).send(requests)
        crash.point(AROUND["claim"][1])
        return answer

    # A table of the class, not of each batch: a batch that points to itself would wait for the collector.
    _writers: ClassVar[dict[type, Callable[[PostgresBatch, list[Any]], Answer]]] = {
        RecordStep: steps,
        RecordEvent: _events,
        EndAttempt: _end_attempts,
        EndJob: _end_jobs,
        SubmitJob: _submits,
        SubmitJobs: _submits_alike,
        ClaimJobs: _claim,
        **dict.fromkeys(ONE_BY_ONE, _one_by_one),
        AddKey: keep_keys_then,
        RevokeKey: keep_keys_then,
        SubmitCommand: write_alone,
        **dict.fromkeys(get_args(ProtocolRequest), write_alone),
    }
