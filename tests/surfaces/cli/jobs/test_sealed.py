"""What commands print of a sealed text says that it is sealed."""

from __future__ import annotations

from tallystick import Tally
from tallystick.cli.render.wording import short
from tests.app.values.test_sealing import KEY, SECRET, Sealed, declare


def test_a_program_without_the_codec_shows_that_a_payload_is_sealed(url):
    app = Tally(url, payload_codec=Sealed(KEY))
    job = declare(app)[0].submit(SECRET)
    with_none = Tally(url)
    assert short(with_none.job(job.id).row().payload) == "(sealed)"
    app.close()
    with_none.close()
