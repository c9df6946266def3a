"""The program of the README does what the README says, with the kill."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.cli.group import COMMANDS
from tests.postgres.subject import fresh_schema

ROOT = Path(__file__).parents[2]
TALLY = Path(sys.executable).with_name("tally")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
PROGRAM = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


@pytest.fixture(params=["sqlite", "postgres"])
def program(request):
    """The program, on each store: nothing but its address is another one."""
    assert PROGRAM
    if request.param == "sqlite":
        return PROGRAM[1]
    schema = fresh_schema()
    path = f"-c%20search_path%3D{schema}"  # the program's own table lies in the schema of this test too
    address = request.getfixturevalue("server").url(schema=schema, options=path)
    assert PROGRAM[1].count("sqlite:///shop.db") == 1
    return PROGRAM[1].replace("sqlite:///shop.db", address)


@pytest.fixture
def shop(tmp_path, program):
    (tmp_path / "shop.py").write_text(program, encoding="utf-8")
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "shop.py"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def taken_over(complaints: str) -> bool:
    """Tell whether the log says which jobs were taken over, and nothing else."""
    lines = complaints.splitlines()
    return bool(lines) and all("another worker goes on with it" in line for line in lines)


def test_it_is_forty_lines():
    assert PROGRAM
    written = [line for line in PROGRAM[1].splitlines() if line.strip()]
    assert 25 <= len(written) <= 40


def test_of_two_processes_one_is_killed_and_the_other_finishes_every_order_once(shop):
    victim = shop()
    first = victim.stdout.readline()
    # Not before: of two sessions that create one table at once, PostgreSQL refuses one, even IF NOT EXISTS.
    heir = shop()
    seen = [first, *(victim.stdout.readline() for _ in range(4))]
    assert seen == [f"parcel {order}\n" for order in range(1, 6)]
    victim.send_signal(signal.SIGKILL)
    printed, complaints = heir.communicate(timeout=60)
    assert heir.returncode == 0
    assert taken_over(complaints)
    assert printed.splitlines() == [*(f"parcel {order}" for order in range(1, 41)), "[(40, 40)]"]
    assert victim.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_killed_and_started_again_it_goes_on(shop):
    victim = shop()
    victim.stdout.readline()
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    printed, complaints = shop().communicate(timeout=60)
    assert taken_over(complaints)
    assert printed.splitlines()[-1] == "[(40, 40)]"


def test_every_command_that_the_readme_and_the_guides_name_exists():
    command = re.compile(r"(?:`|^|\$ )tally ([a-z-]+)", re.MULTILINE)
    named = {name for page in PAGES for name in command.findall(page.read_text("utf-8"))}
    assert {"work", "submit", "ledger"} <= named <= set(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("program", ["sqlite"], indirect=True)
def test_the_commands_of_the_readme_work_on_its_program(shop, tmp_path):
    """The first is a worker in another terminal; the others are typed one after the other."""
    block = re.search(r"```\n(tally work .*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert block
    worker, *typed = [line.split("#")[0].split()[1:] for line in block[1].splitlines()]
    table = "import shop\nwith shop.app.transaction() as db: db.execute('CREATE TABLE payments (a, b)')"
    subprocess.run([sys.executable, "-c", table], cwd=tmp_path, check=True)
    works = subprocess.Popen([TALLY, *worker], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        printed: list[str] = []
        for words in typed:
            job_id = printed[1].split()[0] if "JOB" in words else ""
            said = subprocess.run(
                [TALLY, *(job_id if word == "JOB" else word for word in words)],
                cwd=tmp_path,
                check=True,
                capture_output=True,
                text=True,
                timeout=60,
            )
            printed.append(said.stdout)
    finally:
        works.terminate()
        works.communicate(timeout=60)
    assert works.returncode == 0
    assert printed[0] == '"parcel 41"\n'
    assert all("checkout" in text for text in printed[1:3])
    assert "all is well" in printed[3]
