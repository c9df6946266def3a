"""The columns of steps, waits and groups that their facts do not tell: most of them are for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UnsetType

from tallystick.core.audit.book import AttemptRow, Findings, StepRest
from tallystick.core.audit.facts import INLINE
from tallystick.core.audit.step_fact import LEARNING
from tallystick.core.audit.told import Account
from tallystick.core.lifecycles import StepState
from tallystick.core.pictures import FAIL_FAST, Place
from tallystick.core.remote.rows import place_of_step, step_id_of

_KINDS: Final = INLINE | LEARNING
_FIRST_OF_PROTOCOLS: Final = StepRest._fields.index("step_index")


class StepRests:
    """The steps of one job, taken one by one."""

    def __init__(
        self,
        said: Account,
        attempts: Sequence[AttemptRow],
        completed_at: int | None,
        ancestors: Sequence[str | None],
        findings: Findings,
    ) -> None:
        """Begin with none; what is dropped is dropped with the end of an attempt, or of the job.

        `ancestors` are the jobs from which a fork comes, the last one first; None ends those of which one was
        removed, so that nothing is known of what it came from.
        """
        self._ancestors = ancestors
        self._said, self._note = said, findings.note
        # Where effects stand that this job has called itself.
        self.effects: set[Place] = set()
        # Of the remote steps of its newest turn that has some, by name when the last was opened, and which.
        self._remotes: tuple[int, dict[str, tuple[int, int]]] = (-1, {})
        self._ends = {completed_at, *(row.finished_at for row in attempts)}
        self._finished = {row.attempt: row.finished_at for row in attempts}
        self._missing = set(said.waits)

    def take(self, row: StepRest) -> None:
        """Judge a row by itself, and by what the facts say of where it stands."""
        name = f"{row.kind} {row.name}#{row.occurrence}"
        if row.dimension < self._said.turns_gone:
            self._note("removals", f"{name} is of turn {row.dimension}, which is trimmed")
        self._missing.discard((row.dimension, f"{row.name}#{row.occurrence}"))
        # A copy of a remote step has what it came to, and asks for nothing.
        is_remote = row.kind == "remote" and row.origin_job_id is None
        if is_remote:
            self._take_remote(name, row)
        if row.kind == "effect" and row.origin_job_id is None:
            self.effects.add((row.dimension, row.name, row.occurrence))
        used = (row.misplaced,) if is_remote else row[_FIRST_OF_PROTOCOLS:]
        if any(value is not None for value in used):
            self._note("columns", f"{name} has columns that it has no use for")
        is_group = row.kind == "group"
        if any((value is not None) != is_group for value in (row.semaphore, row.threshold, row.failed)):
            self._note("columns", f"{name} counts children, and is {'' if is_group else 'no '}group")
        # Of a remote step this column has what its directives carry; its own judge compares its row.
        if row.mode is not None and not is_remote and not (is_group and row.mode == FAIL_FAST):
            self._note("columns", f"{name} has the mode {row.mode[:20]}")
        if row.kind not in _KINDS or (row.n is not None and row.n < 1):
            self._note("columns", f"{name} is of no kind, or at no place, that there is")
        if row.n is None:
            self._without_fact(name, row)
            self._opened(name, row)
        self._place(name, row)
        if row.kind in INLINE and row.rev != 1:
            self._note("columns", f"{name} was written {row.rev} times")

    @property
    def has_remotes(self) -> bool:
        """Tell whether the job has remote steps of its own."""
        return bool(self._remotes[1])

    def _take_remote(self, name: str, row: StepRest) -> None:
        if row.acked_at is not None and row.acked_at < row.created_at:
            self._note("columns", f"{name} was heard of before it was asked for")
        turn, newest = self._remotes
        if row.dimension > turn:
            turn, newest = row.dimension, {}
        if row.dimension == turn:
            newest[row.name] = max(newest.get(row.name, (0, 0)), (row.created_at, row.occurrence))
        self._remotes = (turn, newest)

    def _without_fact(self, name: str, row: StepRest) -> None:
        """Judge a row that is open or was dropped."""
        if row.has_hash or row.has_result:
            self._note("columns", f"{name} has no fact, and parts of one")
        dropped = row.state == StepState.CANCELLED
        if row.completed_at not in (self._ends - {None} if dropped else {None}):
            self._note("columns", f"{name} is {row.state} and ended at {row.completed_at}")

    def _opened(self, name: str, row: StepRest) -> None:
        """Compare what a row without a fact is, and who opened it, with who has waited for it."""
        told = self._said.waits.get((row.dimension, f"{row.name}#{row.occurrence}"))
        if told is not None and told.kind is not None and told.kind != row.kind:
            self._note("columns", f"{name} was waited for as a {told.kind}")
        if row.origin_job_id is not None:
            return
        by = row.attempt or 0
        unit = step_id_of((row.dimension, row.name, row.occurrence))
        intents = self._said.effects.get(unit)
        if intents and row.kind != "effect":
            self._note("columns", f"{name} was called as an effect")
        first = None if told is None else told.attempt
        legal = by == intents[0].began_in if intents else self._is_opener(row, by, first)
        if not legal:
            self._note("columns", f"{name} says that attempt {row.attempt} has opened it")

    def _is_opener(self, row: StepRest, attempt: int, first: int | None) -> bool:
        """Tell whether an attempt may have opened a row: at its time, and before any has waited for it."""
        if attempt not in self._finished or attempt > (attempt if first is None else first):
            return False
        if row.kind == "group":
            return True  # opened by the clock of a process, and come to again by later attempts
        ended, before = self._finished[attempt], self._finished.get(attempt - 1)
        return (before or 0) <= row.created_at <= (ended or row.created_at)

    def _place(self, name: str, row: StepRest) -> None:
        """Compare places: a step stands in the turn of its fact; a copy names the job that its own forked."""
        said = self._said
        if row.n is not None and row.dimension != said.dimension_of(row.n):
            self._note("columns", f"{name} stands in turn {row.dimension}, its fact in another")
        is_copy = said.is_fork and row.attempt == 0
        origin = row.origin_job_id
        # A copy of a copy names the job in which it happened.
        nothing = (origin, row.origin_dimension) == (None, None)
        known = origin in self._ancestors or None in self._ancestors if is_copy else nothing
        if is_copy and origin == said.born.get("fork_of"):
            known = row.origin_dimension == said.born.get("dimension")
        if not known:
            self._note("columns", f"{name} comes from {origin}, and the job does not")

    def compare_copy(self, row: StepRest, origin: StepRest | None) -> None:
        """Compare the copy of a group with the one that a fork was born with, as long as that is there."""
        if origin is not None and (row.semaphore, row.threshold, row.failed, row.mode) != (
            origin.semaphore,
            origin.threshold,
            origin.failed,
            origin.mode,
        ):
            self._note(
                "columns", f"group {row.name}#{row.occurrence} counts otherwise than where it comes from"
            )

    def _is_of_trimmed(self, current_step_id: str | None) -> bool:
        """Tell whether a job without remote steps may be at this one: none, or one of a turn that is gone."""
        trimmed = self._said.trimmed if self._said.turns_gone else None
        if trimmed is not None and not isinstance(trimmed.step, UnsetType):
            return current_step_id == trimmed.step
        place = None if current_step_id is None else place_of_step(current_step_id)
        return current_step_id is None or (place is not None and place[0] < self._said.turns_gone)

    def close(self, current_step_id: str | None) -> None:
        """Say which waits are gone that a fact says a segment came to, and judge the current step."""
        turn, newest = self._remotes
        last = max((at for at, _occurrence in newest.values()), default=0)
        asked = {
            step_id_of((turn, name, occurrence)) for name, (at, occurrence) in newest.items() if at == last
        }
        if not (current_step_id in asked if asked else self._is_of_trimmed(current_step_id)):
            self._note("columns", f"its current step is {current_step_id}, and it asked for another one last")
        for dimension, name in sorted(self._missing)[:10]:
            when = f" of turn {dimension}" if dimension else ""
            self._note("columns", f"{name}{when} is not there, and the job has waited for it")
