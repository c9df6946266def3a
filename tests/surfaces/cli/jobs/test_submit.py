"""`tally submit`: arguments in, a job id out, once for a key; a wrong call is refused at once."""

from __future__ import annotations

import json
import re

import pytest

from tests.surfaces.commands import Shop, Work


@pytest.fixture
def shop(tmp_path) -> Shop:
    return Shop(tmp_path)


def arguments_of(shop: Shop, job_id: str) -> object:
    return shop.tally("show", job_id, "shop", "--json").data["arguments"]


def test_the_first_submission_says_that_it_creates_the_file_and_prints_the_id_alone(shop):
    first = shop.tally("submit", "shop:checkout", "42")
    assert first.err == f"creating {shop.database}\n"
    assert first.out.count("\n") == 1
    assert shop.database.stat().st_mode & 0o777 == 0o600
    second = shop.tally("submit", "shop:checkout", "42")
    assert (second.code, second.err) == (0, "")
    assert second.out != first.out


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["42"], {"order": 42, "name": ""}),
        (["[42]"], {"order": 42, "name": ""}),
        (['{"order": 42, "name": "Ada"}'], {"order": 42, "name": "Ada"}),
        (["order=42", "name=7"], {"order": 42, "name": "7"}),
        (["order=42", "name=a=b"], {"order": 42, "name": "a=b"}),
    ],
    ids=str,
)
def test_arguments_are_one_json_value_or_pairs_whose_annotation_decides(shop, words, kept):
    assert arguments_of(shop, shop.submit("shop:checkout", *words)) == kept


def test_arguments_can_come_from_stdin(shop):
    done = shop.tally("submit", "shop:app:checkout", "-", stdin='{"order": 42}')
    assert arguments_of(shop, done.out.strip()) == {"order": 42, "name": ""}


def test_a_key_makes_it_the_same_job_and_says_since_when(shop):
    first = shop.submit("shop:checkout", "42", "--key", "o-42")
    again = shop.tally("submit", "shop:checkout", "order=42", "--key", "o-42")
    assert (again.code, again.out.strip()) == (0, first)
    assert re.fullmatch(r"already submitted, (just now|\d+ seconds? ago)\n", again.err)
    as_data = shop.tally("submit", "shop:checkout", "42", "--key", "o-42", "--json")
    assert as_data.data == {"job_id": first, "created": False, "state": "QUEUED"}


def test_one_key_with_other_content_is_an_error_that_names_both_hashes(shop):
    first = shop.submit("shop:checkout", "42", "--key", "o-42")
    other = shop.tally("submit", "shop:checkout", "43", "--key", "o-42", "--json")
    assert other.code == 4
    assert other.error["code"] == "IDEMPOTENCY_CONFLICT"
    assert other.error["job_id"] == first
    assert other.error["existing_hash"] != other.error["submitted_hash"]


def test_idempotent_means_once_for_these_arguments(shop):
    first = shop.submit("shop:checkout", "42", "--idempotent")
    assert shop.submit("shop:checkout", "42", "--idempotent") == first
    assert shop.submit("shop:checkout", "43", "--idempotent") != first


def test_options_reach_the_job(shop):
    job = shop.submit(
        "shop:checkout", "1", "--queue", "slow", "--priority", "0", "--delay", "1h", "--deadline", "2h"
    )
    data = shop.tally("show", job, "shop", "--json").data
    assert (data["queue"], data["priority"]) == ("slow", 0)
    assert data["created_at"] < data["ready_at"] < data["deadline_at"]


def test_url_names_another_store(shop):
    done = shop.tally("submit", "shop:checkout", "1", "--url", "sqlite:///other.db")
    assert done.code == 0
    assert not shop.database.exists()
    assert (shop.folder / "other.db").exists()


def test_wait_prints_the_result_or_fails_with_the_reason(shop):
    with Work(shop):
        good = shop.tally("submit", "shop:checkout", "21", "--wait")
        assert (good.code, json.loads(good.out)) == (0, "42")
        as_data = shop.tally("submit", "shop:async_quote", "7", "--wait", "--json").data
        assert (as_data["state"], as_data["result"], as_data["created"]) == ("SUCCEEDED", 7, True)
        bad = shop.tally("submit", "shop:fails", '"no \\u001b[31mmoney"', "--wait")
        assert bad.code == 1
        assert bad.out == ""
        assert bad.err.splitlines()[-1].endswith(r"failed: no \x1b[31mmoney")
        assert "Traceback" not in bad.err


def test_wait_with_a_timeout_gives_up_and_leaves_the_job(shop):
    done = shop.tally("submit", "shop:checkout", "1", "--wait", "--timeout", "50ms")
    assert (done.code, done.out) == (1, "")
    assert "has not ended within 50ms" in done.err
    assert [job["state"] for job in shop.tally("list", "shop", "--json").data["jobs"]] == ["QUEUED"]
