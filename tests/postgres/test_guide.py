"""The program of the guide runs as it stands; only the address is that of the test's server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.examples.test_guides import FOLDER, blocks
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema


def test_the_program_of_the_guide_prints_what_it_says(server: Server, tmp_path: Path) -> None:
    ((program, printed),) = blocks((FOLDER / "postgresql.md").read_text("utf-8"))
    url = server.url(schema=fresh_schema())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program.replace("postgresql://shop@db.internal/shop", url)],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (printed, "")
