"""A dependency is written down in pyproject.toml and requirements.in, and is locked."""

from __future__ import annotations

import re
import tomllib

from tests.tidy.tree import ROOT


def test_requirements_in_lists_what_pyproject_declares():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    declared = {*project["project"]["dependencies"], *project["dependency-groups"]["dev"]}
    for packages in project["project"]["optional-dependencies"].values():
        declared.update(packages)
    assert set(wanted()) == declared


def test_every_wanted_package_is_locked():
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    locked = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    assert {re.split(r"[\[<>=!~]", line)[0] for line in wanted()} <= locked


def wanted() -> list[str]:
    lines = (ROOT / "requirements.in").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]
