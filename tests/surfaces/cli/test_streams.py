"""Standard streams that are closed, full or abandoned: a line and an exit code, and never a traceback."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.surfaces.commands import PATIENCE, TALLY, Done, Shop

BUFFERED = pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("streams"))
    shop.submit("shop:checkout", "1")
    return shop


def redirected(shop: Shop, how: str, *words: str, unbuffered: str = "") -> Done:
    """Run the command as a shell does with these words behind it."""
    done = subprocess.run(
        ["/bin/bash", "-c", f'set -o pipefail; "$0" "$@" {how}', TALLY, *words],
        cwd=shop.folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": unbuffered},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@BUFFERED
@pytest.mark.parametrize(
    "words",
    [["list", "shop"], ["--help"], ["list", "--help"], ["--version"], ["ledger", "001110000000001"]],
    ids=" ".join,
)
class TestData:
    def test_a_full_disk_is_one_line_and_exit_code_one(self, shop, words, unbuffered):
        done = redirected(shop, ">/dev/full", *words, unbuffered=unbuffered)
        assert done == (1, "", "error: the output cannot be written: No space left on device\n")

    def test_a_closed_stdout_is_nobody_who_reads(self, shop, words, unbuffered):
        assert redirected(shop, ">&-", *words, unbuffered=unbuffered) == (0, "", "")

    def test_a_reader_that_goes_away_is_141_and_nothing_else(self, shop, words, unbuffered):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [TALLY, *words],
            cwd=shop.folder,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, b"")


def test_a_lost_output_with_json_is_an_error_as_data(shop):
    done = redirected(shop, ">/dev/full", "list", "shop", "--json")
    assert (done.code, done.error["code"]) == (1, "OUTPUT_LOST")


@pytest.mark.parametrize("how", ["2>&-", "2>/dev/full", "2>&- >&- <&-"])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["list", "nowhere"], 3),
        (["list", "nowhere", "--json"], 3),
        (["nonsense"], 2),
        ([], 2),
        (["submit", "shop:checkout", "1", "--queue", "mial"], 0),
    ],
    ids=str,
)
def test_messages_that_nobody_can_hear_change_no_exit_code(shop, how, words, code):
    assert redirected(shop, how, *words).code == code


def test_without_streams_their_numbers_are_no_files_of_a_store(tmp_path):
    """Else whatever is printed by mistake, by a library or by C, is printed into the books."""
    shop = Shop(tmp_path)
    source = shop.folder / "shop.py"
    spies = "[os.readlink(f'/proc/self/fd/{n}') for n in range(3)]"
    source.write_text(f"{source.read_text()}\nPath('streams').write_text(str({spies}))\n")
    assert redirected(shop, "<&- >&- 2>&-", "submit", "shop:checkout", "1").code == 0
    assert (shop.folder / "streams").read_text() == str(["/dev/null"] * 3)


@pytest.mark.parametrize(
    ("how", "says"), [("<&-", "there is nothing on stdin"), ("0>written", "stdin cannot be read")]
)
def test_a_stdin_that_cannot_be_read_is_bad_input(shop, how, says):
    done = redirected(shop, how, "submit", "shop:checkout", "-")
    assert (done.code, done.out) == (4, "")
    (line,) = done.err.splitlines()
    assert says in line
