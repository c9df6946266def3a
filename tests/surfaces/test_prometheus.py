"""A real Prometheus reads a worker by the configuration of the guide, and answers what the pages ask."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.patience import wait_until
from tests.surfaces.commands import Shop, Work, started

ROOT = Path(__file__).parents[2]
PROMETHEUS, PROMTOOL = "/usr/bin/prometheus", "/usr/bin/promtool"
PATIENCE = 60
OPERATIONS = ROOT / "docs" / "operations"
SHOP = """
import os
import time
from pathlib import Path
from tallystick import Fatal, Key, Retry, Tally, Webhook

app = Tally("sqlite:///shop.db", callback_url="https://tally.example")
# Nothing listens there: every try to publish fails, and is counted.
DEAF = Webhook("http://127.0.0.1:9/hook", secret="s" * 32, allow_networks=["127.0.0.0/8"])
app.service("ocr", via=DEAF)

@app.remote("ocr")
def read(page: int) -> int:
    raise NotImplementedError

@app.workflow
def scan(page: int) -> int:
    return read(page)

@app.step(retry=Retry(3, first="1ms"))
def stumble() -> None:
    tried = Path(f"tried.{os.getpid()}")
    if not tried.exists():
        tried.touch()
        raise ConnectionError("the first try fails")

@app.effect(key="charge:{order}")
def charge(key: Key, order: int) -> str:
    raise ConnectionError("reset after it was sent")

@app.workflow
def pay(order: int) -> str:
    return charge(order)

@app.schedule("every 1s")
@app.workflow
def report() -> None:
    stumble()

@app.workflow
def fails() -> None:
    raise Fatal("no")

@app.step
def linger(file: str) -> None:
    Path(f"{file}.began").touch()
    while not Path(file).exists():
        time.sleep(0.05)

@app.workflow
def long(file: str) -> None:
    linger(file)
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answer(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=PATIENCE) as response:
        return json.loads(response.read())["data"]


def ask(server: str, expression: str) -> list[Any]:
    """Return what Prometheus says to an expression: as a list, whose items have labels and a value."""
    query = urllib.parse.urlencode({"query": expression})
    return list(answer(f"{server}/api/v1/query?{query}")["result"])


def panels() -> list[str]:
    board = json.loads((OPERATIONS / "grafana.json").read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


@pytest.fixture
def configured(tmp_path) -> tuple[Path, int, int]:
    """Return the configuration of the guide with other addresses and times, and the ports to be read."""
    if not Path(PROMETHEUS).exists():
        text = f"{PROMETHEUS} is not there: run scripts/prometheus, which installs it"
        pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)
    guide = (ROOT / "docs" / "guides" / "scheduled-import.md").read_text()
    (said,) = re.findall(r"```yaml\n(# prometheus.yml\n.*?)```", guide, re.DOTALL)
    port, api_port = free_port(), free_port()
    assert "127.0.0.1:9400" in said
    assert "scrape_interval: 15s" in said
    said = said.replace("127.0.0.1:9400", f"127.0.0.1:{port}").replace("interval: 15s", "interval: 1s")
    config = tmp_path / "prometheus.yml"
    # Beside the worker, the API: a second address in the list of the guide.
    api = f"""
  - job_name: api
    scrape_interval: 1s
    static_configs:
      - targets: ["127.0.0.1:{api_port}"]
"""
    config.write_text(f"global: {{evaluation_interval: 1s}}\n{said.rstrip()}{api}")
    (tmp_path / "alerts.yml").write_text((OPERATIONS / "alerts.yml").read_text())
    for about in ("config", "rules"):
        file = config if about == "config" else tmp_path / "alerts.yml"
        checked = subprocess.run(
            [PROMTOOL, "check", about, file], check=False, capture_output=True, text=True, timeout=PATIENCE
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
    return config, port, api_port


@pytest.fixture
def server(configured, tmp_path) -> Iterator[str]:
    config, *_ports = configured
    address = f"127.0.0.1:{free_port()}"
    words = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'series'}"]
    with (tmp_path / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [PROMETHEUS, *words, f"--web.listen-address={address}"], stdout=log, stderr=log
        )
    yield f"http://{address}"
    process.terminate()
    process.wait(PATIENCE)


def live(shop: Shop) -> str:
    """Return a job whose worker was killed; the next worker is to take it back."""
    with Work(shop, "--lease", "1s"):
        job = shop.submit("shop:long", '"held"')
        wait_until((shop.folder / "held.began").exists, "the job has begun")
    return job


@contextmanager
def serving(shop: Shop, port: int) -> Iterator[None]:
    """Run `tally serve` beside the worker; its series are those of the store."""
    process = started(("serve", "shop", "--bind", f"127.0.0.1:{port}"), shop.folder)
    try:
        yield
    finally:
        process.kill()
        process.communicate("", PATIENCE)


@pytest.mark.long
def test_prometheus_answers_every_panel_and_evaluates_every_rule(configured, server, tmp_path):
    _config, port, api_port = configured
    shop = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(SHOP)
    job = live(shop)
    with Work(shop, "--metrics", f"127.0.0.1:{port}", "--lease", "1s"), serving(shop, api_port):
        shop.submit("shop:fails")
        shop.submit("shop:pay", "7")
        shop.submit("shop:scan", "1")
        wait_until(lambda: _is_ready(server), "Prometheus is ready")
        wait_until(lambda: len(ask(server, "up == 1")) == 2, "it has read worker and API")
        wait_until(lambda: ask(server, 'tallystick_workers{job="api"} > 0'), "the API counts the worker")
        for panel in panels():
            wait_until(lambda panel=panel: ask(server, panel), f"what {panel} shows")
        wait_until(lambda: _firing(server) == {"TallystickInDoubt"}, "the alert fires")
        assert shop.state(job) == "IN_PROGRESS"
    rules = _rules(server)
    assert {rule["health"] for rule in rules} == {"ok"}, rules
    assert len(rules) == (OPERATIONS / "alerts.yml").read_text().count("- alert:")


def _is_ready(server: str) -> bool:
    try:
        with urllib.request.urlopen(f"{server}/-/ready", timeout=PATIENCE) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _rules(server: str) -> list[Any]:
    return [rule for group in answer(f"{server}/api/v1/rules")["groups"] for rule in group["rules"]]


def _firing(server: str) -> set[str]:
    return {rule["name"] for rule in _rules(server) if rule["state"] == "firing"}
