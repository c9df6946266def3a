"""`tally work`: says what it serves, stops with grace, and takes over from a worker that was killed."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.patience import wait_until
from tests.postgres.subject import fresh_schema
from tests.surfaces.commands import PATIENCE, TALLY, Shop, Work


@pytest.fixture
def shop(tmp_path) -> Shop:
    return Shop(tmp_path)


def reserved(shop: Shop, job_id: str) -> list[int]:
    """Return how often each `reserve` of a job is in its history."""
    facts = shop.tally("history", job_id, "shop", "--json").data
    return [fact["details"]["occurrence"] for fact in facts if fact["type"] == "tx"]


def test_it_says_which_file_store_workflows_versions_and_queues_it_serves(shop):
    with Work(shop) as work:
        said = work.seen[0]
        assert said["app"] == "shop:app"
        assert said["file"] == str(shop.folder / "shop.py")
        assert said["url"] == f"sqlite:///{shop.database}"
        assert {"name": "letter", "version": "2"} in said["workflows"]
        assert said["queues"] == ["default", "mail"]
        assert said["pid"] == work.process.pid
        assert work.stop() == 0
    assert work.stderr == f"creating {shop.database}\n"


def test_it_serves_only_the_queues_it_was_told(shop):
    mail, other = shop.submit("shop:letter", '"Ada"'), shop.submit("shop:checkout", "1")
    with Work(shop, "--queues", "mail", "--verbose") as work:
        work.wait_for("done", job_id=mail)
        assert work.stop() == 0
    assert (shop.state(mail), shop.state(other)) == ("SUCCEEDED", "QUEUED")


def test_trouble_is_a_line_and_a_good_job_is_one_only_when_asked_for(shop):
    good, bad = shop.submit("shop:checkout", "1"), shop.submit("shop:fails", '"no\\u001b[31m money"')
    with Work(shop) as work:
        failed = work.wait_for("failed", job_id=bad)
        assert failed["workflow"] == "fails"
        wait_until(lambda: shop.state(good) == "SUCCEEDED", "the good job ends")
        assert work.stop() == 0
    assert "done" not in {event["event"] for event in work.seen}
    assert work.seen[-1] == {
        "event": "stopped",
        "message": "2 jobs ended here, 1 of them failed",
        "complete": True,
        "running": 0,
        "done": 1,
        "failed": 1,
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_jobs_end_and_claims_no_more(shop, number):
    running = shop.submit("shop:waits", '"go"')
    with Work(shop, "--concurrency", "1") as work:
        wait_until((shop.folder / "go.began").exists, "the job runs")
        work.process.send_signal(number)
        work.wait_for("stopping", running=1)
        late = shop.submit("shop:checkout", "1")
        (shop.folder / "go").touch()
        assert work.finish() == 0
    assert (shop.state(running), shop.state(late)) == ("SUCCEEDED", "QUEUED")


def test_in_the_background_of_a_script_it_does_not_hear_the_keyboard(shop):
    script = ("/bin/sh", "-c", 'trap "" INT; exec "$0" "$@"')
    with Work(shop, started_by=script) as work:
        work.process.send_signal(signal.SIGINT)
        work.process.send_signal(signal.SIGTERM)
        assert work.wait_for("stopping")["message"].count("SIGTERM")
        assert work.finish() == 0


def test_a_second_signal_ends_it_at_once_and_the_job_goes_on_elsewhere(shop):
    job = shop.submit("shop:waits", '"go"')
    with Work(shop, "--lease", "1s") as work:
        wait_until((shop.folder / "go.began").exists, "the job runs")
        work.process.send_signal(signal.SIGTERM)
        work.wait_for("stopping")
        assert work.stop() == 128 + signal.SIGTERM
    assert "left to their leases" in work.stderr
    (shop.folder / "go").touch()
    with Work(shop, "--lease", "1s", "--verbose") as work:
        assert work.wait_for("again", job_id=job)["attempt"] == 2
        work.wait_for("done", job_id=job)
    assert reserved(shop, job) == [1, 2]


def test_a_job_that_does_not_end_within_its_grace_is_left_to_its_lease_and_the_exit_code_says_so(shop):
    stuck = shop.submit("shop:waits", '"never"')
    with Work(shop, "--grace", "50ms") as work:
        wait_until((shop.folder / "never.began").exists, "the job runs")
        assert work.stop() == 1
    assert work.seen[-1]["message"] == "0 jobs ended here, 1 left to their leases"
    assert shop.state(stuck) == "IN_PROGRESS"


def test_after_kill_9_the_other_worker_takes_over_and_nothing_is_done_twice(shop):
    """Two `tally work` on one file; one is killed in the middle of a job, between its two transactions."""
    with Work(shop, "--lease", "1s") as victim:
        job = shop.submit("shop:waits", '"go"')
        wait_until((shop.folder / "go.began").exists, "the job runs")
        with Work(shop, "--lease", "1s", "--verbose") as heir:
            victim.process.kill()
            assert heir.wait_for("again", job_id=job)["attempt"] == 2
            (shop.folder / "go").touch()
            heir.wait_for("done", job_id=job)
            others = [shop.submit("shop:checkout", str(n)) for n in range(3)]
            for other in others:
                heir.wait_for("done", job_id=other)
            assert heir.stop() == 0
    assert reserved(shop, job) == [1, 2]
    words = [fact["words"] for fact in shop.tally("history", job, "shop", "--json").data]
    assert words == [
        "submitted",
        "claimed by a worker",
        "tx reserve returned null",
        "the lease ran out: the next worker can claim it",
        "claimed again by a worker",
        "tx reserve#2 returned null",
        "returned: the job has succeeded",
    ]
    doctor = shop.tally("doctor", "shop", "--all", "--json")
    assert (doctor.code, doctor.data["books"]["findings_total"]) == (0, 0)


class TestProcesses:
    def test_those_that_are_stopped_before_they_work_have_ended_well(self, shop):
        module = shop.folder / "shop.py"
        slow = "import sys, time\nwhile '--report-to' in sys.argv:\n    time.sleep(0.01)\n"
        module.write_text(f"{module.read_text()}\n{slow}")
        with Work(shop, "--processes", "2") as work:
            assert work.stop() == 0, work.stderr
        assert work.seen[-1]["complete"] is True

    def test_they_share_the_work_and_stop_together(self, shop):
        with Work(shop, "--processes", "2", "--verbose") as work:
            for order in range(3):
                work.wait_for("done", job_id=shop.submit("shop:checkout", str(order)))
            pids = work.seen[0]["processes"]
            assert len(set(pids)) == 2
            assert work.process.pid not in pids
            assert work.stop() == 0, work.stderr
        assert work.seen[-1]["complete"] is True
        assert work.seen[-1]["done"] == 3

    def test_when_one_dies_the_others_are_stopped_and_the_exit_code_is_one(self, shop):
        with Work(shop, "--processes", "2") as work:
            victim, other = work.seen[0]["processes"]
            os.kill(victim, signal.SIGKILL)
            assert (
                work.wait_for("died")["message"]
                == f"process {victim} was killed by SIGKILL; stopping the others"
            )
            assert work.finish() == 1
        with pytest.raises(ProcessLookupError):
            os.kill(other, 0)

    def test_they_stop_when_whoever_started_them_is_gone(self, shop):
        with Work(shop, "--processes", "2") as work:
            pids = work.seen[0]["processes"]
            work.process.kill()
            for pid in pids:
                wait_until(lambda pid=pid: not alive(pid), "the children end")


def alive(pid: int) -> bool:
    """Tell whether a process works; one that waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class TestOutput:
    @pytest.mark.parametrize("options", [[], ["--processes", "2"]], ids=["one", "two"])
    def test_a_reader_that_goes_away_stops_the_worker_and_costs_no_job_anything(self, shop, options):
        process = subprocess.Popen(
            [TALLY, "work", "shop", "--json", "--verbose", *options],
            cwd=shop.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert "serving" in process.stdout.readline()
        process.stdout.close()
        job = shop.submit("shop:checkout", "1")
        assert process.wait(timeout=PATIENCE) == 141
        assert process.stderr.read() == f"creating {shop.database}\n"
        process.stderr.close()
        assert shop.state(job) == "SUCCEEDED"

    def test_without_a_terminal_there_are_lines_on_stderr_and_nothing_on_stdout(self, shop):
        bad = shop.submit("shop:fails", '"no money"')
        process = subprocess.Popen(
            [TALLY, "work", "shop"],
            cwd=shop.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        heard = []
        while not heard or "no money" not in heard[-1]:
            heard.append(process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        assert heard[0] == f"serving shop:app from {shop.folder / 'shop.py'}\n"
        assert heard[-1] == f"job {bad} (fails) failed: FATAL: no money\n"
        assert (process.returncode, out) == (0, "")
        assert "\r" not in "".join(heard) + err
        stopping, stopped = err.splitlines()
        assert stopping.startswith("SIGTERM: ")
        assert stopped == "1 job ended here, 1 of them failed"

    @pytest.mark.parametrize("without_rich", [False, True], ids=["rich", "plain"])
    def test_on_a_terminal_one_line_shows_the_progress(self, shop, without_rich):
        if without_rich:
            (shop.folder / "shop.py").write_text(
                f"import sys; sys.modules['rich'] = None\n{(shop.folder / 'shop.py').read_text()}".replace(
                    "from __future__ import annotations\n", ""
                )
            )
        shop.submit("shop:checkout", "1")
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [TALLY, "work", "shop"],
            cwd=shop.folder,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "200"},
        )
        os.close(theirs)
        text = ""
        while "jobs/s · 0 running · 1 done" not in text:
            ready, _, _ = select.select([ours], [], [], PATIENCE)
            assert ready, text
            text += os.read(ours, 65536).decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        os.close(ours)


POLICY = """
import os
from tallystick import Tally

app = Tally("sqlite:///shop.db")

@app.workflow
def policy() -> int:
    return os.sched_getscheduler(0)
"""


@pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="there are no policies here")
@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize(
    ("told", "policy"), [((), "SCHED_BATCH"), (("--no-batch-scheduling",), "SCHED_OTHER")]
)
def test_its_threads_are_scheduled_as_it_is_told(shop, processes, told, policy):
    (shop.folder / "shop.py").write_text(POLICY)
    job = shop.submit("shop:policy")
    with Work(shop, "--verbose", "--processes", processes, *told) as work:
        work.wait_for("done", job_id=job)
        assert work.stop() == 0
    assert shop.tally("show", job, "shop", "--json").data["result"] == getattr(os, policy)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_it_removes_jobs_that_were_kept_long_enough(shop, processes):
    job = shop.submit("shop:checkout", "1")
    with Work(shop, "--keep", "100ms", "--processes", processes) as work:
        wait_until(lambda: shop.tally("show", job, "shop").code == 3, "the job is gone")
        assert work.stop() == 0


def test_a_retention_without_a_unit_is_refused(shop):
    refused = shop.tally("work", "shop:app", "--keep", "30")
    assert refused.code == 4
    assert "30d" in refused.err


def test_it_ends_with_an_error_when_the_file_refuses_every_write(shop):
    shop.submit("shop:checkout", "1")
    with (shop.folder / "shop.py").open("a") as module:
        module.write("\napp.runtime().store._writer.execute('PRAGMA query_only = ON')\n")
    done = shop.tally("work", "shop")
    assert done.code == 5
    assert "shop.db cannot be written" in done.err


@pytest.mark.parametrize(("processes", "code"), [("1", 5), ("2", 1)])
def test_it_ends_with_an_error_for_a_role_that_may_only_read(shop, server, processes, code):
    schema = fresh_schema()
    url = server.url(schema=schema)
    assert shop.tally("submit", "shop:checkout", "1", "--url", url).code == 0
    role = f"reader_{schema}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(
            f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; "
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}".encode()
        )
    done = shop.tally("work", "shop", "--url", url.replace("tally@", f"{role}@"), "--processes", processes)
    assert done.code == code
    assert "this role may not do that" in done.err


PROBED = """
from tallystick import Happened, Key, Tally

app = Tally("sqlite:///shop.db")

def find(key: Key, order: int) -> Happened[int]:
    return Happened(order)

@app.effect(key="charge:{order}", probe=find, timeout="1s", settle="1ms")
def charge(key: Key, order: int) -> int:
    raise ConnectionResetError("cut after the request")

@app.workflow
def buy(order: int) -> int:
    return charge(order)
"""


def test_it_asks_the_probes_that_the_program_declares(shop):
    (shop.folder / "shop.py").write_text(PROBED)
    with Work(shop) as work:
        job = shop.submit("shop:buy", "7")
        wait_until(lambda: shop.state(job) == "SUCCEEDED", "the probe has answered")
        assert work.stop() == 0
