"""An OCR pipeline of three services in three processes, one of which is killed: python pipeline.py [STORE].

Start it in an empty folder. Another STORE is another address (`postgresql://…`), and nothing else changes.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from crew import HERE, Crew, Server

SERVICES = ("ocr", "translate", "index")
ABOUT = {"tenant_id": "default", "request_type": "scan", "schema_version": "v1", "output_ref": "out"}


def call(server: Server, path: str, body: dict[str, object] | None = None) -> Any:
    headers = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}
    with urlopen(Request(server.url + path, body and json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


store = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path.cwd()}/scans.db"
with Crew() as crew:
    server = crew.serve("scans", store)
    program = (sys.executable, HERE / "service.py", *server)
    services = {name: crew.start(*program, name) for name in SERVICES}
    jobs = []
    for page in ("a dog", "a slow cat", "two birds in a tree"):
        source = Path(f"{page.replace(' ', '-')}.txt")
        source.write_text(f"scan of {page}", "utf-8")
        made = call(server, "/v1/commands", {**ABOUT, "input_ref": str(source), "payload": {}})
        jobs.append(made["jobId"])
    while not Path("ocr-is-at-it").exists():
        time.sleep(0.02)
    services["ocr"].kill()
    Path("hurry").touch()
    print("ocr was killed in the middle of its second page")
    crew.start(*program, "ocr")
    for job in jobs:
        while not (shown := call(server, f"/v1/jobs/{job}"))["completed_at"]:
            time.sleep(0.05)
        steps = call(server, f"/v1/jobs/{job}/steps")["steps"]
        (attempts,) = (step["attempt_no"] for step in steps if step["stepId"] == "ocr")
        print(f"{shown['state']}, read at attempt {attempts}: {shown['result']}")
# Output:
# ocr was killed in the middle of its second page
# SUCCEEDED, read at attempt 1: 2 words: A DOG
# SUCCEEDED, read at attempt 2: 3 words: A SLOW CAT
# SUCCEEDED, read at attempt 1: 5 words: TWO BIRDS IN A TREE
