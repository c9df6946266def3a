"""A payload codec: what a program puts into its jobs is at rest as the codec made it, and nowhere else."""

from __future__ import annotations

import asyncio

import pytest
from cryptography.fernet import Fernet, MultiFernet

from tallystick import JobFailed, Retry, StepFailed, Tally, again, gather, set_value, wait
from tallystick.errors import BadInput, IdempotencyConflict, PayloadSealed
from tallystick.testing.remote_hand import RemoteHand
from tallystick.testing.stepping import SteppedWorker, check_books
from tests.patience import wait_until

SECRET = "rosebud"
KEY, OTHER = Fernet.generate_key(), Fernet.generate_key()


class Sealed:
    """Fernet as a payload codec: authenticated, and never the same twice."""

    def __init__(self, *keys: bytes) -> None:
        self._cipher = MultiFernet([Fernet(key) for key in keys])

    def encode(self, data: bytes) -> bytes:
        return self._cipher.encrypt(data)

    def decode(self, data: bytes) -> bytes:
        return self._cipher.decrypt(data)


def is_sealed(text: str | None) -> bool:
    return text is not None and text.startswith('{"$sealed":"')


def declare(app, ready=lambda: None):
    """Declare workflows that put the secret everywhere where a program can."""

    @app.step
    def whisper(word: str) -> str:
        set_value("said", word)
        return f"step {word}"

    @app.step(retry=Retry(2, first="1ms"))
    def stumble(word: str) -> None:
        raise ValueError(f"step error {word}")

    @app.workflow
    def child(word: str) -> str:
        return f"child {word}"

    @app.workflow
    def flow(word: str) -> str:
        set_value("shown", {"word": word})
        said = whisper(word)
        try:
            stumble(word)
        except StepFailed as error:
            said += str(error)[-len(word) :]
        (grown,) = gather(child.child(word))
        return f"{said}, {grown}, {wait('more', str)}"

    @app.workflow
    def fails(word: str) -> None:
        raise RuntimeError(f"error {word}")

    @app.workflow
    def turns(word: str, left: int) -> str:
        if left:
            again(word, left - 1)
        return word

    return flow, fails, turns


@pytest.fixture
def sealed(url):
    app = Tally(url, payload_codec=Sealed(KEY))
    yield app
    app.close()


def everything(app, url, tmp_path) -> bytes:
    """Return every byte of the store: the file and its log, or every row of every table."""
    if url.startswith("sqlite"):
        return b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.name.startswith("shop.db"))
    with app.connect() as db:
        tables = db.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop'")
        rows = [db.execute(f"SELECT t::text FROM shop.{name} AS t") for (name,) in tables]
    assert len(rows) > 5
    return str(rows).encode()


def test_no_plain_text_is_at_rest_and_everything_comes_back(sealed, url, tmp_path):
    flow, fails, turns = declare(sealed)
    with sealed.worker():
        job, failed, turned = flow.submit(SECRET), fails.submit(SECRET), turns.submit(SECRET, 2)
        wait_until(lambda: job.values().get("said") == SECRET, "a value")
        job.send("more", SECRET)
        assert job.result(60) == f"step {SECRET}{SECRET}, child {SECRET}, {SECRET}"
        assert turned.result(60) == SECRET
        with pytest.raises(JobFailed, match=f"error {SECRET}"):
            failed.result(60)
        assert job.value("shown") == {"word": SECRET}
        row = failed.row()
        assert (row.error_message, row.error_code) == (f"error {SECRET}", "RuntimeError")
        assert SECRET in row.payload
        late = flow.opts(delay="1h").submit(SECRET)
        late.send("more", SECRET)
        flow.opts(delay="1h").submit_many([(SECRET,), (SECRET,)])
        with sealed.transaction() as db:
            flow.opts(within=db, delay="1h").submit(SECRET)
        asyncio.run(flow.opts(delay="1h").submit_aio(SECRET))
    stored = everything(sealed, url, tmp_path)
    assert b"$sealed" in stored
    assert SECRET.encode() not in stored
    assert not check_books(sealed)


def test_a_tx_is_sealed_too(sealed, url, tmp_path):
    with sealed.transaction() as db:
        db.execute("CREATE TABLE notes (id INTEGER)")

    @sealed.tx
    def note(db, word: str) -> str:
        db.execute("INSERT INTO notes VALUES (1)")
        return f"noted {word}"

    @sealed.workflow
    def flow(word: str) -> str:
        return note(word)

    with sealed.worker():
        assert flow.submit(SECRET).result(60) == f"noted {SECRET}"
    assert SECRET.encode() not in everything(sealed, url, tmp_path)


def test_a_remote_step_is_plain_for_its_service_and_all_else_stays_sealed(url, clock):
    app = Tally(url, clock=clock, payload_codec=Sealed(KEY))

    @app.remote("warehouse")
    def pick(order: int) -> str:
        raise NotImplementedError

    @app.workflow
    def flow(word: str) -> str:
        return f"{word} {pick(7)}"

    worker, job = SteppedWorker(app, clock), flow.submit(SECRET)
    assert worker.work() == "Await"
    directive = RemoteHand(app, "warehouse").take()
    assert directive.payload == {"order": 7}
    directive.succeed("a box")
    assert (worker.work(), job.result(5)) == ("EndJob", f"{SECRET} a box")
    with app.connect() as db:
        ((payload, result),) = db.execute("SELECT payload, result FROM jobs")
    assert is_sealed(payload)
    assert is_sealed(result)
    assert not check_books(app)
    app.close()


def test_keys_find_their_job_though_no_text_is_stored_twice_alike(sealed):
    flow, _fails, _turns = declare(sealed)
    first = flow.opts(idempotency_key="k").submit(SECRET)
    again = flow.opts(idempotency_key="k").submit(SECRET)
    assert (again.id, again.created) == (first.id, False)
    with pytest.raises(IdempotencyConflict):
        flow.opts(idempotency_key="k").submit("another")
    by_content = [flow.opts(idempotent=True).submit(SECRET).id for _ in range(2)]
    assert by_content[0] == by_content[1]
    assert not check_books(sealed)


@pytest.mark.parametrize("codec", [Sealed(OTHER), None], ids=["another key", "no codec"])
def test_a_worker_that_cannot_open_a_job_holds_it_and_the_right_one_goes_on(url, codec):
    right, wrong = Tally(url, payload_codec=Sealed(KEY)), Tally(url, payload_codec=codec)
    flow, _fails, _turns = declare(right)
    declare(wrong)
    job = flow.submit(SECRET)
    job.send("more", "on")
    with wrong.worker():
        wait_until(lambda: job.row().hold, "a hold")
    assert (job.row().hold, job.state()) == ("MISMATCH", "QUEUED" if not job.row().attempt else job.state())
    assert "sealed" in job.row().hold_reason
    assert "payload_codec" in job.row().hold_reason
    job.resume()
    with right.worker():
        assert job.result(60).startswith(f"step {SECRET}")
        with pytest.raises(PayloadSealed, match="payload_codec"):
            wrong.job(job.id).result(60)
        assert is_sealed(wrong.job(job.id).row().payload)
    right.close()
    wrong.close()


def test_a_signal_that_cannot_be_opened_holds_the_job_and_is_not_lost(url):
    right, wrong = Tally(url, payload_codec=Sealed(KEY)), Tally(url, payload_codec=Sealed(OTHER))
    flow, _fails, _turns = declare(right)
    both = Tally(url, payload_codec=Sealed(KEY, OTHER))
    declare(both)
    with right.worker():
        job = flow.submit(SECRET)
        wait_until(lambda: job.row().semaphore and job.row().attempt and not job.row().ready_at, "a wait")
        wrong.job(job.id).send("more", "by another key")
        wait_until(lambda: job.row().hold, "a hold")
    job.resume()
    with both.worker():
        assert job.result(60).endswith("by another key")
    for app in (right, wrong, both):
        app.close()


def test_a_signal_of_a_process_without_the_codec_is_taken_as_it_is(url):
    right, plain = Tally(url, payload_codec=Sealed(KEY)), Tally(url)
    flow, _fails, _turns = declare(right)
    with right.worker():
        job = flow.submit(SECRET)
        plain.job(job.id).send("more", "in plain words")
        assert job.result(60).endswith("in plain words")
    right.close()
    plain.close()


def test_jobs_from_before_the_codec_and_of_a_rotated_key_go_on(url):
    plain, first = Tally(url), Tally(url, payload_codec=Sealed(KEY))
    old, older = declare(first)[0].submit(SECRET), declare(plain)[0].submit(SECRET)
    plain.close()
    rotated = Tally(url, payload_codec=Sealed(OTHER, KEY))
    declare(rotated)
    with rotated.worker():
        for job in (old, older):
            rotated.job(job.id).send("more", "on")
            assert rotated.job(job.id).result(60).startswith(f"step {SECRET}")
    first.close()
    rotated.close()


def test_a_codec_that_cannot_encode_refuses_one_call_and_nobody_else(url):
    class Picky(Sealed):
        def encode(self, data: bytes) -> bytes:
            if b"refuse" in data:
                raise RuntimeError("not this")
            return super().encode(data)

    app = Tally(url, payload_codec=Picky(KEY))

    @app.workflow
    def flow(word: str) -> str:
        return "refuse" if word == "badly" else word

    with app.worker():
        with pytest.raises(BadInput, match="payload_codec could not encode: RuntimeError: not this"):
            flow.submit("refuse me")
        bad = flow.submit("badly")
        assert flow.submit("well").result(60) == "well"
        wait_until(lambda: bad.row().hold == "REFUSED", "a hold")
    app.close()
