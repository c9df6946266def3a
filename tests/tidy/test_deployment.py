"""What the deployment files start exists, and they wait for it longer than it may take to stop."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from tallystick.cli.group import tally
from tallystick.core.durations import duration_ms
from tests.tidy.tree import ROOT

FOLDER = ROOT / "docs" / "operations"
FILES = [FOLDER / name for name in ("shop.service", "Dockerfile", "kubernetes.yml")]
LIST = re.compile(r'\["tally".*?\]')
LINE = re.compile(r"^ExecStart=\S+/(tally .*)$", re.MULTILINE)
WAIT = re.compile(r"(?:TimeoutStopSec=|terminationGracePeriodSeconds: )(\d+)")


def commands(path: Path) -> list[list[str]]:
    """Return every command of ours that a file starts, without `tally` itself."""
    text = path.read_text("utf-8")
    found = [json.loads(match) for match in LIST.findall(text)]
    found += [shlex.split(match) for match in LINE.findall(text)]
    return [words[1:] for words in found]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_command_and_option_exists(path):
    assert commands(path)
    for name, *words in commands(path):
        command = tally.get_command(click.Context(tally), name)
        assert command
        command.make_context(name, list(words))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_service_waits_longer_than_the_grace_of_its_worker(path):
    waits = [int(match) for match in WAIT.findall(path.read_text("utf-8"))]
    graces = [
        duration_ms(words[words.index("--grace") + 1]) for words in commands(path) if "--grace" in words
    ]
    assert graces
    assert all(wait * 1000 > grace for wait in waits for grace in graces)


def test_every_alert_has_its_section_in_the_guide():
    rules = re.findall(r"alert: (\w+)", (FOLDER / "alerts.yml").read_text("utf-8"))
    guide = (ROOT / "docs" / "guides" / "alerts.md").read_text("utf-8")
    assert re.findall(r"^## (\w+)$", guide, re.MULTILINE) == rules
    pages = re.findall(r"alert: \w+.*?severity: (\w+)", (FOLDER / "alerts.yml").read_text("utf-8"), re.DOTALL)
    assert [word.lower() for word in re.findall(r"^\*(\w+)\.\*", guide, re.MULTILINE)] == pages
