"""The guide to the command line says what is there: every option, every exit code, and examples that run."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest

from tallystick.cli.group import home_of
from tallystick.cli.render.output import EXIT_MEANINGS
from tests.surfaces.commands import Shop, Work

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "guides" / "command-line.md").read_text("utf-8")
ENGINE = (
    *("submit", "command", "work", "list", "show", "why", "history", "send", "cancel"),
    *("pause", "resume", "fork", "dead", "retry", "doctor", "prune"),
)


@pytest.mark.parametrize("name", ENGINE)
def test_every_option_of_an_engine_command_is_in_the_guide(name):
    command = import_module(home_of(name)).command
    options = [
        param.opts[0] for param in command.params if isinstance(param, click.Option) and not param.hidden
    ]
    assert re.search(rf"^## .*\b{name}\b", GUIDE, re.MULTILINE)
    assert not [option for option in options if option not in GUIDE]


def test_the_exit_codes_of_the_guide_are_those_of_the_code():
    (sentence,) = re.findall(r"^0 is done.*?\.$", GUIDE, re.MULTILINE)
    assert [int(code) for code in re.findall(r"\b\d+\b", sentence)] == [
        code for code in EXIT_MEANINGS if code < 100
    ]


def test_the_examples_of_the_guide_run(tmp_path):
    shop = Shop(tmp_path)
    (source,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "shop.py").write_text(source)
    jobs = []
    for line in re.findall(r"^\$ tally (.*)$", GUIDE, re.MULTILINE):
        words = shlex.split(line.replace("$JOB", jobs[-1] if jobs else ""))
        if words[0] == "work":
            with Work(shop, *words[2:], "--verbose") as work:
                work.wait_for("done", job_id=jobs[-1])
                assert work.stop() == 0
            continue
        done = shop.tally(*words)
        assert done.code == 0, (line, done)
        if words[0] == "submit":
            jobs.append(done.out.strip())
    assert jobs[1] == jobs[2]
    assert len(set(jobs)) == 6
