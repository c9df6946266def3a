"""Where a job can stand when two processes come to it at once, and what each of them may want."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    CancelProtocol,
    DeliverDirective,
    MarkSent,
    NotPublished,
    RenewStep,
    TakeDirective,
)
from tallystick.testing.conformance.protocol_runs import (
    FINAL,
    OK,
    PULLED,
    PUSHED,
    RETRY,
    RunningProtocol,
    command,
)
from tests.azure.interleaving import Pair, Verb, asked, relayed, swept
from tests.azure.worlds import ModelSubject

Bring = Callable[[RunningProtocol], object]


def _nothing(_run: RunningProtocol) -> None:
    """Leave the job as it was submitted."""


def _late(run: RunningProtocol) -> None:
    run.publish()
    run.until(run.picture.steps[0].lease_expires_at or 0)


def _at_work(run: RunningProtocol) -> None:
    run.publish()
    run.ack()


def _waits(run: RunningProtocol) -> None:
    run.answer(RETRY)
    run.until(run.picture.steps[0].lease_expires_at or 0)


def _left_to_relays(run: RunningProtocol) -> None:
    run.until(run.subject.clock.wall_ms() + 30_000)
    assert isinstance(run.subject, ModelSubject)
    assert run.subject.store.due_steps(10) == []


def _asked_to_end(run: RunningProtocol) -> None:
    _at_work(run)
    run.apply(CancelProtocol(run.job_id))


SITUATIONS: dict[str, tuple[Policy, Bring]] = {
    "submitted": (PUSHED, _nothing),
    "to be taken": (PUSHED, lambda run: run.until(run.subject.clock.wall_ms() + 30_000)),
    "left to relays": (PUSHED, _left_to_relays),
    "to be asked for": (PULLED, _nothing),
    "looked at early": (PULLED, lambda run: run.until(run.subject.clock.wall_ms() + 30_000)),
    "out": (PUSHED, lambda run: run.publish()),
    "late": (PUSHED, _late),
    "at work": (PUSHED, _at_work),
    "to be tried again": (PUSHED, _waits),
    "asked to end": (PUSHED, _asked_to_end),
}


def verbs(run: RunningProtocol) -> dict[str, Verb]:
    """Return what may be wanted of a job now; whatever makes no sense is refused, and that is tried too."""
    fence, row = run.fence, run.picture.pending
    found = {
        "sent": MarkSent(fence),
        "ack": AckStep(fence),
        "heartbeat": RenewStep(fence),
        "ok": AnswerStep(fence, OK, "lease-ok", relays=True),
        "retry": AnswerStep(fence, RETRY, "lease-retry"),
        "final": AnswerStep(fence, FINAL, "lease-final"),
        "cancel": CancelProtocol(run.job_id),
        "force": CancelProtocol(run.job_id, force=True),
    }
    made: dict[str, Verb] = {name: asked(request) for name, request in found.items()}
    made["sweep"], made["relay"] = swept(run.job_id), relayed(run.job_id)
    if row is not None:
        made["take"] = asked(TakeDirective(run.job_id, row.step_id, row.attempt_no))
        made["not published"] = asked(NotPublished(fence, row.tries, "gone", final=True))
        if row.is_pulled:
            made["deliver"] = asked(DeliverDirective(run.job_id, row.step_id, row.attempt_no, "w"))
    return made


def pairs(situation: str, steps: int = 1) -> list[tuple[str, str]]:
    """Return the names of the verbs that are tried at once in a situation."""
    run = _brought(situation, steps)
    return list(combinations_with_replacement(sorted(verbs(run)), 2))


def _brought(situation: str, steps: int) -> RunningProtocol:
    policy, bring = SITUATIONS[situation]
    run = RunningProtocol(ModelSubject(), steps, policy)
    bring(run)
    return run


def search(situation: str, *names: str, steps: int = 1) -> int:
    """Let verbs run at once, in every order and with every crash; return how many states there were."""
    run = _brought(situation, steps)
    subject = run.subject
    assert isinstance(subject, ModelSubject)
    known = verbs(run)
    pair = Pair(subject.client.tables, subject.clock.wall_ms(), tuple(known[name] for name in names))
    pair.search(lambda _subject, values: _judge_answers(names, values))
    return pair.states


ONCE = {Heard.TAKEN, Heard.CREATED}


def _judge_answers(names: tuple[str, ...], values: list[object]) -> None:
    """Insist that a right is given to one alone, and that one RESULT counts."""
    heard = [value.heard for value in values if isinstance(value, Hearing)]
    for right in ONCE:
        assert heard.count(right) <= 1, (names, heard)
    results = [
        value.heard
        for name, value in zip(names, values, strict=True)
        if name in {"ok", "retry", "final"} and isinstance(value, Hearing)
    ]
    assert results.count(Heard.ACCEPTED) <= 1, (names, results)


def search_submissions() -> int:
    """Let two processes submit the same command at once, under names of their own."""
    subject, first = ModelSubject(), command(1, PUSHED)
    job = first.job._replace(job_id="00000000-other")
    second = first._replace(job=job, steps=tuple(step._replace(job_id=job.job_id) for step in first.steps))
    pair = Pair(subject.client.tables, subject.clock.wall_ms(), (asked(first), asked(second)))

    def judged(subject: ModelSubject, values: list[object]) -> None:
        made = [value for value in values if isinstance(value, Hearing)]
        assert len(made) <= 1
        assert len(subject.jobs()) == 1

    pair.search(judged)
    return pair.states
