"""Two relays in two processes on one outbox: nothing is lost or goes out twice, a slow one delays none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick.engine.audit import audit
from tests.patience import wait_until
from tests.postgres.subject import PostgresSubject
from tests.remote.receiver import receiving
from tests.remote.test_publish import command, declare, directive, webhook
from tests.surfaces.http.processes import Process

JOBS, STUCK = 300, 200
ROOT = Path(__file__).parents[2]
# A worker that publishes what it finds to two endpoints, until it is killed.
SCRIPT = """
import sys, threading
from tests.remote.test_publish import LOCAL, SECRET, declare
from tallystick import Webhook

fast, stuck = (Webhook(each, secret=SECRET, allow_networks=LOCAL) for each in sys.argv[2:4])
app = declare(sys.argv[1], scan=fast, slow=stuck)
with app.worker(grace="0s"):
    print("publishing", flush=True)
    threading.Event().wait(120)
"""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'books.db'}"
        return
    monkeypatch.setenv("TALLYSTICK_CALLBACK_KEYS", "k1:" + "s" * 32)
    subject = PostgresSubject(request.getfixturevalue("server"))
    yield subject.url
    subject.close()


@pytest.mark.slow
def test_two_relays_share_an_outbox_and_a_slow_endpoint_delays_no_other(url: str, tmp_path: Path):
    (tmp_path / "relay.py").write_text(SCRIPT)
    with receiving() as receiver, receiving() as stuck:
        stuck.held.clear()
        app = declare(url, scan=webhook(receiver), slow=webhook(stuck))
        late = [app.command(command(n, "slow")) for n in range(STUCK)]
        jobs = [app.command(command(n)) for n in range(JOBS)]
        asked = ("relay.py", url, receiver.url, stuck.url)
        path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
        with Process(tmp_path, *asked, **path) as one, Process(tmp_path, *asked, **path) as other:
            wait_until(lambda: "publishing" in one.said and "publishing" in other.said, "two relays")
            jobs += [app.command(command(n)) for n in range(JOBS, JOBS + 50)]
            wait_until(lambda: len(receiver.got) >= len(jobs), "all directives for the fast one")
            wait_until(lambda: all(directive(app, job.id).state == "SENT" for job in jobs), "their notes")
            assert (one.code, other.code) == (None, None)
        told = Counter(got.headers["webhook-id"] for got in receiver.got)
        assert told == Counter(f"{job.id}:s0:1" for job in jobs)
        # What hangs is on its way once at most, and no more of it than two relays have room for.
        hung = Counter(got.headers["webhook-id"] for got in stuck.got)
        assert set(hung.values()) == {1}
        assert len(hung) <= 2 * 64
        assert {directive(app, job.id).state for job in late} == {"PENDING"}
        store = app.runtime().store
        for job in jobs:
            assert [fact.type for fact in store.history(job.id)] == ["submit", "sent"]
            assert directive(app, job.id).tries == 1
        assert audit(store).findings == []
        app.close()
