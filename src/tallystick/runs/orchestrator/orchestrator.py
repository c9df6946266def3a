"""Drive a run: do the work of its state, choose the next state, until a final one is reached.

One thread writes the log; workers run in threads of their own. Every decision follows from what the log says,
so a process that takes over decides the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

from opentelemetry import context as otel_context

from tallystick.crash import Crash
from tallystick.errors import ArtifactChanged, BadInput, RunError, StorageFailed
from tallystick.ids import Ids
from tallystick.runs.definition import patterns
from tallystick.runs.definition.pipeline import CANCELLED, FAILED, Node, Pipeline
from tallystick.runs.log.events import (
    ErrorRecord,
    EventType,
    Issue,
    ItemFailed,
    ItemFinished,
    ItemResumed,
    ItemStarted,
)
from tallystick.runs.log.fold import RunView, WorkKey
from tallystick.runs.log.recorder import Fact, RunRecorder
from tallystick.runs.log.snapshot import Artifact, WorkStatus
from tallystick.runs.orchestrator import outcomes, staleness
from tallystick.runs.orchestrator.visit import Running, StateVisit, needs_attempt, queued
from tallystick.runs.tracing import ended_span, start_span
from tallystick.runs.workers.artifacts import ArtifactFiles
from tallystick.runs.workers.receipts import Receipt, Receipts
from tallystick.runs.workers.work import Work

CANCEL_REQUEST: Final = "cancel.requested"
# Neither is the fault of a worker: the run stops where it is, and a resume goes on.
_RESUMABLE: Final = (StorageFailed, ArtifactChanged)
# All else that leaves a worker is its failure, `sys.exit()` too. An interrupt asks for the end of the
# program, and the run goes on when it is resumed.
_NO_FAILURE: Final = (*_RESUMABLE, KeyboardInterrupt, Crash)


class WorkFailed(Exception):
    """A worker raised and has no tries left; its exception is the cause, if it was raised in this process."""

    def __init__(self, record: ErrorRecord | None) -> None:
        """Keep the exception as the log has it."""
        super().__init__(record)
        self.record = record


class CancelRequested(Exception):
    """The user asked to cancel the run."""


class Orchestrator:
    """One process at work on one run."""

    def __init__(
        self,
        recorder: RunRecorder,
        pipeline: Pipeline,
        artifact_files: ArtifactFiles,
        ids: Ids,
        parallel: int,
    ) -> None:
        """Work on the open run with at most `parallel` workers at a time."""
        check_parallel(parallel)
        self._recorder = recorder
        self._pipeline = pipeline
        self._artifact_files = artifact_files
        self._ids = ids
        self._parallel = parallel
        self._receipts = Receipts(artifact_files)
        self._kept: dict[str, Receipt] = {}
        self._running: dict[Future[object], Running] = {}

    @property
    def _view(self) -> RunView:
        return self._recorder.view

    def drive(self, kept: Mapping[str, Receipt] | None = None) -> BaseException | None:
        """Go on until a final state; return the error that failed the run, if one did.

        Work that has a receipt is not called again. Trouble with the disk is not the run's failure: it is
        raised, and the run can be resumed.
        """
        self._kept = dict(kept or {})
        cause: BaseException | None = None
        try:
            with ThreadPoolExecutor(self._parallel, thread_name_prefix="tally-run") as pool:
                while not self._view.ended:
                    self._check_cancel()
                    self._work_through(pool)
                    self._take_exit()
        except CancelRequested:
            self.end_cancelled()
        except _RESUMABLE:
            raise
        except Exception as error:  # noqa: BLE001 (whatever a worker or the orchestrator raised fails the run, on record)
            cause = error.__cause__ if isinstance(error, WorkFailed) else error
            known = error.record if isinstance(error, WorkFailed) else None
            record = known or outcomes.error_record(error)
            self._end(FAILED, record.message, [outcomes.failure_issue(record)])
        return cause

    def end_cancelled(self) -> None:
        """Cancel a run that no process is working on."""
        self._end(CANCELLED, "asked by the user", [])

    def is_cancelled(self) -> bool:
        """Return whether the user has asked to cancel."""
        return self._recorder.folder.exists(CANCEL_REQUEST)

    def _check_cancel(self) -> None:
        if self.is_cancelled():
            raise CancelRequested

    def _work_through(self, pool: ThreadPoolExecutor) -> None:
        """Do all work of the current state, in parallel where one node does not read what another makes.

        What was begun first is recorded first, one item at a time, and only then more work begins. So the
        order of the log follows from the plan and from `parallel`, never from which worker was faster.
        """
        state = self._view.state
        visit = StateVisit(state, self._view.visits(state), self._pipeline.order(state))
        trouble = self._failure_on_record(visit)
        while True:
            failure = self._advance(visit, pool)
            working = bool(self._running)
            if working:
                oldest = self._wait_for_oldest()
                settled = self._settle(visit, oldest, self._running.pop(oldest))
                failure = failure or settled or (CancelRequested() if self.is_cancelled() else None)
            if trouble is None and failure is not None:
                trouble = failure
                visit.close()
            if not working:
                break
        if trouble is not None:
            raise trouble

    def _failure_on_record(self, visit: StateVisit) -> Exception | None:
        """Return the failure that an earlier process recorded and did not live to act on.

        What it had begun is taken up and brought to its end, as it would have done; nothing else begins.
        """
        spent = visit.spent(self._view)
        if spent is None:
            return None
        visit.take_up_begun(self._view)
        return WorkFailed(spent.error)

    def _wait_for_oldest(self) -> Future[object]:
        """Wait for the work that was begun first and return it; work that ends before it gets a receipt."""
        oldest = next(iter(self._running))
        while not oldest.done():
            unnoticed = [one for one, running in self._running.items() if not running.kept]
            wait(unnoticed, return_when=FIRST_COMPLETED)
            for future in unnoticed:
                if future is not oldest and future.done():
                    self._keep(future, self._running[future])
        return oldest

    def _keep(self, future: Future[object], running: Running) -> None:
        """Make the end of work durable whose turn to be recorded has not come; a failure can wait."""
        running.kept = True
        error = future.exception()
        if isinstance(error, _NO_FAILURE):
            raise error
        if error is None and running.receipt is None:
            work, span = running.work, running.span
            # What the turn itself will refuse is a failure and can wait as well.
            with contextlib.suppress(BadInput):
                outcome = outcomes.word(work, future.result())
                self._receipts.keep(work, span.span_id, span.parent_span_id, outcome)

    def _advance(self, visit: StateVisit, pool: ThreadPoolExecutor) -> Exception | None:
        """Open the nodes whose inputs are complete and hand work to idle threads; return what went wrong."""
        try:
            taken_up = False
            while free := [entry for entry in visit.waiting if all(map(visit.is_finished, entry[1]))]:
                for entry in free:
                    visit.waiting.remove(entry)
                    taken_up |= self._open(visit, entry[0])
            if taken_up:
                visit.sort(self._view)
            while visit.ready and len(self._running) < self._parallel:
                node, work_key = visit.ready.popleft()
                running = self._begin(node, work_key)
                self._running[pool.submit(_call, running)] = running
        except _RESUMABLE:
            raise
        except Exception as error:  # noqa: BLE001 (what is running must be recorded before the run fails)
            return error
        return None

    def _open(self, visit: StateVisit, node: Node) -> bool:
        """Queue the work of a node that is not done yet; return whether an earlier process queued some."""
        view = self._view
        work_keys = [WorkKey(node.worker, scope, visit.state, visit.number) for scope in self._scopes(node)]
        todo = [work_key for work_key in work_keys if work_key not in view.done]
        visit.open_work[node.worker] = set(todo)
        visit.ready += [(node, work_key) for work_key in todo]
        fresh = [work_key for work_key in todo if needs_attempt(view, work_key)]
        if fresh:
            self._recorder.record([queued(view, work_key) for work_key in fresh])
        return len(fresh) < len(todo)

    def _scopes(self, node: Node) -> list[str]:
        if node.scopes is None:
            return [""]
        if not callable(node.scopes):
            return _checked(node.scopes)
        work = self._work(node, "", "", 0, self._inputs(node, ""))
        try:
            return _checked(node.scopes(work))
        except (Exception, KeyboardInterrupt, Crash):
            raise
        except BaseException as error:
            raise RunError(f"the scopes of {node.worker} raised {error!r}", worker=node.worker) from error

    def _inputs(self, node: Node, scope_key: str) -> dict[str, Artifact]:
        """Return the artifacts that a node declares and the run has; raise when a required one is missing.

        What is stale is not there: either its maker works first, or the run does not come by it any more.
        """
        index = self._view.artifacts
        found: dict[str, Artifact] = {}
        for pattern in node.inputs:
            if not scope_key and patterns.SCOPE in pattern:
                continue
            bound = patterns.bind(pattern, scope_key)
            names = [name for name in index if patterns.matches(bound, name)] if "*" in bound else [bound]
            found.update((name, index[name]) for name in names if name in index and not index[name].stale)
            if bound not in found and not patterns.is_optional(pattern):
                why = "is stale and was not made again" if bound in index else "was neither made nor supplied"
                raise RunError(f"{node.worker} needs the artifact {bound}, which {why}")
        return dict(sorted(found.items()))

    def _begin(self, node: Node, work_key: WorkKey) -> Running:
        """Record that a work item is running, and return it; one that was interrupted keeps its attempt."""
        view = self._view
        item = view.items[view.attempts[work_key]]
        inputs = self._inputs(node, work_key.scope_key)
        work = self._work(node, item.work_item_id, work_key.scope_key, item.attempt, inputs)
        receipt = self._kept.pop(item.work_item_id, None)
        if receipt is not None and self._receipts.accept(receipt, work):
            span = ended_span(view.trace_id, receipt.span_id, receipt.parent_span_id)
            return Running(node, work_key, work, span, receipt)
        span = start_span(
            self._ids, f"{node.worker} {work_key.scope_key}".rstrip(), parent=self._recorder.span,
            attributes={"tallystick.run_id": view.run_id, "tallystick.work_item_id": item.work_item_id},
        )  # fmt: skip
        if item.status is WorkStatus.RUNNING:
            reads = None if list(inputs) == item.inputs else list(inputs)
            resumed = ItemResumed(item.work_item_id, span.span_id, reads)
            self._recorder.record([(EventType.RESUME_WORK_ITEM, resumed)], span)
        else:
            started = ItemStarted(item.work_item_id, span.span_id, list(inputs))
            self._recorder.record([(EventType.WORK_ITEM_STARTED, started)], span)
        return Running(node, work_key, work, span)

    def _work(
        self, node: Node, item_id: str, scope_key: str, attempt: int, inputs: dict[str, Artifact]
    ) -> Work:
        outputs = tuple(patterns.bind(name, scope_key) for name in node.outputs) if item_id else ()
        return Work(
            run_id=self._view.run_id,
            worker=node.worker,
            attempt=attempt,
            scope_key=scope_key,
            work_item_id=item_id,
            inputs=inputs,
            outputs=outputs,
            artifact_files=self._artifact_files,
            is_cancelled=self.is_cancelled,
        )

    def _settle(self, visit: StateVisit, future: Future[object], running: Running) -> Exception | None:
        """Record how a work item ended; return the failure that no try is left for."""
        error = future.exception()
        if isinstance(error, _NO_FAILURE):
            running.span.end(str(error))
            raise error
        try:
            if error is None:
                self._finish(running, outcomes.word(running.work, future.result()))
                visit.open_work[running.node.worker].discard(running.work_key)
                running.span.end()
                return None
        except (BadInput, RunError) as refused:
            error = refused
        assert error is not None
        running.span.end(str(error))
        return self._fail(visit, running, error)

    def _finish(self, running: Running, outcome: str) -> None:
        """Record everything that the work left behind, in one go, then give its artifacts their names."""
        view, work = self._view, running.work
        made = [work.made[name] for name in sorted(work.made)]
        facts: list[Fact] = []
        if running.work_key in view.ever_done:
            # In front of the artifacts: if only a part gets to the disk, the difference is still seen.
            different = [one.name for one in made if self._differs(one.name, one.sha256)]
            facts += staleness.invalidation(view, different, running.work_key)[0]
        facts += [
            (EventType.ARTIFACT_WRITTEN, one)
            for one in made
            if view.writers.get(one.name) != work.work_item_id
            or view.artifacts[one.name].sha256 != one.sha256
            or view.artifacts[one.name].stale
        ]
        facts += outcomes.notes(view, work)
        facts.append(
            (EventType.WORK_ITEM_FINISHED, ItemFinished(work.work_item_id, sorted(work.made), outcome))
        )
        self._recorder.record(facts, running.span)
        for one in made:
            self._artifact_files.publish(one.name, one.sha256)
        if running.kept or running.receipt is not None:
            self._receipts.drop(work.work_item_id)

    def _differs(self, name: str, digest: str) -> bool:
        known = self._view.artifacts.get(name)
        return known is not None and known.sha256 != digest

    def _fail(self, visit: StateVisit, running: Running, error: BaseException) -> Exception | None:
        """Record a failed attempt; queue the next one, or return the failure of the run."""
        view, work_key = self._view, running.work_key
        opened: list[Fact] = [
            (EventType.ISSUE_OPENED, note)
            for note in running.work.notes
            if isinstance(note, Issue) and note.issue_id not in view.issues
        ]
        failed = ItemFailed(running.work.work_item_id, outcomes.error_record(error))
        facts: list[Fact] = [*opened, (EventType.WORK_ITEM_FAILED, failed)]
        if view.failures.get(work_key, 0) + 1 < running.node.tries:
            self._recorder.record(facts, running.span)
            self._recorder.record([queued(view, work_key)])
            visit.queue_again(running.node, work_key)
            return None
        self._recorder.record(facts, running.span)
        failure = WorkFailed(failed.error)
        failure.__cause__ = error
        return failure

    def _take_exit(self) -> None:
        """Move to the state that the outcome of the work chooses, or to FAILED when its limit is used up."""
        view, graph = self._view, self._pipeline.graph
        target = outcomes.next_state(view, graph)
        if issue := outcomes.limit_issue(view, graph, target):
            self._end(FAILED, issue.message, [issue])
        elif target in graph.final:
            self._end(target, "", [])
        else:
            self._recorder.move(target)

    def _end(self, target: str, reason: str, issues: list[Issue]) -> None:
        """Enter a final state, leaving no work item open behind."""
        self._recorder.move(target, reason, outcomes.last_facts(self._view, target, issues))
        self._recorder.folder.discard(CANCEL_REQUEST)


def check_parallel(parallel: int) -> None:
    """Raise BadInput unless at least one worker can work."""
    if parallel < 1:
        raise BadInput(f"parallel must be at least 1, not {parallel}")


def _checked(scopes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(patterns.check_scope(scope) for scope in scopes))


def _call(running: Running) -> object:
    """Call the worker inside its span, so that spans of its own are children."""
    if running.receipt is not None:
        return running.receipt.outcome
    token = otel_context.attach(running.span.as_parent())
    try:
        return running.node.function(running.work)
    finally:
        otel_context.detach(token)
