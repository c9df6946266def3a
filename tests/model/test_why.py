"""Every word has its sentence, and the worlds come to all of them; that each is true: `test_search`."""

from __future__ import annotations

import pytest

from tallystick.app.asking.remote_why import remote_sentence
from tallystick.app.asking.standing import Stand
from tallystick.app.asking.why import SENTENCES
from tests.model.configurations import SMALL, model_of
from tests.model.protocol_rules import load
from tests.model.protocols import ProtocolWorld
from tests.model.protocols import Shape as ProtocolShape
from tests.model.search import explore
from tests.model.sentences import TRUE, words_of

# Small worlds that have all the words among them that any of the small worlds has.
TELLING = ("a deadline", "refused", "chain", "a child is committed and not done")


def test_every_word_has_a_claim_and_a_sentence():
    assert set(TRUE) == set(Stand) - {Stand.REMOTE, Stand.NOWHERE}
    assert set(SENTENCES) == set(Stand) - {Stand.REMOTE, Stand.SUCCEEDED, Stand.FAILED, Stand.CANCELLED}


def test_the_worlds_come_to_every_word():
    """But for two: no world submits a job for later, and in none a job fails and is tried again."""
    seen = set()
    for name in TELLING:
        world = model_of(SMALL[name])
        explore(world)
        seen |= words_of(world)
    assert set(TRUE) - seen == {Stand.NOT_DUE, Stand.BACKING_OFF}


@pytest.mark.parametrize(
    "shape", [ProtocolShape(2, pull=True, again=0), ProtocolShape(1, again=0)], ids=["pulled", "pushed"]
)
def test_every_state_of_a_protocol_job_has_a_sentence(shape):
    world = ProtocolWorld(load(), shape)
    explore(world)
    told = {}
    for picture in world.pictures:
        if picture.job.completed_at is None:
            text, until = remote_sentence(picture, lambda at: "?" if at is None else "T")
            step = picture.active
            assert text
            if step is not None and step.state != "PENDING":
                assert step.step_id in text
                assert until == step.lease_expires_at
                told.setdefault(step.state, text)
    assert {"DISPATCHING", "AWAITING_ACK", "IN_PROGRESS", "FAILED_RETRY"} <= set(told)
