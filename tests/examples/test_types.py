"""The types of a user's program survive its decorators, in the real package and not only in a stub."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRONG = """
from tallystick import Job, Retry, Tally, Tx

app = Tally()

@app.step(retry=Retry(2))
def quote(order: int) -> int:
    return order

@app.tx
def pay(db: Tx, order: int, cents: int) -> None: ...

@app.step
async def fetch(page: str) -> bytes:
    return b""

@app.workflow
def checkout(order: int) -> str:
    pay(order, quote(order))
    return "done"

@app.workflow
async def crawl(page: str) -> int:
    return len(await fetch(page)) + await quote.aio(1)

text: str = checkout.submit(1).result()
size: Job[int] = crawl.submit("home")
checkout.submit("one")              # wrong: arg-type
number: int = checkout.submit(1).result()  # wrong: assignment
pay.fn(1, 2)                        # wrong: call-arg
quote(order="one")                  # wrong: arg-type
size = checkout.submit(1)           # wrong: assignment
"""


@pytest.mark.slow
def test_the_examples_and_the_readme_pass_mypy_strict_and_wrong_calls_do_not(tmp_path):
    readme = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert readme
    (tmp_path / "readme.py").write_text(readme[1], encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    files = [*sorted((ROOT / "examples").glob("[01]*.py")), tmp_path / "readme.py", tmp_path / "wrong.py"]
    # The package's own configuration is left out: a user does not have it.
    options = ["--config-file=", "--strict", "--no-error-summary", f"--cache-dir={tmp_path}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *files],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        timeout=100,
    )
    found = re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: .*\[([\w-]+)\]$", checked.stdout, re.MULTILINE)
    marked = [
        ("wrong.py", str(number), line.split("# wrong: ")[1])
        for number, line in enumerate(WRONG.splitlines(), start=1)
        if "# wrong: " in line
    ]
    assert [(file, line) for file, line, _ in marked] == sorted({(file, line) for file, line, _ in found}), (
        checked.stdout
    )
    assert set(marked) <= set(found)
