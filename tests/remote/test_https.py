"""Over https, with a certificate of our own: who is believed gets directives and reports, and nobody else."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tallystick import Webhook
from tests.patience import wait_until
from tests.remote.api_in_thread import at_work, served
from tests.remote.certificates import Certificate, make_certificate
from tests.remote.receiver import receiving
from tests.remote.test_publish import LOCAL, SECRET, command, declare, directive


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return make_certificate(tmp_path)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'books.db'}"


def test_a_webhook_goes_to_a_server_whose_certificate_is_believed(url: str, certificate: Certificate):
    with receiving(certificate.server) as receiver:
        hook = Webhook(receiver.url, secret=SECRET, allow_networks=LOCAL, certificates=certificate.client)
        app = declare(url, scan=hook)
        with app.worker():
            jobs = [app.command(command(n)) for n in range(20)]
            wait_until(lambda: {directive(app, job.id).state for job in jobs} == {"SENT"})
        assert sorted(got.directive["jobId"] for got in receiver.got) == sorted(job.id for job in jobs)
        app.close()


def test_nothing_is_said_to_a_server_whose_certificate_is_not_believed(url: str, certificate: Certificate):
    with receiving(certificate.server) as receiver:
        app = declare(url, scan=Webhook(receiver.url, secret=SECRET, allow_networks=LOCAL))
        with app.worker():
            job = app.command(command())
            relay = app.runtime().relay
            assert relay is not None
            (line,) = relay.lines.values()
            wait_until(lambda: line.failures)
        assert (receiver.got, directive(app, job.id).state) == ([], "PENDING")
        app.close()


def test_a_remote_worker_works_over_https(url: str, certificate: Certificate):
    with served(url, certificate) as api:
        jobs = api.submit(20)
        with at_work(api, lambda given: given.payload["n"], certificates=certificate.client):
            assert [job.result(timeout=60) for job in jobs] == list(range(20))


def test_a_remote_worker_tells_nothing_to_a_server_that_it_does_not_believe(
    url: str, certificate: Certificate, caplog: pytest.LogCaptureFixture
):
    with served(url, certificate) as api, caplog.at_level(logging.WARNING, "tallystick"):
        (job,) = api.submit(1)
        with at_work(api, lambda given: given.payload):
            wait_until(lambda: "CERTIFICATE_VERIFY_FAILED" in caplog.text)
        assert directive(api.app, job.id).state == "PENDING"
