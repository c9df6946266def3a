"""What a fingerprint hashes never changes: what was written once verifies for ever.

A test that fails here asks for a new form, beside the one that is in people's files.
"""

from __future__ import annotations

import pytest

from tallystick.core.audit.fingerprints import (
    birth_text,
    birth_texts,
    births,
    of_birth,
    of_dropped,
    of_effect,
    of_end,
    of_group,
    of_intent,
)
from tallystick.core.effects.rows import EffectRow
from tallystick.core.pictures import Activity
from tallystick.store.api import NewJob

JOB = NewJob(
    job_id="j1",
    payload="[1]",
    ready_at=1_500,
    deadline_at=9_000,
    created_at=1_000,
    tenant_id="acme",
    kind="workflow",
    handler="shop",
    version="2",
    queue="mail",
    priority=3,
    options="{}",
    request_type="scan",
    input_ref="in",
    output_ref="out",
    schema_version="1",
    idempotency_key="k",
    idempotency_hash="h",
    canon_version=1,
    correlation_id="c",
    traceparent="t",
    tags='["a"]',
    parent_job_id="j0",
    detached=1,
    hooks='["done"]',
    limit_key="north",
)
EFFECT = EffectRow(
    exec_id="x1",
    tenant_id="acme",
    effect="charge",
    key="charge:1",
    args_hash="h",
    job_id="j1",
    unit="0/charge#1",
    attempt=1,
    state="DONE",
    phase="OVER",
    outcome="HAPPENED",
    arguments="[1]",
    result="7",
    error=None,
    options="{}",
    lease_id="l1",
    calls=1,
    probes=0,
    due_at=None,
    doubt=None,
    called_at=1_000,
    created_at=900,
    ended_at=1_100,
    ended_by=None,
    rev=3,
    kept=0,
)
WAIT = Activity("j1", 0, "go", 1, "wait", "OPEN", 100, 1, 2)
GROUP = Activity("j1", 0, "group", 1, "group", "OPEN", 100, 1, 2, 3, 2, 1, "enough")
REMOTE = Activity("j1", 0, "pick", 1, "remote", "AWAITING_ACK", 100, 1, 2)
# By the clock of the submitting process, and in the hash of every fact.
NOT_OF_A_BIRTH = {"job_id", "ready_at"}


def said(born):
    return f'{{"job":"QUEUED","born":"{born}","in":500}}'


def test_births_have_the_fingerprints_that_they_always_had():
    assert of_birth(JOB) == "1:721c0940694bf01c8343dfdf1e5df9b5b1351706324f129847621cee91cf355f"
    assert of_birth(JOB, "0/group#1") == "1:11457d931d8735cbc6dd1906dc7d7ef9e1f22ebb2383ff134b36ddaeb5fbd038"
    assert (
        of_birth(JOB._replace(limit_key=None))
        == "1:8d2e590ce82d1ad416f3c82308a0e807a46eb23cd5d2d74175a059fcbe829cf3"
    )
    assert birth_text(JOB) == said(of_birth(JOB))


def test_every_column_of_a_birth_is_in_its_fingerprint():
    for name, value in JOB._asdict().items():
        changed = JOB._replace(**{name: value + 1 if isinstance(value, int) else f"{value}x"})
        assert (of_birth(changed) == of_birth(JOB)) == (name in NOT_OF_A_BIRTH), name


def test_jobs_that_are_born_together_have_the_fingerprints_of_jobs_that_are_born_alone():
    other = JOB._replace(payload="[2]", created_at=2_000, deadline_at=10_000, ready_at=2_500)
    later = other._replace(deadline_at=10_001)
    alone = [said(of_birth(job, "0/g#1")) for job in (JOB, other, later)]
    assert list(births([JOB, other, later], "0/g#1")) == alone
    assert birth_texts(JOB, ["[1]", "[2]"]) == [birth_text(JOB), birth_text(other)]


def test_ends_groups_and_intents_have_the_fingerprints_that_they_always_had():
    assert of_end("7") == "1:621f39eeea1e65edc6f635a635e9bb8a465f351d9871251ebabe5157ff23732d"
    assert (
        of_end(None, "{}", "STEP_FAILED", "it failed")
        == "1:c579cf2fe719b7d2cc2ada7e9d53134d878dc1bc65ea2307c241ea37a2d89df1"
    )
    assert of_group(2, "enough") == "1:9afdf04cd52b11e83e654bce2aa9b6e311d6575fa527a58f9efd2edf65639f92"
    assert of_intent("[1]", "{}") == "1:4b6f694b28802c6d4fd0e38c7ed17f237900d622b3c4ee61a7fd07301912becf"


def test_what_is_dropped_has_the_fingerprint_that_it_always_had_whatever_its_digits_and_order():
    dropped = of_dropped([WAIT, GROUP, REMOTE], {REMOTE.place: "1:ab"})
    assert dropped == "1:0f2dbbe3748a66d696b9ab3bc1be6c25c119a3c2ac236f2f83ce08bbfcf4d2fa"
    assert of_dropped([REMOTE, WAIT._replace(ledger=7, rev=9), GROUP], {REMOTE.place: "1:ab"}) == dropped
    for change in ({"attempt": 3}, {"kind": "sleep"}, {"name": "stop"}):
        assert of_dropped([WAIT._replace(**change), GROUP, REMOTE], {REMOTE.place: "1:ab"}) != dropped
    assert of_dropped([WAIT, GROUP._replace(failed=2), REMOTE], {REMOTE.place: "1:ab"}) != dropped
    assert of_dropped([WAIT, GROUP, REMOTE], {REMOTE.place: "1:cd"}) != dropped


def test_an_effect_has_the_fingerprint_that_it_always_had():
    assert of_effect(EFFECT) == "1:89d172bb8c0910446cdc7e95bbc44ee41fb36bd6894dc549565e7ac327806cec"


@pytest.mark.parametrize("name", EffectRow._fields)
def test_every_column_of_an_effect_but_its_count_of_writes_is_in_its_fingerprint(name):
    value = getattr(EFFECT, name)
    changed = EFFECT._replace(**{name: value + 1 if isinstance(value, int) else f"{value}x"})
    assert (of_effect(changed) == of_effect(EFFECT)) == (name == "rev")
