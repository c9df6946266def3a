"""Instruments of OpenTelemetry: a process counts with the provider of its program, and with no other."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest

PROGRAM = """
    import json, sys
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from tallystick import Retry, Tally

    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    app = Tally(sys.argv[1])
    tried = []

    @app.step(retry=Retry(3, first="1ms"))
    def fetch(n: int) -> int:
        tried.append(n)
        if len(tried) == 1:
            raise ConnectionError("away")
        return n

    @app.workflow
    def order(n: int) -> int:
        return fetch(n)

    @app.workflow
    async def fails(n: int) -> int:
        raise ValueError("no")

    for _ in range(2):  # a worker that starts again counts nothing twice
        with app.worker():
            for n in range(2):
                order.submit(n).result(timeout="30s")
    with app.worker():
        bad = fails.submit(3)
        try:
            bad.result(timeout="30s")
        except Exception as error:
            print(type(error).__name__, file=sys.stderr)
        order.opts(delay="1h").submit(9).cancel()
    (resource,) = reader.get_metrics_data().resource_metrics
    (scope,) = resource.scope_metrics
    print(json.dumps([json.loads(metric.to_json()) for metric in scope.metrics]))
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> dict[str, list[dict[str, Any]]]:
    """The points of each instrument after a small program."""
    url = f"sqlite:///{tmp_path_factory.mktemp('measured')}/books.db"
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), url]
    done = subprocess.run(program, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return {metric["name"]: metric["data"]["data_points"] for metric in json.loads(done.stdout)}


def test_ends_are_counted_by_workflow_and_state(measured):
    ended = {
        (point["attributes"]["workflow"], point["attributes"]["state"]): point["value"]
        for point in measured["tallystick.jobs.ended"]
    }
    assert ended == {("order", "SUCCEEDED"): 4, ("fails", "FAILED_FINAL"): 1, ("order", "CANCELLED"): 1}


def test_tries_claims_and_flushes_are_counted(measured):
    (tries,) = measured["tallystick.tries.failed"]
    assert (tries["attributes"], tries["value"]) == ({"workflow": "order"}, 1)
    (claimed,) = measured["tallystick.jobs.claimed"]
    assert claimed["value"] == 5
    (bundles,), (seconds,) = measured["tallystick.flush.bundles"], measured["tallystick.flush.duration"]
    assert bundles["count"] == seconds["count"] > 5
    assert seconds["sum"] > 0
    (taken,) = measured["tallystick.slots.taken"]
    assert taken["value"] == 0


def test_where_no_provider_is_set_nothing_is_imported_and_nobody_listens(tmp_path):
    program = """
        import sys
        from tallystick import Tally
        from tallystick.engine.observe import Flushed
        app = Tally(sys.argv[1])
        with app.worker():
            print(Flushed in app.runtime().observers.wanted, "opentelemetry.metrics" in sys.modules)
    """
    url = f"sqlite:///{tmp_path}/books.db"
    command = [sys.executable, "-c", textwrap.dedent(program), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False False\n"
