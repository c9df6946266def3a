"""The OCR pipeline on Azure Tables while every process of it is killed: all jobs end, with true books."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.engine.audit import audit

EXAMPLE = Path(__file__).parents[2] / "examples" / "remote"
PROGRAM = """
import json, random, sys, threading
from pathlib import Path
from tallystick import Tally
sys.path.insert(0, sys.argv[1])
from crew import HERE, Crew, Server
from urllib.request import Request, urlopen

store, chance = sys.argv[2], random.Random(int(sys.argv[3]))
Path("hurry").touch()
about = {"tenant_id": "default", "request_type": "scan", "schema_version": "v1", "output_ref": "out"}

def call(server, path, body=None):
    headers = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}
    asked = Request(server.url + path, body and json.dumps(body).encode(), headers)
    with urlopen(asked, timeout=20) as answer:
        return json.load(answer)

def begin(crew):
    server = crew.serve("scans", store)
    program = (sys.executable, HERE / "service.py", *server)
    services = [crew.start(*program, name) for name in ("ocr", "translate", "index")]
    return server, [crew._processes[-4], *services]

tally = Tally(store)
books = tally.runtime().store

def until(holds):  # the test that has started this ends it if that takes too long
    while not holds():
        threading.Event().wait(0.2)

def facts(jobs):
    return sum(len(books.history(job)) for job in jobs)

def ended(jobs):
    return len(books.finished(jobs)) == len(jobs)

with Crew() as crew:
    server, processes = begin(crew)
    jobs = []
    for page in range(6):
        source = Path(f"page-{page}.txt")
        source.write_text(f"scan of page {page}", "utf-8")
        jobs.append(call(server, "/v1/commands", {**about, "input_ref": str(source), "payload": {}})["jobId"])
    for _round in range(4):
        wanted = facts(jobs) + chance.randrange(1, 12)
        until(lambda: facts(jobs) >= wanted or ended(jobs))
        chance.shuffle(processes)
        for process in processes:  # the others go on meanwhile
            process.kill()
            process.wait()
        server, processes = begin(crew)
    until(lambda: ended(jobs))
    for job in jobs:
        shown = call(server, f"/v1/jobs/{job}")
        print(shown["state"], shown["result"])
"""


@pytest.mark.long
@pytest.mark.timeout(700)
def test_every_process_of_the_pipeline_is_killed_and_every_page_is_read(azure_url: str, tmp_path: Path):
    seed = random.Random(3).randrange(1000)
    words = [sys.executable, "-c", PROGRAM, str(EXAMPLE), azure_url, str(seed)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"SUCCEEDED 2 words: PAGE {page}" for page in range(6)]
    app = Tally(azure_url)
    assert audit(app.runtime().store).findings == []
    app.close()
