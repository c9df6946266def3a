"""Every word has its sentence, and the worlds come to all of them; that each is true: `test_search`."""

from __future__ import annotations

import pytest

from tallystick.app.asking.remote_why import remote_sentence
from tallystick.app.asking.standing import Stand
from tallystick.app.asking.why import SENTENCES
from tests.model.configurations import SMALL, model_of
from tests.model.effects import Shape
from tests.model.protocol_rules import load
from tests.model.protocols import ProtocolWorld
from tests.model.protocols import Shape as ProtocolShape
from tests.model.search import explore
from tests.model.sentences import TRUE, SeenEffects, swept, words_of

# Small worlds that have all the words among them that any of the small worlds has.
TELLING = ("a deadline", "refused", "chain", "a child is committed and not done")


def test_every_word_has_a_claim_and_a_sentence():
    assert set(TRUE) == set(Stand) - {Stand.REMOTE, Stand.NOWHERE}
    assert set(SENTENCES) == set(Stand) - {Stand.REMOTE, Stand.SUCCEEDED, Stand.FAILED, Stand.CANCELLED}


def test_the_worlds_come_to_every_word():
    """But for two: no world submits a job for later, and in none a job fails and is tried again."""
    seen = set()
    for world in (*(model_of(SMALL[name]) for name in TELLING), SeenEffects(Shape(cancels=1, expiries=0))):
        report = explore(world)
        assert not report.broken, report
        seen |= words_of(world)
    assert set(TRUE) - seen == {Stand.NOT_DUE, Stand.BACKING_OFF}


@pytest.mark.parametrize(
    "shape",
    [Shape(cancels=1), Shape(cancels=1, forces=1, expiries=0)],
    ids=["cancelled", "ended by force"],
)
def test_a_job_that_was_asked_to_end_is_ended_by_a_sweep_only_if_no_effect_is_in_doubt(shape):
    """Each word is true of every state, so none says that a sweep ends what waits for a probe."""
    world = SeenEffects(shape)
    report = explore(world)
    assert not report.broken, report
    assert {Stand.ENDING, Stand.ENDING_IN_DOUBT, Stand.CANCELLED} <= words_of(world)
    # What the sweep of a worker does then, by the rules.
    assert {swept(book) for book in world.books if TRUE[Stand.ENDING](book)} == {"CANCELLED"}
    assert {swept(book) for book in world.books if TRUE[Stand.ENDING_IN_DOUBT](book)} == {"CANCELLING"}


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
