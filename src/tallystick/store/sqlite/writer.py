"""Writes a batch in one transaction and one fsync; each bundle gets its own outcome.

The fast path writes all primitives of a kind with one prepared statement and compares the rows changed with
the rows expected. If they differ, or anything is refused, that part is rolled back and done again bundle by
bundle under savepoints, which finds the stale one and leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, get_args

import apsw
import msgspec

from tallystick import crash
from tallystick.core.chain import DOUBTFUL
from tallystick.core.effects.late import report_of
from tallystick.core.pictures import Now
from tallystick.core.remote.keys import AddKey, RevokeKey
from tallystick.core.remote.requests import ProtocolRequest, SubmitCommand
from tallystick.errors import InvariantBroken, StaleLease, TallyError
from tallystick.store import planning
from tallystick.store.api import (
    Bundle,
    ClaimJobs,
    EndAttempt,
    EndJob,
    Existing,
    Fence,
    Outcome,
    Primitive,
    RecordEvent,
    RecordStep,
    RenewLeases,
    RunTx,
    SubmitJob,
    SubmitJobs,
    call_off,
)
from tallystick.store.chains import Places, forgotten
from tallystick.store.refusals import STALE_REPORTS_MAX, UNSTORABLE, Refused, claim_apart, stale
from tallystick.store.sql.keys import keep_keys
from tallystick.store.sql.one_by_one import ONE_BY_ONE
from tallystick.store.sql.protocols import is_protocol
from tallystick.store.sql.queueing.keyless import Walks
from tallystick.store.sql.shapes import recorded
from tallystick.store.sqlite.applying import apply
from tallystick.store.sqlite.claims import claim_jobs, due_jobs
from tallystick.store.sqlite.crash_points import AROUND
from tallystick.store.sqlite.endings import end_plain_jobs
from tallystick.store.sqlite.file.clock import Instants
from tallystick.store.sqlite.looking import chain_end, look
from tallystick.store.sqlite.multi_row import write_rows
from tallystick.store.sqlite.protocols import write_plan, write_protocols
from tallystick.store.sqlite.refusals import refusal
from tallystick.store.sqlite.statements import sql
from tallystick.store.sqlite.submits import submit_alike, submit_jobs
from tallystick.store.sqlite.user_transactions.tx_loans import Loans, TransactionLost


class SqliteBatch:
    """The open transaction of one flush: its connection, its clocks, and how each primitive is written."""

    def __init__(self, connection: apsw.Connection, now: Instants, loans: Loans | None = None) -> None:
        """Begin, at a time that was read with the lock held: a lease is judged by the time of the write."""
        self._loans = Loans() if loans is None else loans
        self.walks = Walks()
        self.connection = connection
        self.cursor = connection.cursor()
        self.wall, self.boot, self.epoch = now
        self.places = Places()
        # Gives a fact its place in the chain.
        self.placed = self.places.fact
        # What is being written, of a bundle by itself.
        self._at: Primitive | None = None

    def write(self, batch: Sequence[Bundle]) -> list[Outcome | BaseException]:
        """Write every bundle and return its outcome; nothing is durable before the caller commits."""
        outcomes: list[Outcome | BaseException] = [None] * len(batch)
        alone, groups = planning.grouped(batch, children=True)
        renewals = groups.pop(0)[1] if groups and groups[0][0] is RenewLeases else []
        planned = {index: batch[index] for index in alone if planning.is_planned(batch[index])}
        protocols = [index for index in alone if index not in planned and is_protocol(batch[index])]
        if protocols:
            groups = [(SubmitCommand, protocols), *groups]
            alone = sorted({*alone} - {*protocols})
        first = [*renewals, *(index for index in alone if index not in planned)]
        if any(type(primitive) is RunTx for index in first for primitive in batch[index]):
            # A user's function is not run twice, so what it did is kept apart from what may be refused.
            for index in first:
                outcomes[index] = self.alone(batch[index])
            self._write_hopefully(batch, [], planned, groups, outcomes, undo="SAVEPOINT")
        else:
            self._write_hopefully(batch, first, planned, groups, outcomes, undo="BEGIN")
        return outcomes

    def _write_hopefully(
        self,
        batch: Sequence[Bundle],
        first: list[int],
        planned: Mapping[int, Bundle],
        groups: list[tuple[type[Primitive], list[int]]],
        outcomes: list[Outcome | BaseException],
        *,
        undo: str,
    ) -> None:
        """Write bundles as if none were refused; if one is, undo all of them and write each alone.

        A savepoint makes SQLite copy every page it touches. Where nothing was written before, the whole
        transaction is begun again instead, with the lock between processes still held.
        """
        start = len(self.places)
        if undo == "SAVEPOINT":
            self.connection.execute("SAVEPOINT hopeful")
        try:
            for index in first:
                outcomes[index] = self._whole(batch[index])
            for index, outcome in self._decide(planned).items():
                outcomes[index] = outcome
            for kind, indexes in groups:
                parts = planning.parts_of([batch[index] for index in indexes], kind)
                values = self._writers[kind](self, parts)
                for index, value in zip(indexes, values, strict=True):
                    outcomes[index] = value
        except (Refused, TallyError, apsw.ConstraintError, *UNSTORABLE):
            self.connection.execute(
                "ROLLBACK TO hopeful" if undo == "SAVEPOINT" else "ROLLBACK; BEGIN IMMEDIATE"
            )
            self.rewind(start)
            written = [*first, *planned, *(index for _kind, indexes in groups for index in indexes)]
            for index in dict.fromkeys(written):
                outcomes[index] = self.alone(batch[index])
        if undo == "SAVEPOINT":
            self.connection.execute("RELEASE hopeful")

    def _whole(self, bundle: Bundle) -> Outcome:
        """Write the primitives of one bundle in their order; the outcome is that of the last one written."""
        value: Outcome | BaseException = None
        # What is all decided from pictures is one decision; else each part comes after what stands before it.
        for part in [bundle] if planning.is_planned(bundle) else [(each,) for each in bundle]:
            self._at = part[-1]
            if planning.is_planned(part):
                value = self._decide({0: part})[0]
            else:
                (value,) = self._writers[type(self._at)](self, [self._at])
            if isinstance(value, BaseException):
                raise Refused(value)
            if isinstance(value, Existing):
                break
        return value

    def alone(self, bundle: Bundle) -> Outcome | BaseException:
        """Write one bundle under a savepoint of its own; the outcome is that of its last primitive."""
        start = len(self.places)
        self.connection.execute("SAVEPOINT bundle")
        try:
            value: Outcome | BaseException = self._whole(bundle)
        except BaseException as error:
            if not self.connection.in_transaction:
                raise
            self.connection.execute("ROLLBACK TO bundle")
            self.rewind(start)
            refused = refusal(error)
            if refused is None:
                self.connection.execute("RELEASE bundle")
                raise
            value = refused
            self._report(self._at, value)
            if type(self._at) is ClaimJobs:
                value = claim_apart(self.alone, lambda claim: due_jobs(self, claim), self._at, value)
        self.connection.execute("RELEASE bundle")
        if len(bundle) > 1:
            call_off([bundle])
        return value

    def lock(self, job_id: str) -> None:
        """Do nothing: the writer holds the whole file."""

    def moment(self, at: int, told_at: int) -> int:
        """Return an instant on the clock of the file that a process named at `told_at` by its own."""
        return at + self.wall - told_at

    write_plan = write_plan

    def rows(self, name: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return list(self.cursor.execute(sql(name), parameters))

    def changed(self, name: str, parameters: Sequence[object]) -> int:
        """Run a statement and return how many rows it changed."""
        before = self.connection.total_changes()
        self.run(name, parameters)
        return self.connection.total_changes() - before

    def run(self, name: str, parameters: Sequence[object]) -> None:
        """Run a statement, whatever it finds to change; one that is refused tells its name."""
        try:
            self.cursor.execute(sql(name), parameters)
        except apsw.ConstraintError as error:
            error.add_note(name)
            raise

    def expect(self, name: str, parameters: Sequence[object], otherwise: TallyError) -> None:
        """Run a statement and refuse the bundle unless it changes one row."""
        if self.changed(name, parameters) != 1:
            raise Refused(otherwise)

    def holds(self, fence: Fence) -> bool:
        """Tell whether this lease is the live one."""
        return bool(self.rows("live_attempt", (*fence, self.epoch, self.boot)))

    def rewind(self, start: int = 0) -> None:
        """Give back every place taken since `start`: what was to stand there was rolled back."""
        self.places.rewind(start)

    def record_steps(self, steps: list[RecordStep]) -> list[Outcome]:
        """Write inline steps under their fences, as one list."""
        crash.point(AROUND["step"][0])
        self.many("insert_steps", self.step_rows(steps), steps[0].fence)
        crash.point(AROUND["step"][1])
        return [None] * len(steps)

    def step_rows(self, steps: Iterable[RecordStep]) -> list[tuple[object, ...]]:
        """Return the rows of inline steps under their fences; they take their places now."""
        now, place = (self.epoch, self.boot), self.places.step
        return [step.fence + recorded(step) + place(step) + now for step in steps]

    def _events(self, requests: list[RecordEvent]) -> list[Outcome]:
        crash.point(AROUND["event"][0])
        now = (self.epoch, self.boot)
        rows = [(*self.placed(fact), fence.attempt, fence.lease_id, *now) for fence, fact in requests]
        self.many("insert_fenced_events", rows, requests[0].fence)
        crash.point(AROUND["event"][1])
        return [None] * len(requests)

    def _end_attempts(self, requests: list[EndAttempt]) -> list[Outcome]:
        """Abort attempts and leave their jobs to others, due at instants by the clocks of their workers."""
        crash.point(AROUND["end_attempt"][0])
        fence, events = requests[0].fence, [self.placed(request.fact) for request in requests]
        self.many("end_attempts", [self.ending(request, "ABORTED") for request in requests], fence)
        jobs = [
            (
                *(r.fence.job_id, r.fence.attempt, self._due(r), r.hold, r.hold_reason),
                *(event.n, event.event_hash, self.wall),
            )
            for r, event in zip(requests, events, strict=True)
        ]
        self.many("release_job", jobs, fence)
        self.many("insert_event", events, fence)
        crash.point(AROUND["end_attempt"][1])
        return [None] * len(requests)

    def _due(self, request: EndAttempt) -> int | None:
        return None if request.ready_at is None else self.moment(request.ready_at, request.fact.at)

    def _end_jobs(self, requests: list[EndJob]) -> list[Outcome]:
        """Close plain jobs; if one was asked to end, all of them are written alone, decided from pictures."""
        crash.point(AROUND["end_job"][0])
        end_plain_jobs(self, requests)
        crash.point(AROUND["end_job"][1])
        return [None] * len(requests)

    def _submits(self, requests: list[SubmitJob]) -> list[Outcome]:
        crash.point(AROUND["submit"][0])
        outcomes = submit_jobs(self, requests)
        crash.point(AROUND["submit"][1])
        return outcomes

    def _submits_alike(self, requests: list[SubmitJobs]) -> list[Outcome]:
        crash.point(AROUND["submit"][0])
        for request in requests:
            submit_alike(self, request)
        crash.point(AROUND["submit"][1])
        return [None] * len(requests)

    def _claims(self, requests: list[ClaimJobs]) -> list[Outcome]:
        """Answer all claims of one worker with one search; its slots ask one by one, in the same flush."""
        crash.point(AROUND["claim"][0])
        shares: list[Outcome] = [None] * len(requests)
        for whole, indexes in planning.merged_claims(requests):
            claimed = claim_jobs(self, whole)
            for index in indexes:
                share = requests[index].limit
                shares[index], claimed = claimed[:share], claimed[share:]
        crash.point(AROUND["claim"][1])
        return shares

    def _renew(self, requests: list[RenewLeases]) -> list[Outcome]:
        crash.point(AROUND["renew"][0])
        held: list[Outcome] = []
        for request in requests:
            listed = msgspec.json.encode(request.fences).decode()
            rows = self.cursor.execute(
                sql("renew_leases"), (listed, self.epoch, self.boot, self.boot + request.lease_ms)
            )
            held.append({Fence(*row) for row in rows})
        crash.point(AROUND["renew"][1])
        return held

    def _decide(self, bundles: Mapping[int, Bundle]) -> dict[int, Outcome | BaseException]:
        """Look at what bundles want to see, decide them in their order, and write what was decided."""
        if not bundles:
            return {}
        kinds = planning.kinds_of(bundles.values())
        for kind in kinds:
            crash.point(AROUND[kind][0])
        outcomes, again = self._decided(bundles, whole=False)
        for index in again:
            found, more = self._decided({index: bundles[index]}, whole=True)
            name = type(bundles[index][-1]).__name__
            outcomes[index] = (
                InvariantBroken("a whole picture is not enough", statement=name) if more else found[index]
            )
        for kind in kinds:
            crash.point(AROUND[kind][1])
        return outcomes

    def _decided(
        self, bundles: Mapping[int, Bundle], *, whole: bool
    ) -> tuple[dict[int, Outcome | BaseException], list[int]]:
        """Decide bundles from one look; those at the end want to see more."""
        wants = {index: planning.wants_of(bundle, whole=whole) for index, bundle in bundles.items()}
        pictures = look(self, [want for wanted in wants.values() for want in wanted], whole=whole)
        decided = planning.decide_bundles(pictures, bundles, wants, Now(self.wall))
        apply(self, decided.writes)
        for self._at, error in decided.refused:
            self._report(self._at, error)
        return decided.outcomes, decided.again

    def _one_by_one(self, requests: list[Any]) -> list[Outcome]:
        kind, write = ONE_BY_ONE[type(requests[0])]
        crash.point(AROUND[kind][0])
        outcomes = [write(self, request) for request in requests]
        crash.point(AROUND[kind][1])
        return outcomes

    def _run_tx(self, requests: list[RunTx]) -> list[Outcome]:
        """Lend the connection to the thread whose turn it is, then record its step under the fence."""
        (request,) = requests
        crash.point(AROUND["tx"][0])
        try:
            step = self._loans.step(request, self.connection, self.alone)
        except TransactionLost:
            raise
        except BaseException as error:
            raise Refused(error) from error
        chain = step.chain
        if chain.era is DOUBTFUL and chain_end(self.cursor, chain.job_id) != (chain.n, chain.head):
            raise Refused(forgotten(chain.job_id))
        self.record_steps([step])
        crash.point(AROUND["tx"][1])
        return [step]

    def ending(self, request: EndAttempt | EndJob, status: str) -> tuple[object, ...]:
        """Return the row by which its holder ends an attempt."""
        clock = (self.epoch, self.boot, self.wall)
        return (*request.fence, status, request.reason, request.charged, *clock)

    def many(self, name: str, rows: Sequence[Sequence[Any]], fence: Fence) -> None:
        """Write rows and insist that each changed exactly one; a guard that fails is a stale report.

        Where bundles are written together any fence will do: none of them hears of it before it is alone.
        """
        before = self.connection.total_changes()
        write_rows(self.cursor, name, rows)
        if self.connection.total_changes() - before != len(rows):
            raise Refused(stale(fence))

    def _report(self, primitive: Primitive | None, error: BaseException) -> None:
        """Keep a stale report for people."""
        fence = getattr(primitive, "fence", None)
        if fence is None or not isinstance(error, StaleLease):
            return
        crash.point(AROUND["stale_report"][0])
        self.cursor.execute(sql("insert_stale_reports"), (self.wall, *fence, report_of(primitive)))
        self.cursor.execute(sql("trim_stale_reports"), (STALE_REPORTS_MAX,))
        crash.point(AROUND["stale_report"][1])

    # A table of the class, not of each batch: a batch that points to itself would wait for the collector.
    _writers: ClassVar[dict[type, Callable[[SqliteBatch, list[Any]], list[Outcome]]]] = {
        RenewLeases: _renew,
        RecordStep: record_steps,
        RecordEvent: _events,
        EndAttempt: _end_attempts,
        EndJob: _end_jobs,
        SubmitJob: _submits,
        SubmitJobs: _submits_alike,
        ClaimJobs: _claims,
        RunTx: _run_tx,
        **dict.fromkeys(ONE_BY_ONE, _one_by_one),
        AddKey: keep_keys,
        RevokeKey: keep_keys,
        SubmitCommand: write_protocols,
        **dict.fromkeys(get_args(ProtocolRequest), write_protocols),
    }
