"""The list of runs: what else lies in the folder is passed over, and no run hides another."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tallystick.errors import StorageFailed
from tallystick.log.files import FileSystem
from tallystick.runs.log.inspection import load, states
from tallystick.runs.orchestrator.start import start_or_resume
from tallystick.runs.toy import toy_publishing
from tests.runs.worlds import around, fast_folder


@pytest.fixture(scope="module")
def finished():
    with fast_folder() as folder:
        start_or_resume(toy_publishing(1), folder, "middle", around=around())
        yield folder / "middle"


@pytest.fixture
def root(tmp_path, finished):
    """A folder with one run, so that what comes before and after it in the list can be in its way."""
    (tmp_path / "middle").mkdir()
    for name in ("events.ndjson", "snapshot.json"):
        (tmp_path / "middle" / name).write_bytes((finished / name).read_bytes())
    return tmp_path


def another(root, name):
    (root / name).mkdir()
    (root / name / "events.ndjson").touch()
    return root / name


def test_files_and_folders_that_are_no_runs_are_passed_over(root):
    (root / "README.md").write_text("hi")
    (root / "zeros").mkdir()
    (root / "nowhere").symlink_to("missing")
    (root / "a-link-to-a-file").symlink_to("README.md")
    os.mkfifo(root / "pipe")
    assert states(root) == [("middle", "DONE")]


def test_a_run_behind_a_link_is_listed_and_not_followed(root):
    (root / "alias").symlink_to("middle")
    assert states(root) == [("alias", "unknown"), ("middle", "DONE")]


def test_a_run_without_a_believable_snapshot_is_unknown(root):
    another(root, "a-new-one")
    (another(root, "a-torn-one") / "snapshot.json").write_bytes(b"{")
    assert states(root) == [("a-new-one", "unknown"), ("a-torn-one", "unknown"), ("middle", "DONE")]


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "link"])
def test_a_snapshot_that_is_no_regular_file_is_unknown(root, kind, monkeypatch):
    monkeypatch.chdir(another(root, "a"))
    if kind == "folder":
        Path("snapshot.json").mkdir()
    elif kind == "pipe":
        os.mkfifo("snapshot.json")
    elif kind == "link":
        Path("snapshot.json").symlink_to("../middle/snapshot.json")
    else:
        with socket.socket(socket.AF_UNIX) as planted:
            planted.bind("snapshot.json")
    assert states(root) == [("a", "unknown"), ("middle", "DONE")]


@pytest.mark.parametrize(("locked", "other"), [("a", "DONE"), ("snapshot.json", "unknown")])
def test_a_run_that_may_not_be_read_is_unknown(root, monkeypatch, locked, other):
    (another(root, "a") / "snapshot.json").touch()
    opened = FileSystem.open

    def refuse(self, name, flags, **options):
        if name == locked:
            raise PermissionError(13, "Permission denied", name)
        return opened(self, name, flags, **options)

    monkeypatch.setattr(FileSystem, "open", refuse)
    assert states(root) == [("a", "unknown"), ("middle", other)]


def test_a_folder_in_which_nothing_can_be_looked_up_is_unknown_and_a_clear_error(root, monkeypatch):
    """It may be listed and not entered: `r--` without `x`."""
    another(root, "a")
    looked = os.stat

    def refuse(name, **options):
        if name == "events.ndjson":
            raise PermissionError(13, "Permission denied", name)
        return looked(name, **options)

    monkeypatch.setattr(os, "stat", refuse)
    assert states(root) == [("a", "unknown"), ("middle", "unknown")]
    with pytest.raises(StorageFailed, match="Permission denied"):
        load(root, "a")
