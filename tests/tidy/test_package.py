"""The package that users install: it builds, its page renders, and it asks for what its code imports."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, SRC, python_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
WANTED = [*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)]
# The module of a distribution whose name differs.
MODULES = {
    "azure-data-tables": "azure",
    "tzdata": "zoneinfo",
    "opentelemetry-api": "opentelemetry",
    "nats-py": "nats",
    "jsonschema-rs": "jsonschema_rs",
    "prometheus-client": "prometheus_client",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return sorted(folder.iterdir())


def test_twine_finds_nothing_to_complain_about(built):
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert len(built) == 2


def test_the_wheel_has_the_package_its_types_and_its_statements_and_no_tests(built):
    (wheel,) = [path for path in built if path.suffix == ".whl"]
    names = zipfile.ZipFile(wheel).namelist()
    assert "tallystick/py.typed" in names
    assert any(name.endswith(".sql") for name in names)
    assert not [name for name in names if "crash_sweep" in name or name.startswith("tests")]


@pytest.mark.parametrize(
    "wanted", [*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)]
)
def test_what_the_package_asks_for_has_a_lower_bound_and_is_imported(wanted):
    name, bound = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?(>=[\d.]+)?", wanted).groups()
    assert bound, f"{wanted} has no lower bound"
    module = MODULES.get(name, name)
    imports = re.compile(rf"^\s*(?:import|from) {module}\b|import_module\(\"{module}\b", re.MULTILINE)
    assert [path for path in python_files(SRC) if imports.search(path.read_text("utf-8"))]


def test_the_package_says_where_it_is_from():
    assert {"Homepage", "Documentation", "Changelog"} <= set(PROJECT["urls"])
    assert PROJECT["readme"] == "README.md"


def test_python_m_is_the_command():
    command = [sys.executable, "-m", "tallystick", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert PROJECT["version"] in said.stdout
