"""How directives are routed: by the command, the tenant or all of them; kept for all attempts of a job."""

from __future__ import annotations

from contextlib import closing
from zlib import crc32

import pytest

from tallystick import RemoteStep, Tally
from tallystick.errors import BadCommand, BadInput, BadName, DuplicateHandler, TakesNoSignals
from tallystick.testing.remote_hand import RemoteHand, expire_remote
from tallystick.testing.stepping import check_books

MINUTE = 60_000
COMMAND = {
    "tenant_id": "acme",
    "request_type": "scan",
    "input_ref": "in",
    "output_ref": "out",
    "payload": {},
    "schema_version": "v1",
}


def declare(app: Tally, **options: object) -> Tally:
    app.protocol("scan", request_types=["scan"], steps=[RemoteStep("ocr", service="ocr")], **options)
    return app


def submitted(app: Tally, **members: object):
    return app.command({**COMMAND, **members})


def lane(key: str, lanes: int) -> str:
    return str(crc32(key.encode()) % lanes)


def routes(app: Tally, job) -> list[tuple]:
    with app.connect() as db:
        columns = "resolved_mode, routing_key_used, lane, decision_source, topic"
        query = f"select {columns} from outbox where job_id = '{job.id}' order by attempt_no"
        return [tuple(row) for row in db.execute(query)]


def test_the_mode_is_that_of_the_request_the_tenant_or_all(timed):
    declare(timed).routing(mode="DEFAULT", tenants={"acme": "BURST"}, lanes=4, prefix="work")
    by_request = submitted(timed, mode="DEFAULT", idempotency_key="1")
    by_tenant = submitted(timed, doc_id=" Doc-7 ", idempotency_key="2")
    by_all = submitted(timed, tenant_id="other", idempotency_key="3")
    burst = lane("acme:doc-7", 4)
    assert routes(timed, by_request) == [
        ("DEFAULT", "acme", lane("acme", 4), "request", f"work-p{lane('acme', 4)}")
    ]
    assert routes(timed, by_tenant) == [("BURST", "acme:doc-7", burst, "tenant", f"work-p{burst}")]
    assert routes(timed, by_all) == [
        ("DEFAULT", "other", lane("other", 4), "global", f"work-p{lane('other', 4)}")
    ]
    assert check_books(timed) == []


def test_a_job_without_a_routing_goes_by_the_names_of_its_services(timed):
    job = submitted(declare(timed))
    assert routes(timed, job) == [("DEFAULT", "acme", lane("acme", 16), "global", f"ocr-p{lane('acme', 16)}")]


@pytest.mark.parametrize("routing", [{"mode": "BURST"}, {"tenants": {"acme": "BURST"}}])
def test_burst_needs_a_document_whoever_has_said_it(timed, routing):
    declare(timed).routing(**routing)
    with pytest.raises(BadCommand, match="doc_id"):
        submitted(timed)
    assert timed.jobs(tenant="acme") == []
    assert routes(timed, submitted(timed, mode="DEFAULT"))[0][3] == "request"


def test_all_attempts_of_a_job_go_as_it_was_submitted(timed, url, clock):
    declare(timed).routing(mode="BURST", lanes=4)
    job = submitted(timed, doc_id="d")
    RemoteHand(timed, "ocr").take().fail("E", again=True)
    with closing(declare(Tally(url, clock=clock))) as other:
        other.routing(lanes=7, prefix="new")
        clock.advance(MINUTE)
        expire_remote(other)
        first, second = routes(other, job)
    assert first == second
    assert second[:4] == ("BURST", "acme:d", lane("acme:d", 4), "global")


def test_a_remote_step_of_a_workflow_has_lanes_and_topics_and_no_burst(timed, hand):
    @timed.remote("warehouse", start_within="5m")
    def pick(order: int) -> int:
        raise NotImplementedError

    @timed.workflow
    def order(number: int) -> int:
        return pick(number)

    timed.routing(mode="BURST", lanes=3, prefix="work")
    job = order.submit(7)
    hand.work()
    assert [row[:4] for row in routes(timed, job)] == [("DEFAULT", "default", lane("default", 3), "global")]
    assert RemoteHand(timed, "warehouse").take().succeed(1).name == "ACCEPTED"
    hand.work()
    assert job.result() == 1


def test_work_that_nobody_asks_for_in_time_ends_its_job(timed, hand, clock):
    @timed.remote("warehouse", start_within="5m")
    def pick(order: int) -> int:
        raise NotImplementedError

    @timed.workflow
    def order(number: int) -> int:
        return pick(number)

    by_protocol = submitted(declare(timed, start_within="5m"))
    by_workflow = order.submit(7)
    hand.work()
    clock.advance(5 * MINUTE - 1)
    assert expire_remote(timed) == 0
    clock.advance(1)
    assert expire_remote(timed) == 2
    hand.work()
    assert (by_protocol.state(), by_protocol.row().error_code) == ("FAILED_FINAL", "DISPATCH_FAILED")
    assert by_workflow.state() == "FAILED_FINAL"
    assert "DISPATCH_FAILED" in str(by_workflow.row().error)
    assert check_books(timed) == []


def test_a_protocol_of_a_file_says_how_long_its_work_may_wait(timed, tmp_path, clock):
    path = tmp_path / "scan.toml"
    path.write_text(
        'id = "scan"\nrequest_types = ["scan"]\nstart_within = "2m"\n'
        '[[steps]]\nstep_id = "ocr"\nservice = "ocr"\n'
    )
    timed.load_protocols(path)
    job = submitted(timed)
    clock.advance(2 * MINUTE)
    assert expire_remote(timed) == 1
    assert job.row().error_code == "DISPATCH_FAILED"


@pytest.mark.parametrize(
    ("routing", "error"),
    [
        ({"mode": "burst"}, BadInput),
        ({"tenants": {"acme": "FAST"}}, BadInput),
        ({"tenants": {"a b": "BURST"}}, BadName),
        ({"tenants": ["acme"]}, BadInput),
        ({"lanes": 0}, BadInput),
        ({"lanes": True}, BadInput),
        ({"lanes": 1_025}, BadInput),
        ({"prefix": "a b"}, BadName),
        ({"prefix": 7}, BadInput),
    ],
)
def test_a_routing_that_cannot_be_is_refused_when_it_is_declared(routing, error):
    app = Tally()
    with pytest.raises(error):
        app.routing(**routing)
    app.routing()
    with pytest.raises(DuplicateHandler):
        app.routing()


def test_work_needs_some_time_to_begin():
    app = Tally()
    with pytest.raises(BadInput, match="start_within"):
        app.remote("ocr", start_within="0s")
    with pytest.raises(BadInput, match="start_within"):
        declare(app, start_within=0)


def test_a_signal_to_a_protocol_job_is_refused(timed):
    job = submitted(declare(timed))
    with pytest.raises(TakesNoSignals, match="no signal"):
        job.send("go", 1)
    with timed.connect() as db:
        assert [tuple(row) for row in db.execute("select count(*) from messages")] == [(0,)]
