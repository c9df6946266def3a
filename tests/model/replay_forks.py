"""A walk of the model of forks, played on a real store: who asks is answered alike, and the same is made."""

from __future__ import annotations

from typing import Any

from tallystick.core.queues.reusing import KeyRule
from tallystick.engine.segment import Segment
from tallystick.engine.submission import Submission, bundle_of, submit_job
from tallystick.errors import IdempotencyConflict, KeyMoved, NoSuchStep, NotFailed
from tallystick.store.api import ClaimJobs, ForkJob
from tests.model.forks import FAILED, STEPS, SUCCEEDED, TAKEN, Forks, Wish
from tests.model.replay import LEASE_MS, Differs, done, told
from tests.model.search import spoken
from tests.model.world import FAILURE

REFUSED = {
    NotFailed: "NOT_FAILED",
    KeyMoved: "KEY_MOVED",
    IdempotencyConflict: "CONFLICT",
    NoSuchStep: "NO_SUCH_STEP",
}
STATES = {"IN_PROGRESS": 0, "SUCCEEDED": SUCCEEDED, "FAILED_FINAL": FAILED}


class ReplayForks:
    """One job, those who ask for forks of it, and what was made, on one store."""

    def __init__(self, subject: Any, model: Forks, name: str) -> None:
        self.subject, self.model, self.name = subject, model, name
        self.store, self.clock = subject.store, subject.clock
        self.made: list[str] = []
        self.asked = 0
        submission = Submission(handler="flow", payload="{}", queue=name, idempotency_key=name)
        done(self.store, submit_job(submission, name, self.clock.wall_ms()))
        self.segments: dict[str, Segment] = {}
        self._claim_all()

    def _claim_all(self) -> None:
        ids = iter(range(10**6))
        at = self.clock.wall_ms()
        for_all = frozenset({("flow", "")})
        request = ClaimJobs("w", (self.name,), for_all, 10, LEASE_MS, lambda: f"{self.name}-{at}-{next(ids)}")
        for claimed in done(self.store, request):
            self.segments[claimed.fence.job_id] = Segment(claimed, self.clock)

    def play(self, steps: list[tuple[Any, Any]], look_every: int = 1) -> None:
        """Make every move; compare what was answered, and what every job has recorded."""
        before = self.model.initial()
        for n, (label, state) in enumerate(steps):
            self.clock.advance(1)
            said = self._moved(label, before)
            expected = label[2] if label[0] in ("write", "refuse") else "done"
            books = self._books(state)
            looks = n % look_every == 0 or n + 1 == len(steps)
            rows = self.rows() if looks else books
            if said != expected or rows != books:
                raise Differs(
                    f"move {n + 1}, {spoken(label)}: the model says {expected}, the store {said}\n"
                    f"model {books}\nstore {rows}\ntrace {told(steps[: n + 1])}"
                )
            before = state

    def _moved(self, label: Any, before: Any) -> str:
        original, made, *_ = before
        if label[0] == "step":
            return self._step(self.name, original.recorded + 1)
        if label[0] == "go on":
            return self._step(self.made[label[1]], made[label[1]].place + 1)
        if label[0] == "end":
            segment = self.segments[self.name]
            bundle = segment.returned('"ok"') if label[1] == SUCCEEDED else segment.failed(FAILURE)
            done(self.store, *bundle)
        if label[0] == "take the key":
            self._take_key()
        if label[0] in ("write", "refuse"):
            return self._fork(self.model.shape.wishes[label[1]], original.recorded)
        return "done"

    def _take_key(self) -> None:
        about = Submission(
            handler="flow", payload="{}", queue="others", idempotency_key=self.name, rule=KeyRule("after_end")
        )
        done(self.store, *bundle_of(about, submit_job(about, f"{self.name}-taker", self.clock.wall_ms())))

    def _step(self, name: str, at: int) -> str:
        done(self.store, self.segments[name].step_succeeded("tx", f"s{at}", 1, '"r"', 0))
        return "done"

    def _fork(self, wish: Wish, recorded: int) -> str:
        point = None if wish.retry and recorded < wish.at else (f"s{wish.at}", 1)
        self.asked += 1
        new = f"{self.name}-fork-{self.asked}"
        try:
            forked = done(self.store, ForkJob(self.name, new, point, retry=wish.retry, id=wish.id))
        except tuple(REFUSED) as error:
            return REFUSED[type(error)]
        if not forked.created:
            return "KNOWN" if forked.job_id in self.made else f"{forked.job_id} is not known"
        self.made.append(forked.job_id)
        self._claim_all()
        return "MAKE"

    def rows(self) -> tuple[Any, ...]:
        """Return the job, who took its place, who has its key, and what each new job has recorded."""
        read = self.subject.read
        ((state, retried_as),) = read("select state, retried_as from jobs where job_id = ?", self.name)
        ((key_of,),) = read("select job_id from idempotency where scope = 'key' and value = ?", self.name)
        places = [0, *(self._number(name) for name in self.made)]
        steps = tuple(self._recorded(name) for name in (self.name, *self.made))
        return (STATES[state], self._number(retried_as), self._number(key_of), len(places), steps)

    def _recorded(self, name: str) -> int:
        ((count,),) = self.subject.read("select count(*) from steps where job_id = ?", name)
        return int(count)

    def _number(self, name: str | None) -> int:
        if name == f"{self.name}-taker":
            return TAKEN
        return 0 if name in (None, self.name) else self.made.index(str(name)) + 1

    def _books(self, state: Any) -> tuple[Any, ...]:
        original, made, *_ = state
        places = tuple(min(job.place, STEPS) for job in made)
        about = (original.state, original.retried_as, original.key_of, len(made) + 1)
        return (*about, (original.recorded, *places))
