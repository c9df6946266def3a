"""A seal finds what chains cannot: a history that was written anew, and jobs that are gone without a line."""

from __future__ import annotations

import json

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tallystick import Tally, again, wait
from tallystick.engine.audit.sealing import compare, seal
from tallystick.engine.audit.seals import Seal, Tree
from tallystick.engine.audit.signing import is_signed_by, signed
from tallystick.engine.audit.whole_store import verify
from tallystick.errors import BadInput
from tallystick.testing.stepping import SteppedWorker
from tests.engine.audit.forging import Forger

HOUR = 3_600_000


@pytest.fixture
def timed(url, clock):
    tally = Tally(url, clock=clock, keep_turns=1)
    yield tally
    tally.close()


@pytest.fixture
def hand(timed, clock):
    return SteppedWorker(timed, clock)


@pytest.fixture
def flows(timed):
    @timed.step
    def work(n: int) -> int:
        return n

    @timed.workflow
    def plain(n: int) -> int:
        return work(n)

    @timed.workflow
    def waits() -> None:
        wait("go", bool)
        work(1)

    @timed.workflow
    def loop(n: int = 0) -> None:
        work(n)
        wait("turn", int)
        again(n + 1)

    return plain, waits, loop


@pytest.fixture
def store(timed):
    return timed.runtime().store


def lived(flows, hand, clock):
    """Jobs that have ended long ago, one that waits, one that loops, and young ones."""
    plain, waits, loop = flows
    old = [plain.submit(n) for n in range(5)]
    hand.work_all()
    clock.advance(HOUR)
    going = [waits.submit(), loop.submit()]
    young = plain.submit(9)
    hand.work_all()
    return old, going, young


def found(store, sealed):
    return [finding.message for finding in compare(store, sealed)]


def test_a_store_that_only_goes_on_is_as_it_was_sealed(timed, flows, hand, clock, store):
    old, (waiting, loop), _young = lived(flows, hand, clock)
    sealed = seal(store, 0)
    assert (sealed.jobs, len(sealed.listed)) == (5, 3)
    assert found(store, sealed) == []
    waiting.send("go", True)
    for n in range(5):
        loop.send("turn", n)
        hand.work_all()
    assert loop.history()[0].n > 1, "it was trimmed beyond what was sealed"
    for n in range(3):
        flows[0].submit(n)
    hand.work_all()
    assert found(store, sealed) == []
    clock.advance(HOUR)
    assert timed.prune(older_than="90m") == len(old)
    assert found(store, sealed) == [], "retention names what it removes"
    assert verify(store, sealed=sealed).findings == []


def test_the_record_goes_through_its_file(flows, hand, clock, store):
    lived(flows, hand, clock)
    sealed = seal(store, 7)
    assert msgspec.json.decode(msgspec.json.encode(sealed), type=Seal) == sealed


def test_a_history_that_was_written_anew_is_found_by_the_seal_alone(flows, hand, clock, store, url):
    old, (waiting, _loop), _young = lived(flows, hand, clock)
    sealed = seal(store, 0)
    forger = Forger(url)
    for job in (old[2], waiting):
        forger.rewrite(job.id)
    assert verify(store).findings == [], "the lie is consistent"
    messages = found(store, sealed)
    assert len(messages) == 2
    assert "is not the one that was sealed" in messages[0]
    assert "the history of a job that had ended is not the one that was sealed" in messages[1]
    forger.close()


@pytest.mark.parametrize("which", ["ended", "going on"])
def test_a_job_that_was_taken_away_whole_is_found_by_the_seal_alone(flows, hand, clock, store, url, which):
    old, (waiting, _loop), _young = lived(flows, hand, clock)
    sealed = seal(store, 0)
    forger = Forger(url)
    forger.remove((old[1] if which == "ended" else waiting).id)
    assert verify(store).findings == [], "nothing is left that would miss it"
    (message,) = found(store, sealed)
    assert message in ("5 jobs had ended, and 4 of them can be accounted for", f"{message}")
    assert ("accounted for" in message) == (which == "ended")
    assert [finding.check for finding in verify(store, sealed=sealed).findings] == ["seal"]
    forger.close()


def test_a_log_of_removals_that_was_cut_is_found_by_the_seal(timed, flows, hand, clock, store, url):
    lived(flows, hand, clock)
    clock.advance(HOUR)
    assert timed.prune(older_than="90m") == 5
    sealed = seal(store, 0)
    forger = Forger(url)
    forger.run("delete from pruned where seq = (select max(seq) from pruned)")
    assert "is not in the log as it was sealed" in found(store, sealed)[0]
    forger.close()


def test_a_signature_is_over_everything_and_of_one_key(tmp_path, flows, hand, clock, store):
    lived(flows, hand, clock)
    paths = {}
    for who in ("mine", "other"):
        key = Ed25519PrivateKey.generate()
        paths[who] = (tmp_path / f"{who}.pem", tmp_path / f"{who}-public.pem")
        paths[who][0].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        paths[who][1].write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
    plain = seal(store, 0)
    sealed = signed(plain, paths["mine"][0])
    assert is_signed_by(sealed, paths["mine"][1])
    assert not is_signed_by(sealed, paths["other"][1])
    assert not is_signed_by(plain, paths["mine"][1])
    for field, value in (("jobs", 4), ("at", 1), ("root", "00"), ("listed", ()), ("removals", 9)):
        assert not is_signed_by(msgspec.structs.replace(sealed, **{field: value}), paths["mine"][1])
    with pytest.raises(BadInput, match="holds no private key"):
        signed(plain, paths["mine"][1])


def test_a_seal_of_another_form_is_refused(store):
    with pytest.raises(BadInput, match="a seal of form 2"):
        list(compare(store, Seal(2, 0, 0, 0, "", 0, "")))


def test_the_tree_tells_every_order_and_number_of_leaves_apart():
    roots = set()
    for count in range(1, 40):
        for order in (list(range(count)), list(reversed(range(count)))):
            tree = Tree()
            for leaf in order:
                tree.add(leaf.to_bytes(32))
            roots.add(tree.root())
    # One leaf alone is the same in both orders.
    assert len(roots) == 2 * 39 - 1
    assert json.dumps(Tree().root().hex()) == '""'


def test_a_seal_is_not_compared_with_one_job(timed, flows):
    job = flows[0].submit(1)
    store = timed.runtime().store
    with pytest.raises(BadInput, match="the whole store"):
        verify(store, job_id=job.id, sealed=seal(store, 0))
