"""Every pair of the fifteen states: the listed moves succeed, all others are recorded, logged and raised."""

from __future__ import annotations

import logging

import pytest

from tallystick.core.lifecycles import RUN, RUN_REWINDS, RUN_STABLE, RunState
from tallystick.errors import StateTransitionError
from tallystick.runs.log.events import EventType, RunCreated
from tallystick.runs.orchestrator.start import open_run
from tallystick.runs.publishing import publishing
from tests.runs.worlds import around, events

PIPELINE = publishing()
LEGAL = {(move.source.name, move.target.name) for move in RUN.transitions}
STATES = [state.name for state in RunState]


def way_to(target: str) -> list[str]:
    """Return the shortest legal way from CREATED."""
    ways = {"CREATED": ["CREATED"]}
    frontier = ["CREATED"]
    while frontier:
        here = frontier.pop(0)
        for source, after in sorted(LEGAL):
            if source == here and after not in ways:
                ways[after] = [*ways[here], after]
                frontier.append(after)
    return ways[target]


def test_the_shipped_pipeline_is_the_lifecycle_of_a_run():
    assert PIPELINE.states == tuple(STATES)
    assert {(edge.source, edge.target) for edge in PIPELINE.graph.edges} == LEGAL
    assert set(PIPELINE.graph.stable) == {state.name for state in RUN_STABLE}
    assert PIPELINE.graph.rewinds == {source.name: target.name for source, target in RUN_REWINDS.items()}


@pytest.mark.parametrize("source", STATES)
def test_every_move_from_a_state_does_what_the_table_says(source, tmp_path, caplog):
    for target in STATES:
        run_id = f"{source}-{target}"
        with open_run(tmp_path, run_id, around=around(), pipeline=PIPELINE) as recorder:
            created = RunCreated("publishing", PIPELINE.graph, recorder.span.trace_id, recorder.span.span_id)
            recorder.record([(EventType.RUN_CREATED, created)])
            for state in way_to(source)[1:]:
                recorder.move(state)
            before = (tmp_path / run_id / "snapshot.json").read_bytes()
            caplog.clear()
            if (source, target) in LEGAL:
                recorder.move(target)
                assert recorder.view.state == target
                last = events(tmp_path / run_id)[-1]
                assert last["type"] == "RUN_STATE_CHANGED"
            else:
                with pytest.raises(StateTransitionError) as caught:
                    recorder.move(target)
                assert (caught.value.state, caught.value.entity) == (source, run_id)
                assert (recorder.view.state, (tmp_path / run_id / "snapshot.json").read_bytes()) == (
                    source,
                    before,
                )
                last = events(tmp_path / run_id)[-1]
                assert last["type"] == "INVALID_STATE_TRANSITION"
                lines = [(record.levelno, record.getMessage()) for record in caplog.records]
                assert (logging.ERROR, f"Invalid transition: {source} → {target}") in lines
            assert (last["payload"]["from_state"], last["payload"]["to_state"]) == (source, target)


def test_a_state_that_nobody_knows_is_refused_like_any_other(tmp_path):
    with open_run(tmp_path, "r1", around=around(), pipeline=PIPELINE) as recorder:
        created = RunCreated("publishing", PIPELINE.graph, recorder.span.trace_id, recorder.span.span_id)
        recorder.record([(EventType.RUN_CREATED, created)])
        with pytest.raises(StateTransitionError):
            recorder.move("NOWHERE\x1b[31m" + "x" * 1000)
    assert len(events(tmp_path / "r1")[-1]["payload"]["to_state"]) <= 128
