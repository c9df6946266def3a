"""The hash chain of a job: the hashes that are in databases today are the hashes of tomorrow."""

from __future__ import annotations

from tallystick.core.chain import Chain

FIRST = "38e749f292edca5831886ac27179f067fd3b3c6499795abfd078a872a64c32d5"
SECOND = "6544c774aac7d002de316391e14e8bf2150a3a36095c290f7ab3170adcff862c"


def test_the_facts_of_a_job_have_the_hashes_that_databases_hold():
    """Both hashes were computed by an earlier version."""
    chain = Chain("job-1")
    first = chain.extend("SUBMITTED", 1_700_000_000_000, 0, '{"a":1}')
    second = chain.extend("STEP", 1_700_000_000_001, 1, "quote\x001\0SUCCEEDED\x001\x0042\0\0")
    assert (first.prev_hash, first.event_hash.hex()) == (b"", FIRST)
    assert (second.prev_hash, second.event_hash.hex()) == (first.event_hash, SECOND)
