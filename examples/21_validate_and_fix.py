# A loop with a limit: a check chooses the next state by what it returns, and three fixes are allowed.
# The count of fixes comes from the log, so that no restart resets it.
from __future__ import annotations

import tempfile

from tallystick.errors import RunFailed
from tallystick.runs import Pipeline, Work


def pipeline_with(mistakes: int) -> Pipeline:
    pipeline = Pipeline(
        "essay",
        {"DRAFTING": "CHECKING", "CHECKING": {"ok": "DONE", "not_ok": "FIXING"}, "FIXING": "CHECKING"},
        limits={"FIXING": 3},
    )

    @pipeline.node("DRAFTING", outputs=["essay.txt"])
    def draft(work: Work) -> None:
        work.write("essay.txt", "teh " * mistakes)

    @pipeline.node("CHECKING", inputs=["essay.txt", "fixed.txt?"], outputs=["mistakes.txt"])
    def check(work: Work) -> bool:
        left = work.read_text(work.inputs[-1]).count("teh")
        work.write("mistakes.txt", str(left))
        if left:
            work.open_issue("spelling", "warn", f"{left} mistakes left", issue_id="spelling")
        return left == 0

    @pipeline.node("FIXING", inputs=["essay.txt", "mistakes.txt"], outputs=["fixed.txt"])
    def fix(work: Work) -> None:
        left = int(work.read_text("mistakes.txt")) - 1
        work.write("fixed.txt", "the " * (mistakes - left) + "teh " * left)

    return pipeline


if __name__ == "__main__":
    root = tempfile.mkdtemp()
    print("two mistakes:", pipeline_with(2).run(root, "two").run_state)
    try:
        pipeline_with(9).run(root, "nine")
    except RunFailed as error:
        print("nine mistakes:", error)
