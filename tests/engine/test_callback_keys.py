"""Where the secrets of callbacks come from."""

from __future__ import annotations

import stat
from pathlib import Path
from threading import Barrier, Thread

import pytest

from tallystick.engine.callback_keys import VARIABLE, callback_keys
from tallystick.errors import BadCallbackKeys
from tallystick.ids import SystemIds

SECRET = "s" * 32


def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'books.db'}"


def test_the_environment_wins_and_no_file_is_made(tmp_path: Path):
    keys = callback_keys(url(tmp_path), SystemIds(), {VARIABLE: f"a:{SECRET}"})
    assert [key.kid for key in keys.keys] == ["a"]
    assert not list(tmp_path.iterdir())


def test_keys_beside_a_file_are_made_once_for_this_user_alone(tmp_path: Path):
    first = callback_keys(url(tmp_path), SystemIds(), {})
    assert callback_keys(url(tmp_path), SystemIds(), {}) == first
    (file,) = tmp_path.iterdir()
    assert file.name == "books.db-callback-keys"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_processes_that_begin_together_get_the_same_keys(tmp_path: Path):
    found, together = [], Barrier(16)

    def begin() -> None:
        together.wait()
        found.append(callback_keys(url(tmp_path), SystemIds(), {}))

    threads = [Thread(target=begin) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert len(set(found)) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_others_may_open_is_refused(tmp_path: Path):
    callback_keys(url(tmp_path), SystemIds(), {})
    (file,) = tmp_path.iterdir()
    file.chmod(0o640)
    with pytest.raises(BadCallbackKeys, match="chmod 600"):
        callback_keys(url(tmp_path), SystemIds(), {})


def test_a_link_is_not_followed(tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(f"a:{SECRET}\n")
    elsewhere.chmod(0o600)
    (tmp_path / "books.db-callback-keys").symlink_to(elsewhere)
    with pytest.raises(BadCallbackKeys):
        callback_keys(url(tmp_path), SystemIds(), {})


def test_a_server_needs_keys_from_the_environment(tmp_path: Path):
    with pytest.raises(BadCallbackKeys, match=VARIABLE):
        callback_keys("postgresql://db/books", SystemIds(), {})


def test_who_only_reads_makes_no_keys(tmp_path: Path):
    with pytest.raises(BadCallbackKeys):
        callback_keys(url(tmp_path), SystemIds(), {}, create=False)
    assert not list(tmp_path.iterdir())
