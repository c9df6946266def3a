"""`tally machines`: the lifecycles as the code enforces them."""

from __future__ import annotations

import json

import pytest

from tallystick.cli.main import main
from tallystick.core.lifecycles import MACHINES
from tallystick.core.printing import render

EVERY_MACHINE = pytest.mark.parametrize("name", MACHINES)


def said(capsys, *arguments: str) -> str:
    assert main(["machines", *arguments]) == 0
    return capsys.readouterr().out


def test_without_a_name_there_is_one_line_a_machine(capsys):
    lines = said(capsys).splitlines()
    assert [line.split()[0] for line in lines] == list(MACHINES)
    assert "QUEUED → SUCCEEDED | FAILED_FINAL | CANCELLED" in lines[1]


@EVERY_MACHINE
def test_the_table_has_a_line_for_every_move_and_every_final_state(name, capsys):
    machine = MACHINES[name]
    for form in ([], ["--format", "table"]):
        title, _, *lines = said(capsys, name, *form).splitlines()
        assert title == f"{name}: {machine.about}"
        body = lines[: lines.index("")] if "" in lines else lines
        here = ""
        moves, final = [], []
        for line in body:
            words = line.split()
            if not line.startswith("   "):
                here = words.pop(0)
            if words == ["final"]:
                final.append(here)
            else:
                moves.append((here, words[0], words[2]))
        by_state = [move for state in machine.states for move in machine.exits(state)]
        assert moves == [(move.source.name, move.trigger, move.target.name) for move in by_state]
        assert final == [state.name for state in machine.states if state in machine.final]


@EVERY_MACHINE
def test_needs_and_additions_are_explained_below_the_table(name, capsys):
    text = said(capsys, name)
    for move in MACHINES[name].transitions:
        assert all(f"  {need.name.lower()}" in text for need in move.needs)
        assert all(need.value in text for need in move.needs)
        assert move.added in text


def test_a_run_also_says_where_it_rests_and_where_a_resume_goes_back_to(capsys):
    text = said(capsys, "run")
    assert "PLAN_READY, DRAFT_READY, READY_FOR_PR" in text
    assert "FIXING → DRAFT_READY" in text
    data = json.loads(said(capsys, "run", "--json"))
    assert data["stable"] == ["PLAN_READY", "DRAFT_READY", "READY_FOR_PR"]
    assert data["rewinds"]["DRAFTING"] == "PLAN_READY"


@EVERY_MACHINE
def test_mermaid_is_the_diagram_alone(name, capsys):
    assert said(capsys, name, "--format", "mermaid") == render.mermaid(MACHINES[name]) + "\n"


def test_all_diagrams_are_a_page_of_fenced_ones(capsys):
    page = said(capsys, "--format", "mermaid")
    assert page.count("```mermaid\n") == len(MACHINES)
    assert all(f"## {name}\n\n```mermaid\n{render.mermaid(MACHINES[name])}\n```" in page for name in MACHINES)


@EVERY_MACHINE
def test_json_is_the_machine_as_data_whichever_way_it_is_asked_for(name, capsys):
    asked = [["--json"], ["--format", "json"], ["--json", "--format", "json"]]
    documents = [json.loads(said(capsys, name, *form)) for form in asked]
    assert all(document == documents[0] for document in documents)
    assert documents[0].items() >= render.as_data(MACHINES[name]).items()


def test_json_without_a_name_is_a_list_of_all(capsys):
    assert [machine["name"] for machine in json.loads(said(capsys, "--json"))] == list(MACHINES)


def test_an_unknown_name_is_answered_with_the_known_ones(capsys):
    assert main(["machines", "teapot"]) == 4
    assert capsys.readouterr().err == (
        "error: there is no machine 'teapot'; there are slot, job, step, outbox, attempt, run\n"
    )
