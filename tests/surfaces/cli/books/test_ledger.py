"""`tally ledger`: the digits with their meaning, and what happens next for a message in that state."""

from __future__ import annotations

import itertools
import json

import pytest

from tallystick.cli.main import main
from tallystick.cli.render.ledger_drawing import draw
from tallystick.cli.render.output import Ink
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.decisions import NextStep, enter_leg1, enter_leg2, next_step

AFTER_STEP_1 = """\
activity ledger 001110000000001

  001  1  1  0  0  00000001
  └┬┘  │  │  │  │  └──┬───┘
   │   │  │  │  │     └────── 1  leg2_entries      different messages that entered leg 2
   │   │  │  │  └──────────── 0  tasks_done        leg 2 step 3: the job's completion tasks are durable
   │   │  │  └─────────────── 0  children_spawned  leg 2 step 2: children and semaphore are durable
   │   │  └────────────────── 1  work_done         leg 2 step 1: a message's work is durable
   │   └───────────────────── 1  leg1_complete     leg 1's work is durable
   └───────────────────────── 1  leg1_entries      times leg 1 was entered

  next                     step 1 done → step 2 runs next: open children, move the semaphore
  a leg-1 message now      acknowledge the message, nothing is left to do → 002110000000001
  a new leg-2 message now  run its work → 001110000000002
"""


def data_of(capsys, *arguments: str) -> dict:
    main(["ledger", "--json", *arguments])
    return json.loads(capsys.readouterr().out)


def test_the_digits_are_drawn_with_their_meaning(capsys):
    assert main(["ledger", "001110000000001"]) == 0
    assert capsys.readouterr().out == AFTER_STEP_1


@pytest.mark.parametrize(
    ("digits", "step", "words"),
    [
        ("000000000000000", "LEG1", "nothing done yet → leg 1 runs next"),
        ("001000000000000", "LEG1", "leg 1 entered once, its work is not durable → leg 1 runs next"),
        ("998000000000000", "LEG1", "leg 1 entered 998 times"),
        ("999000000000000", "ESCALATE", "leg 1 entered 999 times and never completed → fail fast"),
        ("001100000000000", "WAIT", "leg 1 done → waits for its first leg-2 message"),
        ("002100000000000", "WAIT", "leg 1 done → waits for its first leg-2 message"),
        ("001100000000001", "WORK", "step 1 runs next"),
        ("001110000000001", "CHILDREN", "step 1 done → step 2 runs next"),
        ("001111000000001", "ACKNOWLEDGE", "if it closed the job, step 3 runs first"),
        ("001111100000001", "ACKNOWLEDGE", "nothing left to do → acknowledge the message"),
        ("001110000000012", "CHILDREN", "of 12 messages the furthest: step 1 done → step 2 runs next"),
    ],
)
def test_it_says_what_an_activity_does_next(digits, step, words, capsys):
    what_next = data_of(capsys, digits)["next"]
    assert what_next["step"] == step
    assert words in what_next["meaning"]


@pytest.mark.parametrize(
    ("digits", "step"),
    [
        ("000000000000000", "ENTER"),
        ("000000000000001", "WORK"),
        ("000010000000001", "CHILDREN"),
        ("000011000000001", "ACKNOWLEDGE"),
        ("000111000000001", "TASKS"),
        ("000111100000001", "ACKNOWLEDGE"),
    ],
)
def test_it_says_what_a_message_does_next(digits, step, capsys):
    what_next = data_of(capsys, "--guid", digits)["next"]
    assert what_next["step"] == step
    if step in NextStep.__members__:
        assert NextStep[step] is next_step(GuidLedger.parse(digits))
        assert what_next["meaning"] == NextStep[step].value


@pytest.mark.parametrize(
    "digits", ["000000000000000", "001100000000000", "999100099999999", "999000000000000"]
)
def test_it_says_what_arriving_messages_meet_as_the_engine_decides(digits, capsys):
    ledger = ActivityLedger.parse(digits)
    (leg1, leg2) = data_of(capsys, digits)["next"]["arrivals"]
    assert (leg1["verdict"], leg1["ledger_after"]) == (
        enter_leg1(ledger).verdict.name,
        enter_leg1(ledger).activity.text,
    )
    assert (leg2["verdict"], leg2["ledger_after"]) == (
        enter_leg2(ledger, None).verdict.name,
        enter_leg2(ledger, None).activity.text,
    )


def test_the_data_has_every_field_with_its_place_and_meaning(capsys):
    data = data_of(capsys, "--guid", "000111000000003")
    assert (data["kind"], data["ledger"], data["value"]) == ("guid", "000111000000003", 111_000_000_003)
    assert (data["dimension"], data["contradictions"]) == (2, [])
    fields = {field["name"]: field for field in data["fields"]}
    assert {name: field["value"] for name, field in fields.items()} == GuidLedger(111_000_000_003).fields()
    assert fields["closed_job"]["positions"] == "4"
    assert fields["closed_job"]["weight"] == 100_000_000_000
    assert fields["entry"]["top"] == 99_999_999
    assert all(field["meaning"] for field in fields.values())


def test_a_message_without_an_entry_has_no_dimension(capsys):
    assert data_of(capsys, "--guid", "000000000000000")["dimension"] is None


def test_contradicting_digits_are_drawn_and_then_called_corrupt(capsys):
    assert main(["ledger", "000011000000001"]) == 4
    said = capsys.readouterr()
    assert said.out.startswith("activity ledger 000011000000001\n")
    assert "next" not in said.out
    assert said.err == (
        "error: activity ledger 000011000000001: a message has entered leg 2 and leg 1 is not complete; "
        "if these are the digits of a message, say --guid\n"
    )


def test_contradicting_digits_of_a_message_get_no_useless_hint(capsys):
    assert main(["ledger", "--guid", "000100000000001"]) == 4
    assert "--guid" not in capsys.readouterr().err


def test_with_json_contradictions_are_data_and_an_error(capsys):
    assert main(["ledger", "--json", "001010000000001"]) == 4
    said = capsys.readouterr()
    data, error = json.loads(said.out), json.loads(said.err)["error"]
    assert data["next"] is None
    assert data["contradictions"] == error["contradictions"]
    assert error["code"] == "LEDGER_CORRUPT"


@pytest.mark.parametrize("flags", [[], ["--guid"], ["--json"], ["--guid", "--json"]], ids=" ".join)
@pytest.mark.parametrize("digits", ["001110000000001", "000011000000001", "000000000000000", "nonsense", ""])
def test_the_quick_door_and_click_say_the_same(flags, digits, capsys, monkeypatch):
    """The plain spelling is understood without click; both doors must lead to the same room."""
    orders = sorted(set(itertools.permutations([*flags, digits])))
    quick = [(main(["ledger", *words]), *capsys.readouterr()) for words in orders]
    monkeypatch.setattr("tallystick.cli.main._plain_ledger_call", lambda given: None)
    assert [(main(["ledger", *words]), *capsys.readouterr()) for words in orders] == quick


def test_on_a_narrow_terminal_the_branches_are_a_list():
    ledger = GuidLedger.parse("000111100000001")
    wide, narrow = draw(ledger, None, Ink(wet=False)), draw(ledger, None, Ink(wet=False), 80)
    assert max(map(len, wide.splitlines())) > 80
    assert max(map(len, narrow.splitlines())) <= 80
    assert (
        narrow.splitlines()[3] == "  1  closed_job        this message brought the semaphore to its threshold"
    )
    assert all(field.meaning in narrow for field in GuidLedger.FIELDS)
