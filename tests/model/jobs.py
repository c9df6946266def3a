"""Jobs, segments, messages and groups: every move is a request that an engine makes, decided by core's verbs.

A state is the number of a set of `Books` (all that is durable), what workers know, and what may still go
wrong. What is durable changes only in a *bundle*; what a worker knows (which attempt it runs, how far it got,
what its sweep has read) is lost in a crash. Every call of a workflow is two moves, *run* and *write*: leases
end, messages arrive and others act between them. Claiming is the only rule that is written here, as the two
SQL statements of a store say it; the message that drives a claim is chosen by the verb `enter`.

`flaws` takes guards away that no verb has, by name; see `mutants.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallystick.core.verbs.holds import Hold
from tallystick.errors import StaleLease
from tallystick.store.api import Answer, Bundle, EndJob, Fence, ReclaimAttempt
from tests.model import promises, remote_steps
from tests.model.books import FUTURE, NOW, Book, Books, Desk, Past, newborn
from tests.model.outside import NAME, Outside, State, put
from tests.model.rules import Rules
from tests.model.search import Violation
from tests.model.world import (
    WAITS,
    Run,
    Shape,
    ended_by,
    job_id,
    lease_of,
    segment_of,
    written_by,
)

IDLE = ()
_REMOTE_WORKERS = {"given", "AckStep", "RenewStep", "AnswerStep"}
_UNHELPFUL = {"crash", "cancel", "fail", "pause", "refuse", *_REMOTE_WORKERS}


class Sweep(tuple[Any, ...]):
    """What a sweep has found: job and attempt."""

    __slots__ = ()


class Jobs(Outside):
    """All moves of a small world."""

    def __init__(self, shape: Shape, rules: Rules, flaws: frozenset[str] = frozenset()) -> None:
        self.shape, self.rules, self.core, self.flaws = shape, rules, rules.core, flaws
        self.names = [job_id(NAME, j) for j in range(shape.children + 1)]
        # Books are kept once and known by their number; what a request makes of them is remembered.
        self._books: list[Books] = []
        self._numbers: dict[Books, int] = {}
        self._known: dict[tuple[int, Any], tuple[int, Any]] = {}
        self._checked: set[int] = set()

    # What a search asks.

    def initial(self) -> State:
        shape = self.shape
        deliveries = (shape.deliveries for _ in shape.messages)
        env = (shape.crashes, shape.zombies, shape.cancels, shape.pauses, *deliveries)
        born = newborn(self.core, NAME, None)._replace(deadline_at=FUTURE if shape.deadline else None)
        first = Book(born, None, (), ())
        return (self._number((first,)), (IDLE,) * shape.workers, env)

    def books(self, state: State) -> Books:
        return self._books[state[0]]

    @property
    def all_books(self) -> list[Books]:
        """Return all that was durable in any state that was visited."""
        return self._books

    def _number(self, books: Books) -> int:
        number = self._numbers.setdefault(books, len(self._books))
        if number == len(self._books):
            self._books.append(books)
        return number

    def final(self, state: State) -> bool:
        return self.books(state)[0].job.completed_at is not None

    def helpful(self, label: tuple[Any, ...]) -> bool:
        """Only what workers, clocks and sweeps do: no remote worker asks or reports any more."""
        return label[0] not in _UNHELPFUL

    def ledgers(self, state: State) -> tuple[int, ...]:
        """Return nothing: each plan is held against the rows that it changes (`Desk.write`)."""
        return ()

    def check(self, state: State) -> None:
        at, workers, _env = state
        if at not in self._checked:
            promises.check(self, self._books[at])
            self._checked.add(at)
        promises.check_workers(self._books[at], workers)

    def successors(self, state: State) -> list[tuple[tuple[Any, ...], State]]:
        found: list[tuple[tuple[Any, ...], State]] = []
        at, workers, env = state
        for w, worker in enumerate(workers):
            if worker == IDLE:
                self._idle_moves(state, w, found)
            elif isinstance(worker, Run):
                self._running_moves(state, w, worker, found)
            else:
                found.append(self._reclaimed(state, w, worker))
            if worker != IDLE and env[0]:
                found.append((("crash", w), (at, put(workers, w, IDLE), put(env, 0, env[0] - 1))))
        self._time_moves(state, found)
        self._outside_moves(state, found)
        return found

    # How a request is decided and written.

    def act(self, at: int, key: Any, bundle: Callable[[], Bundle], past: Any = None, wall: int = NOW) -> Any:
        """Return the books after a bundle, and its outcome; "stale" was refused and changed nothing."""
        known = self._known.get((at, key))
        if known is None:
            known = self._known[at, key] = self._decided(at, bundle(), past, wall)
        return known

    def _decided(self, at: int, bundle: Bundle, past: Any, wall: int) -> tuple[int, Any]:
        desk = Desk(self.core, self._books[at], self.shape.budget)
        now = self.core.pictures.Now(wall)
        outcome = None
        for request in bundle:
            decision = self._decision(desk, request, now)
            if isinstance(decision, self.core.plans.Refusal):
                if isinstance(decision.error, StaleLease):
                    return at, "stale"
                raise Violation(f"{type(decision.error).__name__}: {decision.error}")
            desk.write(decision.writes)
            outcome = decision.outcome
            remote_steps.check_kept(request, decision)
        if past is not None:
            past(desk, outcome)
        return self._number(desk.freeze()), outcome

    def _decision(self, desk: Desk, request: Any, now: Any) -> Any:
        wants = self.core.wants.wanted(request)
        decision = self.core.deciding.decide(desk.look(wants), request, now)
        if isinstance(decision, self.core.plans.Relook):
            pictures = desk.look(wants, whole=True, children=decision.children)
            decision = self.core.deciding.decide(pictures, request, now)
        if isinstance(decision, self.core.plans.Relook):
            raise Violation(f"{type(request).__name__} looks again although it has seen everything")
        return decision

    # What workers do.

    def _idle_moves(self, state: State, w: int, found: list[Any]) -> None:
        at, workers, env = state
        for j, book in enumerate(self._books[at]):
            if self._claimable(book):
                after, run = self._claim(at, j)
                found.append((("claim", w, j), (after, put(workers, w, run), env)))
            lease = book.lease
            if lease is not None and not lease.live and not (lease.status == "COMMITTED" and book.job.hold):
                seen = Sweep((j, lease.attempt))
                found.append((("look", w, j), (at, put(workers, w, seen), env)))

    def _claimable(self, book: Book) -> bool:
        """Tell what `claimable.sql` tells."""
        job = book.job
        if job.state not in ("QUEUED", "IN_PROGRESS", "CANCELLING"):
            return False
        if job.hold is not None and "a held job is not claimed" not in self.flaws:
            return False
        if "a claim asks whether a job is free" in self.flaws:
            return bool(job.attempt < 3)
        return book.lease is None and job.ready_at is not None and job.ready_at <= NOW

    def _claim(self, at: int, j: int) -> tuple[int, Run]:
        key = ("claim", j)
        if (at, key) not in self._known:
            self._known[at, key] = self._claimed(at, j)
        return self._known[at, key]

    def _claimed(self, at: int, j: int) -> tuple[int, Run]:
        """Do what a claim of a store does; `claim_job.sql` says the rest."""
        desk, name = Desk(self.core, self._books[at], self.shape.budget), self.names[j]
        picture = desk.pictures[name]
        if picture.job.hold is not None:
            raise Violation(f"job {j} is held, and somebody claims it")
        driver, wake = "start", None
        if picture.job.start_acked_at is not None:
            decision = self.core.claiming.enter(desk.look_at_drivers(name), self.core.pictures.Now(NOW))
            if isinstance(decision, self.core.plans.Refusal):
                raise Violation(str(decision.error))
            desk.write(decision.writes)
            wake = decision.outcome
            driver = "" if wake is None else wake.guid
        job, started = picture.job, self.core.marks.STARTED
        first = job.start_ledger == 0 and job.start_acked_at is None
        picture.job = job._replace(
            state="CANCELLING" if job.state == "CANCELLING" else "IN_PROGRESS",
            attempt=job.attempt + 1,
            ready_at=None,
            root_ledger=started.activity if first else job.root_ledger,
            start_ledger=started.guid if first else job.start_ledger,
        )
        attempt = job.attempt + 1
        fence = (attempt, lease_of(attempt), "IN_PROGRESS", True, driver)
        picture.lease = self.core.pictures.Lease(*fence)
        place = self.shape.resumes_at(j, desk.pasts[name].place)
        told = job.state == "CANCELLING"
        foretold = None if wake is None or wake.taken else wake
        return self._number(desk.freeze()), Run(j, attempt, place, 0, driver, foretold, told)

    def _running_moves(self, state: State, w: int, run: Run, found: list[Any]) -> None:
        at, workers, env = state
        book = self._books[at][run.j]
        if run.phase == 0:
            after = at
            if run.called and self._op(run)[0] == "effect":
                after = self._changed(at, run.j, book.past._replace(calls=book.past.calls + 1))
            begun = run._replace(phase=1)
            if "the look is under the lock" in self.flaws:
                begun = run._replace(phase=2 + at)
            found.append((("run", w, run.j), (after, put(workers, w, begun), env)))
            return
        mine = book.lease is not None and book.lease.attempt == run.attempt
        found.append(self._written(state, w, run))
        if book.job.state == "CANCELLING" and mine:
            found.append(self._ended(state, w, run, "stop"))
        if mine and run.j == 0 and self._stops(book):
            found.append(self._ended(state, w, run, "rest"))
        if mine and run.j == 0 and self.shape.refuses and env[3]:
            label, (after, busy, _env) = self._ended(state, w, run, "refuse")
            found.append((label, (after, busy, put(env, 3, env[3] - 1))))
        if run.j and self.shape.child_fails:
            found.append(self._ended(state, w, run, "fail"))
        if self.shape.commits and mine and self._op(run)[0] == "return":
            self._commit_moves(state, run, book, found)

    def _commit_moves(self, state: State, run: Run, book: Book, found: list[Any]) -> None:
        """Commit the work and stop there, as a store without wide transactions may: another finishes it."""
        at, workers, env = state
        if book.lease.live and book.lease.status == "IN_PROGRESS" and book.job.state == "IN_PROGRESS":
            lease = book.lease._replace(status="COMMITTED")
            after = self._number(put(self._books[at], run.j, book._replace(lease=lease)))
            found.append((("commit", run.j), (after, workers, env)))

    def _stops(self, book: Book) -> bool:
        """Tell whether a segment is put away at its call; its flag may be older than a cancellation."""
        if self.core.holds.stops_here(held=True, cancelling=True):
            raise Violation("a job that is being cancelled is put away instead of ending")
        held = book.job.hold is not None
        stops = self.core.holds.stops_here(held=held, cancelling=book.job.state == "CANCELLING")
        if stops is not held:
            raise Violation("a job that nobody holds is put away, or one that is held is not")
        return bool(stops)

    def _op(self, run: Run) -> tuple[Any, ...]:
        return self.shape.script_of(run.j)[run.place]

    def _changed(self, at: int, j: int, past: Past) -> int:
        books = self._books[at]
        return self._number(put(books, j, books[j]._replace(past=past)))

    def _ended(self, state: State, w: int, run: Run, verb: str) -> tuple[Any, State]:
        """End a segment by something else than its script; whoever does not hold the job changes nothing."""
        at, workers, env = state
        after, outcome = self.act(
            at,
            (verb, run._replace(phase=1)),
            lambda: ended_by(segment_of(NAME, self.shape, run), verb),
            self._wished if verb == "refuse" else None,
        )
        said = "stale" if outcome == "stale" else verb
        self._holder_wrote(at, after, run, verb)
        return (verb, w, run.j, said), (after, put(workers, w, IDLE), env)

    def _holder_wrote(self, at: int, after: int, run: Run, verb: str) -> None:
        lease = self._books[at][run.j].lease
        holds = lease is not None and lease.live and lease.attempt == run.attempt
        if after != at and not holds:
            raise Violation(
                f"a stale report changed something: {verb} of attempt {run.attempt} of job {run.j}"
            )

    def _written(self, state: State, w: int, run: Run) -> tuple[Any, State]:
        """Write the bundle of a worker's call; a stale one changes nothing and its worker gives up."""
        at, workers, env = state
        op = self._op(run)
        if op[0] == "effect" and not (run.called and self._books[at][run.j].past.intent == 1):
            return self._effect(state, w, run)
        seen = at if run.phase < 2 else run.phase - 2
        mine = run._replace(phase=1)
        after, outcome = self.act(
            seen,
            ("write", mine),
            lambda: written_by(segment_of(NAME, self.shape, mine), NAME, self.shape, mine),
            lambda desk, outcome: self._went_on(desk, mine, op, outcome),
        )
        if seen != at:
            after = self._over(at, seen, after)
        self._holder_wrote(at, after, run, "write")
        said, busy = self.said(mine, outcome)
        if said == "held":
            after, _ = self.act(
                after, ("rest", mine), lambda: ended_by(segment_of(NAME, self.shape, mine), "rest")
            )
        return ("write", w, run.j, said), (after, put(workers, w, busy), env)

    def _over(self, at: int, seen: int, after: int) -> int:
        """Write what was decided on other books over what is there: the flaw of looking early."""
        if after == seen:
            return at
        before, made, there = self._books[seen], self._books[after], self._books[at]
        rows = [new if new != old else now for old, new, now in zip(before, made, there, strict=False)]
        return self._number(
            (*rows, *made[len(rows) :]) if len(made) >= len(there) else (*rows, *there[len(rows) :])
        )

    def said(self, run: Run, outcome: Any) -> tuple[str, Any]:
        """Return what came of a call, in one word, and what its worker knows then."""
        op = self._op(run)
        going_on = run._replace(place=run.place + 1, phase=0, called=False)
        if outcome == "stale":
            return "stale", IDLE
        if op[0] in WAITS:
            return self._said_of_wait(run, going_on, outcome)
        if op[0] == "spawn" and outcome == "CANCELLING":
            return "asked", run._replace(told=True)
        if op[0] == "spawn":
            born = outcome is True
            while born and self._op(going_on)[0] == "spawn":
                going_on = going_on._replace(place=going_on.place + 1)
            return "spawn", going_on
        if op[0] in ("tx", "ask", "effect"):
            return {"effect": "result"}.get(op[0], op[0]), going_on
        return ("stop" if isinstance(outcome, EndJob) else str(op[0])), IDLE

    def _said_of_wait(self, run: Run, going_on: Run, outcome: Any) -> tuple[str, Any]:
        if outcome == "CANCELLING":
            return "asked", run._replace(told=True)
        if outcome in tuple(Hold):
            return "held", IDLE
        if isinstance(outcome, Answer):
            wake = None if run.wake is not None and run.wake.guid == outcome.guid else run.wake
            return f"took {outcome.guid}", going_on._replace(wake=wake)
        if run.wake is not None and self._foretold(run):
            return f"took {run.wake.guid}", going_on._replace(wake=None)
        return "suspended", IDLE

    def _foretold(self, run: Run) -> bool:
        waits = self.shape.waits_at(run.place)
        return len(waits) == 1 and segment_of(NAME, self.shape, run).foretold(waits[0]) is not None

    def _went_on(self, desk: Desk, run: Run, op: tuple[Any, ...], outcome: Any) -> None:
        """Count what a call that was written has really done."""
        name = self.names[run.j]
        past = desk.pasts[name]
        said, busy = self.said(run, outcome)
        if op[0] == "tx":
            past = past._replace(effects=past.effects + 4**run.place)
        if op[0] == "effect":
            past = past._replace(intent=2)
        if op[0] == "ask":
            remote_steps.check_asked(desk.pictures[name])
        if said.startswith("took "):
            promises.check_taken(desk, name, said.removeprefix("took "))
        if isinstance(busy, Run) and said != "asked":
            past = past._replace(place=max(past.place, busy.place))
        if op[0] == "again" and said == "again":
            past = past._replace(place=run.place + 1)
        desk.pasts[name] = past

    def _effect(self, state: State, w: int, run: Run) -> tuple[Any, State]:
        """Write the intent, then call; ask about an intent of somebody else. No store has effects yet."""
        at, workers, env = state
        book = self._books[at][run.j]
        lease, past = book.lease, book.past
        if lease is None or not lease.live or lease.attempt != run.attempt:
            return ("write", w, run.j, "stale"), (at, put(workers, w, IDLE), env)
        again = run._replace(phase=0, called=True)
        if past.intent == 0:
            after = self._changed(at, run.j, past._replace(intent=1, charged=0))
            return ("write", w, run.j, "intent"), (after, put(workers, w, again), env)
        if past.calls and "ask when in doubt" not in self.flaws:
            return ("write", w, run.j, "probe: yes"), (at, put(workers, w, run._replace(called=True)), env)
        return ("write", w, run.j, "probe: no"), (at, put(workers, w, again), env)

    def _reclaimed(self, state: State, w: int, seen: Sweep) -> tuple[Any, State]:
        """Write what a sweep decided, if the attempt is still the one that it looked at."""
        at, workers, env = state
        j, attempt = seen
        fence = Fence(self.names[j], attempt, lease_of(attempt))
        after, verdict = self.act(at, ("reclaim", seen), lambda: (ReclaimAttempt(fence),))
        lease = self._books[at][j].lease
        if after != at and (lease is None or lease.live or lease.attempt != attempt):
            raise Violation(f"a sweep took job {j} from its holder; it had looked at attempt {attempt}")
        return ("reclaim", w, j, verdict.name), (after, put(workers, w, IDLE), env)
