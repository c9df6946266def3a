"""Sending signals: to one job, or the same one to many, in a few flushes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tallystick.app.api.control import Guard, act_on, noted
from tallystick.app.values.codec import encode
from tallystick.core.limits import PAYLOAD_BYTES_MAX, check_key, check_name, check_text
from tallystick.core.pictures import signal_of
from tallystick.core.watching.acts import About
from tallystick.engine.pending_writes import settle
from tallystick.engine.submission import Submission, bundle_of, submit_job
from tallystick.errors import JobEnded, KeyInUse, NotFound
from tallystick.store.api import Bundle, Deliver, Delivered, Existing, Outcome

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime

_TRIES_MAX: Final = 20


def signals(
    runtime: Runtime, job_ids: Iterable[str], name: str, value: object, sender_id: str | None
) -> list[Deliver]:
    """Return a message for each job; with a sender's id one that is sent again is the same message."""
    payload = encode(value, f"the signal {check_name('signal', name)}")
    check_text("signal", payload, PAYLOAD_BYTES_MAX)
    if sender_id is not None:
        check_key("signal id", sender_id)
    return [
        Deliver(
            runtime.ids.new() if sender_id is None else signal_of(job_id, sender_id),
            job_id,
            "signal",
            name,
            payload,
        )
        for job_id in job_ids
    ]


def deliver_one(runtime: Runtime, message: Deliver, by: str = "", guard: Guard = ()) -> Delivered:
    """Store a message and wake its job; an idle worker of this process claims it in the same flush.

    With an author it is an act, which is kept in the same bundle.
    """
    request = runtime.committer.blocked(_said(runtime, message, by, guard))
    worker = runtime.worker
    claiming = False
    if worker is None or not worker.idle:
        runtime.committer.put([request])
    else:
        claiming = worker.poke([request])
    (delivered,) = _delivered(runtime, [message], [0], [request.answer()], claiming=claiming)
    return delivered


async def deliver_one_async(runtime: Runtime, message: Deliver, by: str = "", guard: Guard = ()) -> Delivered:
    """Do the same without blocking the event loop."""
    bundle: Bundle = (*guard, message)
    if by:
        bundle = await asyncio.to_thread(_said, runtime, message, by, guard)
    outcome = await runtime.lane().call(bundle)
    (delivered,) = _delivered(runtime, [message], [0], [outcome])
    return delivered


def _said(runtime: Runtime, message: Deliver, by: str, guard: Guard) -> Bundle:
    """Return the bundle of a message: with who sent it, if that is known and there is such a job."""
    if not by or runtime.reads.job(message.job_id) is None:
        return (*guard, message)
    return noted(
        (*guard, message), act_on(About.JOB, message.job_id, "send", by, message.name), runtime.store
    )


def send_or_start(runtime: Runtime, submission: Submission, name: str, value: object) -> tuple[str, bool]:
    """Send to the job that is active under the key of a submission, or make one with the signal in it."""
    for _ in range(_TRIES_MAX):
        primitive = submit_job(submission, runtime.ids.new(), runtime.clock.wall_ms())
        (message,) = signals(runtime, [primitive.job.job_id], name, value, None)
        outcome = runtime.committer.call((*bundle_of(submission, primitive), message))
        if not isinstance(outcome, Existing):
            runtime.poke()
            return primitive.job.job_id, True
        (message,) = signals(runtime, [outcome.job_id], name, value, None)
        # It may end, or be removed, before it can be told: then the next look starts another.
        with suppress(JobEnded, NotFound):
            deliver_one(runtime, message)
            return outcome.job_id, False
    raise KeyInUse(
        f"the key {submission.idempotency_key!r} changed hands again and again; try again",
        key=submission.idempotency_key,
    )


def deliver_all(runtime: Runtime, messages: Sequence[Deliver]) -> list[Delivered]:
    """Store messages and wake their jobs; each gets its own outcome, and all of them share flushes."""
    order = _by_job(messages)
    outcomes = runtime.committer.call_all([(messages[index],) for index in order])
    return _delivered(runtime, messages, order, outcomes)


async def deliver_all_async(runtime: Runtime, messages: Sequence[Deliver]) -> list[Delivered]:
    """Do the same without blocking the event loop."""
    order = _by_job(messages)
    lane = runtime.lane()
    calls = [lane.call((messages[index],)) for index in order]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    return _delivered(runtime, messages, order, outcomes)


def _by_job(messages: Sequence[Deliver]) -> list[int]:
    """Return the places of messages by job: all senders hold the rows of jobs in this order."""
    return sorted(range(len(messages)), key=lambda index: messages[index].job_id)


def _delivered(
    runtime: Runtime,
    messages: Sequence[Deliver],
    order: Sequence[int],
    outcomes: Sequence[Outcome | BaseException],
    *,
    claiming: bool = False,
) -> list[Delivered]:
    """Wake what runs or waits here, and return what became of each, or raise the first refusal."""
    answers: dict[int, Outcome | BaseException] = dict(zip(order, outcomes, strict=True))
    if not claiming and any(outcome is Delivered.WOKE for outcome in outcomes):
        runtime.poke()
    for index, outcome in answers.items():
        if outcome is Delivered.KEPT and runtime.worker is not None:
            runtime.worker.notify(messages[index].job_id)
    return [_checked(messages[index], answers[index]) for index in range(len(messages))]


def _checked(message: Deliver, outcome: Outcome | BaseException) -> Delivered:
    delivered = settle(outcome)
    assert isinstance(delivered, Delivered)
    if delivered is Delivered.ABSENT:
        raise NotFound(f"there is no job {message.job_id}", job_id=message.job_id)
    return delivered
