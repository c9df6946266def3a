"""Every program in the guides and on the first page of the site runs, and prints what the box below it says.

The Python blocks of a page are one program, in the order of the page. A block without a language right after
one of them is what that block prints.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.job_log import without_job_log

FOLDER = Path(__file__).parents[2] / "docs" / "guides"
# These need a server, or are files that other tests save and start.
ELSEWHERE = {"postgresql", "command-line", "runs"}
PAGES = [
    FOLDER.parent / "site" / "index.md",
    *(
        page
        for page in sorted(FOLDER.glob("*.md"))
        if page.stem not in ELSEWHERE and "\n```python\n" in page.read_text("utf-8")
    ),
]
BLOCK = re.compile(r"^```(?P<language>[\w{}]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "-- end of block --"


def blocks(page: str) -> list[tuple[str, str]]:
    """Return every Python block of a page with what it is said to print."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.finditer(page):
        if block["language"] == "python":
            found.append((block["text"], ""))
        elif not block["language"] and found:
            found[-1] = (found[-1][0], found[-1][1] + block["text"])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_programs_of_a_guide_print_what_it_says(page, tmp_path):
    programs = blocks(page.read_text("utf-8"))
    assert programs
    source = "".join(f"{program}\nprint({MARK!r}, flush=True)\n" for program, _ in programs)
    (tmp_path / "guide.py").write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "guide.py"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.returncode, without_job_log(done.stderr)) == (0, "")
    assert done.stdout.split(f"{MARK}\n")[:-1] == [printed for _, printed in programs]


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda path: path.stem)
def test_programs_that_are_only_shown_can_be_parsed(page):
    """Those of other libraries, which are not installed here, are marked `py`."""
    for block in BLOCK.finditer(page.read_text("utf-8")):
        if block["language"] in {"py", "python"}:
            ast.parse(block["text"])


def test_a_box_belongs_to_the_program_above_it():
    page = "```python\nx\n```\n\n```\n1\n```\n\n```python\ny\n```\n\n```sh\nz\n```\n"
    assert blocks(page) == [("x\n", "1\n"), ("y\n", "")]
