"""`tally run` and `tally telemetry`: data on stdout, messages on stderr, mistakes in one line."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tallystick.cli.main import main

TALLY = Path(sys.executable).with_name("tally")
TOY = "tallystick.runs.toy:pipeline"
PIPELINE = """
from tallystick.runs import Pipeline
pipeline = Pipeline("mine", {"NEW": "READ", "READ": "DONE"})

@pipeline.node("NEW", inputs=["brief.txt"], outputs=["upper.txt"])
def upper(work):
    work.write("upper.txt", work.read_text("brief.txt").upper())

@pipeline.node("READ", inputs=["upper.txt"])
def check(work):
    if "STOP" in work.read_text("upper.txt"):
        raise ValueError("told to \\x1b[31mstop\\n")
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PIPELINE)
    (tmp_path / "brief.txt").write_text("words")
    (tmp_path / "noise.db").write_bytes(b"noise" * 1000)
    return tmp_path


def call(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_a_run_from_start_to_end(capsys):
    code, out, err = call(capsys, "run", "start", TOY, "first")
    assert (code, err) == (0, "")
    assert out.startswith("run first is DONE\n")
    assert call(capsys, "run", "verify", "first")[:2] == (0, "run first is sound: 76 events, DONE\n")
    assert "first  DONE" in call(capsys, "run", "show")[1]


def test_json_is_one_document_on_stdout(capsys, here):
    code, out, err = call(capsys, "run", "start", TOY, "first", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads((here / "runs" / "first" / "snapshot.json").read_bytes())
    assert json.loads(call(capsys, "run", "show", "first", "--json")[1]) == json.loads(out)
    assert json.loads(call(capsys, "run", "show", "--json")[1]) == [{"run_id": "first", "run_state": "DONE"}]
    assert json.loads(call(capsys, "run", "verify", "first", "--json")[1])["sound"] is True
    assert json.loads(call(capsys, "run", "graph", "first", "--json")[1])["path"][-1] == "DONE"
    lines = call(capsys, "run", "show", "first", "--events", "--json")[1].splitlines()
    assert json.loads(lines[0])["type"] == "RUN_CREATED"


def test_replay_prints_the_snapshot_byte_for_byte(capsys, here):
    call(capsys, "run", "start", TOY, "first")
    snapshot = here / "runs" / "first" / "snapshot.json"
    assert call(capsys, "run", "replay", "first")[1] == snapshot.read_text()
    before = snapshot.read_text()
    snapshot.write_text("{}")
    assert call(capsys, "run", "replay", "first", "--write")[0] == 0
    assert snapshot.read_text() == before


def test_inputs_come_from_files_and_a_failed_run_says_why_in_one_safe_line(capsys, here):
    assert call(capsys, "run", "start", "mine.py:pipeline", "a", "--input", "brief.txt=brief.txt")[0] == 0
    (here / "brief.txt").write_text("stop")
    code, out, err = call(capsys, "run", "start", "mine:pipeline", "b", "--input", "brief.txt=brief.txt")
    assert (code, out) == (2, "")
    assert err.splitlines()[0].startswith("error: run b failed: ValueError: told to")
    shown = call(capsys, "run", "show", "b")[1]
    assert "\x1b[31mstop" not in shown
    code, _, err = call(capsys, "run", "resume", "mine.py:pipeline", "b")
    assert code == 4
    assert "run b is FAILED" in err


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["run", "start", "nocolon", "x"], 4, "does not name a pipeline"),
        (["run", "start", "no.such.module:pipeline", "x"], 4, "cannot be imported"),
        (["run", "start", "missing.py:pipeline", "x"], 4, "no file"),
        (["run", "start", "mine.py:upper", "x"], 4, "is not a Pipeline"),
        (["run", "start", "mine.py:pipeline", "x"], 4, "needs the input brief.txt"),
        (
            ["run", "start", "mine.py:pipeline", "../x", "--input", "brief.txt=brief.txt"],
            4,
            "cannot be a run id",
        ),
        (["run", "start", "mine.py:pipeline", "x", "--input", "brief.txt"], 2, "NAME=FILE"),
        (["run", "start", "mine.py:pipeline", "x", "--input", "brief.txt=none"], 4, "cannot be read"),
        (["run", "start", "mine.py:pipeline", "x", "--parallel", "0"], 2, "parallel"),
        (["run", "start", TOY, "x", "--telemetry", "ftp://x"], 4, "telemetry service"),
        (["run", "start", TOY], 2, "Missing argument"),
        (["run", "resume", TOY, "nobody"], 4, "no folder"),
        (["run", "show", "nobody"], 4, "no folder"),
        (["run", "replay", "nobody"], 4, "no folder"),
        (["run", "verify", ".."], 4, "cannot be a run id"),
        (["run", "cancel", "nobody"], 4, "no folder"),
        (["run", "graph", "nobody"], 4, "no folder"),
        (["run", "graph", TOY, "--svg", "no/such/folder.svg"], 4, "cannot be written"),
        (["run", "dance"], 2, "No such command"),
        (["run", "start", TOY, "x", "--root", "brief.txt"], 1, "failed"),
        (["run", "show", "--root", "brief.txt"], 4, "no folder"),
        (["run", "show", "--root", "nowhere"], 4, "no folder"),
        (["telemetry", "serve", "--db", "noise.db"], 4, "not a database"),
        (["telemetry", "serve", "--db", "no/such/folder.db"], 4, "No such file"),
        (["telemetry", "serve", "--host", "0.0.0.0"], 4, "--allow-remote"),
        (["telemetry", "flush", "http://127.0.0.1:9", "--root", "."], 0, "sent 0"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(capsys, arguments, code, word):
    found, out, err = call(capsys, *arguments)
    assert (found, out) == (code, "")
    assert word in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("class Stop(BaseException): ...\nraise Stop", "Stop"),
        ("class Mute(Exception):\n    def __str__(self): 1 / 0\nraise Mute", "Mute: (and cannot say what)"),
        ("def __getattr__(name):\n    if name == 'pipeline': 1 / 0", "ZeroDivisionError: division by zero"),
    ],
    ids=["exit", "base", "mute", "attribute"],
)
@pytest.mark.parametrize("words", [["start", "odd.py:pipeline", "x"], ["graph", "odd.py:pipeline"]])
def test_a_module_that_does_not_come_to_its_end_is_one_line(capsys, here, words, source, says):
    (here / "odd.py").write_text(source)
    assert call(capsys, "run", *words) == (4, "", f"error: odd.py cannot be imported: {says}\n")


@pytest.mark.parametrize(
    "url",
    [
        *("", "http://", "http://[::1", "http://[zz]", "http://h:99999", "http://h:x", "http://h:-1"),
        *("http://..", f"http://{'x' * 300}", "http://\udcff", "http://h/a b", "http://h/\xe9"),
    ],
    ids=ascii,
)
def test_an_address_that_no_service_can_have_is_refused_before_anything_begins(capsys, here, url):
    for words in (["telemetry", "flush", url], ["run", "start", TOY, "x", "--telemetry", url or "x"]):
        code, out, err = call(capsys, *words)
        assert (code, out) == (4, "")
        assert "is not the address of a telemetry service" in err
        assert len(err.splitlines()) == 1
    assert not (here / "runs").exists()


def test_a_run_that_has_begun_is_not_started_again(capsys):
    call(capsys, "run", "start", TOY, "first")
    code, _, err = call(capsys, "run", "start", TOY, "first")
    assert code == 1
    assert "resume it" in err


def test_the_graph_is_mermaid_on_stdout_or_an_svg_file(capsys, here):
    assert "VALIDATING --> FIXING : not_ok" in call(capsys, "run", "graph", TOY)[1]
    call(capsys, "run", "start", TOY, "first")
    assert "class DONE current" in call(capsys, "run", "graph", "first")[1]
    code, out, err = call(capsys, "run", "graph", "first", "--svg", "first.svg")
    assert (code, out, err) == (0, "", "wrote first.svg\n")
    assert ET.parse(here / "first.svg").getroot().tag.endswith("svg")


def tally(*arguments, **options):
    return subprocess.Popen([TALLY, *arguments], **options)


def killed(here, run_id="first", at="log.append.synced:20"):
    environment = {**os.environ, "TALLYSTICK_CRASH_AT": at}
    process = tally("run", "start", TOY, run_id, env=environment, stdout=subprocess.DEVNULL)
    assert process.wait(60) == -signal.SIGKILL


def test_a_killed_run_is_resumed_from_the_command_line(capsys, here):
    killed(here)
    code, out, _ = call(capsys, "run", "resume", TOY, "first")
    assert code == 0
    assert "run first is DONE" in out
    code, out, _ = call(capsys, "run", "resume", TOY, "first", "--json")
    assert (code, json.loads(out)["run_state"]) == (0, "DONE")


def test_work_is_forced_and_states_are_repeated_on_request(capsys, here):
    killed(here, at="log.append.synced:30")
    code, out, _ = call(
        capsys, "run", "resume", TOY, "first", "--force", "drafter:intro", "--from", "FACTS_READY", "--json"
    )
    assert code == 0
    attempts = {item["work_item_id"] for item in json.loads(out)["work_items"]}
    assert {"first:planner:2", "first:drafter:2:intro"} <= attempts
    assert "first:ingester:2" not in attempts
    assert "RESUME_REWIND" in call(capsys, "run", "show", "first", "--events")[1]


def test_a_run_that_nobody_works_on_is_cancelled(capsys, here):
    killed(here)
    assert call(capsys, "run", "cancel", "first")[:2] == (0, "run first is CANCELLED\n")
    assert json.loads(call(capsys, "run", "cancel", "first", "--json")[1])["ended"] is True


def test_a_run_that_is_cancelled_while_it_is_worked_on_is_not_done(here):
    (here / "given_up.py").write_text(
        "import subprocess\n"
        "from tallystick.runs import Pipeline\n"
        "pipeline = Pipeline('given-up', {'NEW': 'NEXT', 'NEXT': 'DONE'})\n"
        "@pipeline.node('NEW')\n"
        "def ask(work):\n"
        f"    subprocess.run([{str(TALLY)!r}, 'run', 'cancel', work.run_id], check=True)\n"
    )
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = tally("run", "start", "given_up.py:pipeline", "first", **said)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out.startswith("run first is CANCELLED\n")
    assert err.splitlines()[-1] == "error: run first was cancelled before it was done"
    process = tally("run", "start", "given_up.py:pipeline", "second", "--json", **said)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert json.loads(out)["run_state"] == "CANCELLED"
    assert json.loads(err.splitlines()[-1])["error"]["code"] == "RUN_CANCELLED"


def test_verify_exits_with_1_for_a_damaged_log(capsys, here):
    call(capsys, "run", "start", TOY, "first")
    log = here / "runs" / "first" / "events.ndjson"
    log.write_bytes(log.read_bytes().replace(b"plan.json", b"plum.json"))
    code, out, _ = call(capsys, "run", "verify", "first")
    assert code == 1
    assert "NOT sound" in out
    assert call(capsys, "run", "show", "first")[0] == 4


def test_verify_tells_what_became_of_the_artifacts(capsys, here):
    call(capsys, "run", "start", TOY, "first")
    artifacts = here / "runs" / "first" / "artifacts"
    (artifacts / "plan.json").unlink()
    (artifacts / "plan.json").mkdir()
    (artifacts / "facts.json").unlink()
    code, out, _ = call(capsys, "run", "verify", "first")
    assert code == 1
    assert "problem: runs/first/artifacts/plan.json is not a regular file" in out
    assert "note: artifact facts.json is missing" in out
    artifacts.rename(here / "gone")
    assert call(capsys, "run", "verify", "first")[0] == 0


@pytest.mark.timeout(60)
def test_on_a_terminal_the_run_shows_how_it_gets_on(here):
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = tally("run", "start", TOY, "first", stderr=follower, stdout=subprocess.PIPE, env=environment)
    os.close(follower)
    seen = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    out, _ = process.communicate()
    os.close(leader)
    assert process.returncode == 0
    assert b"DRAFTING" in seen
    assert b"drafter" in seen
    assert b"run first is DONE" in out


NASTY = """
from tallystick.runs import Pipeline
pipeline = Pipeline("nasty", {"NEW": {"a\\x1b[31m": "MID", "b": "DONE"}, "MID": "DONE"})

@pipeline.node("NEW", outputs=["x.txt"])
def fetch(work):
    work.write("x.txt", "1", schema_id="s\\u202e")
    work.open_issue("ga\\x1b[32mte", "warn", "m\\x1b[31m\\x9b31m", error_code="co\\x1b[31mde\\x9b\\u202e")
    return "b"
"""


def test_what_a_worker_wrote_moves_no_cursor(capsys, here):
    (here / "nasty.py").write_text(NASTY)
    assert call(capsys, "run", "start", "nasty.py:pipeline", "first")[0] == 0
    for words in (["show"], ["show", "--events"], ["show", "--json"], ["verify"], ["graph"]):
        code, out, _ = call(capsys, "run", words[0], "first", *words[1:])
        assert code == 0
        assert all(line.isprintable() for line in out.splitlines()), words
    _, out, _ = call(capsys, "run", "show", "first", "--events", "--json")
    assert all(line.isprintable() for line in out.splitlines())
    log = (here / "runs" / "first" / "events.ndjson").read_text("utf-8").split("\n")
    assert "\x9b" in "".join(log)
    assert [json.loads(line) for line in out.splitlines()] == [json.loads(line) for line in log if line]


def test_replay_is_byte_for_byte_for_a_program_of_any_locale_and_harmless_on_a_terminal(here):
    (here / "nasty.py").write_text(NASTY)
    subprocess.run([TALLY, "run", "start", "nasty.py:pipeline", "first"], check=True, capture_output=True)
    snapshot = (here / "runs" / "first" / "snapshot.json").read_bytes()
    replay = [TALLY, "run", "replay", "first"]
    piped = subprocess.run(
        replay, check=True, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert piped.stdout == snapshot
    ours, theirs = pty.openpty()
    process = subprocess.Popen(replay, stdout=theirs)
    shown = b""
    while not shown.endswith(b"}\r\n"):
        shown += os.read(ours, 65536)
    assert process.wait(30) == 0
    os.close(theirs)
    os.close(ours)
    assert "\x9b" not in shown.decode()
    assert json.loads(shown) == json.loads(snapshot)
