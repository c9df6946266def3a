"""`tally verify` and `tally seal`: what they print, as text and as data, and their exit codes."""

from __future__ import annotations

import json

import apsw
import pytest

from tests.surfaces.commands import Shop


@pytest.fixture
def shop(tmp_path) -> Shop:
    shop = Shop(tmp_path)
    for name in ("Ada", "Bob"):
        job = shop.submit("shop:letter", f'"{name}"')
        assert shop.tally("cancel", job, "shop").code == 0
    return shop


def changed(shop: Shop, statement: str) -> None:
    """Change the file of the shop as the database would refuse it."""
    (path,) = shop.folder.glob("*.db")
    db = apsw.Connection(str(path))
    for (name,) in list(db.execute("select name from sqlite_master where type = 'trigger'")):
        db.execute(f"drop trigger {name}")
    db.execute(statement)
    db.close()


def test_true_books_are_said_to_be_true_in_text_and_data(shop):
    done = shop.tally("verify", "shop")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "the books are true"
    told = shop.tally("verify", "shop", "--json").data
    assert (told["ok"], told["jobs"], told["findings"]) == (True, 2, [])


def test_a_changed_row_is_named_and_the_exit_code_is_one(shop):
    changed(shop, "update jobs set queue = 'other' where job_id = (select min(job_id) from jobs)")
    done = shop.tally("verify", "shop")
    assert done.code == 1
    assert "birth: a column that was submitted is not what the first fact says" in done.out
    told = shop.tally("verify", "shop", "--json")
    assert told.code == 1
    (finding,) = told.data["findings"]
    assert finding["check"] == "birth"


def test_since_checks_what_was_written_since_then(shop):
    changed(
        shop, "update jobs set queue = 'other', updated_at = updated_at - 7200000, completed_at = updated_at"
    )
    assert shop.tally("verify", "shop", "--since", "1h", "--json").data["jobs"] == 0
    assert shop.tally("verify", "shop", "--since", "1d", "--json").data["jobs"] == 2
    assert shop.tally("verify", "shop", "--since", "1h", "--job", "x").code == 2


def test_one_job_is_checked_alone_and_one_that_is_not_there_is_told(shop):
    first, second = sorted(job["job_id"] for job in shop.tally("list", "shop", "--json").data["jobs"])
    changed(shop, f"update jobs set queue = 'other' where job_id = '{first}'")
    told = shop.tally("verify", "shop", "--job", second, "--json")
    assert (told.code, told.data["jobs"], told.data["findings_total"], told.data["since"]) == (0, 1, 0, None)
    assert shop.tally("verify", "shop", "--job", first).code == 1
    missing = shop.tally("verify", "shop", "--job", "nobody")
    assert missing.code not in {0, 1}
    assert "there is no job nobody" in missing.err


def test_a_store_that_is_not_there_is_no_finding(tmp_path):
    done = Shop(tmp_path).tally("verify", "--url", f"sqlite:///{tmp_path}/none.db")
    assert done.code not in {0, 1}, "the exit code 1 says that the books are not true"


def test_a_seal_is_written_once_and_compared(shop, tmp_path):
    sealed = tmp_path / "monday.seal"
    done = shop.tally("seal", "shop", "--out", str(sealed))
    assert done.code == 0, done
    assert len(json.loads(sealed.read_text())["listed"]) == 2, "both are young"
    again = shop.tally("seal", "shop", "--out", str(sealed))
    assert again.code not in {0, 1}, "no seal is overwritten"
    assert "cannot be written to" in again.err
    assert shop.tally("verify", "shop", "--seal", str(sealed)).code == 0
    beside = shop.tally("verify", "shop", "--seal", str(sealed), "--job", "x")
    assert (beside.code, "a seal is about the whole store" in beside.err) == (2, True)
    changed(shop, "delete from jobs; delete from events; delete from attempts; delete from messages")
    done = shop.tally("verify", "shop", "--seal", str(sealed))
    assert done.code == 1
    assert "is gone, and no removal is noted" in done.out


def test_what_is_no_seal_or_not_signed_is_refused(shop, tmp_path):
    wrong = tmp_path / "wrong.seal"
    wrong.write_text("{}")
    assert "holds no seal" in shop.tally("verify", "shop", "--seal", str(wrong)).err
    assert shop.tally("verify", "shop", "--signed-by", str(wrong)).code == 2
