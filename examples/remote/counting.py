"""A workflow with one remote step, which a worker in JavaScript does: python counting.py [STORE].

The worker is worker.mjs, without packages and without access to the database. It needs node.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from crew import HERE, Crew

from tallystick import Tally

store = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path.cwd()}/counting.db"
app = Tally(store)


class Counted(msgspec.Struct):
    words: int
    by: str


@app.remote("words", lease="1m")
def count(text: str) -> Counted:
    raise NotImplementedError


@app.workflow
def report(text: str) -> str:
    counted = count(text)
    return f"{counted.words} words, counted in {counted.by}"


if __name__ == "__main__":
    with Crew() as crew:
        server = crew.serve("counting", store)
        crew.start("node", HERE / "worker.mjs", server.url, server.key, "words")
        with app.worker():
            print(report.submit("the quick brown fox").result("60s"))
    app.close()
# Output:
# 4 words, counted in javascript
