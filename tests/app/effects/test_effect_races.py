"""Several real processes come to one key at the same moment: one acts, and all have its result."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tallystick import Tally
from tallystick.testing.stepping import check_books

PROCESSES = 2
ROUNDS = 10


@pytest.mark.slow
def test_processes_that_race_for_a_key(url, tmp_path):
    ledger = tmp_path / "ledger.txt"
    Tally(url).close()  # its tables are there before anybody comes
    about = ("-m", "tests.app.programs.racing", url, str(ledger), "key-")
    programs = [
        subprocess.Popen(
            [sys.executable, *about, str(me)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for me in range(PROCESSES)
    ]
    answers: list[set[str]] = []
    try:
        assert {program.stdout.readline().strip() for program in programs} == {"ready"}
        for number in range(ROUNDS):
            for program in programs:
                program.stdin.write(f"{number}\n")
                program.stdin.flush()
            answers.append({word for program in programs for word in program.stdout.readline().split()})
    finally:
        for program in programs:
            program.stdin.close()
            program.wait(60)
            program.stdout.close()
    charged = Counter(line.split()[0] for line in ledger.read_text("utf-8").splitlines())
    assert charged == {f"key-{number}": 1 for number in range(ROUNDS)}
    assert [len(each) for each in answers] == [1] * ROUNDS
    app = Tally(url)
    try:
        assert check_books(app) == []
        with app.connect() as db:
            (lost,) = next(
                iter(db.execute("select count(*) from attempts where reason = 'DUPLICATE_COMMIT'"))
            )
        assert lost == ROUNDS * (2 * PROCESSES - 1)
    finally:
        app.close()
