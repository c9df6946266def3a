"""The command line as a whole: exit codes, streams, colour, and no traceback for a user's mistake."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick import Tally, errors
from tallystick.cli import group
from tallystick.cli.main import main
from tallystick.cli.render import output
from tallystick.errors import StateTransitionError

TALLY = Path(sys.executable).with_name("tally")


class TestExitCodes:
    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["nonsense"],
            ["ledger"],
            ["ledger", "1", "2"],
            ["ledger", "--nonsense", "001110000000001"],
            ["machines", "job", "step"],
            ["machines", "--format", "cuneiform"],
            ["machines", "--format", "mermaid", "--json"],
            ["--nonsense"],
        ],
        ids=" ".join,
    )
    def test_bad_usage_is_two_and_says_so_on_stderr(self, arguments, capsys):
        assert main(arguments) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err

    @pytest.mark.parametrize(
        "arguments",
        [
            ["ledger", "0011"],
            ["ledger", "00111000000000x"],
            ["ledger", "001910000000001"],
            ["ledger", "--guid", "001110000000001"],
            ["ledger", "--", "0011"],
            ["machines", "teapot"],
        ],
        ids=" ".join,
    )
    def test_an_illegal_value_is_four_and_one_line_on_stderr(self, arguments, capsys):
        assert main(arguments) == 4
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("error: ")
        assert len(said.err.splitlines()) == 1

    @pytest.mark.parametrize(
        "arguments",
        [["--help"], ["-h"], ["--version"], ["ledger", "--help"], ["machines", "-h"], ["machines"]],
        ids=" ".join,
    )
    def test_what_was_asked_for_is_zero_and_on_stdout(self, arguments, capsys):
        assert main(arguments) == 0
        said = capsys.readouterr()
        assert said.out
        assert said.err == ""

    def test_an_interrupt_is_a_hundred_and_thirty(self, monkeypatch):
        def interrupted(given):
            raise KeyboardInterrupt

        monkeypatch.setattr(group, "run", interrupted)
        assert main(["machines"]) == 130

    def test_an_error_of_ours_brings_its_own_exit_code(self, monkeypatch, capsys):
        def refused(given):
            raise StateTransitionError(
                "job", "QUEUED", "succeed", legal=("dispatch → DISPATCHING",), entity="j-1"
            )

        monkeypatch.setattr(group, "run", refused)
        assert main(["machines"]) == StateTransitionError.exit_code
        assert capsys.readouterr().err == (
            "error: job j-1 is QUEUED and cannot succeed; legal from here: dispatch → DISPATCHING\n"
        )

    def test_a_bug_is_not_dressed_up_as_a_mistake_of_the_user(self, monkeypatch):
        def broken(given):
            raise RuntimeError("ours")

        monkeypatch.setattr(group, "run", broken)
        with pytest.raises(RuntimeError, match="ours"):
            main(["machines"])


class TestHelp:
    def test_every_command_is_listed_with_its_summary(self, capsys):
        main(["--help"])
        text = capsys.readouterr().out
        for name, summary in group.COMMANDS.items():
            assert name in text
            assert summary in text

    @pytest.mark.parametrize("name", group.COMMANDS)
    def test_every_command_has_help_and_a_json_option(self, name, capsys):
        assert main([name, "--help"]) == 0
        text = capsys.readouterr().out
        assert f"Usage: tally {name}" in text
        assert "--json" in text

    def test_an_unknown_command_is_guessed_aloud(self, capsys):
        main(["leger", "1"])
        assert capsys.readouterr().err.splitlines() == [
            "error: No such command 'leger'. Did you mean 'ledger'?",
            "  see: tally --help",
        ]

    def test_bad_usage_points_to_the_help_of_its_command(self, capsys):
        main(["machines", "--format", "cuneiform"])
        assert capsys.readouterr().err.splitlines()[-1] == "  see: tally machines --help"


class TestJson:
    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["ledger", "--json", "0011"], "LEDGER_CORRUPT"),
            (["machines", "--json", "teapot"], "BAD_INPUT"),
            (["machines", "--json", "--nonsense"], "BAD_USAGE"),
        ],
    )
    def test_with_json_an_error_is_one_line_of_json_on_stderr(self, arguments, code, capsys):
        assert main(arguments) in {2, 4}
        said = capsys.readouterr()
        assert said.out == ""
        (line,) = said.err.splitlines()
        error = json.loads(line)["error"]
        assert error["code"] == code
        assert error["message"]

    def test_the_fields_of_an_error_are_in_its_json(self, capsys):
        main(["machines", "--json", "teapot"])
        error = json.loads(capsys.readouterr().err)["error"]
        assert error["name"] == "teapot"
        assert "job" in error["known"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestColour:
    @pytest.mark.parametrize(
        ("stream", "environment", "painted"),
        [
            (Terminal(), {}, True),
            (Terminal(), {"NO_COLOR": "1"}, False),
            (Terminal(), {"NO_COLOR": ""}, True),
            (Terminal(), {"TERM": "dumb"}, False),
            (io.StringIO(), {}, False),
            (io.StringIO(), {"FORCE_COLOR": "1"}, True),
            (Terminal(), {"FORCE_COLOR": "0"}, True),
            (io.StringIO(), {"FORCE_COLOR": "0"}, False),
            (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ],
    )
    def test_colour_is_for_terminals_unless_the_environment_says_otherwise(
        self, stream, environment, painted
    ):
        ink = output.Ink.for_stream(stream, environment)
        assert ("\x1b[" in ink("text", "bold")) == painted

    def test_paint_adds_nothing_but_escapes(self):
        assert output.Ink(wet=True)("text", "bold", "red") == "\x1b[1;31mtext\x1b[0m"
        assert output.Ink(wet=True)("text") == "text"
        assert output.Ink(wet=False)("text", "bold") == "text"

    @pytest.mark.parametrize("arguments", [["ledger", "001110000000001"], ["machines"], ["machines", "step"]])
    def test_colour_changes_no_letter_and_no_column(self, arguments, capsys, monkeypatch):
        main(arguments)
        plain = capsys.readouterr().out
        monkeypatch.setenv("FORCE_COLOR", "1")
        main(arguments)
        painted = capsys.readouterr().out
        assert "\x1b[" not in plain
        assert "\x1b[" in painted
        assert [line.rstrip() for line in without_escapes(painted).splitlines()] == plain.splitlines()

    def test_an_error_is_red_where_colour_is_wanted(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        main(["machines", "teapot"])
        assert capsys.readouterr().err.startswith("\x1b[1;31merror:\x1b[0m there is no machine")


def without_escapes(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class TestStreams:
    def test_a_stream_that_cannot_draw_an_arrow_gets_its_number_and_the_rest_of_the_sentence(
        self, monkeypatch
    ):
        latin = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
        monkeypatch.setattr(sys, "stdout", latin)
        output.show("step 1 → step 2 · done")
        latin.flush()
        assert latin.buffer.getvalue() == "step 1 \\u2192 step 2 · done\n".encode("latin-1")

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "utf-16"])
    @pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape", "backslashreplace"])
    def test_data_is_the_same_in_every_encoding(self, encoding, errors, monkeypatch):
        """Also half a character, which a name of a file may hold, and more than sixteen bits."""
        data = {"name": "\xe9 \u2192 \u6f22 \U0001f600 \udcff \x9b \u202e"}
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors)
        monkeypatch.setattr(sys, "stdout", stream)
        output.show_data(data)
        output.show_line(data)
        text = stream.buffer.getvalue().decode(encoding)
        document, _, line = text.rstrip("\n").rpartition("\n")
        assert json.loads(document) == json.loads(line) == data
        assert not {"\x9b", "\u202e"} & set(text)

    def test_an_error_as_data_is_json_also_where_there_is_only_ascii(self, monkeypatch):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
        monkeypatch.setattr(sys, "stderr", stream)
        assert main(["machines", "--json", "th\xe9i\xe8re"]) == 4
        stream.flush()
        assert json.loads(stream.buffer.getvalue())["error"]["name"] == "th\xe9i\xe8re"

    def test_a_value_that_json_does_not_know_is_shown_as_text(self, capsys):
        output.show_data({"path": Path("shop.db")})
        assert json.loads(capsys.readouterr().out) == {"path": "shop.db"}

    def test_a_reader_that_goes_away_gets_no_traceback(self):
        """`tally machines --json | head -1`, with a reader that is already gone."""
        process = subprocess.Popen(
            [TALLY, "machines", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        process.stdout.close()
        assert process.stderr.read() == ""
        process.stderr.close()
        assert process.wait(timeout=30) == 141


class TestTheInstalledCommand:
    def test_it_returns_the_exit_code_to_the_shell_without_a_traceback(self):
        done = subprocess.run([TALLY, "ledger", "nonsense"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (4, "")
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr

    def test_every_error_of_ours_has_an_exit_code_that_is_not_taken(self):
        codes = {name: getattr(errors, name).exit_code for name in errors.__all__}
        # A run that has FAILED is the one thing beside bad usage that exits with 2.
        assert codes.pop("RunFailed") == 2
        assert not {name for name, code in codes.items() if code in {0, 2, 130, 141}}


class TestGroupsThatList:
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        app = Tally(f"sqlite:///{tmp_path}/shop.db")
        app.queues.pause("emails", by="ann")
        app.close()
        return app.url

    @pytest.mark.parametrize("name", ["queues", "schedules", "outbox", "keys"])
    def test_without_a_command_the_list_is_shown(self, name: str, url: str, capsys, monkeypatch):
        monkeypatch.setenv("TALLY_URL", url)
        shown = []
        for words in (["list"], [], ["--url", url]):
            assert main([name, *words]) == 0
            shown.append(capsys.readouterr())
        assert any(shown[0])
        assert shown == shown[:1] * 3

    def test_a_single_word_names_the_store(self, capsys):
        assert main(["queues", "no_such_shop"]) == 3
        assert "there is no module 'no_such_shop'" in capsys.readouterr().err

    def test_a_word_with_others_behind_it_is_a_command(self, capsys):
        assert main(["queues", "pasue", "emails", "shop"]) == 2
        assert "Did you mean 'pause'?" in capsys.readouterr().err

    def test_help_is_of_the_group(self, capsys):
        assert main(["queues", "--help"]) == 0
        assert "pause" in capsys.readouterr().out
