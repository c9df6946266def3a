"""The project names no machine and no download server: it installs anywhere, from what the user trusts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, offences, project_files

MACHINE_PATH = re.compile(r"(?<![\w.])(/work|/root|/home|/opt|/tmp|/Users|[A-Z]:\\Users)[/\\]\w")
DOWNLOAD_HOST = re.compile(
    r"\bpypi\.org|pythonhosted|registry\.npmjs|npmmirror|\bghcr\.io|\bdocker\.io|/releases/download/|"
    r"raw\.githubusercontent|--(extra-)?index-url[ =]http|--find-links",
    re.IGNORECASE,
)
LOCKED = re.compile(r"[a-z0-9-]+(\[[a-z,-]+\])?==[\w.!+]+( ; [\w\s.='\"<>!()]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def test_no_file_names_a_path_of_some_machine_or_a_download_server():
    ours = [path for path in project_files() if path != Path(__file__) and path.name != "requirements.lock"]
    assert not [
        line
        for path in ours
        for line in offences(path, addresses(path.read_bytes().decode("utf-8", "ignore")))
    ]


@pytest.mark.parametrize("name", ["requirements.lock", "scripts/uv-pin.txt"])
def test_a_lock_file_holds_versions_and_hashes_and_nothing_else(name: str):
    lines = (ROOT / name).read_text("utf-8").splitlines()
    assert not [line for line in lines if not (LOCKED.fullmatch(line) or HASH.fullmatch(line))]
    for line, following in pairwise(lines):
        assert HASH.fullmatch(following) or not LOCKED.fullmatch(line), f"{line} has no hash"


@pytest.mark.parametrize(
    "line",
    ["see /home/me/shop.db", "cd /work/x", "curl https://files.pythonhosted.org/x", "--find-links wheels"],
)
def test_an_address_is_found(line: str):
    assert list(addresses(line))


def addresses(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if MACHINE_PATH.search(line) or DOWNLOAD_HOST.search(line):
            yield number, line.strip()
