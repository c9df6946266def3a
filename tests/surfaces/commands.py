"""What the tests of the engine commands share: a small shop in a folder of its own, and the real `tally`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.surfaces.forked_tally import TALLY, Tally, can_fork

__all__ = ["PATIENCE", "SHOP", "TALLY", "Done", "Shop", "Work", "started"]

PATIENCE = 45.0
NO_VARIABLES: Mapping[str, str] = {}

SHOP = '''
from __future__ import annotations
import os, time
from pathlib import Path
from tallystick import Fatal, Retry, Tally, Tx

app = Tally("sqlite:///shop.db")
other = 7

@app.step(retry=Retry(3, first="1ms"))
def quote(order: int) -> int:
    if order == 13 and not Path("tried").exists():
        Path("tried").touch()
        raise ValueError("no price yet")
    return order * 2

@app.tx
def reserve(db: Tx, order: int) -> None:
    db.execute("create table if not exists reserved (n int)")
    db.execute("insert into reserved values (?)", [order])

@app.workflow
def checkout(order: int, name: str = "") -> str:
    reserve(order)
    return f"{name}{quote(order)}"

@app.workflow(version="2", queue="mail")
def letter(to: str) -> str:
    return f"dear {to}"

@app.workflow
def fails(why: str) -> None:
    raise Fatal(why)

@app.workflow
def waits(file: str) -> str:
    """Run until the file is there; says that it began in another one."""
    reserve(1)
    Path(f"{file}.began").touch()
    while not Path(file).exists():
        time.sleep(0.01)
    reserve(2)
    return "done"

@app.workflow
async def async_quote(order: int) -> int:
    return order
'''


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Return what it printed as data."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """Return the error that it printed as data."""
        return json.loads(self.err.splitlines()[-1])["error"]


def started(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] = NO_VARIABLES,
    started_by: tuple[str, ...] = (),
) -> Tally | subprocess.Popen[str]:
    """Start `tally` in a folder, with pipes at its streams."""
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    if can_fork(environment) and not started_by:
        return Tally(arguments, folder, variables)
    return subprocess.Popen(
        [*started_by, TALLY, *arguments],
        cwd=folder,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Shop:
    """A folder with a shop in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "shop.db"
        (folder / "shop.py").write_text(SHOP)

    def tally(self, *arguments: str, stdin: str | None = None, **environment: str) -> Done:
        """Run the command to its end."""
        process = started(arguments, self.folder, environment)
        out, err = process.communicate(stdin or "", PATIENCE)
        assert process.returncode is not None
        return Done(process.returncode, out, err)

    def submit(self, *arguments: str) -> str:
        """Submit a job and return its id."""
        done = self.tally("submit", *arguments)
        assert done.code == 0, done.err
        return done.out.strip()

    def state(self, job_id: str) -> str:
        """Return where a job stands."""
        return str(self.tally("show", job_id, "shop", "--json").data["state"])


class Work:
    """A `tally work` that runs; what it says is read as it comes."""

    def __init__(self, shop: Shop, *arguments: str, started_by: tuple[str, ...] = ()) -> None:
        words = ("work", "shop", "--json", *arguments)
        self.process = started(words, shop.folder, started_by=started_by)
        assert self.process.stdin
        self.process.stdin.close()
        self._news = threading.Condition()
        self.seen: list[dict[str, Any]] = []
        self.stderr = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        self.wait_for("serving")
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.finish()

    def wait_for(self, kind: str, **fields: object) -> dict[str, Any]:
        """Wait until the worker has said something of that kind, with these fields."""
        found: list[dict[str, Any]] = []

        def heard() -> bool:
            found[:] = [
                event
                for event in self.seen
                if event["event"] == kind and all(event.get(name) == value for name, value in fields.items())
            ]
            return bool(found)

        with self._news:
            assert self._news.wait_for(heard, PATIENCE), f"no {kind} {fields}; heard {self.seen}"
        return found[0]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.finish()

    def finish(self) -> int:
        """Wait for the end and return the exit code."""
        code = self.process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        assert self.process.stdout
        assert self.process.stderr
        if not self.process.stderr.closed:
            self.stderr = self.process.stderr.read()
            self.process.stdout.close()
            self.process.stderr.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            event = json.loads(line)
            with self._news:
                self.seen.append(event)
                self._news.notify_all()
