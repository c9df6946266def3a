"""An environment of its own for a peer, made once and kept beside the benchmark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ENVIRONMENTS = Path(__file__).parent / ".envs"
DBOS = "dbos==3.3.0"


def python_of(requirement: str) -> Path | None:
    """Return the Python of an environment that holds this requirement, or None if it cannot be had."""
    folder = ENVIRONMENTS / requirement.partition("==")[0]
    python, stamp = folder / "bin" / "python", folder / "holds.txt"
    if stamp.exists() and stamp.read_text() == requirement and python.exists():
        return python
    print(f"installing {requirement} into {folder.relative_to(folder.parents[2])} (once)", flush=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, timeout=120)
        install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", requirement]
        subprocess.run(install, check=True, timeout=600)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"{requirement} cannot be installed ({error}); its rows are left out", flush=True)
        return None
    stamp.write_text(requirement)
    return python
