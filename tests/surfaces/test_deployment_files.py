"""systemd takes the unit, schemas of Kubernetes take the manifests, types of Grafana take the dashboard."""

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
PACKAGES = ROOT / ".tools" / "deployment" / "node_modules"
DASHBOARD = PACKAGES / "@grafana" / "schema" / "dist" / "types" / "raw" / "dashboard" / "x" / "types.gen"
STRICT = ("--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler")
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


def judged(folder: Path, dashboard: str) -> tuple[int, str]:
    """Return what the types of Grafana say of a dashboard, which know each of its fields by name."""
    page = folder / "dashboard.ts"
    page.write_text(
        f"import type {{ Dashboard }} from {str(DASHBOARD)!r};\nexport const d: Dashboard = {dashboard};\n"
    )
    return said_by(PACKAGES / ".bin" / "tsc", *STRICT, str(page))


def test_grafana_knows_every_field_of_the_dashboard_and_not_a_slip(tmp_path: Path):
    text = (OPERATIONS / "grafana.json").read_text("utf-8")
    assert judged(tmp_path, text) == (0, "")
    code, said = judged(tmp_path, text.replace('"unit"', '"unti"', 1))
    assert code != 0
    assert "'\"unti\"' does not exist in type 'FieldConfig'" in said
