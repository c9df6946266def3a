"""What happens to jobs that no worker does: time passes, messages arrive, people cancel, pause and resume."""

from __future__ import annotations

from typing import Any

from tallystick.core.holds import Hold
from tallystick.store.api import CancelJob, Deliver, HoldJob, ResumeJob
from tests.model.books import NOW, Book, Books, Desk
from tests.model.search import Violation
from tests.model.world import Run, Shape, guid_of

NAME = "j"
"""What the first job is called."""
State = tuple[Any, ...]


class Outside:
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
        desk = Desk(self.core, self._books[at])
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
                ended = self._books[at][0].job.completed_at is not None
                if sent.kind != "signal" and outcome.name != ("DROPPED" if ended else "REFUSED"):
                    raise Violation(f"a {sent.kind} that nobody waits for is {outcome.name}")
                spent = put(env, 4 + m, env[4 + m] - 1)
                found.append((("deliver", m, outcome.name), (after, workers, spent)))
        for j, book in enumerate(self._books[at]):
            if j == 0 or self.shape.cancels_children:
                self._cancel_moves(state, j, book, found)
        if self.shape.pauses:
            self._hold_moves(state, found)

    def _cancel_moves(self, state: State, j: int, book: Book, found: list[Any]) -> None:
        at, workers, env = state
        name = self.names[j]
        if book.job.state == "CANCELLING":
            after, _ = self.act(at, ("grace", j), lambda: (CancelJob(name, 0, force=True),))
            if self._books[after][j].job.completed_at is None:
                raise Violation(f"the grace of job {j} is over, and it does not end")
            found.append((("grace", j), (after, workers, env)))
        elif env[2]:
            after, outcome = self.act(at, ("cancel", j), lambda: (CancelJob(name, 10**6),))
            expected = "CANCELLING" if book.lease is not None else "CANCELLED"
            if book.job.completed_at is None and outcome != expected:
                raise Violation(f"a cancellation of a job that is {book.job.state} says {outcome}")
            if after != at:
                found.append((("cancel", j, str(outcome)), (after, workers, put(env, 2, env[2] - 1))))

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
            found.append((("resume", 0), (after, workers, env)))

    def _controlled(self, at: int, request: Any, expected: str, wish: int) -> tuple[int, str]:
        def wished(desk: Desk, outcome: Any) -> None:
            if outcome.name in ("HELD", "ASKED", "FREE"):
                desk.pasts[NAME] = desk.pasts[NAME]._replace(wish=wish)

        after, outcome = self.act(at, type(request).__name__, lambda: (request,), wished)
        if outcome.name != expected:
            raise Violation(f"{type(request).__name__} says {outcome.name} and not {expected}")
        return after, str(outcome.name)


def put(values: tuple[Any, ...], n: int, value: Any) -> tuple[Any, ...]:
    return (*values[:n], value, *values[n + 1 :])
