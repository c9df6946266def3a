"""What is printed from a machine or a ledger says the same as the machine or the ledger."""

from __future__ import annotations

import re
from enum import StrEnum

import apsw
import jsonschema_rs
import pytest

from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.promises import PROMISES
from tallystick.core.lifecycles import JOB, MACHINES, RUN, RUN_REWINDS, RUN_STABLE, SLOT, STEP
from tallystick.core.machine import Machine, Need, Transition
from tallystick.core.printing import render

EVERY_MACHINE = pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))


class Door(StrEnum):
    OPEN = "open"
    SHUT = "shut"


DOOR = Machine(
    name="door",
    about="a door",
    start=Door.OPEN,
    final=frozenset({Door.SHUT}),
    transitions=(
        Transition(Door.OPEN, "creak", Door.OPEN),
        Transition(Door.OPEN, "close", Door.SHUT, (Need.LEASE, Need.RETRYABLE), "ADR-9999"),
    ),
)


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


class TestMarkdown:
    def test_a_machine_is_a_table_of_its_moves(self):
        table = render.markdown(DOOR)
        assert cells(table) == [
            ["from", "trigger", "to", "needs, in the same transaction", "added by"],
            ["------", "-------", "------", "-" * 96, "--------"],
            ["`OPEN`", "`creak`", "`OPEN`", "", ""],
            ["`OPEN`", "`close`", "`SHUT`", f"{Need.LEASE.value}; {Need.RETRYABLE.value}", "ADR-9999"],
        ]
        assert len({len(line) for line in table.splitlines()}) == 1

    @EVERY_MACHINE
    def test_every_move_is_a_row_in_the_order_of_its_declaration(self, machine):
        rows = cells(render.markdown(machine))[2:]
        assert [(row[0], row[1], row[2], row[4]) for row in rows] == [
            (f"`{move.source.name}`", f"`{move.trigger}`", f"`{move.target.name}`", move.added)
            for move in machine.transitions
        ]

    @EVERY_MACHINE
    def test_the_grid_has_a_row_a_state_and_a_column_a_trigger(self, machine):
        head, _, *rows = cells(render.markdown_grid(machine))
        assert head == ["", *machine.triggers]
        moves = {
            (row[0].strip("`"), trigger): target.strip("`")
            for row in rows
            for trigger, target in zip(head[1:], row[1:], strict=True)
            if target
        }
        assert moves == {(m.source.name, m.trigger): m.target.name for m in machine.transitions}
        assert [row[0].strip("`") for row in rows] == [state.name for state in machine.states]

    def test_columns_line_up_and_bars_are_escaped(self):
        table = render.markdown_table(("a", "b"), [("x|y", "1"), ("z", "long cell")])
        assert table.splitlines() == [
            "| a    | b         |",
            "| ---- | --------- |",
            r"| x\|y | 1         |",
            "| z    | long cell |",
        ]

    def test_a_ragged_row_is_refused(self):
        with pytest.raises(ValueError):
            render.markdown_table(("a", "b"), [("only one",)])

    def test_rewinds_are_a_table_and_stable_states_a_line_in_the_order_of_declaration(self):
        text = render.rewinds(RUN, RUN_STABLE, RUN_REWINDS)
        assert text.splitlines()[2:] == [
            "| `DRAFTING`     | `PLAN_READY`  |",
            "| `LINKING`      | `DRAFT_READY` |",
            "| `VALIDATING`   | `DRAFT_READY` |",
            "| `FIXING`       | `DRAFT_READY` |",
            "",
            "Stable states: `PLAN_READY`, `DRAFT_READY`, `READY_FOR_PR`.",
        ]


class TestMermaid:
    def test_a_diagram_has_its_start_its_moves_and_its_ends(self):
        assert render.mermaid(DOOR).splitlines() == [
            "stateDiagram-v2",
            "    [*] --> OPEN",
            "    OPEN --> OPEN : creak",
            "    OPEN --> SHUT : close (ADR-9999)",
            "    SHUT --> [*]",
        ]

    @EVERY_MACHINE
    def test_a_diagram_read_back_is_the_machine(self, machine):
        lines = [line.strip() for line in render.mermaid(machine).splitlines()]
        assert lines.pop(0) == "stateDiagram-v2"
        edges = [re.fullmatch(r"(\S+) --> (\S+)(?: : (\w+)(?: \((ADR-\d{4})\))?)?", line) for line in lines]
        assert all(edges)
        starts = [edge[2] for edge in edges if edge[1] == "[*]"]
        ends = {edge[1] for edge in edges if edge[2] == "[*]"}
        moves = {(edge[1], edge[3], edge[2], edge[4] or "") for edge in edges if edge[3]}
        assert starts == [machine.start.name]
        assert ends == {state.name for state in machine.final}
        assert moves == {(m.source.name, m.trigger, m.target.name, m.added) for m in machine.transitions}


class TestSqlCheck:
    def test_names_are_quoted_and_codes_are_numbers(self):
        assert render.sql_check(DOOR, "position") == "CHECK (position IN ('open', 'shut'))"
        assert render.sql_check(SLOT) == "CHECK (state IN (0, 1, 2, 3, 4, 5, 6, 7))"

    @EVERY_MACHINE
    def test_a_database_accepts_the_states_and_nothing_else(self, machine):
        db = apsw.Connection(":memory:")
        db.execute(f"create table t (state any not null {render.sql_check(machine)}) strict")
        for state in machine.states:
            db.execute("insert into t values (?)", [state.value])
        for wrong in ("ELSEWHERE", "", -1, 8, None):
            with pytest.raises(apsw.ConstraintError):
                db.execute("insert into t values (?)", [wrong])


class TestJsonSchema:
    @EVERY_MACHINE
    def test_the_schema_is_valid_and_accepts_the_states_and_nothing_else(self, machine):
        schema = render.json_schema(machine)
        jsonschema_rs.meta.validate(schema)
        validator = jsonschema_rs.validator_for(schema)
        assert all(validator.is_valid(state.value) for state in machine.states)
        assert not any(validator.is_valid(wrong) for wrong in ("ELSEWHERE", 8, None, {}))

    def test_a_schema_says_what_it_is_about(self):
        assert render.json_schema(DOOR) == {
            "title": "door state",
            "description": "a door",
            "type": "string",
            "enum": ["open", "shut"],
        }

    def test_codes_are_explained(self):
        schema = render.json_schema(SLOT)
        assert schema["type"] == "integer"
        codes = "0 UNSEEN, 1 DISPATCHED, 2 IN_FLIGHT, 3 TERMINAL_SUCCESS, 4 TERMINAL_SKIP, 5 TERMINAL_FAIL"
        assert schema["description"] == f"{SLOT.about} ({codes}, 6 TERMINAL_CANCEL, 7 COMMITTED)"


class TestData:
    def test_a_machine_as_data(self):
        assert render.as_data(DOOR) == {
            "name": "door",
            "about": "a door",
            "start": "OPEN",
            "final": ["SHUT"],
            "states": [{"name": "OPEN", "stored_as": "open"}, {"name": "SHUT", "stored_as": "shut"}],
            "triggers": ["creak", "close"],
            "transitions": [
                {"from": "OPEN", "trigger": "creak", "to": "OPEN", "needs": [], "added_by": None},
                {
                    "from": "OPEN",
                    "trigger": "close",
                    "to": "SHUT",
                    "needs": [
                        {"name": "LEASE", "meaning": Need.LEASE.value},
                        {"name": "RETRYABLE", "meaning": Need.RETRYABLE.value},
                    ],
                    "added_by": "ADR-9999",
                },
            ],
        }

    def test_final_states_are_in_the_order_of_declaration(self):
        assert render.as_data(JOB)["final"] == ["SUCCEEDED", "FAILED_FINAL", "CANCELLED"]
        assert render.as_data(STEP)["final"] == ["SUCCEEDED", "FAILED_FINAL", "CANCELLED"]


class TestLedgers:
    @pytest.mark.parametrize("ledger", [ActivityLedger, GuidLedger])
    def test_the_positions_of_a_map_are_one_to_fifteen_without_gap(self, ledger):
        taken = []
        for field in ledger.FIELDS:
            first, _, last = render.positions(field).partition("-")
            taken += range(int(first), int(last or first) + 1)
        assert taken == list(range(1, 16))

    def test_a_digit_map_names_position_weight_field_and_range(self):
        rows = cells(render.digit_map(GuidLedger.FIELDS))
        assert rows[0] == ["position", "weight", "field", "range", "meaning"]
        assert rows[3][:4] == ["4", "100,000,000,000", "`closed_job`", "0..1"]
        assert rows[-1][:4] == ["8-15", "1", "`entry`", "0..99,999,999"]

    def test_the_promise_table_has_a_row_a_bundle_and_names_each_promise_once(self):
        head, _, *rows = cells(render.promise_table(PROMISES))
        assert head == ["promise", "it keeps", "bundle", "activity ledger", "GUID ledger", "message"]
        firsts = [row for row in rows if row[0]]
        assert [(row[1], row[5]) for row in firsts] == [
            (promise.keeps, promise.message) for promise in PROMISES
        ]
        assert not [row for row in rows if not row[0] and (row[1] or row[5])]
        assert len(rows) == sum(len(promise.bundles) for promise in PROMISES)
        assert [row[0].strip("`") for row in rows if row[0]] == [promise.name for promise in PROMISES]
        ledgers = [(row[3].strip("`"), row[4].strip("`")) for row in rows]
        assert ledgers == [
            tuple("" if ledger is None else ledger.text for ledger in (bundle.activity, bundle.guid))
            for promise in PROMISES
            for bundle in promise.bundles
        ]
