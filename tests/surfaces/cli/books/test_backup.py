"""`tally backup` and what becomes of a copy: nothing in it goes on before a person has said so."""

from __future__ import annotations

import json
import signal
import threading

import apsw
import pytest

from tests.patience import wait_until
from tests.surfaces.commands import Shop, Work, started

SCHEDULED = """
from tallystick import Tally

app = Tally("sqlite:///shop.db")

@app.workflow
def report(name: str) -> str:
    return name
"""


@pytest.fixture
def shop(tmp_path) -> Shop:
    return Shop(tmp_path)


def copied(shop: Shop, folder) -> Shop:
    """Back the shop up into another folder, in the place of its own database."""
    folder.mkdir()
    other = Shop(folder)
    (folder / "shop.py").write_text((shop.folder / "shop.py").read_text())
    made = shop.tally("backup", str(other.database), "shop")
    assert made.code == 0, made.err
    return other


def test_unfinished_jobs_of_a_copy_are_held_until_a_person_resumes_them(shop, tmp_path):
    done = shop.submit("shop:letter", '"Ada"')
    with Work(shop, "--queues", "mail"):
        wait_until(lambda: shop.state(done) == "SUCCEEDED", "the letter is written")
    queued = shop.submit("shop:checkout", "1")
    other = copied(shop, tmp_path / "restored")
    with Work(other, "--verbose") as work:
        said = other.tally("show", queued, "shop", "--json").data
        assert (said["state"], said["hold"]) == ("QUEUED", "RESTORED")
        assert other.state(done) == "SUCCEEDED"
        resumed = other.tally("resume", "--restored", "shop")
        assert (resumed.code, resumed.out) == (0, "1 job and 0 schedules go on\n")
        work.wait_for("done", job_id=queued)
        assert work.stop() == 0
    assert shop.state(queued) == "QUEUED", "the original is as it was"
    assert other.tally("verify", "shop").code == 0


def test_a_copy_is_whole_while_workers_write(shop, tmp_path):
    with Work(shop):
        stop = threading.Event()

        def submit_on() -> None:
            while not stop.is_set():
                shop.submit("shop:checkout", "2")

        writer = threading.Thread(target=submit_on)
        writer.start()
        try:
            copies = [copied(shop, tmp_path / f"copy{number}") for number in range(3)]
        finally:
            stop.set()
            writer.join()
    for copy in copies:
        assert copy.tally("verify", "shop").code == 0


def test_the_schedules_of_a_copy_are_paused_and_go_on_with_its_jobs(shop, tmp_path):
    (shop.folder / "shop.py").write_text(SCHEDULED)
    for name in ("nightly", "weekly"):
        shop.tally("schedules", "add", "shop:report", name, "0 3 * * *", "name=ada")
    shop.tally("schedules", "pause", "weekly", "shop", "--by", "ann")
    other = copied(shop, tmp_path / "restored")
    listed = json.loads(other.tally("schedules", "list", "shop", "--json").out)
    assert {each["id"]: each["paused_by"] for each in listed} == {
        "nightly": "restored from a copy",
        "weekly": "ann",
    }
    assert other.tally("resume", "--restored", "shop").out == "0 jobs and 1 schedule go on\n"
    listed = json.loads(other.tally("schedules", "list", "shop", "--json").out)
    assert {each["id"]: each["paused_by"] for each in listed} == {
        "nightly": None,
        "weekly": "ann",
    }


def test_a_copy_by_other_means_is_held_when_a_person_says_that_it_is_one(shop):
    job_id = shop.submit("shop:checkout", "1")
    (shop.folder / "shop.py").write_text(SCHEDULED)
    shop.tally("schedules", "add", "shop:report", "nightly", "0 3 * * *", "name=ada")
    said = shop.tally("restored", "shop")
    told = "1 job held and 1 schedule paused; look, then tally resume --restored\n"
    assert (said.code, said.out) == (0, told)
    assert shop.tally("restored", "shop", "--json").data == {"held": 0, "schedules_paused": 0}
    assert shop.tally("show", job_id, "shop", "--json").data["hold"] == "RESTORED"


def test_a_file_that_is_there_stays_as_it_is(shop, tmp_path):
    shop.submit("shop:checkout", "1")
    (tmp_path / "mine.txt").write_text("mine")
    said = shop.tally("backup", str(tmp_path / "mine.txt"), "shop")
    assert said.code == 4
    assert said.err.endswith("already; name another one\n")
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("point", ["backup.copied", "backup.after"])
def test_a_backup_that_is_killed_leaves_a_whole_copy_or_none(shop, tmp_path, point):
    job_id = shop.submit("shop:checkout", "1")
    target = tmp_path / "copy.db"
    process = started(("backup", str(target), "shop"), shop.folder, {"TALLYSTICK_CRASH_AT": point})
    process.communicate("", 45)
    assert process.returncode == -signal.SIGKILL
    assert target.exists() is (point == "backup.after")
    if target.exists():
        said = shop.tally("show", job_id, "--url", f"sqlite:///{target}", "--json").data
        assert said["hold"] == "RESTORED"


def test_a_copy_that_was_killed_while_it_was_opened_is_still_a_copy(shop, tmp_path):
    """The mark goes last: until then whoever opens the copy holds what is not held yet."""
    jobs = [shop.submit("shop:checkout", str(number)) for number in range(3)]
    target = tmp_path / "copy.db"
    shop.tally("backup", str(target), "shop")
    url = f"sqlite:///{target}"
    process = started(("list", "--url", url), shop.folder, {"TALLYSTICK_CRASH_AT": "sqlite.hold.before"})
    process.communicate("", 45)
    assert process.returncode == -signal.SIGKILL
    assert apsw.Connection(str(target)).execute("select count(*) from jobs where hold is null").get == 3
    holds = {shop.tally("show", job_id, "--url", url, "--json").data["hold"] for job_id in jobs}
    assert holds == {"RESTORED"}
    assert target.stat().st_mode & 0o777 == 0o600
