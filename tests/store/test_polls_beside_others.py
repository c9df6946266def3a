"""Remote workers of one tenant ask for work: what waits for another tenant is not read for them."""

from __future__ import annotations

import pytest

from tallystick import RemoteStep
from tests.store.test_outbox_at_size import COMMAND, postgres_books, sqlite_books

MANY = 20_000
NUMBERS = {
    "sqlite": "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n "
    f"WHERE n < {MANY}) SELECT n FROM n",
    "postgres": f"SELECT generate_series(1, {MANY}) AS n",
}


# The backlog of another tenant, older than everything else.
BACKLOG = """
INSERT INTO outbox (outbox_id, tenant_id, job_id, step_id, attempt_no, lease_id, state, topic, payload,
                    next_try_at, created_at, updated_at, service)
SELECT 'past-' || n || ':ocr:1', 'other', 'past-' || n, 'ocr', 1, 'l', 'PENDING', 't', '{{}}', n, 1, 1, 'ocr'
  FROM ({numbers}) AS numbers
"""


@pytest.mark.parametrize("books", [sqlite_books, postgres_books], ids=["sqlite", "postgres"])
def test_a_poll_reads_nothing_of_what_waits_for_another_tenant(books, request):
    kind = "sqlite" if books is sqlite_books else "postgres"
    with books(request) as (tally, run, plan):
        tally.protocol("scan", request_types=["scan"], steps=[RemoteStep("ocr", service="ocr")])
        run(BACKLOG.format(numbers=NUMBERS[kind]))
        run("ANALYZE")
        jobs = [tally.command({**COMMAND, "payload": {"n": n}}).id for n in range(3)]
        store = tally.runtime().store
        assert [row.job_id for row in store.asked_directives(["ocr"], "acme", 8)] == jobs
        assert store.asked_directives(["ocr"], "third", 8) == []
        assert {row.tenant_id for row in store.asked_directives(["ocr"], None, 8)} == {"other"}
        own, all_of = plan("asked_of_tenant", ("acme", "ocr", 8)), plan("asked_directives", ("ocr", 8))
        assert "outbox_of_tenant" in own, own
        assert "outbox_of_service" in all_of, all_of
        for shown in (own, all_of):
            # Nothing is sorted, and no row is read that is not given.
            assert not any(word in shown for word in ("Sort", "TEMP B-TREE", "Rows Removed", "Seq Scan")), (
                shown
            )
