"""pgbench as a limit: how many transactions of one small row the server takes from so many connections."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import psycopg

from tallystick.testing.postgres_server import Server

SCRIPT = "INSERT INTO one_row (job_id, payload) VALUES (gen_random_uuid()::text, '{\"steps\":1}');\n"


def transactions_per_second(
    server: Server, dsn: str, folder: Path, *, connections: int, seconds: int
) -> float | None:
    """Return the rate, or None where these binaries come without pgbench."""
    program = Path(server.binaries, "pgbench")
    if not program.exists():
        return None
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE one_row (job_id text PRIMARY KEY, payload text NOT NULL)")
    script = folder / "one-row.sql"
    script.write_text(SCRIPT)
    words = ["-n", "-M", "prepared", "-c", str(connections), "-j", "2", "-T", str(seconds), "-f", str(script)]
    run = subprocess.run([program, *words, dsn], capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r"tps = ([\d.]+)", run.stdout)
    return None if found is None else float(found[1])
