"""What happens to jobs that no worker does: time passes, messages arrive, people cancel, pause and resume."""

from __future__ import annotations

from typing import Any

from tallystick.core.verbs.holds import Hold
from tallystick.store.api import CancelJob, Deliver, HoldJob, ResumeJob
from tests.model.books import NOW, Book, Books, Desk
from tests.model.remote_steps import RemoteMoves, check_resumed, check_unheard, may_be_at_it
from tests.model.search import Violation
from tests.model.world import Run, Shape, guid_of

NAME = "j"
"""What the first job is called."""
State = tuple[Any, ...]


class Outside(RemoteMoves):
    """The moves of senders, clocks and people."""

    shape: Shape
    core: Any
    names: list[str]
    act: Any
    _books: list[Books]
    _number: Any

    def _time_moves(self, state: State, found: list[Any]) -> None:
        """Let a lease or a timer run out."""
        at, workers, env = state
        books = self._books[at]
        for j, book in enumerate(books):
            lease = book.lease
            if lease is not None and lease.live:
                held = any(isinstance(run, Run) and run[:2] == (j, lease.attempt) for run in workers)
                if not held or env[1]:
                    after = self._number(put(books, j, book._replace(lease=lease._replace(live=False))))
                    found.append((("expire", j), (after, workers, put(env, 1, env[1] - held))))
            found += [
                (("fire", message.guid), (self._fired(at, j, message), workers, env))
                for message in book.messages
                if message.due_at is not None and message.due_at > NOW
            ]

    def _fired(self, at: int, j: int, timer: Any) -> int:
        desk = Desk(self.core, self._books[at], self.shape.budget)
        picture = desk.pictures[self.names[j]]
        picture.messages[timer.guid] = timer._replace(due_at=NOW)
        if picture.job.ready_at is not None:
            picture.job = picture.job._replace(ready_at=NOW)
        return self._number(desk.freeze())

    def _outside_moves(self, state: State, found: list[Any]) -> None:
        """Let messages arrive, and people cancel, pause and resume."""
        at, workers, env = state
        for m, sent in enumerate(self.shape.messages):
            if env[4 + m]:
                request = Deliver(guid_of(NAME, m), NAME, sent.kind, sent.name, '"x"')
                after, outcome = self.act(
                    at, ("deliver", m), lambda r=request: (r,), wall=0 if self.shape.skew else NOW
                )
                self._check_delivered(self._books[at][0], m, outcome.name)
                # A timer that is refused comes again.
                comes_again = sent.kind == "timer" and outcome.name == "REFUSED"
                spent = env if comes_again else put(env, 4 + m, env[4 + m] - 1)
                found.append((("deliver", m, outcome.name), (after, workers, spent)))
        for j, book in enumerate(self._books[at]):
            if j == 0 or self.shape.cancels_children or book.job.state == "CANCELLING":
                self._cancel_moves(state, j, book, found)
            if book.job.deadline_at is not None and book.job.state != "CANCELLING":
                self._late_move(state, j, book, found)
        if self.shape.pauses:
            self._hold_moves(state, found)
        self._remote_moves(state, found)

    def _check_delivered(self, book: Book, m: int, said: str) -> None:
        """What names an activity is refused until that has begun, and dropped when its job has ended."""
        sent, ended = self.shape.messages[m], book.job.completed_at is not None
        if sent.kind == "signal" or (said == "KNOWN" and not ended):
            return
        waits = [each.name for each in book.activities if (each.kind, each.state) == ("wait", "IN_PROGRESS")]
        awaited = sent.kind == "timer" and sent.name in waits
        expected = ("DROPPED", "KNOWN") if ended else ("WOKE", "KEPT") if awaited else ("REFUSED",)
        if said not in expected:
            raise Violation(f"a {sent.kind} for {sent.name} is {said} and not {expected[0]}")

    def _cancel_moves(self, state: State, j: int, book: Book, found: list[Any]) -> None:
        at, workers, env = state
        name = self.names[j]
        if book.job.state == "CANCELLING":
            if book.lease is None and may_be_at_it(book):
                return  # its time has not come
            after, _ = self.act(at, ("grace", j), lambda: (CancelJob(name, 0, force=True),))
            if self._books[after][j].job.completed_at is None:
                raise Violation(f"the grace of job {j} is over, and it does not end")
            check_unheard(book, self._books[after][j])
            found.append((("grace", j), (after, workers, env)))
        elif env[2]:
            after, outcome = self.act(at, ("cancel", j), lambda: (CancelJob(name, 10**6),))
            expected = "CANCELLING" if book.lease is not None or may_be_at_it(book) else "CANCELLED"
            if book.lease is not None and book.lease.status == "COMMITTED":
                expected = "IN_PROGRESS" if book.lease.live else "SUCCEEDED"
            if book.job.completed_at is None and outcome != expected:
                raise Violation(f"a cancellation of a job that is {book.job.state} says {outcome}")
            check_unheard(book, self._books[after][j])
            if after != at:
                found.append((("cancel", j, str(outcome)), (after, workers, put(env, 2, env[2] - 1))))

    def _late_move(self, state: State, j: int, book: Book, found: list[Any]) -> None:
        """Let the deadline of a job pass; it ends at once, or has its grace, and says why."""
        at, workers, env = state
        if book.job.completed_at is not None:
            return
        desk = Desk(self.core, self._books[at], self.shape.budget)
        picture = desk.pictures[self.names[j]]
        picture.job = picture.job._replace(deadline_at=NOW)
        passed = self._number(desk.freeze())
        after, _ = self.act(passed, ("late", j), lambda: (CancelJob(self.names[j], 10**6, late=True),))
        job = self._books[after][j].job
        at_once = book.lease is None and not may_be_at_it(book)
        if job.state != ("CANCELLED" if at_once else "CANCELLING") or job.code != "DEADLINE":
            raise Violation(f"the deadline of job {j} has passed, and it is {job.state} with {job.code}")
        found.append((("late", j), (after, workers, env)))

    def _hold_moves(self, state: State, found: list[Any]) -> None:
        at, workers, env = state
        job, lease = self._books[at][0][:2]
        over = job.completed_at is not None or job.state == "CANCELLING"
        expected = "ENDED" if over else "ALREADY" if job.hold else "ASKED" if lease else "HELD"
        after, said = self._controlled(at, HoldJob(NAME, Hold.PAUSED, "a pause"), expected, 1)
        if env[3] and after != at:
            found.append((("pause", 0, said), (after, workers, put(env, 3, env[3] - 1))))
        expected = "ENDED" if job.completed_at is not None else "FREE" if job.hold else "NOT_HELD"
        after, _ = self._controlled(at, ResumeJob(NAME), expected, 0)
        if after != at:
            check_resumed(self._books[after][0])
            found.append((("resume", 0), (after, workers, env)))

    @staticmethod
    def _wished(desk: Desk, _outcome: Any, wish: int = 1) -> None:
        """Note that the first job is to be held, or to go on."""
        desk.pasts[NAME] = desk.pasts[NAME]._replace(wish=wish)

    def _controlled(self, at: int, request: Any, expected: str, wish: int) -> tuple[int, str]:
        def wished(desk: Desk, outcome: Any) -> None:
            if outcome.name in ("HELD", "ASKED", "FREE"):
                self._wished(desk, outcome, wish)

        after, outcome = self.act(at, type(request).__name__, lambda: (request,), wished)
        if outcome.name != expected:
            raise Violation(f"{type(request).__name__} says {outcome.name} and not {expected}")
        return after, str(outcome.name)


def put(values: tuple[Any, ...], n: int, value: Any) -> tuple[Any, ...]:
    return (*values[:n], value, *values[n + 1 :])
