"""The commands of the house: each explained, and CI runs the one that the README names."""

from __future__ import annotations

import os
import re

from tests.tidy.tree import ROOT


def test_every_target_of_the_makefile_explains_itself():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert targets
    explained = re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE)
    assert sorted(targets[1].split()) == sorted(explained)


def test_ci_runs_the_test_command_and_nothing_else():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text("utf-8").splitlines() == [
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        'cd "$(dirname "$0")/.."',
        "make test",
    ]
    assert "make test" in (ROOT / "README.md").read_text("utf-8")


def test_the_version_is_the_same_everywhere():
    import tomllib

    import tallystick

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert tallystick.__version__ == project["version"]
