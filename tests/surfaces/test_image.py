"""The Dockerfile of the guide: its steps are run, and its command takes a job and stops in good order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import wait_until

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docs" / "operations" / "Dockerfile"
BASE = ROOT / ".tools" / "image" / "base.tar"

SHOP = """
import time
from pathlib import Path

from tallystick import Tally

app = Tally()


@app.step
def pack(order: int) -> str:
    Path("/data/begun").touch()
    while not Path("/data/go").exists():
        time.sleep(0.1)
    return f"parcel {order}"


@app.workflow
def checkout(order: int) -> str:
    return pack(order)
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


def said_by(*words: str | Path) -> str:
    """Return what a program prints, or fail with what it says."""
    ended = subprocess.run(words, check=False, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.strip()


class Image:
    """An image and a container of it, whose processes have their own numbers and what Docker gives them."""

    def __init__(self, folder: Path) -> None:
        """Build it, with the package of this tree where the requirements ask for it."""
        self._store = ("--storage-driver", "vfs", "--root", folder / "store", "--runroot", folder / "run")
        context, wheels = folder / "context", folder / "wheels"
        context.mkdir()
        said_by(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels)
        (wheel,) = wheels.iterdir()
        (context / "requirements.txt").write_text(f"/wheels/{wheel.name}[postgres,metrics]\n")
        (context / "shop.py").write_text(SHOP)
        self._buildah("pull", "--quiet", f"oci-archive:{BASE}")
        built = ("--isolation", "chroot", "--pull-never", "--format", "docker", "-v", f"{wheels}:/wheels:ro")
        self._buildah("build", *built, "-f", DOCKERFILE, "-t", "shop:1", context)
        told = json.loads(self._buildah("inspect", "--type", "image", "shop:1"))
        self.config = told["Docker"]["config"]
        self._container = self._buildah("from", "--pull-never", "shop:1")
        self.files = Path(self._buildah("mount", self._container))

    def remove(self) -> None:
        """Leave nothing mounted."""
        self._buildah("rm", self._container)

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        """Start a command as the user of the image, as process 1 of its container."""
        variables |= dict(pair.split("=", 1) for pair in self.config["Env"])
        user, folder = self.config["User"], self.config["WorkingDir"]
        inside = f'cd {folder} && exec "$@"'
        apart = ("unshare", "--pid", "--fork", "--kill-child", "--mount", f"--mount-proc={self.files}/proc")
        root = ("chroot", f"--userspec={user}:{user}", self.files, "sh", "-c", inside, "sh")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen([*apart, *root, *words], env=variables, text=True, **pipes)

    def says(self, *words: str, **variables: str) -> tuple[int, str]:
        """Return how a command ended that runs beside the others, and what it said."""
        process = self.start(*words, **variables)
        said, _none = process.communicate(timeout=60)
        return process.returncode, said.strip()

    def _buildah(self, *words: str | Path) -> str:
        return said_by("buildah", *self._store, *words)


@pytest.fixture(scope="module")
def image(tmp_path_factory) -> Iterator[Image]:
    if not BASE.exists():
        text = f"{BASE} is not there: run scripts/image as root, which makes it"
        pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)
    built = Image(tmp_path_factory.mktemp("image"))
    yield built
    built.remove()


def test_its_command_takes_a_job_answers_the_probe_and_stops_with_grace(image):
    store = {"TALLY_URL": "sqlite:////data/shop.db"}
    worker = image.start(*image.config["Cmd"], **store)
    probe = image.config["Healthcheck"]["Test"]
    assert probe[0] == "CMD"
    wait_until(lambda: image.says(*probe[1:], **store) == (0, "1 live worker"), "a worker that is well")
    code, job = image.says("tally", "submit", "shop:checkout", "1", **store)
    assert code == 0, job
    wait_until((image.files / "data" / "begun").exists, "a step that runs")
    os.kill(process_1_of(worker), signal.SIGTERM)
    said = next(line for line in worker.stdout if line.startswith("SIGTERM"))
    assert said == "SIGTERM: 1 running, with 25 seconds to end\n"
    (image.files / "data" / "go").touch()
    said, _none = worker.communicate(timeout=60)
    assert (worker.returncode, said) == (0, "1 job ended here\n")
    assert "SUCCEEDED" in image.says("tally", "list", "shop", **store)[1]
    assert image.says(*probe[1:], **store) == (1, "no live worker")


def process_1_of(container: subprocess.Popen[str]) -> int:
    """Return the number that process 1 of a container has outside."""
    children = Path(f"/proc/{container.pid}/task/{container.pid}/children")
    return int(children.read_text().split()[0])
