"""Protocol jobs that people hold: nothing new goes out until they are resumed, and what is out may end."""

from __future__ import annotations

from typing import cast

import pytest

from tallystick.core.remote.plans import Heard
from tallystick.core.remote.policy import START_WITHIN_MS, Policy
from tallystick.core.remote.requests import (
    CancelProtocol,
    DeliverDirective,
    DispatchStep,
    DueStep,
    ExpireStep,
    TakeDirective,
)
from tallystick.core.verbs.holds import Held, Hold, Resumed
from tallystick.engine.audit.jobs import audit
from tallystick.store.api import HoldJob, Protocols, ResumeJob
from tallystick.testing.conformance.drafts import FRESH, done
from tallystick.testing.conformance.protocol_runs import EACH_WAY, FINAL, OK, PULLED, RETRY, RunningProtocol
from tallystick.testing.conformance.subject import Subject

MANY = 10_000


class HeldProtocol(RunningProtocol):
    """One protocol job that is held and resumed."""

    def hold(self) -> None:
        """Hold it."""
        assert done(self.subject.store, HoldJob(self.job_id, Hold.PAUSED, "for this test")) is Held.HELD

    def resume(self) -> None:
        """Let it go on."""
        assert done(self.subject.store, ResumeJob(self.job_id)) is Resumed.FREE

    def is_due(self) -> bool:
        """Tell whether a sweep finds it."""
        return DueStep(self.job_id) in cast("Protocols", self.subject.store).due_steps(MANY)

    def is_ready(self) -> bool:
        """Tell whether relays or remote workers find a directive of it."""
        store = cast("Protocols", self.subject.store)
        found = store.asked_directives(["svc"], None, MANY) + store.due_directives("webhook", MANY)
        found += store.stray_directives([], 0, MANY)
        return self.job_id in [row.job_id for row in found]

    def begin(self) -> None:
        """Let the active step's worker have its directive, and begin."""
        row = self.picture.pending
        assert row is not None
        if row.is_pulled:
            self.apply(DeliverDirective(self.job_id, row.step_id, row.attempt_no, "w"))
        else:
            self.publish()
        assert self.ack().heard is Heard.ACCEPTED

    def check(self) -> None:
        """Check what holds after every commit, also as `tally verify` does."""
        super().check()
        assert audit(self.subject.store).findings == []


class ProtocolHolds:
    """A hold stops what is not out yet; reports, time and cancellations go on."""

    @EACH_WAY
    def test_the_next_step_waits_until_the_job_is_resumed(self, subject: Subject, policy: Policy) -> None:
        run = HeldProtocol(subject, 2, policy)
        run.begin()
        run.hold()
        assert run.answer(OK).heard is Heard.ACCEPTED
        assert run.states() == ("IN_PROGRESS", ["SUCCEEDED", "PENDING"])
        assert (run.picture.pending, run.picture.job.current_step_id, run.is_due()) == (None, "s1", False)
        run.same(ExpireStep(run.job_id, FRESH.new(), relays=True), Heard.NOT_DUE)
        run.same(DispatchStep(run.job_id, FRESH.new(), relays=True), Heard.NOT_DUE)
        run.check()
        run.resume()
        assert run.is_due()
        assert run.expire().heard is Heard.DONE
        run.begin()
        run.answer(OK)
        assert run.states() == ("SUCCEEDED", ["SUCCEEDED", "SUCCEEDED"])
        run.check()

    def test_a_directive_that_is_asked_for_is_not_given_out(self, subject: Subject) -> None:
        run = HeldProtocol(subject, 1, PULLED)
        run.hold()
        assert not run.is_ready()
        run.same(DeliverDirective(run.job_id, "s0", 1, "w"), Heard.NOT_DUE)
        run.check()
        run.resume()
        assert run.is_ready()
        run.begin()
        run.check()

    def test_the_time_to_be_asked_for_stands_still_and_begins_anew(self, subject: Subject) -> None:
        run = HeldProtocol(subject, 2, PULLED)
        (step, _next) = run.picture.steps
        run.hold()
        # The sweep comes at the instant, and long after it.
        for instant in (step.lease_expires_at or 0, (step.lease_expires_at or 0) + 10 * START_WITHIN_MS):
            run.until(instant)
            assert not run.is_due()
            run.same(ExpireStep(run.job_id, FRESH.new(), relays=True), Heard.NOT_DUE)
        assert run.states() == ("DISPATCHING", ["DISPATCHING", "PENDING"])
        run.check()
        run.resume()
        ends_at = subject.clock.wall_ms() + START_WITHIN_MS
        assert run.picture.steps[0].lease_expires_at == ends_at
        run.check()
        run.until(ends_at - 1)
        assert run.is_ready()
        assert not run.is_due()
        run.begin()
        run.answer(OK)
        # Nothing holds the second, and no worker asks for it in time.
        run.until(run.picture.steps[1].lease_expires_at or 0)
        assert run.is_due()
        assert run.expire().heard is Heard.DONE
        assert run.states() == ("FAILED_FINAL", ["SUCCEEDED", "FAILED_FINAL"])
        run.check()

    def test_a_directive_that_a_relay_could_not_publish_is_not_taken_again_and_no_try_counts(
        self, subject: Subject
    ) -> None:
        run = HeldProtocol(subject, 1)
        run.hold()
        run.until(subject.clock.wall_ms() + 30_000)
        assert not run.is_ready()
        run.same(TakeDirective(run.job_id, "s0", 1), Heard.NOT_DUE)
        run.check()
        run.resume()
        assert run.is_ready()
        taken = run.apply(TakeDirective(run.job_id, "s0", 1))
        assert taken.heard is Heard.TAKEN
        assert taken.directive is not None
        assert taken.directive.tries == 2

    @EACH_WAY
    def test_an_attempt_that_failed_keeps_its_instant_and_is_repeated_after_the_resumption(
        self, subject: Subject, policy: Policy
    ) -> None:
        run = HeldProtocol(subject, 1, policy)
        run.begin()
        run.hold()
        assert run.answer(RETRY).heard is Heard.ACCEPTED
        (step,) = run.picture.steps
        run.until(step.lease_expires_at or 0)
        assert not run.is_due()
        run.same(ExpireStep(run.job_id, FRESH.new(), relays=True), Heard.NOT_DUE)
        run.check()
        run.resume()
        assert run.is_due()
        assert run.expire().heard is Heard.DONE
        assert run.states() == ("IN_PROGRESS", ["DISPATCHING"])
        run.check()

    @pytest.mark.parametrize("said", [OK, FINAL], ids=["ok", "final"])
    def test_the_end_of_a_job_ends_its_hold(self, subject: Subject, said: object) -> None:
        run = HeldProtocol(subject, 1)
        run.begin()
        run.hold()
        assert run.answer(OK if said is OK else FINAL).heard is Heard.ACCEPTED
        assert run.states()[0] == ("SUCCEEDED" if said is OK else "FAILED_FINAL")
        assert self._held(run) == (None, None)
        run.check()

    @pytest.mark.parametrize("ending", ["waits", "in flight", "not out", "by force"])
    def test_a_job_that_is_held_is_cancelled_as_any_other(self, subject: Subject, ending: str) -> None:
        run = HeldProtocol(subject, 2, PULLED)
        if ending != "not out":
            run.begin()
        run.hold()
        if ending == "waits":
            run.answer(OK)
        heard = run.apply(CancelProtocol(run.job_id, force=ending == "by force")).heard
        assert heard is (Heard.CANCELLING if ending == "in flight" else Heard.CANCELLED)
        assert self._held(run) == (None, None)
        run.check()
        if ending == "in flight":
            run.answer(OK)
        assert run.states()[0] == "CANCELLED"
        run.check()

    def test_a_worker_that_is_silent_is_found_though_the_job_is_held(self, subject: Subject) -> None:
        run = HeldProtocol(subject, 1)
        run.begin()
        run.hold()
        (step,) = run.picture.steps
        run.until(step.lease_expires_at or 0)
        assert run.is_due()
        assert run.expire().heard is Heard.DONE
        assert run.states() == ("IN_PROGRESS", ["FAILED_RETRY"])
        run.check()

    def _held(self, run: HeldProtocol) -> tuple[str | None, str | None]:
        row = run.subject.store.job(run.job_id)
        assert row is not None
        return row.hold, row.hold_reason
