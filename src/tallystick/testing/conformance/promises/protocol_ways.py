"""Directives on their way, cancellations, many requests in one flush, and messages in any order."""

from __future__ import annotations

from typing import cast

import pytest

from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.remote.plans import REFUSED, Heard, Hearing
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    Callback,
    CancelProtocol,
    DeliverDirective,
    DueStep,
    ExpireStep,
    MarkSent,
    NotPublished,
    StepAnswer,
    StepFence,
    TakeDirective,
)
from tallystick.store.api import Protocols
from tallystick.testing.conformance.drafts import FRESH, bundles, outcome_of
from tallystick.testing.conformance.protocol_runs import (
    EACH_WAY,
    FINAL,
    OK,
    PULLED,
    RETRY,
    RunningProtocol,
    command,
)
from tallystick.testing.conformance.subject import Subject

MESSAGES = ("SENT", "ACK1", "RESULT1", "TIMEOUT", "ACK2", "RESULT2", "CANCEL")
SAMPLE = 24
# So far apart that no message has the same place in all that are tried; all orders are tried in memory.
STRIDE = 34_313


def sample(count: int, first: int = 0) -> list[tuple[str, ...]]:
    """Return so many of all sequences of seven messages, each any number of times, from the `first` on.

    >>> sample(1), len({*sample(10_000)})
    ([('SENT', 'SENT', 'SENT', 'SENT', 'SENT', 'SENT', 'SENT')], 10000)
    """
    length = len(MESSAGES)
    numbers = ((first + at * STRIDE) % length**length for at in range(count))
    return [
        tuple(MESSAGES[number // length**place % length] for place in reversed(range(length)))
        for number in numbers
    ]


class ProtocolPublishing:
    """The way of a directive."""

    def test_four_tries_are_counted_before_they_are_made_and_then_it_is_given_up(
        self, subject: Subject
    ) -> None:
        run = RunningProtocol(subject, 2)
        store, begun = cast("Protocols", subject.store), subject.clock.wall_ms()
        for try_no, at in enumerate((0, 30_000, 150_000, 750_000), start=1):
            run.until(begun + at)
            if try_no > 1:
                assert run.job_id in [row.job_id for row in store.due_directives("webhook", 10_000)]
                taken = run.apply(TakeDirective(run.job_id, "s0", 1))
                assert taken.heard is Heard.TAKEN
                assert taken.directive is not None
                assert taken.directive.tries == try_no
                run.same(TakeDirective(run.job_id, "s0", 1), Heard.NOT_DUE)
                run.same(NotPublished(run.fence, try_no - 1, "away"), Heard.STALE)
            assert run.job_id not in [row.job_id for row in store.due_directives("webhook", 10_000)]
            if try_no < 4:
                run.same(NotPublished(run.fence, try_no, "away"), Heard.LATER)
        assert run.apply(NotPublished(run.fence, 4, "away")).heard is Heard.DONE
        assert run.states() == ("FAILED_FINAL", ["FAILED_FINAL", "CANCELLED"])
        assert run.picture.job.error_code == "DISPATCH_FAILED"
        # Whose job it is reads which service, and nothing of where that is.
        assert run.picture.job.error_message == "the service svc could not be reached"
        (row,) = run.images()["outbox"]
        assert (row["state"], row["reason"]) == ("FAILED_FINAL", "away")
        run.check()

    def test_a_directive_that_its_maker_does_not_publish_is_due_at_once(self, subject: Subject) -> None:
        via = f"webhook {FRESH.new()}"
        request = command(1, Policy(via={"svc": via}))._replace(relays=False)
        assert isinstance(outcome_of(subject.store, request), Hearing)
        store = cast("Protocols", subject.store)
        (row,) = store.due_directives(via, 10)
        assert (row.tries, row.next_try_at) == (0, subject.clock.wall_ms())
        assert store.due_directives("webhook elsewhere", 10) == []
        assert row not in store.stray_directives([via], 0, 10_000)
        assert row in store.stray_directives(["webhook elsewhere"], 0, 10_000)
        assert row not in store.stray_directives([], 1, 10_000)
        taken = outcome_of(subject.store, TakeDirective(row.job_id, row.step_id, 1))
        assert isinstance(taken, Hearing)
        assert taken.directive is not None
        assert (taken.directive.tries, taken.directive.next_try_at) == (1, subject.clock.wall_ms() + 30_000)
        assert store.due_directives(via, 10) == []
        assert row.outbox_id not in [each.outbox_id for each in store.stray_directives([], 0, 10_000)]

    def test_an_outage_longer_than_the_budget_costs_no_try(self, subject: Subject) -> None:
        run = RunningProtocol(subject)
        subject.clock.advance(86_400_000)
        assert cast("Protocols", subject.store).due_steps(10_000).count(DueStep(run.job_id)) == 0
        run.same(ExpireStep(run.job_id, "x"), Heard.NOT_DUE)
        assert run.apply(TakeDirective(run.job_id, "s0", 1)).heard is Heard.TAKEN
        assert run.ack().heard is Heard.ACCEPTED

    def test_a_directive_is_given_to_who_asks_and_again_to_the_same_worker(self, subject: Subject) -> None:
        service = f"svc-{FRESH.new()}"
        request = command(1, PULLED)
        request = request._replace(steps=tuple(step._replace(service=service) for step in request.steps))
        assert isinstance(outcome_of(subject.store, request), Hearing)
        store = cast("Protocols", subject.store)
        (row,) = store.asked_directives([service], None, 10)
        assert store.asked_directives([service], "acme", 10) == [row]
        assert store.asked_directives([service], "other", 10) == []
        given = outcome_of(subject.store, DeliverDirective(row.job_id, row.step_id, 1, "w1"))
        assert isinstance(given, Hearing)
        assert given.heard is Heard.TAKEN
        assert store.asked_directives([service], None, 10) == []
        (kept,) = store.given_directives("w1", 10)
        assert (kept.outbox_id, kept.state, kept.payload) == (row.outbox_id, "SENT", row.payload)
        assert store.given_directives("w2", 10) == []
        assert store.directive(row.outbox_id) == kept
        subject.clock.advance(30_000)
        assert store.given_directives("w1", 10) == []

    def test_a_directive_that_nobody_asks_for_ends_the_job(self, subject: Subject) -> None:
        run = RunningProtocol(subject, 1, PULLED)
        run.until(run.picture.steps[0].lease_expires_at or 0)
        assert DueStep(run.job_id) in cast("Protocols", subject.store).due_steps(10_000)
        assert run.expire().heard is Heard.DONE
        assert run.picture.job.error_code == "DISPATCH_FAILED"
        run.check()

    def test_what_is_due_is_exact_and_bounded(self, subject: Subject) -> None:
        store = cast("Protocols", subject.store)
        runs = [RunningProtocol(subject) for _ in range(3)]
        for run in runs:
            run.publish()
            subject.clock.advance(1)
        run = runs[0]
        run.until(run.picture.steps[0].lease_expires_at or 0)
        mine = {run.job_id for run in runs}
        assert [job for job, _step in store.due_steps(10_000) if job in mine] == [run.job_id]
        subject.clock.advance(10)
        assert [job for job, _step in store.due_steps(10_000) if job in mine] == [run.job_id for run in runs]
        assert len(store.due_steps(2)) == 2


class ProtocolCancelling:
    """Cancelling in every situation of the active step, and how it ends then."""

    @EACH_WAY
    def test_with_nothing_in_flight_everything_ends_at_once(self, subject: Subject, policy: Policy) -> None:
        run = RunningProtocol(subject, 2, policy)
        run.answer(RETRY)
        assert run.apply(CancelProtocol(run.job_id)).heard is Heard.CANCELLED
        assert run.states() == ("CANCELLED", ["CANCELLED", "CANCELLED"])
        run.same(CancelProtocol(run.job_id), Heard.FINAL)
        run.same(CancelProtocol(run.job_id, force=True), Heard.FINAL)
        run.check()

    @pytest.mark.parametrize("acked", ["", "acknowledged"])
    @pytest.mark.parametrize("end", ["ok", "retry", "final", "timeout", "force"])
    def test_a_step_in_flight_may_end_and_nothing_follows(
        self, subject: Subject, end: str, acked: str
    ) -> None:
        run = RunningProtocol(subject, 2)
        run.publish()
        if acked:
            run.ack()
        assert run.apply(CancelProtocol(run.job_id)).heard is Heard.CANCELLING
        run.same(CancelProtocol(run.job_id), Heard.CANCELLING)
        match end:
            case "timeout":
                run.until(run.picture.steps[0].lease_expires_at or 0)
                assert run.expire().heard is Heard.DONE
            case "force":
                assert run.apply(CancelProtocol(run.job_id, force=True)).heard is Heard.CANCELLED
            case _:
                answer = {"ok": OK, "retry": RETRY, "final": FINAL}[end]
                assert run.answer(answer).heard is Heard.ACCEPTED
        first = {"ok": "SUCCEEDED", "final": "FAILED_FINAL"}.get(end, "CANCELLED")
        assert run.states() == ("CANCELLED", [first, "CANCELLED"])
        assert run.picture.job.attempts_total == 1
        run.check()

    @pytest.mark.parametrize("end", ["ok", "retry", "final", "force", "ack and ok", "sent and ok", "timeout"])
    def test_a_directive_that_is_being_published_may_be_answered_and_nothing_follows(
        self, subject: Subject, end: str
    ) -> None:
        run = RunningProtocol(subject, 2)
        fence = run.fence
        assert run.apply(CancelProtocol(run.job_id)).heard is Heard.CANCELLING
        assert run.states() == ("CANCELLING", ["DISPATCHING", "PENDING"])
        run.same(CancelProtocol(run.job_id), Heard.CANCELLING)
        match end:
            case "force":
                assert run.apply(CancelProtocol(run.job_id, force=True)).heard is Heard.CANCELLED
            case "timeout":
                run.until(run.picture.steps[0].lease_expires_at or 0)
                assert run.expire().heard is Heard.DONE
            case _:
                if end == "ack and ok":
                    assert run.ack().heard is Heard.ACCEPTED
                if end == "sent and ok":
                    assert run.publish().heard is Heard.DONE
                told = run.answer({"retry": RETRY, "final": FINAL}.get(end, OK))
                assert (told.heard, told.cancelling) == (Heard.ACCEPTED, False)
        answered = end not in ("force", "timeout")
        first = {"retry": "CANCELLED", "final": "FAILED_FINAL"}.get(
            end, "SUCCEEDED" if answered else "CANCELLED"
        )
        assert run.states() == ("CANCELLED", [first, "CANCELLED"])
        assert [(each["state"], each.get("reason")) for each in run.images()["outbox"]] == [
            ("SENT", None) if answered else ("FAILED_FINAL", "withdrawn")
        ]
        assert run.picture.job.attempts_total == 1
        run.check()
        for late in (MarkSent(fence), NotPublished(fence, 1, "away"), TakeDirective(run.job_id, "s0", 1)):
            assert run.apply(late).heard in (Heard.STALE, Heard.DUPLICATE)
        assert run.states() == ("CANCELLED", [first, "CANCELLED"])

    @pytest.mark.parametrize("said", [OK, RETRY, FINAL], ids=["ok", "retry", "final"])
    def test_a_directive_that_no_worker_asked_for_is_gone_with_its_job(
        self, subject: Subject, said: StepAnswer
    ) -> None:
        run = RunningProtocol(subject, 2, PULLED)
        fence = run.fence
        assert run.apply(CancelProtocol(run.job_id)).heard is Heard.CANCELLED
        assert run.states() == ("CANCELLED", ["CANCELLED", "CANCELLED"])
        run.same(AnswerStep(fence, said, FRESH.new(), relays=True), Heard.STALE)
        run.same(CancelProtocol(run.job_id, force=True), Heard.FINAL)
        run.same(DeliverDirective(run.job_id, "s0", 1, "w"), Heard.STALE)
        run.check()

    def test_a_directive_that_a_relay_has_is_withdrawn_when_the_relay_is_not_heard_of(
        self, subject: Subject
    ) -> None:
        run = RunningProtocol(subject)
        assert run.apply(CancelProtocol(run.job_id)).heard is Heard.CANCELLING
        row = run.picture.pending
        assert row is not None
        run.until(row.next_try_at)
        assert run.apply(TakeDirective(run.job_id, "s0", 1)).heard is Heard.CANCELLED
        assert run.states() == ("CANCELLED", ["CANCELLED"])
        assert [each["reason"] for each in run.images()["outbox"]] == ["withdrawn"]

    def test_a_failed_publish_ends_a_job_that_was_asked_to_end(self, subject: Subject) -> None:
        run = RunningProtocol(subject)
        run.apply(CancelProtocol(run.job_id))
        assert run.apply(NotPublished(run.fence, 1, "away")).heard is Heard.DONE
        assert run.states() == ("CANCELLED", ["CANCELLED"])
        run.check()

    def test_what_nobody_asked_for_yet_is_withdrawn_at_once(self, subject: Subject) -> None:
        run = RunningProtocol(subject, 1, PULLED)
        assert run.apply(CancelProtocol(run.job_id)).heard is Heard.CANCELLED
        run.check()


class ProtocolBatches:
    """Many requests in one flush."""

    def test_requests_about_one_job_in_one_flush_are_decided_in_order(self, subject: Subject) -> None:
        run = RunningProtocol(subject, 2)
        fence = run.fence
        said = (
            MarkSent(fence),
            AckStep(fence),
            AnswerStep(fence, OK, FRESH.new(), relays=True),
            AnswerStep(fence, OK, FRESH.new(), relays=True),
            CancelProtocol(run.job_id),
        )
        outcomes = subject.store.apply(bundles(*said))
        heard = [outcome.heard for outcome in outcomes if isinstance(outcome, Hearing)]
        assert heard == [Heard.DONE, Heard.ACCEPTED, Heard.ACCEPTED, Heard.DUPLICATE, Heard.CANCELLING]
        assert run.states() == ("CANCELLING", ["SUCCEEDED", "DISPATCHING"])
        run.check()

    def test_many_jobs_go_on_in_one_flush(self, subject: Subject) -> None:
        requests = [command(1) for _ in range(50)]
        assert all(isinstance(outcome, Hearing) for outcome in subject.store.apply(bundles(*requests)))
        fences = [StepFence(request.job_id, "s0", 1, request.lease_id) for request in requests]
        outcomes = subject.store.apply(bundles(*(AnswerStep(fence, OK, FRESH.new()) for fence in fences)))
        assert [getattr(outcome, "heard", outcome) for outcome in outcomes] == [Heard.ACCEPTED] * 50
        assert {subject.job(request.job_id).state for request in requests} == {"SUCCEEDED"}


class ProtocolOrders:
    """Messages in any order on a store."""

    @pytest.mark.parametrize("said", sample(SAMPLE), ids="-".join)
    def test_messages_in_any_order_end_in_one_result_at_most(
        self, subject: Subject, said: tuple[str, ...]
    ) -> None:
        self.come(subject, said)

    def come(self, subject: Subject, said: tuple[str, ...]) -> None:
        """Let messages come to a new job, and check what comes of it."""
        run = RunningProtocol(subject)
        leases = {1: run.fence.lease_id}
        accepted: dict[int, Heard] = {}
        for message in said:
            self.say(run, message, leases, accepted)
            run.check()
            active = run.picture.active
            if active is not None and active.lease_id is not None:
                leases.setdefault(active.attempt_no, active.lease_id)
        self.end(run)
        assert JobState(run.picture.job.state) in JOB.final
        assert (run.picture.job.state == "SUCCEEDED") == any(accepted.values()) or "CANCEL" in said
        for attempt_no in leases:  # what was accepted is answered the same way for ever, and nothing changes
            request = self.report(run, f"RESULT{attempt_no}", leases)
            heard = Heard.DUPLICATE if attempt_no in accepted else Heard.STALE
            run.same(request, heard)

    def say(
        self, run: RunningProtocol, message: str, leases: dict[int, str], accepted: dict[int, Heard]
    ) -> None:
        """Let one message come; whatever is refused changes nothing."""
        match message:
            case "TIMEOUT":
                self.pass_time(run)
            case "CANCEL":
                run.apply(CancelProtocol(run.job_id))
            case "SENT":
                if run.picture.active is not None:
                    run.publish()
            case _:
                request, before = self.report(run, message, leases), run.images()
                heard = run.apply(request).heard
                if heard is Heard.ACCEPTED and isinstance(request, AnswerStep):
                    assert request.fence.attempt_no not in accepted, "one RESULT counts"
                    accepted[request.fence.attempt_no] = heard
                if heard in REFUSED or heard is Heard.DUPLICATE:
                    assert run.images() == before

    def report(self, run: RunningProtocol, message: str, leases: dict[int, str]) -> Callback:
        """Return what a remote worker says of an attempt; of one that is still to come it knows no lease."""
        attempt_no = int(message[-1])
        fence = StepFence(run.job_id, "s0", attempt_no, leases.get(attempt_no, "unknown"))
        if message.startswith("ACK"):
            return AckStep(fence)
        return AnswerStep(fence, StepAnswer(True, message), FRESH.new(), relays=True)

    def pass_time(self, run: RunningProtocol) -> None:
        """Let the time of the active step pass, and act as sweep and relays do."""
        active = run.picture.active
        if active is None or active.lease_expires_at is None:
            return
        run.until(active.lease_expires_at)
        run.expire()
        row = run.picture.pending
        if row is not None and row.next_try_at <= run.subject.clock.wall_ms():
            taken = run.apply(TakeDirective(row.job_id, row.step_id, row.attempt_no))
            if taken.directive is not None:
                run.apply(NotPublished(run.fence, taken.directive.tries, "away"))

    def end(self, run: RunningProtocol) -> None:
        """Let time pass until the job has ended, without any further report."""
        for _turn in range(30):
            if run.picture.active is None:
                return
            self.pass_time(run)
