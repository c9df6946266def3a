"""systemd takes the unit of the guide, and the schemas of Kubernetes take its manifests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "docs" / "operations"
ANALYZE = Path("/usr/bin/systemd-analyze")
VALIDATE = ROOT / ".tools" / "deployment" / "bin" / "kubernetes-validate"
PATIENCE = 60

pytestmark = pytest.mark.long


def said_by(program: Path, *words: str) -> tuple[int, str]:
    """Return how a checker ended and what it said."""
    if not program.exists():
        text = f"{program} is not there: run scripts/deployment, which installs it"
        pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)
    ended = subprocess.run([program, *words], check=False, capture_output=True, text=True, timeout=PATIENCE)
    return ended.returncode, ended.stdout + ended.stderr


def unit(folder: Path, change: tuple[str, str]) -> str:
    """Return a copy of the unit that starts the `tally` of this machine, with one change."""
    text = (OPERATIONS / "shop.service").read_text("utf-8")
    own = str(Path(sys.executable).parent / "tally")
    assert "/srv/shop/.venv/bin/tally" in text
    path = folder / "shop.service"
    path.write_text(text.replace("/srv/shop/.venv/bin/tally", own).replace(*change))
    return str(path)


def test_systemd_takes_the_unit_as_it_is_and_not_with_a_slip(tmp_path: Path):
    assert said_by(ANALYZE, "verify", unit(tmp_path, ("", ""))) == (0, "")
    _code, slip = said_by(ANALYZE, "verify", unit(tmp_path, ("KillMode=mixed", "KillMode=gentle")))
    assert "kill mode" in slip


def test_kubernetes_takes_the_manifests_as_they_are_and_not_with_a_slip(tmp_path: Path):
    file = OPERATIONS / "kubernetes.yml"
    code, said = said_by(VALIDATE, "--strict", str(file))
    assert (code, said.count(" passed for resource deployment/")) == (0, 2), said
    slip = tmp_path / "slip.yml"
    slip.write_text(file.read_text("utf-8").replace("periodSeconds: 60", "periodSecond: 60"))
    code, said = said_by(VALIDATE, "--strict", str(slip))
    assert code != 0
    assert "periodSecond" in said
