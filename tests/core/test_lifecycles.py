"""The six lifecycles, held against their specifications cell by cell.

The tables below are the specifications' own, written out a second time by hand. They are facts: when one
of them differs from `lifecycles.py`, the code is wrong until a decision record says otherwise.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick.core.lifecycles import (
    ATTEMPT,
    JOB,
    MACHINES,
    OUTBOX,
    RUN,
    RUN_REWINDS,
    RUN_STABLE,
    SLOT,
    STEP,
    JobState,
    RunState,
    SlotState,
    StepState,
)
from tallystick.core.machine import Machine, Need
from tallystick.errors import StateTransitionError

ROOT = Path(__file__).parents[2]

SLOT_CODES = {
    "UNSEEN": 0,
    "DISPATCHED": 1,
    "IN_FLIGHT": 2,
    "TERMINAL_SUCCESS": 3,
    "TERMINAL_SKIP": 4,
    "TERMINAL_FAIL": 5,
    "TERMINAL_CANCEL": 6,
    "COMMITTED": 7,
}

# Specification 000, its twelve numbered transitions, in its order.
SLOT_FACTS = [
    ("UNSEEN", "dispatch", "DISPATCHED"),
    ("DISPATCHED", "start", "IN_FLIGHT"),
    ("IN_FLIGHT", "succeed", "TERMINAL_SUCCESS"),
    ("IN_FLIGHT", "skip", "TERMINAL_SKIP"),
    ("IN_FLIGHT", "fail", "TERMINAL_FAIL"),
    ("DISPATCHED", "cancel", "TERMINAL_CANCEL"),
    ("IN_FLIGHT", "cancel", "TERMINAL_CANCEL"),
    ("TERMINAL_SUCCESS", "commit", "COMMITTED"),
    ("TERMINAL_SKIP", "commit", "COMMITTED"),
    ("TERMINAL_FAIL", "commit", "COMMITTED"),
    ("TERMINAL_CANCEL", "commit", "COMMITTED"),
    ("TERMINAL_FAIL", "retry", "DISPATCHED"),
]

# Specification 001, the job table; the row with three sources is written as three.
JOB_FACTS = [
    ("QUEUED", "dispatch", "DISPATCHING"),
    ("DISPATCHING", "start", "IN_PROGRESS"),
    ("IN_PROGRESS", "advance", "IN_PROGRESS"),
    ("IN_PROGRESS", "succeed", "SUCCEEDED"),
    ("IN_PROGRESS", "fail", "FAILED_FINAL"),
    ("QUEUED", "cancel", "CANCELLING"),
    ("DISPATCHING", "cancel", "CANCELLING"),
    ("IN_PROGRESS", "cancel", "CANCELLING"),
    ("CANCELLING", "settle", "CANCELLED"),
]

# Specification 001, the step table; "any non-terminal" is written as the five states it means.
STEP_FACTS = [
    ("PENDING", "dispatch", "DISPATCHING"),
    ("DISPATCHING", "sent", "AWAITING_ACK"),
    ("AWAITING_ACK", "ack", "IN_PROGRESS"),
    ("IN_PROGRESS", "succeed", "SUCCEEDED"),
    ("IN_PROGRESS", "fail", "FAILED_FINAL"),
    ("IN_PROGRESS", "fail_retryably", "FAILED_RETRY"),
    ("AWAITING_ACK", "ack_timeout", "FAILED_RETRY"),
    ("FAILED_RETRY", "redispatch", "DISPATCHING"),
    ("PENDING", "cancel", "CANCELLED"),
    ("DISPATCHING", "cancel", "CANCELLED"),
    ("AWAITING_ACK", "cancel", "CANCELLED"),
    ("IN_PROGRESS", "cancel", "CANCELLED"),
    ("FAILED_RETRY", "cancel", "CANCELLED"),
]

# Specification 001, the outbox table (which wins over the arrow line above it).
OUTBOX_FACTS = [
    ("PENDING", "publish", "SENT"),
    ("PENDING", "give_up", "FAILED_FINAL"),
]

# Specification 002, the happy path and the two failure paths.
ATTEMPT_FACTS = [
    ("LEASED", "start", "IN_PROGRESS"),
    ("IN_PROGRESS", "commit", "COMMITTED"),
    ("COMMITTED", "finish", "DONE"),
    ("LEASED", "abort", "ABORTED"),
    ("IN_PROGRESS", "abort", "ABORTED"),
]

# Specification 003, the table of valid transitions.
RUN_TABLE = {
    "CREATED": ["CLONED_INPUTS", "FAILED", "CANCELLED"],
    "CLONED_INPUTS": ["INGESTED", "FAILED", "CANCELLED"],
    "INGESTED": ["FACTS_READY", "FAILED", "CANCELLED"],
    "FACTS_READY": ["PLAN_READY", "FAILED", "CANCELLED"],
    "PLAN_READY": ["DRAFTING", "FAILED", "CANCELLED"],
    "DRAFTING": ["DRAFT_READY", "FAILED", "CANCELLED"],
    "DRAFT_READY": ["LINKING", "FAILED", "CANCELLED"],
    "LINKING": ["VALIDATING", "FAILED", "CANCELLED"],
    "VALIDATING": ["READY_FOR_PR", "FIXING", "FAILED", "CANCELLED"],
    "FIXING": ["VALIDATING", "FAILED", "CANCELLED"],
    "READY_FOR_PR": ["PR_OPENED", "FAILED", "CANCELLED"],
    "PR_OPENED": ["DONE", "FAILED", "CANCELLED"],
    "DONE": [],
    "FAILED": [],
    "CANCELLED": [],
}
RUN_FACTS = [(source, target.lower(), target) for source, targets in RUN_TABLE.items() for target in targets]

# Everything we added to a specification's table, with the decision record that says why.
ADDED = {
    ("job", "DISPATCHING", "fail", "FAILED_FINAL"): "ADR-0003",
    ("step", "IN_PROGRESS", "lease_timeout", "FAILED_RETRY"): "ADR-0003",
    ("step", "DISPATCHING", "give_up", "FAILED_FINAL"): "ADR-0003",
    ("step", "AWAITING_ACK", "exhaust", "FAILED_FINAL"): "ADR-0003",
    ("step", "IN_PROGRESS", "exhaust", "FAILED_FINAL"): "ADR-0003",
    ("step", "IN_PROGRESS", "drop", "CANCELLED"): "ADR-0003",
    ("step", "PENDING", "drop", "CANCELLED"): "ADR-0111",
    ("outbox", "PENDING", "withdraw", "FAILED_FINAL"): "ADR-0111",
}

FACTS = {
    "slot": SLOT_FACTS,
    "job": JOB_FACTS,
    "step": STEP_FACTS,
    "outbox": OUTBOX_FACTS,
    "attempt": ATTEMPT_FACTS,
    "run": RUN_FACTS,
}
STARTS_AND_ENDS = {
    "slot": ("UNSEEN", {"COMMITTED"}),
    "job": ("QUEUED", {"SUCCEEDED", "FAILED_FINAL", "CANCELLED"}),
    "step": ("PENDING", {"SUCCEEDED", "FAILED_FINAL", "CANCELLED"}),
    "outbox": ("PENDING", {"SENT", "FAILED_FINAL"}),
    "attempt": ("LEASED", {"DONE", "ABORTED"}),
    "run": ("CREATED", {"DONE", "FAILED", "CANCELLED"}),
}
STATES = {
    "slot": set(SLOT_CODES),
    "job": {
        "QUEUED",
        "DISPATCHING",
        "IN_PROGRESS",
        "CANCELLING",
        "SUCCEEDED",
        "FAILED_FINAL",
        "CANCELLED",
    },
    "step": {
        "PENDING",
        "DISPATCHING",
        "AWAITING_ACK",
        "IN_PROGRESS",
        "FAILED_RETRY",
        "SUCCEEDED",
        "FAILED_FINAL",
        "CANCELLED",
    },
    "outbox": {"PENDING", "SENT", "FAILED_FINAL"},
    "attempt": {"LEASED", "IN_PROGRESS", "COMMITTED", "DONE", "ABORTED"},
    "run": set(RUN_TABLE),
}

CELLS = [
    pytest.param(machine, state, trigger, id=f"{machine.name}-{state.name}-{trigger}")
    for machine in MACHINES.values()
    for state in machine.states
    for trigger in machine.triggers
]
PAIRS = [
    pytest.param(machine, state, target, id=f"{machine.name}-{state.name}-to-{target.name}")
    for machine in MACHINES.values()
    for state in machine.states
    for target in machine.states
]


def expected(machine: Machine) -> dict[tuple[str, str], str]:
    """Return {(state, trigger): target} from the facts and the additions, never from the machine."""
    listed = {(source, trigger): target for source, trigger, target in FACTS[machine.name]}
    added = {(source, trigger): target for name, source, trigger, target in ADDED if name == machine.name}
    assert not listed.keys() & added.keys()
    return listed | added


@pytest.mark.parametrize(("machine", "state", "trigger"), CELLS)
def test_a_cell_of_the_table_moves_as_written_or_raises(machine, state, trigger):
    """Every cell, state by trigger, of every machine, legal and illegal."""
    target = expected(machine).get((state.name, trigger))
    if target is not None:
        assert machine.find(state, trigger).target.name == target
        return
    with pytest.raises(StateTransitionError) as refused:
        machine.find(state, trigger, entity="e-1", owner="w-1", at=1_700_000_000_000)
    error = refused.value
    assert (error.machine, error.entity, error.state) == (machine.name, "e-1", state.name)
    assert (error.attempted, error.owner, error.at) == (trigger, "w-1", 1_700_000_000_000)
    legal = {f"{name} → {goal}" for (source, name), goal in expected(machine).items() if source == state.name}
    assert set(error.legal) == legal


@pytest.mark.parametrize(("machine", "state", "target"), PAIRS)
def test_a_pair_of_states_is_joined_exactly_when_the_facts_join_it(machine, state, target):
    joined = {(source, goal) for (source, _), goal in expected(machine).items()}
    if (state.name, target.name) in joined:
        assert machine.between(state, target).target is target
    else:
        with pytest.raises(StateTransitionError):
            machine.between(state, target)


@pytest.mark.parametrize("name", FACTS)
def test_a_machine_lists_what_its_specification_lists_and_what_we_marked_as_added(name):
    machine = MACHINES[name]
    moves = [
        (move.source.name, move.trigger, move.target.name) for move in machine.transitions if not move.added
    ]
    assert sorted(moves) == sorted(FACTS[name])


@pytest.mark.parametrize("name", FACTS)
def test_a_machine_starts_and_ends_where_its_specification_says(name):
    machine = MACHINES[name]
    start, ends = STARTS_AND_ENDS[name]
    assert machine.start.name == start
    assert {state.name for state in machine.final} == ends
    assert {state.name for state in machine.states} == STATES[name]


def test_there_are_six_machines_each_known_by_its_own_name():
    assert list(MACHINES) == ["slot", "job", "step", "outbox", "attempt", "run"]
    assert [machine.name for machine in MACHINES.values()] == list(MACHINES)
    assert tuple(MACHINES.values()) == (SLOT, JOB, STEP, OUTBOX, ATTEMPT, RUN)
    assert all(machine.about for machine in MACHINES.values())


def test_the_additions_are_exactly_those_with_a_decision_record():
    added = {
        (machine.name, move.source.name, move.trigger, move.target.name): move.added
        for machine in MACHINES.values()
        for move in machine.transitions
        if move.added
    }
    assert added == ADDED


@pytest.mark.parametrize("record", sorted(set(ADDED.values())))
def test_the_decision_record_of_an_addition_exists_and_names_its_edges(record):
    number = record.removeprefix("ADR-")
    (page,) = (ROOT / "docs" / "adr").glob(f"{number}-*.md")
    text = page.read_text(encoding="utf-8")
    for (_machine, source, trigger, target), its_record in ADDED.items():
        if its_record == record:
            assert f"{source} → {target}" in text
            assert f"`{trigger}`" in text


class TestSlots:
    """Specification 000."""

    def test_a_slot_has_the_codes_of_the_specification(self):
        assert {state.name: state.value for state in SlotState} == SLOT_CODES

    def test_entering_work_needs_the_lease(self):
        assert Need.LEASE in SLOT.find(SlotState.DISPATCHED, "start").needs

    def test_only_a_failure_is_retried_and_only_within_class_and_budget(self):
        retries = [move for move in SLOT.transitions if move.trigger == "retry"]
        assert [(move.source, move.target) for move in retries] == [
            (SlotState.TERMINAL_FAIL, SlotState.DISPATCHED)
        ]
        assert retries[0].needs == (Need.RETRYABLE, Need.BUDGET_LEFT)

    def test_a_reclaim_is_a_path_of_listed_moves(self):
        assert SLOT.walk(SlotState.IN_FLIGHT, "fail", "retry") is SlotState.DISPATCHED

    def test_cancelling_an_unseen_seq_is_a_path_of_listed_moves(self):
        assert SLOT.walk(SlotState.UNSEEN, "dispatch", "cancel") is SlotState.TERMINAL_CANCEL


class TestJobsStepsAndOutbox:
    """Specification 001."""

    def test_every_open_job_can_be_cancelled(self):
        open_states = set(JobState) - JOB.final - {JobState.CANCELLING}
        assert all(JOB.find(state, "cancel").target is JobState.CANCELLING for state in open_states)

    def test_every_open_step_can_be_cancelled_while_its_job_is_cancelling(self):
        for state in set(StepState) - STEP.final:
            move = STEP.find(state, "cancel")
            assert move.target is StepState.CANCELLED
            assert Need.CANCELLING in move.needs

    @pytest.mark.parametrize("trigger", ["fail_retryably", "ack_timeout", "lease_timeout"])
    def test_the_budget_is_checked_before_a_retry_is_entered(self, trigger):
        (move,) = (move for move in STEP.transitions if move.trigger == trigger)
        assert move.target is StepState.FAILED_RETRY
        assert Need.BUDGET_LEFT in move.needs

    def test_a_spent_budget_has_an_exit_wherever_a_timeout_can_strike(self):
        for move in STEP.transitions:
            if move.trigger in {"ack_timeout", "lease_timeout"}:
                exhaust = STEP.find(move.source, "exhaust")
                assert exhaust.target is StepState.FAILED_FINAL
                assert Need.BUDGET_SPENT in exhaust.needs

    @pytest.mark.parametrize("trigger", ["ack", "succeed", "fail", "fail_retryably"])
    def test_a_callback_needs_the_live_lease(self, trigger):
        moves = [move for move in STEP.transitions if move.trigger == trigger]
        assert moves
        assert all(Need.LEASE in move.needs for move in moves)

    def test_every_move_of_a_job_names_the_revision_it_read(self):
        assert all(Need.REVISION in move.needs for move in JOB.transitions)

    def test_callbacks_out_of_order_are_paths_of_listed_moves(self):
        assert STEP.walk(StepState.DISPATCHING, "sent", "ack") is StepState.IN_PROGRESS
        assert STEP.walk(StepState.AWAITING_ACK, "ack", "succeed") is StepState.SUCCEEDED

    def test_a_directive_is_sent_only_after_it_was_published(self):
        (publish,) = (move for move in OUTBOX.transitions if move.trigger == "publish")
        assert Need.PUBLISHED in publish.needs


class TestAttempts:
    """Specification 002."""

    def test_at_most_one_attempt_of_a_unit_commits(self):
        (commit,) = (move for move in ATTEMPT.transitions if move.trigger == "commit")
        assert commit.needs == (Need.LEASE, Need.NO_OTHER_COMMIT)

    def test_the_commit_boundary_has_no_way_back(self):
        (finish,) = ATTEMPT.exits(ATTEMPT.between(*boundary()).target)
        assert finish.trigger == "finish"
        assert finish.needs == ()


def boundary():
    """Return the two states on either side of the commit boundary."""
    states = {state.name: state for state in ATTEMPT.states}
    return states["IN_PROGRESS"], states["COMMITTED"]


class TestRuns:
    """Specification 003."""

    def test_every_open_state_can_fail_and_be_cancelled(self):
        for state in set(RunState) - RUN.final:
            assert RUN.between(state, RunState.FAILED).trigger == "failed"
            assert RUN.between(state, RunState.CANCELLED).trigger == "cancelled"

    def test_a_run_rests_in_three_stable_states(self):
        assert {state.name for state in RUN_STABLE} == {"PLAN_READY", "DRAFT_READY", "READY_FOR_PR"}

    def test_a_resume_rewinds_the_four_transitional_states(self):
        assert {source.name: target.name for source, target in RUN_REWINDS.items()} == {
            "DRAFTING": "PLAN_READY",
            "LINKING": "DRAFT_READY",
            "VALIDATING": "DRAFT_READY",
            "FIXING": "DRAFT_READY",
        }
        assert set(RUN_REWINDS.values()) <= RUN_STABLE

    def test_a_rewind_leads_to_a_state_on_the_way_to_where_it_came_from(self):
        order = list(RunState)
        assert all(order.index(target) < order.index(source) for source, target in RUN_REWINDS.items())

    def test_a_rewind_is_not_a_move_of_the_machine(self):
        for source, target in RUN_REWINDS.items():
            with pytest.raises(StateTransitionError):
                RUN.between(source, target)
