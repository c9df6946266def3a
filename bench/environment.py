"""Environments of their own for peers, made once and kept beside the benchmark."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ENVIRONMENTS = Path(__file__).parent / ".envs"
DBOS = "dbos==3.3.0"


def python_of(*requirements: str, at_least: tuple[int, int] = (3, 11)) -> Path | None:
    """Return the Python of an environment that holds these requirements, or None if it cannot be had."""
    first, wanted = requirements[0], "\n".join(requirements)
    folder = ENVIRONMENTS / first.partition("==")[0].partition("[")[0]
    python, stamp = folder / "bin" / "python", folder / "holds.txt"
    if stamp.exists() and stamp.read_text() == wanted and python.exists():
        return python
    base = interpreter(at_least)
    if base is None:
        print(f"{first} needs Python {at_least[0]}.{at_least[1]} or newer; its rows are left out", flush=True)
        return None
    print(f"installing {first} into {folder.relative_to(folder.parents[2])} (once)", flush=True)
    try:
        subprocess.run([base, "-m", "venv", "--clear", folder], check=True, timeout=120)
        install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *requirements]
        subprocess.run(install, check=True, timeout=600)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"{first} cannot be installed ({error}); its rows are left out", flush=True)
        return None
    stamp.write_text(wanted)
    return python


def interpreter(at_least: tuple[int, int]) -> str | None:
    """Return a Python that is new enough: this one, or the first of that kind that runs."""
    if sys.version_info >= at_least:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(at_least[1], at_least[1] + 4)]
    found = [shutil.which(name) for name in names]
    kept = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3.*"))
    for candidate in [*found, *(str(path) for path in kept if path.name in names)]:
        if candidate is not None and _runs(candidate):
            return candidate
    return None


def _runs(candidate: str) -> bool:
    return subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0
