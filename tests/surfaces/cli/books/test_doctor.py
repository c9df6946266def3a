"""`tally doctor`: what it looks at, what it finds, and the exit code that asks for somebody to look."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from tallystick import Tally
from tallystick.cli.commands.books.doctor import Examination, examine
from tallystick.cli.commands.books.undone import Undone
from tallystick.clock import SystemClock
from tallystick.engine.audit import Audit
from tallystick.store.inspection import Health, StaleReports
from tallystick.store.sqlite.statements import migrations
from tests.patience import wait_until
from tests.surfaces.commands import Shop, Work

# Holds the writer's lock and says so; stops there.
HOLDER = """
import os, sys
from tallystick import Tally
with Tally("sqlite:///shop.db").transaction(limit="10m"):
    print("held", flush=True)
    sys.stdin.read()
"""
EXECUTE = """
import apsw, sys
connection = apsw.Connection("shop.db")
for statement in sys.argv[1:]:
    connection.execute(statement)
"""
TAMPER = """
import apsw, sys
connection = apsw.Connection("shop.db")
for (name,) in list(connection.execute("select name from sqlite_master where type = 'trigger'")):
    connection.execute(f"drop trigger {name}")
for statement in sys.argv[1:]:
    connection.execute(statement)
"""


@pytest.fixture
def shop(tmp_path) -> Shop:
    return Shop(tmp_path)


def worked(shop: Shop, *jobs: tuple[str, ...]) -> list[str]:
    """Submit jobs and let a worker end them."""
    ids = [shop.submit(*job) for job in jobs]
    with Work(shop, "--verbose") as work:
        for job_id, job in zip(ids, jobs, strict=True):
            work.wait_for("failed" if job[0] == "shop:fails" else "done", job_id=job_id)
        assert work.stop() == 0
    return ids


def stopped_with_a_lease(shop: Shop, work: Work) -> bool:
    """Stop a worker outside of transactions and while it holds its job; else let it run on.

    Everything would wait for a writer. On a busy machine a short lease may run out in a worker that lives:
    it takes its job back and claims it again, and has none in between.
    """
    os.kill(work.process.pid, signal.SIGSTOP)
    seen = shop.tally("doctor", "shop", "--json").data
    well = seen["store"]["writer_pid"] is None and bool(seen["workers"])
    if not well:
        os.kill(work.process.pid, signal.SIGCONT)
    return well


def test_a_store_that_is_well_is_described_and_the_code_is_zero(shop):
    worked(shop, ("shop:checkout", "1"), ("shop:fails", '"x"'))
    text = shop.tally("doctor", "shop")
    assert text.code == 0
    assert text.out.splitlines()[-1] == "all is well"
    assert str(shop.database) in text.out
    data = shop.tally("doctor", "--url", "sqlite:///shop.db", "--json").data
    store = data["store"]
    assert (store["path"], store["mode"], store["synchronous"]) == (str(shop.database), "0600", "FULL")
    assert (store["journal_mode"], store["writer_pid"]) == ("wal", None)
    assert store["schema_version"] == migrations()[-1][0]
    assert store["size_bytes"] == shop.database.stat().st_size
    assert data["jobs"] == {"SUCCEEDED": 1, "FAILED_FINAL": 1}
    assert (data["ok"], data["expired_leases"], data["held"]) == (True, 0, [])
    assert (data["overdue_jobs"], data["overdue_remote_steps"]) == (0, 0)
    assert data["stale_reports"] == {"total": 0, "last_at": None}
    assert (data["books"]["jobs"], data["books"]["facts"]) == (2, 5 + 3)


def test_a_writer_that_holds_on_or_is_stopped_is_named(shop):
    shop.submit("shop:checkout", "1")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        cwd=shop.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        data = shop.tally("doctor", "shop", "--json").data
        assert (data["store"]["writer_pid"], data["store"]["writer_state"]) == (holder.pid, "running")
        wait_until(lambda: shop.tally("doctor", "shop").code == 6, "a second")
        floor = shop.database.with_name("shop.db-floor")
        an_hour_ago = floor.stat().st_mtime - 3_600
        os.utime(floor, (an_hour_ago, an_hour_ago))
        held = shop.tally("doctor", "shop")
        assert held.code == 6
        assert f"problem: process {holder.pid} has held the right to write for 36" in held.out
        assert "let its transaction end, or end the process" in held.out
        os.kill(holder.pid, signal.SIGSTOP)
        stopped = shop.tally("doctor", "shop")
        assert stopped.code == 6
        assert f"problem: process {holder.pid} is stopped inside a transaction" in stopped.out
    finally:
        os.kill(holder.pid, signal.SIGCONT)
        holder.communicate(timeout=45)


def test_a_lease_that_ran_out_and_a_late_report_are_counted(shop):
    job = shop.submit("shop:waits", '"go"')
    with Work(shop, "--lease", "300ms") as work:
        wait_until((shop.folder / "go.began").exists, "the job runs")
        wait_until(lambda: stopped_with_a_lease(shop, work), "it holds its job")
        wait_until(lambda: shop.tally("doctor", "shop").code == 6, "the lease runs out")
        assert "1 lease ran out and no worker has taken the jobs over yet" in shop.tally("doctor", "shop").out
        (shop.folder / "go").touch()
        with Work(shop, "--verbose") as heir:
            heir.wait_for("done", job_id=job)
        os.kill(work.process.pid, signal.SIGCONT)
        wait_until(
            lambda: shop.tally("doctor", "shop", "--json").data["stale_reports"]["total"] > 0,
            "the late report is refused",
        )
    data = shop.tally("doctor", "shop", "--json").data
    assert (data["ok"], data["jobs"]) == (True, {"SUCCEEDED": 1})


def test_a_job_that_is_being_cancelled_is_well(shop):
    job = shop.submit("shop:waits", '"go"')
    with Work(shop) as work:
        wait_until((shop.folder / "go.began").exists, "the job runs")
        assert shop.tally("cancel", job, "shop", "--grace", "1h").code == 0
        done = shop.tally("doctor", "shop", "--json")
        assert (done.code, done.data["problems"], done.data["jobs"]) == (0, [], {"CANCELLING": 1})
        (shop.folder / "go").touch()
        assert work.stop() == 0


def test_a_role_that_fails_is_seen_by_what_it_leaves_undone(shop):
    """The database does not let a worker end what is late; its other roles go on."""
    late = shop.submit("shop:checkout", "1", "--deadline", "1ms", "--delay", "1h")
    refuse = """
        create trigger refuses before update on jobs when new.state = 'CANCELLED'
        begin select raise(abort, 'the disk of the accountant is full'); end
    """
    subprocess.run([sys.executable, "-c", EXECUTE, refuse], cwd=shop.folder, check=True)
    with Work(shop) as work:
        done = shop.tally("submit", "shop:checkout", "2", "--wait")
        assert (done.code, done.out.strip()) == (0, '"4"')
        wait_until(lambda: shop.tally("doctor", "shop").code == 6, "the deadline is over")
        found = shop.tally("doctor", "shop")
        assert "problem: the grace or deadline of 1 job is over and no worker ended it yet" in found.out
        assert '"refused in a sweep"' in found.out
        assert shop.tally("doctor", "shop", "--json").data["overdue_jobs"] == 1
        assert work.stop() == 0
    assert shop.state(late) == "QUEUED"


def test_a_role_that_fails_is_reported_by_its_worker_until_it_goes_well(shop):
    worked(shop, ("shop:checkout", "1"))
    refuse = """
        create trigger refuses before update of pruned_at on jobs
        begin select raise(abort, 'the disk of the accountant is full'); end
    """
    subprocess.run([sys.executable, "-c", EXECUTE, refuse], cwd=shop.folder, check=True)
    with Work(shop, "--keep", "1ms") as work:
        wait_until(lambda: "fails: prune" in shop.tally("workers", "shop").out, "the worker says what fails")
        (worker,) = shop.tally("workers", "shop", "--json").data
        error = worker["failing"].pop("prune")
        assert "the disk of the accountant is full" in error
        assert worker["failing"] == {}
        done = shop.tally("doctor", "shop", "--json")
        host = f"{worker['host']}/{worker['pid']}"
        said = f'"prune" fails in 1 worker ({host}): {error}; see "worker: prune failed" in the log'
        assert (done.code, done.data["problems"]) == (6, [said])
        mend = [sys.executable, "-c", EXECUTE, "drop trigger refuses"]
        subprocess.run(mend, cwd=shop.folder, check=True)
        wait_until(lambda: shop.tally("doctor", "shop").code == 0, "the worker says that it goes well")
        assert shop.tally("workers", "shop", "--json").data[0]["failing"] == {}
        assert work.stop() == 0


def test_a_question_of_a_role_that_fails_here_too_is_a_problem_and_the_others_are_asked(
    tmp_path, monkeypatch
):
    with closing(Tally(f"sqlite:///{tmp_path}/shop.db")) as app:
        store = app.runtime().store

        def fails(_limit: int) -> None:
            raise ValueError("job 7 has a state that is none")

        monkeypatch.setattr(store, "overdue", fails)
        (problem,) = examine(store, 0).problems
    assert problem == (
        '"end what is overdue" fails in every worker, because what it looks for cannot be read: '
        "job 7 has a state that is none; mend or hold the job that is named"
    )


def test_a_held_job_is_shown_with_its_reason(shop):
    job = shop.submit("shop:waits", '"go"')
    with Work(shop, "--lease", "300ms") as work:
        wait_until((shop.folder / "go.began").exists, "the job runs")
        work.process.kill()
        work.finish()
    source = (shop.folder / "shop.py").read_text()
    (shop.folder / "shop.py").write_text(source.replace("    reserve(1)\n    Path", "    quote(1)\n    Path"))
    with Work(shop, "--lease", "300ms") as work:
        work.wait_for("held", job_id=job)
        work.stop()
    done = shop.tally("doctor", "shop")
    assert done.code == 6
    assert f"problem: job {job} is held (MISMATCH): the workflow no longer makes the calls" in done.out
    assert "+ quote#1" in shop.tally("show", job, "shop").out
    assert shop.tally("list", "shop").out.rstrip().endswith("held: MISMATCH")


def test_books_that_were_changed_by_hand_do_not_balance(shop):
    """Triggers refuse such changes; somebody who removes them is found all the same."""
    (job,) = worked(shop, ("shop:checkout", "1"))
    subprocess.run(
        [
            sys.executable,
            "-c",
            TAMPER,
            "update steps set result = '\"99\"' where name = 'quote'",
        ],
        cwd=shop.folder,
        check=True,
    )
    done = shop.tally("doctor", "shop", "--json")
    assert done.code == 6
    (finding,) = done.data["books"]["findings"]
    assert finding == {
        "job_id": job,
        "check": "chain",
        "message": "fact 4 (step quote#1) was changed after it was written",
    }
    assert shop.tally("doctor", "shop", "--jobs", "0").code == 0


def test_a_file_that_others_may_read_is_a_warning(shop):
    shop.submit("shop:checkout", "1")
    shop.database.chmod(0o644)
    done = shop.tally("doctor", "shop")
    assert done.code == 0
    assert "warning: others than the owner may use the file (mode 0644)" in done.out


def test_long_histories_beyond_those_that_are_named_are_counted():
    books = Audit(long_total=3, long_histories=[("j-1", 1_200)])
    seen = Examination(Health({}, (), ()), {}, Undone(), [], StaleReports(0, None), books, [], [], 0)
    assert seen.warnings[0].startswith("job j-1 has 1,200 records")
    assert seen.warnings[1] == "2 more jobs have as many"


class HurriedClock(SystemClock):
    """A clock on which four seconds pass between two looks at it."""

    def __init__(self) -> None:
        self._at = 0.0

    def monotonic(self) -> float:
        self._at += 4.0
        return self._at


def test_books_are_sampled_for_ten_seconds_at_most_and_it_says_of_how_many(tmp_path, monkeypatch):
    app = Tally(f"sqlite:///{tmp_path / 'shop.db'}")

    @app.workflow
    def flow() -> None: ...

    flow.submit_many([()] * 20)
    monkeypatch.setattr("tallystick.cli.commands.books.doctor.SystemClock", HurriedClock)
    with closing(app):
        store = app.runtime().store
        assert examine(store, jobs_max=10_000).books.jobs == 3, "the third one ends after ten seconds"
        assert examine(store, jobs_max=None).books.jobs == 20, "all of them were asked for"
