"""Submitting on a loop, and submitting lists: calls that differ in their arguments alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tallystick.app.running.async_tx import AsyncTx
from tallystick.core.queues.reusing import KeyRule
from tallystick.engine.committer import LoopLane
from tallystick.engine.pending_writes import settle
from tallystick.engine.submission import Submission, bundle_of, submit_job, submit_jobs
from tallystick.errors import BadInput
from tallystick.store.api import Bundle, HeldUp, Outcome, SubmitJob, SubmitJobs, Transaction

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime

Submitted = tuple[str, bool]
"""The id of a job, and whether this submission made it."""


async def submit_async(runtime: Runtime, submission: Submission, within: object = None) -> Submitted:
    """Make one job without blocking the event loop.

    The waiting task may be cancelled. The job is durable all the same, and runs here if it was claimed here.
    Within a transaction it is durable when that is.
    """
    if within is not None:
        primitive = submit_job(submission, runtime.ids.new(), runtime.clock.wall_ms())
        (outcome,) = await _within(runtime, within, [bundle_of(submission, primitive)])
        return runtime.settle(primitive, settle(outcome), submission.rule, due=False)
    lane = runtime.lane()
    primitive = runtime.prepare(submission)
    answer: asyncio.Future[Submitted] = lane.loop.create_future()
    lane.put(
        bundle_of(submission, primitive), partial(_arrived, runtime, lane, submission, answer, primitive)
    )
    return await answer


def _arrived(
    runtime: Runtime,
    lane: LoopLane,
    submission: Submission,
    answer: asyncio.Future[Submitted],
    primitive: SubmitJob,
    outcome: Outcome | BaseException,
) -> None:
    """Tell the waiting task what came of its job; one that was held up is made alone, without a slot."""
    if isinstance(outcome, HeldUp) and primitive.lease is not None:
        alone = runtime.without_slot(submission, primitive, outcome)
        lane.put(bundle_of(submission, alone), partial(_arrived, runtime, lane, submission, answer, alone))
        return
    try:
        submitted = _settled(runtime, primitive, outcome, submission.rule)
    except Exception as error:  # noqa: BLE001 (raised where it is awaited)
        if not answer.done():
            answer.set_exception(error)
    else:
        if not answer.done():
            answer.set_result(submitted)


def _settled(
    runtime: Runtime, primitive: SubmitJob, outcome: Outcome | BaseException, rule: KeyRule | None
) -> Submitted:
    if isinstance(outcome, BaseException):
        runtime.give_up(primitive)
        raise outcome
    return runtime.settle(primitive, outcome, rule)


def submit_all(
    runtime: Runtime, like: Submission, payloads: Sequence[str], within: object = None
) -> Iterator[Submitted]:
    """Make a job of each payload; if one is refused the others stand, and the first refusal is raised.

    Within a transaction all of them are part of it, and a refusal is raised where it is met.
    """
    requests = _requests(runtime, like, payloads)
    if within is None:
        outcomes = runtime.committer.call_all([(request,) for request in requests])
    else:
        transaction = runtime.join(within)
        outcomes = [transaction.apply((request,)) for request in requests]
    return _submitted(runtime, requests, outcomes)


async def submit_all_async(
    runtime: Runtime, like: Submission, payloads: Sequence[str], within: object = None
) -> Iterator[Submitted]:
    """Do the same without blocking the event loop."""
    requests = _requests(runtime, like, payloads)
    if within is not None:
        written = await _within(runtime, within, [(request,) for request in requests])
        return _submitted(runtime, requests, written)
    lane = runtime.lane()
    outcomes = await asyncio.gather(*(lane.call((request,)) for request in requests), return_exceptions=True)
    return _submitted(runtime, requests, outcomes)


async def _within(
    runtime: Runtime, transaction: object, bundles: Sequence[Bundle]
) -> Sequence[Outcome | BaseException]:
    if isinstance(transaction, AsyncTx):

        def write(bundle: Bundle, db: Transaction) -> Outcome:
            return runtime.join(db).apply(bundle)

        return [await transaction.ask(partial(write, bundle)) for bundle in bundles]
    if runtime.many_writers is not None:
        return await runtime.many_writers.apply_on_loop(transaction, runtime.sealed(bundles))
    raise BadInput(
        "on SQLite within= takes what app.transaction() or a tx step gives, and submit; not "
        f"{type(transaction).__name__}"
    )


def _requests(
    runtime: Runtime, like: Submission, payloads: Sequence[str]
) -> Sequence[SubmitJob | SubmitJobs]:
    """Return one primitive for many, or one for each if each may be the same as an earlier one."""
    if not payloads:
        return []
    ids, now = runtime.ids.many(len(payloads)), runtime.clock.wall_ms()
    if not like.reserved:
        return submit_jobs(like, payloads, ids, now)
    return [
        submit_job(msgspec.structs.replace(like, payload=payload), job_id, now)
        for job_id, payload in zip(ids, payloads, strict=True)
    ]


def _submitted(
    runtime: Runtime,
    requests: Sequence[SubmitJob | SubmitJobs],
    outcomes: Sequence[Outcome | BaseException],
) -> Iterator[Submitted]:
    """Give what became of each, in their order; everything that stands may be claimed here from now on."""
    runtime.poke()
    for request, outcome in zip(requests, outcomes, strict=True):
        if isinstance(request, SubmitJobs):
            settle(outcome)
            for job_id in request.job_ids:
                yield job_id, True
        else:
            yield runtime.settle(request, settle(outcome), due=False)
