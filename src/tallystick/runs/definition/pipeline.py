"""Declare a pipeline: a state graph, and the work that is done in each state.

The graph is proven sound when it is declared, by the same machine that guards every other lifecycle.
`FAILED` and `CANCELLED` belong to every pipeline and can be reached from every state that is not final.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from tallystick.core.limits import check_name
from tallystick.core.machine import Machine
from tallystick.core.machine import edges as machine_edges
from tallystick.errors import BadName, PipelineUnsound
from tallystick.runs.definition import patterns
from tallystick.runs.log.events import EdgeRecord, GraphRecord

if TYPE_CHECKING:
    from tallystick.runs.log.recorder import Listener
    from tallystick.runs.log.snapshot import Snapshot
    from tallystick.runs.workers.work import Work

FAILED: Final = "FAILED"
CANCELLED: Final = "CANCELLED"
ENDS: Final = (FAILED, CANCELLED)
_STATE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)

Targets: TypeAlias = str | Sequence[str] | Mapping[str, str]
Scopes: TypeAlias = "Sequence[str] | Callable[[Work], Iterable[str]]"
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Node:
    """The work of one worker in one state: a function, what it reads and what it makes.

    With `scopes` the work is done once for each scope, at the same time where threads allow; the scopes may
    be computed from the inputs. `tries` counts the attempts before a failure fails the run.
    """

    worker: str
    state: str
    function: Callable[[Work], object]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    scopes: Scopes | None = None
    tries: int = 1


class Pipeline:
    """A state graph and the nodes that do its work.

    `edges` maps each state to its successors: one name, several, or a mapping from outcome to successor; the
    first state is the start. `rewinds` says to which stable state a resume goes back from a state that
    cannot be entered in the middle. `limits` says how often a state may be entered before the run fails.
    """

    def __init__(
        self,
        name: str,
        edges: Mapping[str, Targets],
        *,
        stable: Iterable[str] = (),
        rewinds: Mapping[str, str] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        """Declare the graph, or raise PipelineUnsound."""
        self.name = check_name("pipeline", name)
        self.nodes: list[Node] = []
        self._exits = {source: _exits(targets) for source, targets in edges.items()}
        self.graph = self._graph(tuple(stable), dict(rewinds or {}), dict(limits or {}))
        self.machine: Machine[Any] = self._machine()
        self._check_names()

    @property
    def states(self) -> tuple[str, ...]:
        """Return every state, the start first and the two common ends last."""
        return tuple(state.name for state in self.machine.states)

    def node(
        self,
        state: str,
        *,
        inputs: Iterable[str] = (),
        outputs: Iterable[str] = (),
        scopes: Scopes | None = None,
        tries: int = 1,
        worker: str = "",
    ) -> Callable[[F], F]:
        """Declare a function as the work of a state; it stays a plain function."""

        def declare(function: F) -> F:
            name = worker or getattr(function, "__name__", "").replace("_", "-").strip("-")
            self.add(Node(name, state, function, tuple(inputs), tuple(outputs), scopes, tries))
            return function

        return declare

    def add(self, node: Node) -> Pipeline:
        """Add a node, or raise PipelineUnsound when it cannot work; return the pipeline."""
        self._check_node(node)
        self.nodes.append(node)
        try:
            self.order(node.state)
        except CycleError as error:
            self.nodes.remove(node)
            raise PipelineUnsound(
                f"{node.worker} and another node of {node.state} wait for each other"
            ) from error
        return self

    def order(self, state: str) -> list[tuple[Node, tuple[Node, ...]]]:
        """Return the nodes of a state, each with the nodes of the same state whose output it reads."""
        here = [node for node in self.nodes if node.state == state]
        needs = {
            node.worker: tuple(other for other in here if other is not node and _feeds(other, node))
            for node in here
        }
        TopologicalSorter({worker: [n.worker for n in found] for worker, found in needs.items()}).prepare()
        return [(node, needs[node.worker]) for node in here]

    def external_inputs(self) -> tuple[str, ...]:
        """Return the plain names that are read and that no node makes: the user must supply them."""
        wanted = dict.fromkeys(
            name
            for node in self.nodes
            for name in node.inputs
            if not patterns.is_optional(name)
            and patterns.SCOPE not in name
            and not any(patterns.overlap(name, made) for other in self.nodes for made in other.outputs)
        )
        return tuple(wanted)

    def takes(self, name: str) -> bool:
        """Return whether the user may supply this artifact: some node reads it and none makes it."""
        read = any(patterns.fits(pattern, name) for node in self.nodes for pattern in node.inputs)
        return read and not any(patterns.fits(made, name) for node in self.nodes for made in node.outputs)

    def run(
        self,
        root: str | os.PathLike[str],
        run_id: str,
        *,
        inputs: Mapping[str, bytes] | None = None,
        parallel: int = 4,
        force: Iterable[str] = (),
        from_state: str = "",
        listeners: Iterable[Listener] = (),
    ) -> Snapshot:
        """Start a run, or take it up where it stopped; return its snapshot, or raise RunFailed.

        `force` names finished work to do again (a work item id, a worker, or `worker:scope`), `from_state` a
        state from which everything is done again. Listeners, such as a `TelemetryClient`, are told about
        every record and cannot stop the run.
        """
        # A declaration must not need the machinery that runs it.
        from tallystick.runs.orchestrator.start import Redo, Surroundings, start_or_resume  # noqa: PLC0415 (as said above)

        redo, around = Redo(tuple(force), from_state), Surroundings(listeners=tuple(listeners))
        return start_or_resume(self, root, run_id, inputs=inputs, parallel=parallel, redo=redo, around=around)

    def _graph(self, stable: tuple[str, ...], rewinds: dict[str, str], limits: dict[str, int]) -> GraphRecord:
        if not self._exits:
            raise PipelineUnsound(f"pipeline {self.name} has no edges")
        records: list[EdgeRecord] = []
        named = dict.fromkeys(self._exits)
        for source, exits in self._exits.items():
            if source in ENDS:
                raise PipelineUnsound(f"{source} is final and cannot have exits")
            for when, target in exits:
                named.setdefault(target)
                if target not in ENDS:
                    records.append(EdgeRecord(source, target, when))
            records += [EdgeRecord(source, end) for end in ENDS]
        final = [state for state in named if not self._exits.get(state) and state not in ENDS]
        start = next(iter(self._exits))
        graph = GraphRecord(start, records, [*final, *ENDS], sorted(stable), rewinds, limits)
        for state in self._exits:
            if not set(final) & _reachable(graph, state):
                raise PipelineUnsound(f"pipeline {self.name} can never finish from {state}")
        return graph

    def _machine(self) -> Machine[Any]:
        names = dict.fromkeys(
            (*self._exits, *(edge.target for edge in self.graph.edges if edge.target not in ENDS))
        )
        for name in names:
            if not _STATE.fullmatch(name):
                raise PipelineUnsound(
                    f"{name[:80]!r} cannot be a state: capital letters, digits and underscores"
                )
        # The members are the user's; a checker of types cannot know them.
        declare: Any = StrEnum
        states = declare("State", {name: name for name in (*names, *ENDS)})
        moves: dict[Any, list[Any]] = {}
        for edge in self.graph.edges:
            targets = moves.setdefault(states[edge.source], [])
            if states[edge.target] not in targets:
                targets.append(states[edge.target])
        try:
            return Machine(
                name=self.name,
                about="a pipeline whose folder is the source of truth",
                start=states[self.graph.start],
                final=frozenset(states[name] for name in self.graph.final),
                transitions=machine_edges(moves),
            )
        except ValueError as error:
            raise PipelineUnsound(str(error)) from error

    def _check_names(self) -> None:
        known = set(self.states)
        graph = self.graph
        for what, names in (
            ("stable", graph.stable),
            ("rewinds", [*graph.rewinds, *graph.rewinds.values()]),
            ("limits", list(graph.limits)),
        ):
            for name in names:
                if name not in known or name in graph.final:
                    raise PipelineUnsound(
                        f"{what} names {name}, which is not a state that a run passes through"
                    )
        for source, target in graph.rewinds.items():
            if target not in graph.stable:
                raise PipelineUnsound(f"{source} rewinds to {target}, which is not declared stable")
        if any(limit < 0 for limit in graph.limits.values()):
            raise PipelineUnsound("a limit cannot be negative")

    def _check_node(self, node: Node) -> None:
        self._check_node_names(node)
        if node.state not in self.states or node.state in self.graph.final:
            raise PipelineUnsound(
                f"{node.worker} works in {node.state}, which is not a state that a run passes through"
            )
        if any(other.worker == node.worker for other in self.nodes):
            raise PipelineUnsound(f"there are two workers called {node.worker}")
        if node.tries < 1:
            raise PipelineUnsound(f"{node.worker} needs at least one try")
        if node.scopes is None and any(patterns.SCOPE in name for name in (*node.inputs, *node.outputs)):
            raise PipelineUnsound(f"{node.worker} names {{scope}} and declares no scopes")

    def _check_node_names(self, node: Node) -> None:
        try:
            check_name("worker", node.worker)
            for name in node.inputs:
                patterns.check_pattern("input artifact", name)
            for name in node.outputs:
                patterns.check_pattern("output artifact", name)
        except BadName as error:
            raise PipelineUnsound(str(error)) from error
        for other in self.nodes:
            for name in node.outputs:
                if any(patterns.overlap(name, made) for made in other.outputs):
                    raise PipelineUnsound(
                        f"{node.worker} and {other.worker} both make {name}; let one worker make it"
                    )


def _exits(targets: Targets) -> tuple[tuple[str, str], ...]:
    """Return (outcome, successor) pairs; a successor that needs no outcome has an empty one."""
    if isinstance(targets, str):
        return (("", targets),)
    if isinstance(targets, Mapping):
        return tuple(targets.items())
    if len(targets) > 1:
        return tuple((target.lower(), target) for target in targets)
    return tuple(("", target) for target in targets)


def _reachable(graph: GraphRecord, start: str) -> set[str]:
    seen, frontier = {start}, [start]
    while frontier:
        here = frontier.pop()
        found = {edge.target for edge in graph.edges if edge.source == here} - seen
        seen |= found
        frontier += found
    return seen


def _feeds(maker: Node, reader: Node) -> bool:
    return any(patterns.overlap(made, read) for made in maker.outputs for read in reader.inputs)
