"""A value may have a mebibyte, in bytes and not in characters, wherever it is kept."""

from __future__ import annotations

import pytest

from tallystick import JobFailed, StepFailed, again, wait
from tallystick.errors import PayloadTooLarge

MIB = 1024 * 1024
# The quotes are part of what is written.
FITS = "\U0001f600" * ((MIB - 4) // 4) + "xx"
TOO_LARGE = FITS + "x"


def test_the_two_are_a_byte_apart_and_far_from_a_mebibyte_of_characters():
    assert len(FITS.encode()) + 2 == MIB
    assert len(TOO_LARGE) < MIB // 3


def test_the_result_of_a_step_is_measured_in_bytes(timed, hand):
    @timed.step
    def step(text: str) -> str:
        return text

    @timed.workflow
    def flow(name: str) -> str:
        try:
            return str(len(step({"fits": FITS, "too large": TOO_LARGE}[name])))
        except StepFailed as error:
            return error.type

    jobs = [flow.submit(name) for name in ("fits", "too large")]
    hand.work_all()
    assert [job.result(5) for job in jobs] == [str(len(FITS)), "PayloadTooLarge"]


def test_the_result_of_a_workflow_is_measured_in_bytes(timed, hand):
    @timed.workflow
    def flow(name: str) -> str:
        return {"fits": FITS, "too large": TOO_LARGE}[name]

    fits, too_large = (flow.submit(name) for name in ("fits", "too large"))
    hand.work_all()
    assert fits.result(5) == FITS
    with pytest.raises(JobFailed, match=f"result of flow has {MIB + 1} bytes"):
        too_large.result(5)


def test_the_arguments_of_the_next_turn_are_measured_in_bytes(timed, hand):
    @timed.workflow
    def flow(text: str) -> int:
        if not text:
            again(TOO_LARGE)
        return len(text)

    job = flow.submit("")
    hand.work_all()
    with pytest.raises(JobFailed, match="arguments of the next turn"):
        job.result(5)


def test_arguments_and_signals_are_measured_in_bytes(timed, hand):
    @timed.workflow
    def flow(text: str) -> int:
        return len(wait("more", str))

    with pytest.raises(PayloadTooLarge):
        flow.submit(TOO_LARGE)
    with pytest.raises(PayloadTooLarge):
        flow.submit_many([("x",), (TOO_LARGE,)])
    job = flow.submit("x")
    with pytest.raises(PayloadTooLarge):
        job.send("more", TOO_LARGE)
    job.send("more", FITS)
    hand.work_all()
    assert job.result(5) == len(FITS)
