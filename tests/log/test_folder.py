"""A folder lets nobody out, shows no half-written document, and has one writer."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies

from tallystick.errors import BadName, FolderUnsafe, StorageFailed
from tallystick.log.folder import Folder, check_path
from tests.log.faults import FaultyFiles

ESCAPES = [
    "..", ".", "", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "/a", "a\\b", "%2e%2e/x", "%252e%252e",
    "a\0b", "a\nb", ".hidden", "-rf", "a.", "x" * 129, "a/b/c/d/e/f/g/h/i", "ä", "a b", "CON\u202e",
    "..\u2215x", "~root",
]  # fmt: skip


def names_in(path: Path) -> list[str]:
    return sorted(found.name for found in path.iterdir())


@pytest.mark.parametrize("name", ESCAPES)
def test_a_name_that_could_lead_out_is_refused(name):
    """X02. Nothing but plain parts of plain names; the refusal itself is short and printable."""
    with pytest.raises(BadName) as caught:
        check_path("artifact", name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


@given(strategies.text())
def test_whatever_name_passes_stays_inside(name):
    try:
        check_path("artifact", name)
    except BadName:
        return
    assert os.path.normpath(f"/run/{name}") == f"/run/{name}"


def test_links_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "file").symlink_to(outside / "secret")
    (inside / "folder").symlink_to(outside)
    with Folder.open(inside) as folder:
        for name in ("file", "folder/secret"):
            with pytest.raises(FolderUnsafe):
                folder.read(name)
        with pytest.raises(FolderUnsafe):
            folder.open_file("file", os.O_WRONLY | os.O_CREAT)
        with pytest.raises(FolderUnsafe):
            folder.replace("folder/new", b"x")
        folder.replace("file", b"mine")
        assert folder.read("file") == b"mine"
    assert (outside / "secret").read_text() == "secret"
    assert names_in(outside) == ["secret"]


@pytest.mark.timeout(10)
def test_a_pipe_or_a_folder_in_place_of_a_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "sub").mkdir()
    with Folder.open(tmp_path) as folder:
        with pytest.raises(FolderUnsafe):
            folder.read("pipe")
        with pytest.raises(FolderUnsafe):
            folder.read("sub")


def test_files_and_folders_belong_to_their_owner_alone_whatever_the_umask(tmp_path):
    """X10."""
    before = os.umask(0)
    try:
        with Folder.open(tmp_path / "a" / "b", create=True) as folder:
            folder.replace("sub/file", b"x")
            with folder.locked(".lock") as held:
                assert held
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "a").rglob("*")}
    assert modes == {"b": 0o700, "sub": 0o700, "file": 0o600, ".lock": 0o600}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_a_replacement_that_fails_leaves_the_old_document_and_no_litter(tmp_path, call, number):
    with Folder.open(tmp_path) as folder:
        folder.replace("document", b"old")
    files = FaultyFiles(call, 1, number)
    with Folder.open(tmp_path, files=files) as folder:
        with pytest.raises(StorageFailed):
            folder.replace("document", b"new")
        assert files.fired
        assert folder.read("document") == b"old"
        assert names_in(tmp_path) == ["document"]
        folder.replace("document", b"new")
        assert folder.read("document") == b"new"


def test_a_temporary_file_left_by_a_crash_is_no_obstacle(tmp_path):
    (tmp_path / ".document.new").write_bytes(b"half")
    with Folder.open(tmp_path) as folder:
        folder.replace("document", b"new")
    assert names_in(tmp_path) == ["document"]


def test_the_lock_is_for_one_and_ends_with_its_process(tmp_path):
    program = "import sys,os; from tallystick.log.folder import Folder\n"
    program += "with Folder.open(sys.argv[1]).locked('.lock') as held:\n"
    program += "    print(held, flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout.readline() == "True\n"
    with Folder.open(tmp_path) as folder:
        with folder.locked(".lock") as held:
            assert not held
        other.kill()
        other.wait()
        with folder.locked(".lock") as held, folder.locked(".lock") as again:
            assert held
            assert not again
        with folder.locked(".lock") as held:
            assert held
    other.stdin.close()
    other.stdout.close()


def test_no_descriptor_is_left_open(tmp_path):
    """O9."""
    before = len(names_in(Path("/proc/self/fd")))
    with Folder.open(tmp_path) as folder:
        folder.replace("a/b/c", b"x")
        folder.read("a/b/c")
        assert not folder.exists("a/nothing/c")
        with pytest.raises(StorageFailed):
            folder.read("a/nothing")
    assert len(names_in(Path("/proc/self/fd"))) == before
