"""A server and remote workers as real processes, for tests that kill them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import httpx

from tests.patience import wait_until

APP = """
from tallystick import RemoteStep, Tally

app = Tally("STORE")
app.protocol(
    "ocr-embed",
    request_types=["scan"],
    steps=[
        RemoteStep("ocr", service="ocr", ack="TIME", lease="TIME"),
        RemoteStep("embed", service="embed", ack="TIME", lease="TIME"),
    ],
)
"""
KEY = ("--tenant", "acme", "--scope", "jobs:read", "--scope", "jobs:write", "--scope", "work")
SERVICES = ("--service", "ocr", "--service", "embed")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """A process of a test, killed at its end."""

    def __init__(self, folder: Path, *command: str, **environment: str) -> None:
        self.log = (folder / f"log-{len(list(folder.glob('log-*')))}.txt").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=self.log,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def said(self) -> str:
        return Path(self.log.name).read_text("utf-8")

    @property
    def code(self) -> int | None:
        return self._process.poll()

    def kill(self, number: int = signal.SIGKILL) -> int:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        return self._process.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()
        self.log.close()


class Server:
    """`tally serve` at one address, as often as it is started."""

    def __init__(
        self, folder: Path, store: str = "sqlite:///books.db", time: str = "2s", app: str = APP
    ) -> None:
        self.folder = folder
        (folder / "shop.py").write_text(app.replace("STORE", store).replace("TIME", time))
        self.url = f"http://127.0.0.1:{free_port()}"
        made = subprocess.run(
            [sys.executable, "-m", "tallystick", "keys", "create", "shop", *KEY, *SERVICES, "--json"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        self.key = json.loads(made.stdout)["key"]
        self.http = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.key}"}, timeout=60, trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.http.close()

    def start(self, **environment: str) -> Process:
        bind = self.url.removeprefix("http://")
        process = Process(
            self.folder,
            "-m",
            "tallystick",
            "serve",
            "shop",
            "--bind",
            bind,
            "--in-flight",
            "1000",
            **environment,
        )
        wait_until(lambda: process.code is not None or "serving" in process.said, "a server that serves")
        assert process.code is None, process.said
        return process

    def submit(self, page: int, **more: object) -> str:
        said = {
            "tenant_id": "acme",
            "request_type": "scan",
            "input_ref": "in",
            "output_ref": "out",
            "payload": {"page": page, "text": "a b c", **more},
            "schema_version": "v1",
        }
        return str(self.http.post("/v1/commands", json=said).raise_for_status().json()["jobId"])

    def try_to(self, method: str, path: str, **said: Any) -> dict[str, Any] | None:
        """Return the answer to a request; None while the server is away, or dies in it."""
        try:
            return dict(self.http.request(method, path, **said).raise_for_status().json())
        except httpx.TransportError:
            return None

    def job(self, job_id: str) -> dict[str, Any]:
        answer = self.http.get(f"/v1/jobs/{job_id}")
        return dict(answer.raise_for_status().json())

    def ended(self, job_ids: list[str]) -> list[dict[str, Any]]:
        """Wait until jobs have ended and return them."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found[:] = [self.job(job_id) for job_id in job_ids]
            return all(job["completed_at"] for job in found)

        wait_until(look, "the end of all jobs")
        return found
