"""The shipped pipeline: fifteen states from cloned inputs to a pull request, with a validate-and-fix loop.

States and moves are those of the lifecycle `run`; this module only adds what a pipeline needs beyond a
lifecycle.
"""

from __future__ import annotations

from tallystick.core.lifecycles import RUN, RUN_REWINDS, RUN_STABLE, RunState
from tallystick.runs.definition.pipeline import ENDS, Pipeline, Targets


def publishing(max_fix_attempts: int = 3) -> Pipeline:
    """Return the fifteen-state graph without workers; add nodes to the states that shall do something.

    The work of VALIDATING returns "ok" or "not_ok" (or a truth value). `max_fix_attempts` fixes are allowed.
    """
    edges: dict[str, Targets] = {}
    for state in RUN.states:
        targets = [move.target.name for move in RUN.exits(state) if move.target.name not in ENDS]
        if targets:
            edges[state.name] = targets
    edges[RunState.VALIDATING.name] = {"ok": RunState.READY_FOR_PR.name, "not_ok": RunState.FIXING.name}
    return Pipeline(
        "publishing",
        edges,
        stable=[state.name for state in RUN_STABLE],
        rewinds={source.name: target.name for source, target in RUN_REWINDS.items()},
        limits={RunState.FIXING.name: max_fix_attempts},
    )
