"""One of the three services of the pipeline, in a process of its own: python service.py URL KEY NAME.

It has no access to the database. Files stand for the storage in which services keep what is large.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from tallystick.remote import Done, GivenDirective, RemoteWorker

url, key, name = sys.argv[1:]
worker = RemoteWorker(url, key, services=[name], concurrency=1)


def ocr(text: str) -> str:
    if "slow" in text and not Path("hurry").exists():
        Path("ocr-is-at-it").touch()  # and never ends: pipeline.py kills this process
        threading.Event().wait()
    return text.removeprefix("scan of ")


work = {"ocr": ocr, "translate": str.upper, "index": lambda text: f"{len(text.split())} words: {text}"}[name]


@worker.handle(name)
def handle(directive: GivenDirective) -> Done:
    given = Path(directive.input_ref).read_text("utf-8")
    made = Path(f"{directive.job_id}.{name}.txt")
    made.write_text(work(given), "utf-8")  # the same file, however often it is written
    return Done(made.read_text("utf-8"), output_ref=str(made))


worker.run()
