"""Who has written rings, and an idle worker of another process looks at once; a lost ring harms nobody."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest

from tallystick.clock import SystemClock
from tallystick.store.sqlite.file.write_notifier import WriteNotifier
from tests.patience import wait_until


@pytest.fixture
def bells(tmp_path):
    made = []

    def make(folder=tmp_path):
        made.append(WriteNotifier(folder / "shop.db", SystemClock()))
        return made[-1]

    yield make
    for bell in made:
        bell.close()


def folder_of(tmp_path):
    return tmp_path / "shop.db-bells"


def test_whoever_listens_elsewhere_hears_and_the_one_who_rings_does_not(bells, tmp_path):
    heard, own = threading.Event(), threading.Event()
    listener, ringer = bells(), bells()
    listener.listen(heard.set, "one")
    ringer.listen(own.set, "two")
    ringer.ring()
    assert heard.wait(30)
    assert not own.is_set()


def test_a_listener_that_comes_later_is_found(bells):
    ringer, heard = bells(), [threading.Event(), threading.Event()]
    for name, event in zip("ab", heard, strict=True):
        bells().listen(event.set, name)
        ringer.ring()
        assert event.wait(30)


def test_rings_while_somebody_looks_are_heard_as_one_more(bells):
    ringer, listener = bells(), bells()
    rounds, hold = [], threading.Event()

    def heard():
        rounds.append(1)
        assert hold.wait(30)

    hush = listener.listen(heard, "slow")
    ringer.ring()
    wait_until(lambda: rounds)
    for _ in range(5):
        ringer.ring()
    hold.set()
    wait_until(lambda: len(rounds) == 2)
    hush()
    assert len(rounds) == 2


def test_the_socket_of_one_who_was_killed_is_removed_by_who_rings(bells, tmp_path):
    folder_of(tmp_path).mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as killed:
        killed.bind(str(folder_of(tmp_path) / "dead"))
    bells().ring()
    assert list(folder_of(tmp_path).iterdir()) == []


def test_nothing_is_left_behind_and_nothing_is_made_before_somebody_listens(bells, tmp_path):
    bell = bells()
    bell.ring()
    assert not folder_of(tmp_path).exists()
    hush = bell.listen(lambda: None, "one")
    assert folder_of(tmp_path).stat().st_mode & 0o777 == 0o700
    hush()
    assert not folder_of(tmp_path).exists()


@pytest.mark.parametrize("gone", ["the socket", "the folder", "the database"])
def test_a_listener_is_hushed_although_somebody_removed_what_it_listens_at(bells, tmp_path, gone):
    """A cleaner of stray files must not make a worker deaf to the order to leave."""
    place = tmp_path / "data"
    place.mkdir()
    bell = bells(place)
    hush = bell.listen(lambda: None, "one")
    if gone == "the socket":
        (place / "shop.db-bells" / "one").unlink()
    else:
        shutil.rmtree(place if gone == "the database" else place / "shop.db-bells")
    hushing = threading.Thread(target=hush, daemon=True)
    hushing.start()
    hushing.join(30)
    assert not hushing.is_alive()
    assert not (place / "shop.db-bells").exists()


def test_a_listener_that_was_hushed_can_listen_again(bells):
    listener, ringer = bells(), bells()
    for _ in range(2):
        heard = threading.Event()
        hush = listener.listen(heard.set, "one")
        ringer.ring()
        assert heard.wait(30)
        hush()


def test_a_worker_and_a_server_on_one_store_both_hear_and_leave_nothing_behind(bells, tmp_path):
    listener, ringer = bells(), bells()
    before, heard = threading.active_count(), [threading.Event(), threading.Event()]
    hushes = [listener.listen(event.set, name) for name, event in zip("ab", heard, strict=True)]
    ringer.ring()
    assert all(event.wait(30) for event in heard)
    assert [path.name for path in folder_of(tmp_path).iterdir()] == ["a"]
    hushes[0]()
    heard[1].clear()
    ringer.ring()
    assert heard[1].wait(30)
    hushes[1]()
    assert not folder_of(tmp_path).exists()
    assert threading.active_count() == before


def test_one_who_is_stopped_holds_up_nobody(bells):
    """Its mailbox is full, and a ring never waits."""
    hold, heard = threading.Event(), threading.Event()
    stopped, listener, ringer = bells(), bells(), bells()
    stopped.listen(lambda: hold.wait(60), "stopped")
    for _ in range(2_000):
        ringer.ring()
    listener.listen(heard.set, "one")
    ringer.ring()
    assert heard.wait(30)
    hold.set()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there are no short names for deep folders")
def test_a_deep_folder_has_a_bell_too(bells, tmp_path):
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    heard = threading.Event()
    bells(deep).listen(heard.set, "one")
    bells(deep).ring()
    assert heard.wait(30)


def test_where_there_can_be_no_socket_nobody_listens_and_nobody_complains(bells, tmp_path):
    folder_of(tmp_path).write_text("not a folder")
    heard = threading.Event()
    bell, other = bells(), bells()
    bell.listen(heard.set, "one")
    other.ring()
    assert not heard.is_set()
    assert folder_of(tmp_path).read_text() == "not a folder"


def test_where_there_are_no_descriptors_left_nobody_listens_and_nobody_complains(
    bells, tmp_path, monkeypatch
):
    def refuse():
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "socketpair", refuse)
    bell = bells()
    bell.listen(lambda: None, "one")()
    assert list(folder_of(tmp_path).iterdir()) == []


@pytest.mark.parametrize(("fraction_ns", "looks_again"), [(0, True), (123_456_789, False)])
def test_a_time_of_whole_seconds_is_not_believed_for_longer(bells, tmp_path, fraction_ns, looks_again):
    stamp = (time.time_ns() // 1_000_000_000 - 1) * 1_000_000_000 + fraction_ns
    early, late, ringer = threading.Event(), threading.Event(), bells()
    for name, heard in (("one", early), ("two", late)):
        bells().listen(heard.set, name)
        os.utime(folder_of(tmp_path), ns=(stamp, stamp))
        ringer.ring()
    wait_until(early.is_set)
    if looks_again:
        wait_until(late.is_set)
    assert sorted(ringer._others) == (["one", "two"] if looks_again else ["one"])
