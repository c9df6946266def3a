"""`tally stage`: the journal speaks for itself, also after its stage was killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tallystick.cli.main import main
from tallystick.stage import SkipItem, Stage
from tallystick.stage.journal.journal import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    def compute(item: int) -> int:
        if item == 2:
            raise SkipItem("two")
        return item * item

    path = tmp_path / "squares.journal"
    assert Stage(compute, journal=path, name="squares").run(range(4)).ok
    return path


def test_a_journal_is_added_up(journal: Path, capsys):
    assert main(["stage", str(journal)]) == 0
    text = capsys.readouterr().out
    assert "stage squares, complete" in text
    assert "TERMINAL_SKIP 1, TERMINAL_SUCCESS 3" in text
    assert "books agree" in text


def test_the_sums_are_data_too(journal: Path, capsys):
    assert main(["stage", str(journal), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["complete"]
    assert data["outcomes"] == {"TERMINAL_SKIP": 1, "TERMINAL_SUCCESS": 3}
    assert data["runs"][0]["attempts"] == data["runs"][0]["started"] == 4


def test_values_are_one_object_a_line(journal: Path, capsys):
    assert main(["stage", str(journal), "--values"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row.get("value") for row in rows] == [0, 1, None, 9]
    assert rows[2]["failure"] == {"type": "SkipItem", "message": "two"}


def test_reading_does_not_disturb_a_stage_that_is_running(journal: Path, capsys):
    holder = Journal(journal, "squares", 0)
    before = journal.read_bytes()
    assert main(["stage", str(journal)]) == 0
    assert journal.read_bytes() == before
    holder.abandon()


def test_a_corrupt_journal_and_a_file_that_is_none_are_refused(journal: Path, capsys):
    content = bytearray(journal.read_bytes())
    content[60] ^= 1
    journal.write_bytes(content)
    assert main(["stage", str(journal)]) == 4
    assert "damaged" in capsys.readouterr().err
    journal.write_text("notes\n")
    assert main(["stage", str(journal)]) == 4


def test_what_a_journal_holds_moves_no_cursor(tmp_path: Path, capsys):
    nasty = "a\x1b[31m\x9b2J\u202e\u2066z"
    path = tmp_path / "nasty.journal"
    assert Stage(lambda item: f"{item}{nasty}", journal=path, name=nasty).run(range(2)).ok
    for options in ([], ["--json"], ["--values"]):
        assert main(["stage", str(path), *options]) == 0
        text = capsys.readouterr().out
        assert all(line.isprintable() for line in text.splitlines())
    assert [json.loads(line)["value"] for line in text.splitlines()] == [f"0{nasty}", f"1{nasty}"]
