"""A lifecycle as data: states, the triggers that move between them, and where rows rest for good.

A machine is checked when it is built, so a mistake in a table fails at import. The verbs of `core` ask it
where a trigger leads (`follow`): what it does not list cannot be planned. The same object prints the guards
by which both databases refuse every other move, draws the diagrams and drives the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Generic, TypeVar

from tallystick.errors import StateTransitionError

S = TypeVar("S", bound=Enum)


class Need(StrEnum):
    """What must hold in the same transaction as the move; the value is the sentence for the docs."""

    REVISION = "the row is unchanged since it was read"
    LEASE = "attempt and lease match, and the lease has not expired"
    LEASE_GONE = "the lease has expired, by the clock that decides"
    MATCHING_ATTEMPT = "attempt and lease of the report match the row"
    ACTIVE_STEP = "the step is the job's current one"
    BUDGET_LEFT = "tries remain in the budget"
    BUDGET_SPENT = "no tries remain in the budget"
    RETRYABLE = "the failure belongs to a retryable class"
    NO_OTHER_COMMIT = "no other attempt of the same unit is COMMITTED or DONE"
    ALL_STEPS_FINAL = "no step of the job is still open"
    CANCELLING = "the job is CANCELLING"
    PUBLISHED = "the message is out"


@dataclass(frozen=True, slots=True)
class Transition(Generic[S]):
    """From `source`, on `trigger`, to `target`, provided everything in `needs` holds.

    `added` names the decision record that justifies an edge the specification does not list.
    """

    source: S
    trigger: str
    target: S
    needs: tuple[Need, ...] = ()
    added: str = ""


@dataclass(frozen=True, slots=True)
class Path(Generic[S]):
    """Several listed moves made in one atomic operation; only the last state is ever stored.

    A `born` path begins with the row itself: the row is inserted where the path ends.
    """

    source: S
    triggers: tuple[str, ...]
    why: str
    born: bool = False


@dataclass(frozen=True, slots=True)
class Followed(Generic[S]):
    """Where a path of triggers leads, and all of its states as a fact tells them: `QUEUED>DISPATCHING`."""

    target: S
    path: str


@dataclass(frozen=True)
class Machine(Generic[S]):
    """A complete lifecycle, proven sound when it is built."""

    name: str
    about: str
    start: S
    final: frozenset[S]
    transitions: tuple[Transition[S], ...]
    paths: tuple[Path[S], ...] = ()
    _by_trigger: Mapping[tuple[S, str], Transition[S]] = field(init=False, repr=False, compare=False)
    _by_target: Mapping[tuple[S, S], Transition[S]] = field(init=False, repr=False, compare=False)
    _followed: dict[tuple[S, tuple[str, ...]], Followed[S]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse ambiguous triggers, exits from final states, and states that cannot be reached or left."""
        by_trigger: dict[tuple[S, str], Transition[S]] = {}
        by_target: dict[tuple[S, S], Transition[S]] = {}
        for transition in self.transitions:
            key = (transition.source, transition.trigger)
            if key in by_trigger:
                raise self._unsound(f"{transition.source.name} has two moves on {transition.trigger!r}")
            if transition.source in self.final:
                raise self._unsound(
                    f"{transition.source.name} is final and has an exit on {transition.trigger!r}"
                )
            by_trigger[key] = transition
            by_target.setdefault((transition.source, transition.target), transition)
        object.__setattr__(self, "_by_trigger", by_trigger)
        object.__setattr__(self, "_followed", {})
        object.__setattr__(self, "_by_target", by_target)
        for state in self.states:
            if state not in self._reachable(self.start):
                raise self._unsound(f"{state.name} cannot be reached from {self.start.name}")
            if not self.final & self._reachable(state):
                raise self._unsound(f"{state.name} is stuck: no final state can be reached from it")
        for path in self.paths:
            self.walk(path.source, *path.triggers)

    @property
    def states(self) -> tuple[S, ...]:
        """Return every state, in the order of its declaration."""
        return tuple(type(self.start))

    @property
    def triggers(self) -> tuple[str, ...]:
        """Return every trigger once, in the order of its first use."""
        return tuple(dict.fromkeys(transition.trigger for transition in self.transitions))

    @property
    def stored_moves(self) -> tuple[tuple[S, S], ...]:
        """Return every (before, after) that a stored row may show: single moves and whole paths."""
        single = [(move.source, move.target) for move in self.transitions]
        whole = [
            (path.source, self.walk(path.source, *path.triggers)) for path in self.paths if not path.born
        ]
        return tuple(dict.fromkeys((*single, *whole)))

    @property
    def births(self) -> tuple[S, ...]:
        """Return every state in which a row may be inserted."""
        ends = [self.walk(path.source, *path.triggers) for path in self.paths if path.born]
        return tuple(dict.fromkeys((self.start, *ends)))

    def exits(self, state: S) -> tuple[Transition[S], ...]:
        """Return the legal moves from a state."""
        return tuple(transition for transition in self.transitions if transition.source is state)

    def find(
        self, state: S, trigger: str, *, entity: str = "", owner: str = "", at: float | None = None
    ) -> Transition[S]:
        """Return the move that `trigger` makes from `state`, or raise with the legal ones."""
        found = self._by_trigger.get((state, trigger))
        if found is None:
            raise self._illegal(state, trigger, entity, owner, at)
        return found

    def between(
        self, state: S, target: S, *, entity: str = "", owner: str = "", at: float | None = None
    ) -> Transition[S]:
        """Return a move that leads from `state` to `target`, or raise with the legal ones."""
        found = self._by_target.get((state, target))
        if found is None:
            raise self._illegal(state, f"become {target.name}", entity, owner, at)
        return found

    def walk(self, state: S, *triggers: str) -> S:
        """Return where a path of triggers ends; the path is legal only if each of its moves is.

        >>> from tallystick.core.lifecycles import ATTEMPT, AttemptState
        >>> ATTEMPT.walk(AttemptState.LEASED, "start", "commit", "finish").name
        'DONE'
        """
        for trigger in triggers:
            state = self.find(state, trigger).target
        return state

    def follow(self, state: S, *triggers: str) -> Followed[S]:
        """Return where a path of triggers leads, and the path; what is not listed cannot be followed.

        >>> from tallystick.core.lifecycles import JOB, JobState
        >>> JOB.follow(JobState.IN_PROGRESS, "cancel", "settle").path
        'IN_PROGRESS>CANCELLING>CANCELLED'
        """
        followed = self._followed.get((state, triggers))
        if followed is None:
            here = type(self.start)(state)
            names = [here.name]
            for trigger in triggers:
                here = self.find(here, trigger).target
                names.append(here.name)
            followed = self._followed[state, triggers] = Followed(here, ">".join(names))
        return followed

    def _reachable(self, state: S) -> frozenset[S]:
        seen = {state}
        frontier = [state]
        while frontier:
            here = frontier.pop()
            for transition in self.exits(here):
                if transition.target not in seen:
                    seen.add(transition.target)
                    frontier.append(transition.target)
        return frozenset(seen)

    def _illegal(
        self, state: S, attempted: str, entity: str, owner: str, at: float | None
    ) -> StateTransitionError:
        legal = tuple(f"{move.trigger} → {move.target.name}" for move in self.exits(state))
        return StateTransitionError(
            self.name, state.name, attempted, legal=legal, entity=entity, owner=owner, at=at
        )

    def _unsound(self, why: str) -> ValueError:
        return ValueError(f"machine {self.name}: {why}")


def each(
    sources: Iterable[S], trigger: str, target: S, needs: tuple[Need, ...] = (), added: str = ""
) -> tuple[Transition[S], ...]:
    """Return one transition from every source, all alike."""
    return tuple(Transition(source, trigger, target, needs, added) for source in sources)


def edges(graph: Mapping[S, Iterable[S]]) -> tuple[Transition[S], ...]:
    """Return the transitions of a plain graph; the trigger of an edge is the name of its target."""
    return tuple(
        Transition(source, target.name.lower(), target)
        for source, targets in graph.items()
        for target in targets
    )
