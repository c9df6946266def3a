"""A certificate is for a store of which every promise was tried and kept; else what is missing is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.testing.conformance.certificate import Tried, printed, promises_of

ROOT = Path(__file__).parents[2]
ONE = "test_a_key_is_kept_without_its_secret"
MINE = f"""
import pytest
from tallystick.testing.conformance.suite import ProtocolConformance
from tests.azure.worlds import ModelSubject

@pytest.fixture
def subject():
    return ModelSubject()

class TestKept(ProtocolConformance):
    pass

class TestSkipped(ProtocolConformance):
    @pytest.fixture(autouse=True)
    def skip(self):
        pytest.skip()

class TestFailed(ProtocolConformance):
    @pytest.fixture
    def subject(self):
        raise OSError

class TestWrittenAnew(ProtocolConformance):
    def {ONE}(self):
        pass
"""


def test_a_store_that_keeps_all_has_a_certificate_of_its_class():
    for name in ("everything", "Protocols"):
        tried = Tried(name)
        tried.passed |= set(promises_of(name))
        count = len(tried.passed)
        first, *groups = printed({"TestMine": tried})[1:]
        assert first == f"TestMine: certificate for {name}, {count} of {count} promises kept"
        assert "  Keys: 5 of 5" in groups
        tried.wrong[ONE] = "failed"
        first, *rest = printed({"TestMine": tried})[1:]
        assert first == f"TestMine: no certificate, {count - 1} of {count} promises kept"
        assert f"  failed: {ONE}" in rest


@pytest.mark.slow
def test_what_came_of_each_test_is_heard(tmp_path: Path):
    file = tmp_path / "test_mine.py"
    file.write_text(MINE, "utf-8")
    about = ("-p", "tallystick.testing.conformance.certificate", "-p", "no:cacheprovider", "-k", ONE)
    call = [sys.executable, "-m", "pytest", "-q", "-c", ROOT / "pyproject.toml", *about, file]
    said = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False).stdout
    stores = said.partition("conformance of stores")[2].split("\nTest")[1:]
    told = {each.partition(":")[0]: each for each in stores}
    assert set(told) == {"Failed", "Kept", "Skipped"}, said
    assert ONE not in told["Kept"]
    assert "  Keys: 1 of 5" in told["Kept"]
    assert f"  failed: {ONE}" in told["Failed"]
    assert f"  skipped: {ONE}" in told["Skipped"]
    for each in told.values():
        assert " no certificate, " in each
        assert "  not tried: test_a_revoked_key_stays_revoked" in each
