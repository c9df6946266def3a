"""Protocol jobs on a store: rows of specification 001 after every commit, refusals that change nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    CancelProtocol,
    DeliverDirective,
    DueStep,
    ExpireStep,
    MarkSent,
    RenewStep,
    SubmitCommand,
)
from tallystick.engine.committer import Committer
from tallystick.errors import NotFound
from tallystick.store.api import Existing, OfTenant, Outcome, Protocols
from tallystick.testing.conformance.drafts import FRESH, bundles, done, outcome_of
from tallystick.testing.conformance.pictures import (
    DirectivePicture,
    JobPicture,
    ReservationPicture,
    StepPicture,
)
from tallystick.testing.conformance.protocol_runs import EACH_WAY, FINAL, OK, RETRY, RunningProtocol, command
from tallystick.testing.conformance.subject import Subject
from tallystick.testing.expected_digits import (
    CLOSED,
    CLOSED_AT_THIRD,
    NOTHING,
    OPENED,
    SETTLED,
    WORD_CLOSED,
    WORD_SETTLED,
)


def _copied(first: SubmitCommand) -> SubmitCommand:
    """Return the same command as another caller brings it: for a job and a lease of its own."""
    job_id = FRESH.new()
    job = first.job._replace(job_id=job_id)
    steps = tuple(step._replace(job_id=job_id) for step in first.steps)
    return first._replace(job=job, steps=steps, lease_id=FRESH.new())


class ProtocolRows:
    """Submitting and the rows of specification 001."""

    def test_a_command_writes_job_steps_directive_reservation_and_fact(self, subject: Subject) -> None:
        run = RunningProtocol(subject, 3, correlation_id="c", traceparent="00-1", mode="BURST", doc_id="D-1")
        images = run.images()
        (job,), steps, (row,) = images["jobs"], images["steps"], images["outbox"]
        assert (job["kind"], job["state"], job["protocol_id"], job["tenant_id"]) == (
            "protocol",
            "DISPATCHING",
            "p",
            "acme",
        )
        assert (job["mode"], job["doc_id"], job["correlation_id"], job["traceparent"]) == (
            "BURST",
            "D-1",
            "c",
            "00-1",
        )
        assert (job["current_step_id"], job["current_step_index"], job["attempts_total"]) == ("s0", 0, 1)
        assert (job["input_ref"], job["output_ref"], job["ready_at"]) == ("s3://in", "s3://out", None)
        assert [(s["state"], s["attempt_no"], s["step_index"]) for s in steps] == [
            ("DISPATCHING", 1, 0), ("PENDING", 0, 1), ("PENDING", 0, 2),
        ]  # fmt: skip
        assert [s["ledger"] for s in steps] == [OPENED, NOTHING, NOTHING]
        assert (row["state"], row["tries"], row["attempt_no"]) == ("PENDING", 1, 1)
        assert row["routing_key_used"] == steps[0]["routing_key_used"] == "acme:d-1"
        assert (row["topic"], row["partition"]) == (f"svc-p{row['lane']}", row["lane"])
        assert len(images["idempotency"]) == len(images["events"]) == 1
        assert images["idempotency"][0]["created_at"] == job["created_at"]
        run.check()

    def test_the_same_content_is_one_job_and_another_under_its_key_is_told(self, subject: Subject) -> None:
        first = command(2, idempotency_key=FRESH.new())
        outcomes = subject.store.apply(
            bundles(first, *(first._replace(job=first.job._replace(job_id=FRESH.new())) for _ in range(99)))
        )
        assert isinstance(outcomes[0], Hearing)
        assert all(isinstance(other, Existing) and other.job_id == first.job_id for other in outcomes[1:])
        other = command(2, idempotency_key=first.reservation.value)
        found = outcome_of(subject.store, other)
        assert isinstance(found, Existing)
        assert found.content_hash == first.about.idempotency_hash != other.about.idempotency_hash

    def test_one_key_by_a_hundred_callers_at_once_is_one_job(self, subject: Subject) -> None:
        first = command(2, idempotency_key=FRESH.new())
        stores = [subject.open(subject.clock) for _ in range(4)]
        committers = [Committer(store) for store in stores]
        together = threading.Barrier(100)

        def call(number: int) -> Outcome:
            request = _copied(first)
            together.wait(60)
            return committers[number % len(committers)].call((request,))

        try:
            with ThreadPoolExecutor(100) as callers:
                outcomes = list(callers.map(call, range(100)))
        finally:
            for committer, store in zip(committers, stores, strict=True):
                committer.close()
                store.close()
        (made,) = {each.job_id for each in outcomes if isinstance(each, Existing)}
        assert sum(isinstance(each, Hearing) and each.heard is Heard.CREATED for each in outcomes) == 1
        assert sum(isinstance(each, Existing) for each in outcomes) == 99
        images = {table: len(rows) for table, rows in subject.books(made).items()}
        assert images[JobPicture] == images[DirectivePicture] == images[ReservationPicture] == 1
        assert images[StepPicture] == 2

    @EACH_WAY
    def test_three_steps_end_with_the_digits_of_the_specification(
        self, subject: Subject, policy: Policy
    ) -> None:
        run = RunningProtocol(subject, 3, policy)
        for number in range(3):
            assert run.picture.job.current_step_index == number
            assert run.answer().heard is Heard.ACCEPTED  # no ACK, no SENT: a fast worker
            run.check()
        images = run.images()
        assert run.states() == ("SUCCEEDED", ["SUCCEEDED"] * 3)
        assert [step["ledger"] for step in images["steps"]] == [SETTLED, SETTLED, CLOSED]
        words = sorted(word["ledger"] for word in images["messages"])
        assert words == [WORD_SETTLED, WORD_SETTLED, WORD_CLOSED]
        assert [row["state"] for row in images["outbox"]] == ["SENT"] * 3
        assert images["steps"][1]["input_ref"] == "s3://mid"
        assert images["jobs"][0]["result"] == '{"pages":3}'

    @EACH_WAY
    def test_a_step_that_is_tried_again_counts_its_directives(self, subject: Subject, policy: Policy) -> None:
        run = RunningProtocol(subject, 1, policy)
        for wait_ms in (60_000, 300_000):
            fence = run.fence
            assert run.answer(RETRY).heard is Heard.ACCEPTED
            step = run.picture.active
            assert step is not None
            assert step.lease_expires_at == subject.clock.wall_ms() + wait_ms
            run.same(ExpireStep(run.job_id, "x"), Heard.NOT_DUE)
            run.same(AnswerStep(fence, RETRY, "x"), Heard.DUPLICATE)
            run.same(AnswerStep(fence, OK, "x"), Heard.CONFLICT)
            run.again()
            run.same(AnswerStep(fence, RETRY, "x"), Heard.DUPLICATE)
            run.same(AckStep(fence), Heard.STALE)
        assert run.answer(RETRY).heard is Heard.ACCEPTED
        assert run.states() == ("FAILED_FINAL", ["FAILED_FINAL"])
        (step,) = run.picture.steps
        assert step.ledger == CLOSED_AT_THIRD
        assert (run.picture.job.error_code, run.picture.job.error_message) == ("BUSY", "later")
        assert run.picture.job.attempts_total == 3


class ProtocolCallbacks:
    """What remote workers say, in every order."""

    def test_the_listed_way(self, subject: Subject) -> None:
        run = RunningProtocol(subject)
        assert run.publish().heard is Heard.DONE
        assert run.states() == ("DISPATCHING", ["AWAITING_ACK"])
        assert run.ack().heard is Heard.ACCEPTED
        assert run.states() == ("IN_PROGRESS", ["IN_PROGRESS"])
        run.same(AckStep(run.fence), Heard.DUPLICATE)
        run.same(MarkSent(run.fence), Heard.DUPLICATE)
        fence = run.fence
        assert run.answer().heard is Heard.ACCEPTED
        assert run.states() == ("SUCCEEDED", ["SUCCEEDED"])
        run.same(AnswerStep(fence, OK, "x"), Heard.DUPLICATE)
        run.same(AnswerStep(fence, FINAL, "x"), Heard.CONFLICT)
        run.same(AckStep(fence), Heard.DUPLICATE)
        run.check()

    @EACH_WAY
    def test_an_ack_before_sent_closes_the_directive(self, subject: Subject, policy: Policy) -> None:
        run = RunningProtocol(subject, 1, policy)
        fence = run.fence
        assert run.ack().heard is Heard.ACCEPTED
        assert run.picture.pending is None
        run.same(MarkSent(fence), Heard.DUPLICATE)
        run.check()

    def test_a_report_with_another_lease_or_attempt_changes_nothing_and_is_kept(
        self, subject: Subject
    ) -> None:
        run = RunningProtocol(subject)
        reports = len(subject.stale_reports())
        for wrong in (run.fence._replace(lease_id="forged"), run.fence._replace(attempt_no=2)):
            run.same(AckStep(wrong), Heard.STALE)
            run.same(RenewStep(wrong), Heard.STALE)
            run.same(AnswerStep(wrong, OK, "x"), Heard.STALE)
        run.same(AckStep(run.fence._replace(step_id="nowhere")), Heard.UNKNOWN)
        assert run.apply(AckStep(run.fence._replace(job_id="nobody"))).heard is Heard.UNKNOWN
        assert len(subject.stale_reports()) == reports + 6

    def test_at_the_very_end_of_the_lease_a_report_is_expired(self, subject: Subject) -> None:
        run = RunningProtocol(subject)
        run.publish()
        run.until(run.picture.steps[0].lease_expires_at or 0)
        run.same(AckStep(run.fence), Heard.EXPIRED)
        run.same(AnswerStep(run.fence, OK, "x"), Heard.EXPIRED)

    def test_a_heartbeat_moves_the_lease_and_before_an_ack_is_one(self, subject: Subject) -> None:
        run = RunningProtocol(subject)
        assert run.apply(RenewStep(run.fence)).heard is Heard.ACCEPTED
        assert run.states() == ("IN_PROGRESS", ["IN_PROGRESS"])
        facts = len(subject.store.history(run.job_id))
        subject.clock.advance(600_000)
        assert run.apply(RenewStep(run.fence)).lease_expires_at == subject.clock.wall_ms() + 900_000
        assert len(subject.store.history(run.job_id)) == facts
        run.apply(CancelProtocol(run.job_id))
        run.same(RenewStep(run.fence), Heard.CANCELLING)

    def test_a_cancellation_for_another_tenant_changes_nothing(self, subject: Subject) -> None:
        run = RunningProtocol(subject)
        before = run.images()
        for force in (False, True):
            refused = outcome_of(
                subject.store, OfTenant(run.job_id, "stranger"), CancelProtocol(run.job_id, force)
            )
            assert isinstance(refused, NotFound)
        assert isinstance(
            outcome_of(subject.store, OfTenant("nowhere", "stranger"), CancelProtocol("nowhere")), NotFound
        )
        assert run.images() == before
        own = OfTenant(run.job_id, run.picture.job.tenant_id)
        done(subject.store, own, CancelProtocol(run.job_id, force=True))
        assert run.states()[0] == "CANCELLED"

    @EACH_WAY
    def test_no_ack_and_no_result_three_times_end_the_job(self, subject: Subject, policy: Policy) -> None:
        run = RunningProtocol(subject, 2, policy)
        for number, acked in enumerate((False, True, False), start=1):
            self.deliver(run)
            if acked:
                run.ack()
            step = run.picture.active
            assert step is not None
            ms = 900_000 if acked else 30_000
            assert step.lease_expires_at == subject.clock.wall_ms() + ms
            run.until(step.lease_expires_at)
            assert cast("Protocols", subject.store).due_steps(10_000).count(DueStep(run.job_id)) == 1
            assert run.expire().heard is Heard.DONE
            run.check()
            if number < 3:
                assert run.picture.steps[0].last_error_code == ("LEASE_TIMEOUT" if acked else "ACK_TIMEOUT")
                run.again()
        assert run.states() == ("FAILED_FINAL", ["FAILED_FINAL", "CANCELLED"])
        assert run.picture.job.error_code == "ACK_TIMEOUT"

    def deliver(self, run: RunningProtocol) -> None:
        """Bring the directive out, whichever way it travels."""
        row = run.picture.pending
        assert row is not None
        if row.is_pulled:
            run.apply(DeliverDirective(run.job_id, row.step_id, row.attempt_no, "w"))
        else:
            run.publish()
