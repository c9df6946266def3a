"""Print how many files and functions of the package a step visits, a job, and a wait with its signal.

What a reader has to hold in the head: `python scripts/visited.py [--files] [postgresql://…]`, on SQLite
unless an address is given. Imports and first times are not counted.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import tallystick
from tallystick import Tally, wait

PACKAGE = str(Path(tallystick.__file__).parent)
# A turn of a thread that has nothing to do with it may fall into a count: what counts is visited every time.
TIMES = 25
PATIENCE_SECONDS = 30


class Visits:
    """The files and functions of the package that any thread enters."""

    def __init__(self) -> None:
        """Begin with none."""
        self.seen: set[tuple[str, str]] = set()
        self.on = False

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a call; this is what `sys.setprofile` is given."""
        if self.on and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    def of(self, act: Callable[[], object]) -> set[tuple[str, str]]:
        """Return what is visited while something is done."""
        self.seen, self.on = set(), True
        act()
        self.on = False
        return self.seen


def tell(what: str, seen: set[tuple[str, str]]) -> None:
    """Print what was visited, and each file if that was asked for."""
    files = {file for file, _function in seen}
    print(f"{what}: {len(files)} files, {len(seen)} functions")
    if "--files" in sys.argv:
        print(*sorted(f"  {Path(file).relative_to(PACKAGE)}" for file in files), sep="\n")


def main(url: str) -> None:
    """Print the figures."""
    visits = Visits()
    threading.setprofile(visits.note)
    sys.setprofile(visits.note)
    app = Tally(url)

    @app.step
    def double(n: int) -> int:
        return 2 * n

    @app.workflow
    def job_of_one_step(n: int) -> int:
        return double(n)

    @app.workflow
    def steps() -> None:
        double(0)
        found.append(visits.of(lambda: double(1)))

    begun, over = threading.Event(), threading.Event()

    @app.workflow
    def waits() -> None:
        visits.on = True
        begun.set()
        wait("go", int)
        visits.on = False
        over.set()

    def waited() -> None:
        visits.seen = set()
        begun.clear()
        over.clear()
        job = waits.submit()
        begun.wait(PATIENCE_SECONDS)
        job.send("go", 1)
        over.wait(PATIENCE_SECONDS)
        found.append(visits.seen)
        job.result(PATIENCE_SECONDS)

    @app.workflow
    def one_wait() -> int:
        return wait("go", int)

    def answered() -> None:
        job = one_wait.submit()
        job.send("go", 1)
        job.result(PATIENCE_SECONDS)

    found: list[set[tuple[str, str]]] = []
    acts: dict[str, Callable[[], object]] = {
        "a step": lambda: steps.submit().result(PATIENCE_SECONDS),
        "a job with one step": lambda: found.append(
            visits.of(lambda: job_of_one_step.submit(1).result(PATIENCE_SECONDS))
        ),
        "a wait and its signal": waited,
        "a job with a wait, and its signal": lambda: found.append(visits.of(answered)),
    }
    with app.worker():
        for name, act in acts.items():
            for _ in range(TIMES):
                act()
            tell(f"{name} on {url.partition(':')[0]}", set.intersection(*found))
            found.clear()
    app.close()


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if not word.startswith("--")]
    with tempfile.TemporaryDirectory() as folder:
        main(given[0] if given else f"sqlite:///{folder}/visited.db")
