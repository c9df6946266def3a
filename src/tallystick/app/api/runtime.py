"""What a Tally has open: one store, one committer, perhaps a worker."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tallystick.app.api.results import EndedJob, Results
from tallystick.app.api.retrying import Duration
from tallystick.app.running.sealing import OpenedReads, PayloadCodec, SealedTransaction, Sealing
from tallystick.clock import Clock
from tallystick.core.durations import duration_ms
from tallystick.core.limits import TRANSACTION_MS_MAX, TX_MS_MAX
from tallystick.core.queues.reusing import KeyRule
from tallystick.engine.callback_keys import callback_keys
from tallystick.engine.committer import Committer, LoopLane
from tallystick.engine.job_log import log_jobs
from tallystick.engine.observe import CancelledHere, Claimed, Observers
from tallystick.engine.pending_writes import settle
from tallystick.engine.submission import (
    Submission,
    bundle_of,
    check_same_content,
    claimed_at_birth,
    submit_job,
)
from tallystick.errors import BadInput, Misuse
from tallystick.ids import Ids
from tallystick.store.api import (
    Bundle,
    EndJob,
    Existing,
    Fence,
    HeldUp,
    ManyWriters,
    NewLease,
    Outcome,
    Protocols,
    QueueHasLimits,
    RecordStep,
    RunTx,
    Store,
    SubmitJob,
    Transaction,
)
from tallystick.store.opening import open_store
from tallystick.store.rendezvous import Rendezvous
from tallystick.watch.tracing import QUIET, Tracing, tracing_of
from tallystick.worker.handler import Handler
from tallystick.worker.hooks import AROUND_NOTHING, Around
from tallystick.worker.maintenance import Maintenance
from tallystick.worker.notices import notice_ended
from tallystick.worker.options import WorkerOptions
from tallystick.worker.relays.leaving import Leaving
from tallystick.worker.relays.relay import Relay
from tallystick.worker.relays.reports import Reports
from tallystick.worker.worker import Worker

if TYPE_CHECKING:
    from tallystick.app.effects.rules import EffectSpec
    from tallystick.watch.meters import Meters


class Runtime:
    """The open parts of one Tally."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        ids: Ids,
        *,
        create: bool = True,
        codec: PayloadCodec | None = None,
        credential: object | None = None,
    ) -> None:
        """Open the store at the address; with a codec what programs put into jobs is sealed there."""
        self.clock = clock
        self.ids = ids
        self.store: Store = open_store(url, clock, create=create, credential=credential)
        # Looked at once: a protocol is compared name by name.
        self.many_writers: ManyWriters | None = self.store if isinstance(self.store, ManyWriters) else None
        self.observers = Observers(clock)
        log_jobs(self.observers)
        self._sealing = sealing = None if codec is None else Sealing(codec)
        self.committer = Committer(
            self.store,
            after_flush=self.store.checkpoint,
            observers=self.observers,
            apply=None if sealing is None else sealing.applying(self.store),
        )
        # What programs read of their jobs: as the store has it, or opened.
        self.reads: Store | OpenedReads = self.store if sealing is None else OpenedReads(self.store, sealing)
        self.results = Results(self.reads, runs_here=self._runs_here)
        self.worker: Worker | None = None
        # What the program declares.
        self.effects: Mapping[str, EffectSpec] = {}
        self._maintenance: Maintenance | None = None
        self.relay: Relay | None = None
        # How spans are made here; None while the program has set no tracer provider, as far as was seen.
        self.tracing: Tracing | None = None
        self._meters: Meters | None = None
        self.tx_ms_max = TX_MS_MAX
        self._closing = threading.Lock()
        self._stopping = threading.Lock()
        self._closed = False

    def look_for_tracing(self) -> Tracing | None:
        """Look whether the program has set a tracer provider by now: once per submission and per run."""
        if self.tracing is None:
            self.tracing = tracing_of(self.store.traceparent)
        return self.tracing

    def submitting(self, workflow: str, queue: str) -> AbstractContextManager[object]:
        """Return the span of a submission, or nothing to speak of."""
        tracing = self.look_for_tracing()
        return QUIET if tracing is None else tracing.submitting(workflow, queue)

    def start_worker(
        self,
        handlers: Mapping[tuple[str, str], Handler],
        options: WorkerOptions,
        around: Around = AROUND_NOTHING,
        loop: asyncio.AbstractEventLoop | None = None,
        limited: frozenset[str] = frozenset(),
    ) -> Worker:
        """Start the worker of this process, after what is to be called before it.

        Async workflows run on the loop, if one is given, else on one that the worker starts. `limited` are
        queues that are known to have limits.
        """
        if self.worker is not None:
            raise Misuse("this Tally already has a worker in this process; stop it first")
        # A transaction's body must end well before the lease that protects it.
        longest = TX_MS_MAX if self.many_writers is None else options.lease_ms
        self.tx_ms_max = min(longest, options.lease_ms // 3)
        self.worker = Worker(
            self.store, self.committer, self.clock, self.ids, handlers, options, self._on_end, around, loop
        )
        self.worker.limited = limited
        self._measure(self.worker)
        try:
            self.relay = self._new_relay(options)
            self._maintenance = Maintenance(self.worker, self.relay)
            self.worker.start()
        except BaseException:
            self.worker = self._maintenance = self.relay = None
            raise
        if self.relay is not None:
            self.relay.start()
        self._maintenance.start()
        return self.worker

    def _measure(self, worker: Worker) -> None:
        """Count with the instruments of the program, if it has set a provider: then it has imported this."""
        if self._meters is None and "opentelemetry.metrics" in sys.modules:
            from tallystick.watch.meters import meters_of  # noqa: PLC0415 (most programs never load it)

            self._meters = meters_of(self.observers)
        if self._meters is not None:
            self._meters.watch(worker.running)

    def _new_relay(self, options: WorkerOptions) -> Relay | None:
        """Return the publisher to the endpoints; refuse to begin without secrets for the reports."""
        if not options.endpoints or not isinstance(self.store, Protocols):
            return None
        for endpoint in options.endpoints.values():
            endpoint.check()
            if not endpoint.replies and options.callback_url is None:
                raise BadInput(
                    f"directives go to {endpoint.address}, and its service must know where to report: "
                    "give the Tally its callback_url, or set TALLYSTICK_CALLBACK_URL"
                )
        keys = callback_keys(self.store.url, self.ids)
        reports = Reports(self.committer, self.clock, self.ids, keys)
        return Relay(
            self.committer, self.clock, options.endpoints, Leaving(keys, options.callback_url), reports
        )

    @property
    def relays(self) -> bool:
        """Tell whether a directive that is made here is published here, as its first try."""
        return self.relay is not None and self.relay.eager

    def publish(self, outcome: Outcome) -> None:
        """Publish the directive that a request with `relays` has made, if there is one."""
        if self.relay is not None:
            self.relay.offer(outcome)

    def publish_soon(self) -> None:
        """Let the relay look for directives that were made here without their first try."""
        if self.relay is not None:
            self.relay.on_room()

    def stop_worker(self) -> bool:
        """Stop the worker and tell whether everything it ran came to an end."""
        with self._stopping:
            if self.worker is None or self._maintenance is None:
                return True
            try:
                return self.worker.stop()
            finally:
                self._maintenance.stop()
                if self.relay is not None:
                    self.relay.stop(self.worker.options.grace_ms / 1000)
                self.relay = None
                self.worker = None
                self._maintenance = None

    def submit(self, submission: Submission, within: object = None) -> tuple[str, bool]:
        """Make a submission a job; return its id and whether this call made it."""
        if within is not None:
            primitive = submit_job(submission, self.ids.new(), self.clock.wall_ms())
            # A worker cannot see it before the caller's transaction is durable, and hears of it then.
            bundle = bundle_of(submission, primitive)
            outcome = settle(self.join(within).apply(bundle))
            return self.settle(primitive, outcome, submission.rule, due=False)
        primitive = self.prepare(submission)
        try:
            outcome = self.committer.call(bundle_of(submission, primitive))
        except HeldUp as held:
            primitive = self.without_slot(submission, primitive, held)
            outcome = self.committer.call(bundle_of(submission, primitive))
        except BaseException:
            self.give_up(primitive)
            raise
        return self.settle(primitive, outcome, submission.rule)

    def join(self, within: object) -> Transaction:
        """Return a transaction of the user that our bundles can be part of."""
        transaction = self.store.join(within)
        return transaction if self._sealing is None else SealedTransaction(transaction, self._sealing)

    def sealed(self, bundles: Sequence[Bundle]) -> Sequence[Bundle]:
        """Return bundles as they are stored."""
        return bundles if self._sealing is None else [self._sealing.bundle(bundle) for bundle in bundles]

    def without_slot(self, submission: Submission, primitive: SubmitJob, held: HeldUp) -> SubmitJob:
        """Return a submission that has to wait for others, and no longer keeps a slot of the worker."""
        self.give_up(primitive)
        if self.worker is not None and isinstance(held, QueueHasLimits):
            self.worker.limited |= {held.queue}
        return submit_job(submission, primitive.job.job_id, primitive.job.created_at)

    def transaction(self, limit: Duration | None) -> AbstractContextManager[Transaction]:
        """Lend a transaction for as long as it may take: well before any lease of this process runs out."""
        ms_max = TRANSACTION_MS_MAX if limit is None else duration_ms(limit)
        if ms_max <= 0:
            raise BadInput(f"limit={limit!r} leaves no time at all")
        if self.worker is not None:
            ms_max = min(ms_max, self.worker.options.lease_ms // 3)
        return self.store.transaction(ms_max)

    def run_tx(self, fence: Fence, body: Callable[[Transaction], RecordStep]) -> object:
        """Run a user's function in a transaction and return its step once durable.

        Where there is one writer, take a turn in the transaction of the next flush; where there are many,
        have a transaction of our own.
        """
        body = body if self._sealing is None else self._sealing.body(body)
        if self.many_writers is not None:
            lease_ms = 0 if self.worker is None else self.worker.options.lease_ms
            return self.many_writers.run_tx(fence, body, self.tx_ms_max, lease_ms)
        turn: Rendezvous[Transaction, RecordStep] = Rendezvous()
        waiter = self.committer.begin((RunTx(fence, turn, self.tx_ms_max),))
        turn.take(body)
        return waiter.wait()

    def poke(self) -> None:
        """Tell the worker of this process, if there is one, that there may be work."""
        if self.worker is not None:
            self.worker.poke()

    def write_and_claim(self, bundle: Bundle) -> Outcome:
        """Make a bundle durable that brings work, and let idle slots here look for it in the same flush."""
        if self.worker is None:
            return self.committer.call(bundle)
        request = self.committer.blocked(bundle)
        looks = self.worker.poke([request])
        outcome = request.wait()
        if not looks:
            # A look that began meanwhile may have been over before this was durable.
            self.poke()
        return outcome

    async def claim_with(self, lane: LoopLane, bundle: Bundle) -> Outcome:
        """Do the same on a loop: in the flush that takes this bundle, and in no earlier one."""
        looks: list[bool] = []
        worker = self.worker
        if worker is not None:
            lane.before_hand_over(lambda: looks.append(worker.poke(through=lane.join)))
        outcome = await lane.call(bundle)
        if not any(looks):
            self.poke()
        return outcome

    def notice_cancelled(self, job_id: str, *, ended: bool) -> None:
        """Tell a segment that runs here, a call that waits here and the listeners that a job was cancelled.

        `ended`: it has ended by this, without its function.
        """
        if self.worker is not None:
            notice_ended(self.worker, job_id, asked=True)
        row = self.reads.job(job_id)
        if row is not None and row.completed_at is not None:
            self.results.announce(job_id, EndedJob.of(row))
            if ended:
                self.committer.observers.tell(CancelledHere(job_id, row.handler, row.error_code))

    def prepare(self, submission: Submission) -> SubmitJob:
        """Return the primitive for a submission, claimed at birth if a slot here is free for it."""
        lease: NewLease | None = None
        if self.worker is not None and not submission.delay_ms:
            lease = self.worker.reserve((submission.handler, submission.version), submission.queue)
        return submit_job(submission, self.ids.new(), self.clock.wall_ms(), lease)

    def give_up(self, primitive: SubmitJob) -> None:
        """Give back the slot that was reserved for a submission which did not become a job here."""
        if primitive.lease is not None and self.worker is not None:
            self.worker.free()

    def settle(
        self, primitive: SubmitJob, outcome: Outcome, rule: KeyRule | None = None, *, due: bool = True
    ) -> tuple[str, bool]:
        """Act on what became of a submission: run it here, find the earlier one, or refuse a conflict.

        `due` says that the job can be claimed now, so that the worker of this process is to look for it.
        """
        if isinstance(outcome, Existing):
            self.give_up(primitive)
            check_same_content(primitive.reservation, outcome, rule)
            return outcome.job_id, False
        if self.worker is not None:
            self._begin(self.worker, primitive, due=due)
        return primitive.job.job_id, True

    def _begin(self, worker: Worker, primitive: SubmitJob, *, due: bool) -> None:
        """Run a job that was claimed at birth, or say that one is there for which no slot was free."""
        job = primitive.job
        if primitive.lease is not None:
            claimed = claimed_at_birth(primitive)
            if Claimed in self.observers.wanted:
                self.observers.tell(Claimed((claimed,), 1))
            worker.launch([claimed])
        elif due and job.ready_at <= job.created_at and worker.serves((job.handler, job.version), job.queue):
            worker.poke()

    def lane(self) -> LoopLane:
        """Return the committer's lane of the running event loop."""
        return self.committer.lane(asyncio.get_running_loop())

    def pause(self, ms: int) -> bool:
        """Hold this thread for a while; tell whether that was cut short because the worker is to stop."""
        worker = self.worker
        return self.clock.pause(ms, worker.halting if worker is not None else threading.Event())

    def close(self) -> None:
        """Stop the worker, flush, and give everything back; a second call waits for that."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self.stop_worker()
            self.committer.close()
            self.results.close()
            self.store.close()

    def _runs_here(self, job_id: str) -> bool:
        """Tell whether this process will announce the end of a job: not if others may end it first."""
        segment = None if self.worker is None else self.worker.running.get(job_id)
        return segment is not None and not (segment.lost or segment.cancelled)

    def _on_end(self, end: EndJob) -> None:
        self.results.announce(end.fence.job_id, EndedJob.of(end))
