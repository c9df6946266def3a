"""The first ten minutes of a stranger: the files of the guide about remote workers, run as they stand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.surfaces.http.processes import Process, free_port

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "remote-workers.md"
FILE = re.compile(
    r"^(?:Three files\. )?`(?P<name>[\w.]+)` .*?\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


def tally(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_the_files_of_the_guide_do_a_step(tmp_path: Path):
    files = {found["name"]: found["text"] for found in FILE.finditer(PAGE.read_text("utf-8"))}
    assert sorted(files) == ["scan.json", "scans.py", "worker.py"]
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    bind = f"127.0.0.1:{free_port()}"
    with Process(tmp_path, "-m", "tallystick", "serve", "scans", "--bind", bind, "--json") as server:
        wait_until(lambda: server.said.rstrip().endswith("}"), "a server that serves")
        said = json.loads(server.said[server.said.index("{") :])
        with Process(tmp_path, "worker.py", SCANS_URL=said["url"], SCANS_KEY=said["key"]) as worker:
            job_id = tally(tmp_path, "command", "scans", "scan.json").strip()
            shown: dict[str, object] = {}

            def ended() -> bool:
                assert worker.code is None, worker.said
                shown.update(json.loads(tally(tmp_path, "show", job_id, "scans", "--json")))
                return shown["state"] == "SUCCEEDED"

            wait_until(ended, "the end of the job")
    assert shown["result"] == {"words": 4}
