# A pipeline of three nodes: declare the states, give them functions, run it in a folder.
# Kill it while it runs and call it again: it goes on where its log ends.
from __future__ import annotations

import sys
import tempfile

from tallystick.runs import Pipeline, Work

pipeline = Pipeline("report", {"NEW": "FETCHED", "FETCHED": "WRITTEN", "WRITTEN": "DONE"})


@pipeline.node("NEW", outputs=["words.txt"])
def fetch(work: Work) -> None:
    work.write("words.txt", "some words to count")


@pipeline.node("FETCHED", inputs=["words.txt"], outputs=["count/{scope}.txt"], scopes=["a", "e", "o"])
def count(work: Work) -> None:
    letters = work.read_text("words.txt").count(work.scope)
    work.write(f"count/{work.scope}.txt", str(letters))


@pipeline.node("WRITTEN", inputs=["count/*.txt"], outputs=["report.txt"])
def report(work: Work) -> None:
    work.write("report.txt", " ".join(f"{name[6]}={work.read_text(name)}" for name in work.inputs))


if __name__ == "__main__":
    root = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    snapshot = pipeline.run(root, "first")
    print(snapshot.run_state, "with", len(snapshot.work_items), "work items")
