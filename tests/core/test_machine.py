"""A machine is proven sound when it is built, and says everything it knows when it refuses a move."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum, StrEnum

import pytest

from tallystick.core.lifecycles import JOB, STEP, JobState, StepState
from tallystick.core.machine import Machine, Need, Path, Transition, each, edges
from tallystick.errors import StateTransitionError, TallyError


class Lamp(StrEnum):
    OFF = "OFF"
    ON = "ON"
    BROKEN = "BROKEN"


LAMP = Machine(
    name="lamp",
    about="a lamp",
    start=Lamp.OFF,
    final=frozenset({Lamp.BROKEN}),
    transitions=(
        Transition(Lamp.OFF, "press", Lamp.ON),
        Transition(Lamp.ON, "press", Lamp.OFF),
        Transition(Lamp.ON, "burn", Lamp.BROKEN, (Need.BUDGET_SPENT,), "ADR-9999"),
        Transition(Lamp.ON, "drop", Lamp.BROKEN),
    ),
)


def build(*transitions: Transition[Lamp], final: frozenset[Lamp] = frozenset({Lamp.BROKEN})) -> Machine[Lamp]:
    return Machine("lamp", "a lamp", Lamp.OFF, final, transitions)


class TestAnUnsoundTableIsRefusedWhenItIsBuilt:
    def test_two_moves_on_one_trigger_are_ambiguous(self):
        with pytest.raises(ValueError, match=r"^machine lamp: OFF has two moves on 'press'$"):
            build(
                Transition(Lamp.OFF, "press", Lamp.ON),
                Transition(Lamp.OFF, "press", Lamp.BROKEN),
                Transition(Lamp.ON, "burn", Lamp.BROKEN),
            )

    def test_two_equal_moves_are_ambiguous_too(self):
        with pytest.raises(ValueError, match="two moves on 'press'"):
            build(
                Transition(Lamp.OFF, "press", Lamp.ON),
                Transition(Lamp.OFF, "press", Lamp.ON),
                Transition(Lamp.ON, "burn", Lamp.BROKEN),
            )

    def test_a_final_state_has_no_exit(self):
        with pytest.raises(ValueError, match=r"^machine lamp: BROKEN is final and has an exit on 'repair'$"):
            build(
                Transition(Lamp.OFF, "press", Lamp.ON),
                Transition(Lamp.ON, "burn", Lamp.BROKEN),
                Transition(Lamp.BROKEN, "repair", Lamp.OFF),
            )

    def test_a_final_state_may_not_even_loop(self):
        with pytest.raises(ValueError, match="BROKEN is final and has an exit on 'rest'"):
            build(
                Transition(Lamp.OFF, "press", Lamp.ON),
                Transition(Lamp.ON, "burn", Lamp.BROKEN),
                Transition(Lamp.BROKEN, "rest", Lamp.BROKEN),
            )

    def test_every_state_can_be_reached(self):
        with pytest.raises(ValueError, match=r"^machine lamp: ON cannot be reached from OFF$"):
            build(Transition(Lamp.OFF, "drop", Lamp.BROKEN), Transition(Lamp.ON, "burn", Lamp.BROKEN))

    def test_an_unreachable_final_state_is_refused(self):
        with pytest.raises(ValueError, match="BROKEN cannot be reached from OFF"):
            build(
                Transition(Lamp.OFF, "press", Lamp.ON),
                final=frozenset({Lamp.ON, Lamp.BROKEN}),
            )

    def test_a_state_without_exit_that_is_not_final_is_stuck(self):
        with pytest.raises(
            ValueError, match=r"^machine lamp: ON is stuck: no final state can be reached from it$"
        ):
            build(Transition(Lamp.OFF, "press", Lamp.ON), Transition(Lamp.OFF, "drop", Lamp.BROKEN))

    def test_a_loop_without_a_way_out_is_stuck(self):
        with pytest.raises(ValueError, match="ON is stuck"):
            build(
                Transition(Lamp.OFF, "drop", Lamp.BROKEN),
                Transition(Lamp.OFF, "press", Lamp.ON),
                Transition(Lamp.ON, "flicker", Lamp.ON),
            )

    def test_a_machine_without_a_final_state_is_stuck(self):
        with pytest.raises(ValueError, match="OFF is stuck"):
            build(
                Transition(Lamp.OFF, "press", Lamp.ON),
                Transition(Lamp.ON, "press", Lamp.OFF),
                Transition(Lamp.ON, "burn", Lamp.BROKEN),
                Transition(Lamp.BROKEN, "repair", Lamp.OFF),
                final=frozenset(),
            )

    def test_a_start_that_is_final_leaves_the_rest_unreachable(self):
        with pytest.raises(ValueError, match="ON cannot be reached"):
            build(final=frozenset(Lamp))


class TestWhatAMachineKnows:
    def test_states_are_in_the_order_of_their_declaration(self):
        assert LAMP.states == (Lamp.OFF, Lamp.ON, Lamp.BROKEN)

    def test_triggers_are_named_once_in_the_order_of_first_use(self):
        assert LAMP.triggers == ("press", "burn", "drop")

    def test_exits_are_the_moves_that_start_in_a_state(self):
        assert [(move.trigger, move.target) for move in LAMP.exits(Lamp.ON)] == [
            ("press", Lamp.OFF),
            ("burn", Lamp.BROKEN),
            ("drop", Lamp.BROKEN),
        ]
        assert LAMP.exits(Lamp.BROKEN) == ()

    def test_a_move_brings_its_needs_and_its_decision_record(self):
        burn = LAMP.find(Lamp.ON, "burn")
        assert (burn.source, burn.trigger, burn.target) == (Lamp.ON, "burn", Lamp.BROKEN)
        assert burn.needs == (Need.BUDGET_SPENT,)
        assert burn.added == "ADR-9999"
        assert LAMP.find(Lamp.ON, "drop").needs == ()
        assert LAMP.find(Lamp.ON, "drop").added == ""

    def test_of_two_moves_between_the_same_states_the_first_declared_is_found(self):
        assert LAMP.between(Lamp.ON, Lamp.BROKEN).trigger == "burn"

    def test_a_walk_ends_where_its_last_move_leads(self):
        assert LAMP.walk(Lamp.OFF, "press", "press", "press", "burn") is Lamp.BROKEN
        assert LAMP.walk(Lamp.ON) is Lamp.ON

    def test_a_walk_is_legal_only_if_every_move_of_it_is(self):
        with pytest.raises(StateTransitionError) as refused:
            LAMP.walk(Lamp.OFF, "press", "burn", "press")
        assert refused.value.state == "BROKEN"
        assert refused.value.attempted == "press"

    def test_a_machine_cannot_be_changed(self):
        with pytest.raises(AttributeError):
            LAMP.name = "candle"  # type: ignore[misc]  # the point of the test
        with pytest.raises(AttributeError):
            LAMP.transitions[0].target = Lamp.OFF  # type: ignore[misc]  # the point of the test

    def test_every_need_has_a_sentence_of_its_own(self):
        sentences = [need.value for need in Need]
        assert len(set(sentences)) == len(Need)
        assert all(sentence and not sentence.endswith(".") for sentence in sentences)


class TestARefusedMoveSaysEverythingItKnows:
    def test_a_trigger_that_is_not_listed_here(self):
        with pytest.raises(StateTransitionError) as refused:
            LAMP.find(Lamp.OFF, "burn", entity="hall", owner="ann", at=1_700_000_000_000)
        error = refused.value
        assert error.machine == "lamp"
        assert error.entity == "hall"
        assert error.state == "OFF"
        assert error.attempted == "burn"
        assert error.owner == "ann"
        assert error.at == 1_700_000_000_000
        assert error.legal == ("press → ON",)
        assert str(error) == "lamp hall is OFF and cannot burn; legal from here: press → ON"

    def test_a_target_that_cannot_be_reached_in_one_move(self):
        with pytest.raises(StateTransitionError) as refused:
            LAMP.between(Lamp.OFF, Lamp.BROKEN, entity="hall", owner="ann", at=7)
        error = refused.value
        assert (error.machine, error.entity, error.state) == ("lamp", "hall", "OFF")
        assert error.attempted == "become BROKEN"
        assert (error.owner, error.at) == ("ann", 7)
        assert error.legal == ("press → ON",)

    def test_all_legal_moves_are_listed(self):
        with pytest.raises(StateTransitionError) as refused:
            LAMP.find(Lamp.ON, "sing")
        assert refused.value.legal == ("press → OFF", "burn → BROKEN", "drop → BROKEN")
        assert str(refused.value).endswith("legal from here: press → OFF, burn → BROKEN, drop → BROKEN")

    def test_from_a_final_state_it_says_that_nothing_is_legal(self):
        with pytest.raises(StateTransitionError) as refused:
            LAMP.find(Lamp.BROKEN, "press")
        assert refused.value.legal == ()
        assert str(refused.value) == (
            "lamp is BROKEN and cannot press; legal from here: none, the state is final"
        )

    def test_the_error_as_data_has_every_field(self):
        with pytest.raises(StateTransitionError) as refused:
            LAMP.find(Lamp.OFF, "burn", entity="hall", owner="ann", at=7)
        assert refused.value.as_dict() == {
            "code": "ILLEGAL_TRANSITION",
            "message": "lamp hall is OFF and cannot burn; legal from here: press → ON",
            "machine": "lamp",
            "entity": "hall",
            "state": "OFF",
            "attempted": "burn",
            "owner": "ann",
            "at": 7,
            "legal": ["press → ON"],
        }

    def test_the_error_knows_its_exit_code_and_http_status(self):
        assert issubclass(StateTransitionError, TallyError)
        assert (StateTransitionError.exit_code, StateTransitionError.http_status) == (4, 409)

    def test_what_nobody_said_is_left_empty(self):
        with pytest.raises(StateTransitionError) as refused:
            LAMP.find(Lamp.OFF, "burn")
        assert (refused.value.entity, refused.value.owner, refused.value.at) == ("", "", None)


class TestShorthands:
    def test_each_makes_one_move_from_every_source(self):
        made = each((Lamp.OFF, Lamp.ON), "drop", Lamp.BROKEN, (Need.RETRYABLE,), "ADR-9999")
        assert made == (
            Transition(Lamp.OFF, "drop", Lamp.BROKEN, (Need.RETRYABLE,), "ADR-9999"),
            Transition(Lamp.ON, "drop", Lamp.BROKEN, (Need.RETRYABLE,), "ADR-9999"),
        )

    def test_each_needs_nothing_unless_told(self):
        assert each((Lamp.OFF,), "drop", Lamp.BROKEN) == (Transition(Lamp.OFF, "drop", Lamp.BROKEN, (), ""),)

    def test_an_edge_of_a_graph_is_triggered_by_the_name_of_its_target(self):
        assert edges({Lamp.OFF: (Lamp.ON, Lamp.BROKEN), Lamp.ON: (Lamp.OFF,)}) == (
            Transition(Lamp.OFF, "on", Lamp.ON),
            Transition(Lamp.OFF, "broken", Lamp.BROKEN),
            Transition(Lamp.ON, "off", Lamp.OFF),
        )

    def test_codes_may_be_numbers(self):
        class Tiny(IntEnum):
            A = 0
            B = 1

        machine = Machine("tiny", "", Tiny.A, frozenset({Tiny.B}), edges({Tiny.A: (Tiny.B,)}))
        assert machine.find(Tiny.A, "b").target is Tiny.B


def test_a_move_can_be_asked_for_by_its_target():
    found = JOB.between(JobState.IN_PROGRESS, JobState.SUCCEEDED)
    assert (found.trigger, found.target) == ("succeed", JobState.SUCCEEDED)
    with pytest.raises(StateTransitionError) as refusal:
        JOB.between(JobState.QUEUED, JobState.SUCCEEDED)
    error = refusal.value
    assert (error.attempted, error.entity, error.owner, error.at) == ("become SUCCEEDED", "", "", None)
    with pytest.raises(StateTransitionError) as named:
        JOB.between(JobState.QUEUED, JobState.SUCCEEDED, entity="j-1", owner="w-1", at=12.5)
    assert (named.value.entity, named.value.owner, named.value.at) == ("j-1", "w-1", 12.5)


def test_of_two_triggers_between_the_same_states_the_first_listed_answers():
    assert STEP.between(StepState.IN_PROGRESS, StepState.FAILED_RETRY).trigger == "fail_retryably"


def test_a_path_that_no_listed_moves_make_is_refused_when_the_machine_is_built():
    with pytest.raises(StateTransitionError):
        replace(JOB, paths=(Path(JobState.QUEUED, ("succeed",), "not listed"),))
    with pytest.raises(StateTransitionError):
        replace(JOB, paths=(Path(JobState.SUCCEEDED, ("dispatch",), "not listed"),))


def test_stored_moves_are_single_moves_and_whole_paths():
    assert (JobState.QUEUED, JobState.IN_PROGRESS) in JOB.stored_moves
    assert (JobState.QUEUED, JobState.SUCCEEDED) not in JOB.stored_moves
    assert len(set(JOB.stored_moves)) == len(JOB.stored_moves)
    # A workflow is born queued or, where a slot is free, running; a protocol job with its first directive.
    assert JOB.births == (JobState.QUEUED, JobState.IN_PROGRESS, JobState.DISPATCHING)
