"""The columns of steps, waits and groups that their facts do not tell: most of them are for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.core.audit.book import AttemptRow, Findings, StepRest
from tallystick.core.audit.facts import INLINE
from tallystick.core.audit.told import Account
from tallystick.core.lifecycles import StepState
from tallystick.core.pictures import FAIL_FAST, Place
from tallystick.core.remote.rows import place_of_step, step_id_of

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
        # The remote steps of its newest turn that has some.
        self._remotes: tuple[int, set[str]] = (-1, set())
        self._ends = {completed_at, *(row.finished_at for row in attempts)}
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
            self._take_remote(row)
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
        if row.n is None:
            self._without_fact(name, row)
        self._place(name, row)
        if row.kind in INLINE and row.rev != 1:
            self._note("columns", f"{name} was written {row.rev} times")

    @property
    def has_remotes(self) -> bool:
        """Tell whether the job has remote steps of its own."""
        return bool(self._remotes[1])

    def _take_remote(self, row: StepRest) -> None:
        turn, names = self._remotes
        if row.dimension > turn:
            turn, names = row.dimension, set()
        if row.dimension == turn:
            names.add(step_id_of((row.dimension, row.name, row.occurrence)))
        self._remotes = (turn, names)

    def _without_fact(self, name: str, row: StepRest) -> None:
        """Judge a row that is open or was dropped."""
        if row.has_hash or row.has_result:
            self._note("columns", f"{name} has no fact, and parts of one")
        dropped = row.state == StepState.CANCELLED
        if row.completed_at not in (self._ends - {None} if dropped else {None}):
            self._note("columns", f"{name} is {row.state} and ended at {row.completed_at}")

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
        if origin is not None and (row.semaphore, row.threshold, row.failed) != (
            origin.semaphore,
            origin.threshold,
            origin.failed,
        ):
            self._note(
                "columns", f"group {row.name}#{row.occurrence} counts otherwise than where it comes from"
            )

    def close(self, current_step_id: str | None) -> None:
        """Say which waits are gone that a fact says a segment came to, and judge the current step."""
        asked = self._remotes[1]
        place = None if current_step_id is None else place_of_step(current_step_id)
        of_trimmed = not asked and place is not None and place[0] < self._said.turns_gone
        known = current_step_id in asked if asked else current_step_id is None
        if not known and not of_trimmed:
            self._note("columns", f"its current step is {current_step_id}, and it asked for another one last")
        for dimension, name in sorted(self._missing)[:10]:
            turn = f" of turn {dimension}" if dimension else ""
            self._note("columns", f"{name}{turn} is not there, and the job has waited for it")
