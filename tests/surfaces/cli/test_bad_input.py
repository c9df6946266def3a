"""A user's mistake is one line (two for their own file), an exit code, and never a traceback."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.surfaces.commands import SHOP, TALLY, Shop, Work

SUBMIT = [
    (["shop:chekout", "1"], 3, "there is no workflow 'chekout'; did you mean 'checkout'?"),
    (["shop:zzz", "1"], 3, "there are: async_quote, checkout, fails, letter, waits"),
    (["shop:letter", "x", "--version", "9"], 3, "--version"),
    (["nowhere:checkout", "1"], 3, "there is no module 'nowhere'"),
    (["shop.py:checkout", "1"], 3, "a module is named without .py: shop"),
    (["./shop.py:checkout", "1"], 4, "for instance shop:app"),
    (["shop", "1"], 4, "names no workflow"),
    (["shop:ap:checkout", "1"], 3, "did you mean 'app'?"),
    (["shop:other:checkout", "1"], 4, "shop:other is an int, not a Tally"),
    (["../shop:checkout", "1"], 4, "is not the address of a Tally"),
    (["shop:checkout"], 4, "missing a required argument: 'order'"),
    (["shop:checkout", "1", "2"], 4, "give one JSON value, or only KEY=VALUE pairs"),
    (["shop:checkout", "{'order': 1}"], 4, "this is not JSON"),
    (["shop:letter", "Ada"], 4, "text needs quotes of its own"),
    (["shop:checkout", "-"], 4, "there is nothing on stdin"),
    (["shop:checkout", '{"order": 1, "order": 2}'], 4, "more than once"),
    (["shop:checkout", '{"order": NaN}'], 4, "JSON has no NaN"),
    (["shop:checkout", "[" * 100 + "]" * 100], 4, "nested more than"),
    (["shop:checkout", "order=[1"], 4, "order: this is not JSON"),
    (["shop:checkout", "order=x"], 4, "does not fit its annotation int: "),
    (["shop:checkout", "order=1", "order=2"], 4, "given twice"),
    (["shop:checkout", "order=1", "prize=2"], 4, "prize"),
    (["shop:checkout", "1", "--priority", "11"], 4, "priority must be"),
    (["shop:checkout", "1", "--delay", "soon"], 4, "is not a duration"),
    (["shop:checkout", "1", "--queue", "a b"], 4, "cannot be a queue"),
    (["shop:checkout", "1", "--key", "a b"], 4, "idempotency key"),
    (["shop:checkout", "1", "--timeout", "1s"], 2, "--wait"),
    (["shop:checkout", "1", "--wait", "--timeout", "soon"], 4, "is not a duration"),
    (["shop:checkout", "1", "--wait", "--timeout", ""], 4, "is not a duration"),
    (["shop:checkout", "1", "--url", "mysql://x"], 4, "not an address"),
    (["shop:checkout", "1", "--url", "sqlite:///no/such/folder/x.db"], 5, "there is no folder"),
    (["shop:checkout", "1", "--url", "sqlite:///."], 5, "is a folder; name a file in it"),
    (["shop:checkout", "1", "--url", "shop.db"], 4, "write sqlite:///shop.db"),
]
OTHERS = [
    (["work", "shop:checkout"], 4, "is a Workflow, not a Tally"),
    (["work", "json"], 3, "what you made with Tally(...)"),
    (["work", "shop", "--lease", "1ms"], 4, "give at least"),
    (["work", "shop", "--queues", "a,,b"], 4, "cannot be a queue"),
    (["work", "shop", "--concurrency", "0"], 2, "--concurrency"),
    (["list", "shop", "--state", "LOST"], 2, "queued"),
    (["list", "shop", "--url", "sqlite:///shop.db"], 2, "exclude each other"),
    (["list", "shop"], 5, "there is no database"),
    (["list"], 5, "say which store you mean"),
    (["show", "nobody", "--url", "sqlite:///shop.db"], 5, "there is no database"),
    (["history", "nobody", "--url", "sqlite:///shop.db"], 5, "there is no database"),
    (["doctor", "shop"], 5, "there is no database"),
    (["send", "nobody", "go", "1", "shop"], 5, "there is no database"),
    (["send", "nobody", "go"], 5, "say which store you mean"),
    (["send", "nobody"], 2, "NAME"),
    (["send", "nobody", "go", "shop"], 4, "an APP comes after the value"),
    (["send", "nobody", "go", '{"a": 1, "a": 2}', "shop"], 4, "more than once"),
    (["send", "nobody", "go", "1", "shop", "--url", "sqlite:///shop.db"], 2, "exclude each other"),
    (["cancel", "nobody", "shop"], 5, "there is no database"),
    (["cancel", "nobody", "shop", "--grace", "soon"], 4, "is not a duration"),
    (["cancel", "nobody", "nowhere"], 3, "there is no module 'nowhere'"),
    (["prune", "shop"], 2, "--older-than"),
    (["prune", "shop", "--older-than", "30"], 4, "has no unit"),
    (["prune", "shop", "--older-than", "soon"], 4, "is not a duration"),
    (["pause", "nobody", "shop"], 5, "there is no database"),
    (["fork", "nobody", "shop"], 2, "--at"),
    (["retry", "nobody", "shop"], 5, "there is no database"),
    (["dead", "shop", "--limit", "0"], 2, "--limit"),
    (["list", "--url", ""], 4, "'' is not an address"),
    (["doctor", "--url", ""], 4, "'' is not an address"),
    (["cancel", "x", "--url", ""], 4, "'' is not an address"),
    (["work", "shop", "--url", ""], 4, "'' is not an address"),
    (["submit", "shop:checkout", "1", "--url", ""], 4, "'' is not an address"),
    (["list", "shop", "--url", ""], 2, "exclude each other"),
    (["list", "--url", "sqlite:///shop.py"], 5, "not an intact SQLite database"),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Shop:
    return Shop(tmp_path_factory.mktemp("shop"))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [(["submit", *words], code, says) for words, code, says in SUBMIT] + OTHERS,
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None,
)
def test_a_mistake_is_said_in_one_line_and_creates_nothing(shop, arguments, code, says):
    done = shop.tally(*arguments)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "Traceback" not in done.err
    complaint = [line for line in done.err.splitlines() if not line.startswith(("  see: ", "creating "))]
    assert len(complaint) == 1
    assert complaint[0].startswith("error: ")
    assert sorted(path.name for path in shop.folder.iterdir()) == ["shop.py"]


@pytest.mark.parametrize(
    ("source", "says", "line"),
    [
        ("import tallystick\nx = (1,\n", "broken.py, line 2: SyntaxError: '(' was never closed", "x = (1,"),
        (
            "import nothing_there\n",
            "broken.py, line 1: ModuleNotFoundError: No module named",
            "import nothing_there",
        ),
        ("def f():\n    1 / 0\nf()\n", "broken.py, line 2: ZeroDivisionError", "1 / 0"),
        ("import sys\nsys.exit(0)\n", "broken.py, line 2: SystemExit", "sys.exit(0)"),
        ("class Stop(BaseException): ...\nraise Stop(1)\n", "broken.py, line 2: Stop: 1", "raise Stop(1)"),
        ("raise GeneratorExit\n", "broken.py, line 1: GeneratorExit", "raise GeneratorExit"),
        (
            "class Mute(Exception):\n    def __str__(self): 1 / 0\nraise Mute\n",
            "broken.py, line 3: Mute: (and cannot say what)",
            "raise Mute",
        ),
        (
            "raise SyntaxError('odd', ('odd.py', 7, 1, 3))\n",
            "odd.py, line 7: SyntaxError: odd",
            "3",
        ),
        (
            "import sys\nclass S:\n    @property\n    def app(self): 1 / 0\nsys.modules[__name__] = S()\n",
            "broken.py, line 4: ZeroDivisionError",
            "def app(self): 1 / 0",
        ),
        (
            "from tallystick import *\nt = Tally()\n@t.step\ndef a(): ...\n@t.step(name='a')\ndef b(): 0\n",
            "DuplicateHandler: there is a step 'a' already",
            "@t.step(name='a')",
        ),
    ],
    ids=["syntax", "import", "raise", "exit", "base", "bare", "mute", "odd", "property", "duplicate"],
)
def test_a_broken_file_of_the_user_is_shown_with_its_place_in_two_lines(tmp_path, source, says, line):
    (tmp_path / "broken.py").write_text(source)
    done = Shop(tmp_path).tally("work", "broken")
    assert (done.code, done.out) == (1, "")
    first, second = done.err.splitlines()
    assert says in first
    assert second.strip() == line


@pytest.mark.parametrize("words", [["list", "broken"], ["work", "broken"], ["submit", "broken:f"]])
def test_a_tally_on_something_that_is_no_address_is_refused(tmp_path, words):
    (tmp_path / "broken.py").write_text(
        "from tallystick import Tally\napp = Tally(3)\n@app.workflow\ndef f(): ...\n"
    )
    done = Shop(tmp_path).tally(*words)
    assert done == (4, "", "error: 3 is not an address of a store: it is no text\n")


def test_a_module_that_puts_something_else_in_its_place_is_used_as_it_is(tmp_path):
    source = f"{SHOP}\nimport sys, types\nsys.modules[__name__] = types.SimpleNamespace(app=app)\n"
    shop = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(source)
    job = shop.submit("shop:checkout", "1")
    assert job in shop.tally("list", "shop").out
    missing = shop.tally("list", "shop:ap")
    assert (missing.code, missing.err) == (3, "error: shop has no 'ap'; did you mean 'app'?\n")


def test_a_database_of_another_program_is_left_as_it_is(tmp_path):
    """A look must not turn somebody else's file into ours, nor change how it keeps its journal."""
    import sqlite3

    theirs = tmp_path / "theirs.db"
    with sqlite3.connect(theirs) as connection:
        connection.execute("create table mine (x)")
    connection.close()
    before = theirs.read_bytes()
    done = Shop(tmp_path).tally("list", "--url", "sqlite:///theirs.db")
    assert done.code == 5
    assert "holds no tables of Tallystick" in done.err
    assert theirs.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shop.py", "theirs.db"]


def test_an_error_with_json_is_one_line_of_json(tmp_path):
    done = Shop(tmp_path).tally("submit", "shop:chekout", "1", "--json")
    assert done.error["code"] == "UNKNOWN_WORKFLOW"
    assert "checkout" in done.error["known"]


@pytest.mark.parametrize("words", [["show"], ["history"], ["cancel"], ["pause"], ["send", "go", "1"]])
def test_the_beginning_of_no_id_is_refused_and_the_error_says_what_an_id_is(tmp_path, words):
    shop = Shop(tmp_path)
    shop.submit("shop:checkout", "1")
    command, *more = words
    done = shop.tally(command, "ffffffff", *more, "shop")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: there is no job ffffffff")
    assert done.err.endswith("an id has 36 characters, and `tally list` prints them all\n")


def test_a_server_that_is_down_is_said_in_readable_lines(tmp_path):
    done = Shop(tmp_path).tally("list", "--url", "postgresql://127.0.0.1:1/shop?connect_timeout=5")
    assert (done.code, done.out) == (5, "")
    assert done.err.startswith("error: postgresql://127.0.0.1:1/shop")
    assert "Connection refused" in done.err
    assert "\\t" not in done.err
    assert "Traceback" not in done.err


def test_a_queue_that_no_workflow_declares_is_mentioned_by_who_submits_and_by_who_works(tmp_path):
    """Without the word, a job whose queue has a slip of the pen in its name stands there for good."""
    shop = Shop(tmp_path)
    done = shop.tally("submit", "shop:checkout", "1", "--queue", "mial")
    assert done.code == 0
    assert "no workflow declares the queue mial" in done.err
    assert "no workflow" not in shop.tally("submit", "shop:checkout", "1", "--queue", "mail").err
    with Work(shop, "--queues", "mial,mail") as work:
        assert "the queue mial;" in work.wait_for("warning", action="queue.lonely")["message"]
        assert work.stop() == 0


# What Python makes of a byte on the command line that is no UTF-8.
HALF = "\udcff"


@pytest.mark.parametrize(
    "words",
    [
        *(["list", "shop", option, HALF] for option in ("--tag", "--workflow", "--after")),
        *(["dead", "shop", option, HALF] for option in ("--workflow", "--after")),
        *([command, HALF, "shop"] for command in ("show", "history", "retry", "cancel", "pause", "resume")),
        ["fork", HALF, "shop", "--at", "quote"],
        ["send", HALF, "go", "null", "shop"],
    ],
    ids=lambda words: "-".join(word for word in words if word not in ("shop", HALF)),
)
def test_bytes_that_are_no_text_are_refused_by_whoever_looks_for_them(shop_with_a_job, words):
    done = shop_with_a_job.tally(*words)
    assert (done.code, done.out) == (4, "")
    (line,) = done.err.splitlines()
    assert re.match(r"error: (a value cannot be |'\\udcff' cannot be a |--after takes the whole id)", line)


@pytest.fixture(scope="module")
def shop_with_a_job(tmp_path_factory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("jobs"))
    shop.submit("shop:checkout", "1")
    return shop


@pytest.mark.parametrize("command", ["list", "dead"])
def test_a_page_comes_after_a_whole_id_or_there_is_none(shop_with_a_job, command):
    """Text sorts somewhere among the ids, so it would be some page, the first one for instance."""
    job = shop_with_a_job.tally("list", "shop", "--json").data["jobs"][0]["job_id"]
    for cursor in ("nope", "", job[:8], f"{job[:-1]}F"):
        done = shop_with_a_job.tally(command, "shop", "--after", cursor)
        assert (done.code, done.out) == (4, "")
        (line,) = done.err.splitlines()
        assert line.startswith("error: --after takes the whole id of a job")
    gone = f"{job[:-1]}{'1' if job.endswith('0') else '0'}"
    for cursor in (job, gone):
        assert shop_with_a_job.tally(command, "shop", "--after", cursor).code == 0


@pytest.mark.parametrize("url", [f"sqlite:///{HALF}.db", "postgresql://[::1"], ids=["bytes", "bracket"])
@pytest.mark.parametrize(
    "words",
    [["submit", "shop:checkout", "1"], ["work", "shop"], ["list"], ["doctor"], ["cancel", "x"]],
    ids=lambda words: words[0],
)
def test_an_address_that_cannot_be_one_is_refused_before_a_file_is_made(shop, words, url):
    done = shop.tally(*words, "--url", url)
    assert (done.code, done.out) == (4, "")
    (line,) = done.err.splitlines()
    assert "not an address of a store" in line or "not the address of a PostgreSQL server" in line
    assert sorted(path.name for path in shop.folder.iterdir()) == ["shop.py"]


@pytest.mark.parametrize("words", [["shop"], ["--url", "sqlite:///shop.db"]], ids=["module", "address"])
def test_a_current_folder_that_is_gone_is_said_so(shop: Shop, tmp_path: Path, words: list[str]):
    gone = tmp_path / "gone"
    gone.mkdir()
    tally = [str(TALLY), "list", *words]
    line = f'cd "{gone}" && rmdir "{gone}" && exec {shlex.join(tally)}'
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "gone" in done.stderr
    assert "Traceback" not in done.stderr
