"""The world of an effect: two workers, one provider, and one or two jobs that come to the same key.

Every move is a verb of core, called with pictures; nothing here decides. Time has no length: what is due
later is due after a `tick`. The provider acts when a request reaches it, also after its sender has died.
Within the promise the lease of a call ends only when nobody is in the call, and a probe is asked only when no
request is under way; a world that `stops` workers or has a `slow` provider breaks this, and must show the
double.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tallystick.core.chain import Chain
from tallystick.core.deciding import decide, see
from tallystick.core.effects.requests import (
    CallEffect,
    DoubtEffect,
    EndEffect,
    Granted,
    Instead,
    Intent,
    Known,
    Later,
    RestEffect,
    Says,
    SettleEffect,
    TakeProbe,
)
from tallystick.core.effects.rows import Came, EffectRow, EffectRules, OpenEffect, Phase, Waiter, unit_of
from tallystick.core.ledger.marks import OPENED, entry
from tallystick.core.lifecycles import JOB, AttemptState, JobState
from tallystick.core.pictures import (
    START,
    Activity,
    JobFacts,
    Lease,
    LostAttempts,
    Message,
    Now,
    Picture,
    Pictures,
)
from tallystick.core.plans import InsertAttempt, InsertEffect, MoveEffect, Plan, Refusal, Relook
from tallystick.errors import StaleLease
from tallystick.store.api import (
    Answer,
    Await,
    CancelJob,
    EndJob,
    Fact,
    Fence,
    NewLease,
    ReclaimAttempt,
    Wait,
)
from tests.model.search import Violation

NOW, LATER = Now(0), 1
PLACE = (0, "charge", 1)
UNIT = unit_of(PLACE)
KEY = ("default", "charge", "k")
RULES = EffectRules(timeout_ms=1, tries=2, settle_ms=LATER, probe=True)
BUSY = 3


class Shape(NamedTuple):
    """A small world: how many jobs, how much may go wrong, and who breaks the promise."""

    jobs: int = 1
    crashes: int = 1
    expiries: int = 1
    cancels: int = 0
    forces: int = 0
    stops: bool = False
    slow: bool = False


class Worker(NamedTuple):
    """What a worker knows; all of it is lost in a crash."""

    j: int
    attempt: int
    phase: str = "claimed"
    # Of the call that it has the right to.
    lease: str = ""
    last: str = ""


class Book(NamedTuple):
    """What is durable of one job."""

    job: JobFacts
    lease: Lease | None
    activities: tuple[Activity, ...]
    messages: tuple[Message, ...]
    rows: tuple[tuple[EffectRow, bool], ...]
    lost: tuple[str, ...]


class State(NamedTuple):
    books: tuple[Book, ...]
    workers: tuple[Worker | None, ...]
    # Requests that the provider has not acted on yet, and how often it has acted.
    under_way: int
    charges: int
    crashes: int
    expiries: int
    cancels: int
    forces: int


def job_of(j: int) -> str:
    return f"j{j}"


class EffectWorld:
    """All states of the jobs of a shape, as core's verbs lead through them."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def initial(self) -> State:
        shape = self.shape
        books = tuple(
            Book(
                JobFacts(
                    job_of(j), JobState.QUEUED, 0, 0, 0, None, 1, OPENED, 0, None, None, None, 1, 1, None,
                    None, 0, 0,
                ),
                None, (), (), (), (),
            )
            for j in range(shape.jobs)
        )  # fmt: skip
        about = (shape.crashes, shape.expiries, shape.cancels, shape.forces)
        return State(books, (None, None), 0, 0, *about)

    # --- what may happen

    def successors(self, state: State) -> list[tuple[Any, State]]:
        found: list[tuple[Any, State]] = []
        for w, worker in enumerate(state.workers):
            if worker is None:
                found += self._claims(state, w)
            else:
                found += self._works(state, w, worker)
        for j, book in enumerate(state.books):
            found += self._others(state, j, book)
        if state.under_way:
            acted = state._replace(under_way=state.under_way - 1, charges=min(state.charges + 1, BUSY))
            found.append(("the provider acts", acted))
        return found

    def _claims(self, state: State, w: int) -> list[tuple[Any, State]]:
        found = []
        for j, book in enumerate(state.books):
            job = book.job
            if book.lease is not None or job.hold is not None or job.completed_at is not None:
                continue
            if (
                job.ready_at != 0
                or job.is_ending(NOW)
                or any(worker and worker.j == j for worker in state.workers)
            ):
                continue
            _verdict, root, start = entry(job.root_ledger, job.start_ledger)
            attempt = job.attempt + 1
            began = JobState.IN_PROGRESS if job.state == JobState.QUEUED else job.state
            claimed = job._replace(
                attempt=attempt,
                state=began,
                ready_at=None,
                root_ledger=root,
                start_ledger=start,
                rev=job.rev + 1,
            )
            lease = Lease(attempt, f"lease-{attempt}", AttemptState.IN_PROGRESS, True, START)
            books = _put(state.books, j, book._replace(job=claimed, lease=lease))
            # What is recorded is not called again.
            phase = "told" if any(not each.is_open for each in book.activities) else "claimed"
            workers = _put(state.workers, w, Worker(j, attempt, phase))
            found.append((f"{w} claims {j}", state._replace(books=books, workers=workers)))
        return found

    def _works(self, state: State, w: int, worker: Worker) -> list[tuple[Any, State]]:
        found = []
        if state.crashes:
            dead = state._replace(workers=_put(state.workers, w, None), crashes=state.crashes - 1)
            found.append((f"{w} dies", dead))
        match worker.phase:
            case "claimed":
                found += self._asks(state, w, worker)
            case "granted":
                sent = state._replace(
                    under_way=state.under_way + 1,
                    workers=_put(state.workers, w, worker._replace(phase="sent")),
                )
                found.append((f"{w} sends its request", sent))
                if sum(row.calls for row, _live in state.books[worker.j].rows) < RULES.tries:
                    found += self._says(state, w, worker, "rests")
            case "sent":
                # The answer comes when the provider has acted; the line may be cut before and after.
                if not state.under_way:
                    found += self._says(state, w, worker, "ends")
                found += self._says(state, w, worker, "doubts")
            case "told":
                found += self._returns(state, w, worker)
        return found

    def _asks(self, state: State, w: int, worker: Worker) -> list[tuple[Any, State]]:
        calls = sum(row.calls for row, _live in state.books[worker.j].rows)
        lease = NewLease(f"call-{worker.attempt}-{calls}", "w", 1)
        request = CallEffect(
            _fence(worker), Chain(job_of(worker.j)), PLACE, Intent(KEY, "a", "{}", RULES.written()), lease, 0,
            False, worker.last,
        )  # fmt: skip
        outcome, after = self._write(state, request)
        match outcome:
            case Granted():
                told = worker._replace(phase="granted", lease=lease.lease_id, last=lease.lease_id)
            case Later():
                return []  # it waits for its turn
            case Known() | Instead.TAKE | JobState.CANCELLING:
                told = worker._replace(phase="told")
            case _:
                told = None
        return [(f"{w} asks to call: {outcome}", after._replace(workers=_put(after.workers, w, told)))]

    def _says(self, state: State, w: int, worker: Worker, what: str) -> list[tuple[Any, State]]:
        fence, chain, told = _fence(worker), Chain(job_of(worker.j)), None
        request: Any
        if what == "ends":
            request = EndEffect(fence, chain, PLACE, worker.lease, Came.HAPPENED, "1", None, 0)
            told = worker._replace(phase="told")
        elif what == "rests":
            request = RestEffect(fence, PLACE, worker.lease, LATER)
            told = worker._replace(phase="claimed")
        else:
            request = DoubtEffect(fence, chain, PLACE, worker.lease, "cut", 0)
        outcome, after = self._write(state, request)
        if outcome == "refused":
            told = None
        return [(f"{w} {what}: {outcome}", after._replace(workers=_put(after.workers, w, told)))]

    def _returns(self, state: State, w: int, worker: Worker) -> list[tuple[Any, State]]:
        """Take what is in the inbox, if the answer is there, and end the job."""
        fence, chain = _fence(worker), Chain(job_of(worker.j))
        book = state.books[worker.j]
        outcome: object = None
        if book.job.state != JobState.CANCELLING and any(each.is_open for each in book.activities):
            fact = Fact(chain, "suspend", 0, worker.attempt, "{}")
            outcome, state = self._write(
                state, Await(fence, START, 0, (Wait("effect", "charge", 1, None),), fact)
            )
        if outcome is None or isinstance(outcome, Answer):
            fact = Fact(chain, "return", 0, worker.attempt, "{}")
            outcome, state = self._write(state, EndJob.of(fence, JobState.SUCCEEDED, fact, result="1"))
        return [(f"{w} returns: {outcome}", state._replace(workers=_put(state.workers, w, None)))]

    def _others(self, state: State, j: int, book: Book) -> list[tuple[Any, State]]:
        """Return what sweeps, time, probes and people do about a job."""
        found = []
        job, lease = book.job, book.lease
        if lease is not None and lease.live and state.expiries:
            over = book._replace(lease=lease._replace(live=False))
            books = _put(state.books, j, over)
            found.append((f"the lease of {j} ends", state._replace(books=books, expiries=state.expiries - 1)))
        if lease is not None and not lease.live:
            fence = Fence(job.job_id, lease.attempt, lease.lease_id)
            found.append(self._done(f"{j} is taken back", state, ReclaimAttempt(fence)))
        if lease is not None and not any(worker and worker.j == j for worker in state.workers) and lease.live:
            books = _put(state.books, j, book._replace(lease=lease._replace(live=False)))
            found.append((f"the lease of {j}, whose worker died, ends", state._replace(books=books)))
        for row, live in book.rows:
            found += self._about_row(state, j, book, row, live)
        ticked = _later(book)
        if ticked != book:
            found.append((f"tick of {j}", state._replace(books=_put(state.books, j, ticked))))
        if job.completed_at is None and state.cancels:
            spent = state._replace(cancels=state.cancels - 1)
            found.append(self._done(f"{j} is cancelled", spent, CancelJob(job.job_id, 0)))
        if job.completed_at is None and state.forces:
            spent = state._replace(forces=state.forces - 1)
            found.append(
                self._done(f"{j} is forced", spent, CancelJob(job.job_id, 0, force=True, abandon=True))
            )
        if job.state == JobState.CANCELLING and job.is_ending(NOW):
            found.append(self._done(f"{j} is overdue", state, CancelJob(job.job_id, 0, force=True)))
        return found

    def _about_row(
        self,
        state: State,
        j: int,
        book: Book,
        row: EffectRow,
        live: bool,
    ) -> list[tuple[Any, State]]:
        found = []
        calls = any(
            worker and worker.j == j and worker.phase in ("granted", "sent") and worker.lease == row.lease_id
            for worker in state.workers
        )
        if live and row.phase == Phase.CALLING and (self.shape.stops or not calls):
            over = book._replace(rows=tuple((each, False) for each, _live in book.rows))
            found.append(
                (f"the lease of the call of {j} ends", state._replace(books=_put(state.books, j, over)))
            )
        if not live and row.phase == Phase.CALLING:
            fence = Fence(row.job_id, row.attempt, row.lease_id)
            found.append(self._done(f"the call of {j} is lost", state, ReclaimAttempt(fence, UNIT)))
        settled = self.shape.slow or not state.under_way
        if row.phase == Phase.IN_DOUBT and row.due_at == 0 and settled:
            taken, asked = self._write(state, TakeProbe(row.job_id, UNIT, row.rev, LATER))
            if not isinstance(taken, EffectRow):
                raise Violation("a probe that is due could not be asked")
            says = Says.HAPPENED if state.charges else Says.DID_NOT_HAPPEN
            answer = SettleEffect(row.job_id, says, "probe", UNIT, result="1", rev=row.rev)
            found.append(self._done(f"the probe of {j} says {says}", asked, answer))
        return found

    def _done(self, label: str, state: State, request: Any) -> tuple[Any, State]:
        outcome, after = self._write(state, request)
        return f"{label}: {outcome}", after

    # --- verbs on pictures

    def _write(self, state: State, request: Any) -> tuple[object, State]:
        pictures = pictures_of(state)
        decision = decide(pictures, request, NOW)
        if isinstance(decision, Refusal):
            if not isinstance(decision.error, StaleLease):
                raise Violation(f"{type(request).__name__} is refused: {decision.error}")
            return "refused", state
        if isinstance(decision, Relook) or not isinstance(decision, Plan):
            raise Violation(f"{type(request).__name__} wants another look")
        for write in decision.writes:
            if isinstance(write, InsertEffect) and write.row.occupies in pictures.occupied:
                raise Violation("two attempts have one key")
            see(pictures, (write,))
        return decision.outcome, state._replace(books=_books(state, pictures, decision))

    # --- promises

    def check(self, state: State) -> None:
        if state.charges > 1:
            raise Violation(f"{state.charges} charges under one key")
        rows = [row for book in state.books for row, _live in book.rows]
        if sum(row.is_occupying for row in rows) > 1:
            raise Violation("two effects occupy one key")
        within = not (self.shape.stops or self.shape.slow)
        for row in rows if within else ():
            if row.outcome == Came.HAPPENED and not state.charges:
                raise Violation("the books say that it happened, and it did not")
            if (
                row.outcome == Came.NOT_DONE
                and state.charges
                and not any(each.outcome != Came.NOT_DONE for each in rows)
            ):
                raise Violation("the books deny what has happened")
        for book in state.books:
            is_over = JobState(book.job.state) in JOB.final
            if is_over and self.shape.forces == 0 and any(row.is_open for row, _live in book.rows):
                raise Violation("a job has ended over an open effect")
            still_open = sum(each.is_open for each in book.activities)
            owed = (book.job.start_acked_at is None) * (not is_over) + still_open
            if book.job.semaphore != owed:
                raise Violation(f"{owed} obligations, and the semaphore says {book.job.semaphore}")

    def final(self, state: State) -> bool:
        return all(JobState(book.job.state) in JOB.final for book in state.books) and not any(
            row.is_open for book in state.books for row, _live in book.rows
        )

    def ledgers(self, state: State) -> tuple[int, ...]:
        return tuple(next((each.ledger for each in book.activities), 0) for book in state.books)

    def helpful(self, label: str) -> bool:
        return not any(word in label for word in (" dies", " is cancelled", " is forced", " doubts"))


def _fence(worker: Worker) -> Fence:
    return Fence(job_of(worker.j), worker.attempt, f"lease-{worker.attempt}")


def _put(items: tuple[Any, ...], at: int, item: Any) -> tuple[Any, ...]:
    return (*items[:at], item, *items[at + 1 :])


def _later(book: Book) -> Book:
    """Return a book at an instant at which everything is due."""
    rows = tuple((row._replace(due_at=0) if row.due_at else row, live) for row, live in book.rows)
    job = book.job._replace(ready_at=0) if book.job.ready_at else book.job
    return book._replace(rows=rows, job=job)


def pictures_of(state: State) -> Pictures:
    """Return what a store would show."""
    pictures = Pictures()
    for book in state.books:
        picture = Picture(book.job, book.lease)
        picture.activities = {each.place: each for each in book.activities}
        picture.messages = {each.guid: each for each in book.messages if each.acked_at is None}
        picture.effects = {row.place: OpenEffect(row, live) for row, live in book.rows if row.is_open}
        picture.past = LostAttempts(0, '{"attempts_max":9}', 0)
        picture.end = (1, b"")
        pictures[book.job.job_id] = picture
        for row, _live in book.rows:
            if row.is_occupying:
                pictures.occupied[row.occupies] = row
        for guid in book.lost:
            pictures.waiters.setdefault(guid, set()).add(Waiter(book.job.job_id, UNIT))
    return pictures


def _books(state: State, pictures: Pictures, plan: Plan) -> tuple[Book, ...]:
    """Return what is durable after a plan; revisions and places that only count are left out."""
    ended: dict[str, EffectRow] = {
        write.row.exec_id: write.row for write in plan.writes if isinstance(write, MoveEffect)
    }
    lost = [write for write in plan.writes if isinstance(write, InsertAttempt) and write.unit]
    books = []
    for book in state.books:
        picture = pictures[book.job.job_id]
        rows = {row.exec_id: (row, live) for row, live in book.rows}
        for row, live in (picture.effects or {}).values():
            rows[row.exec_id] = (row, live)
        for exec_id, row in ended.items():
            if row.job_id == book.job.job_id and not row.is_open:
                rows[exec_id] = (row, False)
        kept = tuple((row._replace(rev=1, called_at=0, probes=0), live) for row, live in rows.values())
        named = [write.guid for write in lost if write.job_id == book.job.job_id]
        books.append(
            Book(
                picture.job._replace(rev=1, inbox_end=0, inbox_at=0),
                picture.lease,
                tuple(each._replace(rev=1) for each in picture.activities.values()),
                tuple(
                    each._replace(arrived=0) for each in picture.messages.values() if each.acked_at is None
                ),
                kept,
                (*book.lost, *named),
            )
        )
    return tuple(books)
