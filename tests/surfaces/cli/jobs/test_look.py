"""`tally list`, `show` and `history`: they look, they create nothing, and what they print moves no cursor."""

from __future__ import annotations

import pytest

from tests.surfaces.commands import Shop, Work

NASTY = r"\u001b[2J\u009b31m\u202eevil\u0007\nline"


class Jobs:
    """A shop in which one job of each kind has ended."""

    def __init__(self, folder) -> None:
        self.shop = Shop(folder)
        self.good = self.shop.submit("shop:checkout", "13")
        self.bad = self.shop.submit("shop:fails", f'"{NASTY}"')
        tags = ["--tag", "mail", "--tag", "customer:7"]
        self.late = self.shop.submit("shop:letter", "to=Ada", "--delay", "1h", "--key", "letter-1", *tags)
        with Work(self.shop, "--verbose") as work:
            work.wait_for("failed", job_id=self.bad)
            work.wait_for("done", job_id=self.good)
            work.stop()


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> Jobs:
    return Jobs(tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def shop(jobs) -> Shop:
    return jobs.shop


class TestList:
    def test_jobs_come_newest_first_with_what_matters_at_a_glance(self, jobs, shop):
        done = shop.tally("list", "shop")
        assert (done.code, done.err) == (0, "")
        lines = [line.split() for line in done.out.splitlines()]
        assert [line[:3] for line in lines] == [
            [jobs.late, "QUEUED", "letter"],
            [jobs.bad, "FAILED_FINAL", "fails"],
            [jobs.good, "SUCCEEDED", "checkout"],
        ]
        assert lines[0][3:5] == ["2", "mail"]
        assert done.out.splitlines()[0].endswith("due in 59 minutes")
        assert done.out.splitlines()[1].endswith("FATAL")

    @pytest.mark.parametrize(
        "options",
        [
            ["--state", "failed_final"],
            ["--workflow", "fails"],
            ["--state", "CANCELLED", "--state", "FAILED_FINAL"],
        ],
        ids=" ".join,
    )
    def test_it_can_be_narrowed(self, jobs, shop, options):
        found = shop.tally("list", "shop", "--json", *options).data["jobs"]
        assert [job["job_id"] for job in found] == [jobs.bad]

    def test_it_finds_by_tag(self, jobs, shop):
        found = shop.tally("list", "shop", "--json", "--tag", "customer:7").data["jobs"]
        assert [job["job_id"] for job in found] == [jobs.late]
        assert shop.tally("list", "shop", "--json", "--tag", "customer").data["jobs"] == []
        assert shop.tally("show", jobs.late, "shop", "--json").data["tags"] == ["mail", "customer:7"]

    def test_pages_follow_each_other(self, jobs, shop):
        first = shop.tally("list", "--limit", "2", TALLY_URL="sqlite:///shop.db")
        assert first.err == f"more: --after {jobs.bad}\n"
        data = shop.tally("list", "shop", "--limit", "2", "--json").data
        assert data["next_after"] == jobs.bad
        rest = shop.tally("list", "shop", "--limit", "2", "--after", jobs.bad, "--json").data
        assert ([job["job_id"] for job in rest["jobs"]], rest["next_after"]) == ([jobs.good], None)

    def test_it_shows_no_arguments_and_no_results(self, shop):
        text = shop.tally("list", "shop").out + shop.tally("list", "shop", "--json").out
        assert "evil" not in text
        assert "Ada" not in text

    def test_nothing_found_is_said_on_stderr(self, shop):
        done = shop.tally("list", "shop", "--workflow", "nothing")
        assert (done.code, done.out, done.err) == (0, "", "no jobs\n")


class TestShow:
    def test_a_job_is_shown_with_what_it_got_and_gave(self, jobs, shop):
        text = shop.tally("show", jobs.good, "shop").out
        assert text.splitlines()[0] == f"job {jobs.good}"
        for fact in (
            'arguments   {"order": 13, "name": ""}',
            'result      "26"',
            "ledger      000111100000001 (start)",
        ):
            assert fact in text
        assert "attempt 1   DONE" in text
        assert "state       SUCCEEDED\n  view        SUCCEEDED\n" in text

    def test_the_same_as_data(self, jobs, shop):
        data = shop.tally("show", jobs.good, "--url", "sqlite:///shop.db", "--json").data
        assert (data["result"], data["semaphore"], data["start_ledger"]) == ("26", 0, "000111100000001")
        assert (data["state"], data["view"]) == ("SUCCEEDED", "SUCCEEDED")
        (attempt,) = data["attempts"]
        assert (attempt["status"], attempt["reason"], attempt["charged"]) == ("DONE", None, False)
        late = shop.tally("show", jobs.late, "shop", "--json").data
        assert (late["version"], late["idempotency_key"], late["attempts"]) == ("2", "letter-1", [])
        assert late["view"] == "PENDING"

    def test_a_job_that_is_not_there_is_exit_code_three(self, shop):
        for command in ("show", "history"):
            done = shop.tally(command, "no\x1b[31mbody", "shop")
            assert (done.code, done.out) == (3, "")
            assert done.err.startswith(r"error: there is no job no\x1b[31mbody in sqlite:///")


class TestHistory:
    def test_each_fact_has_its_time_its_attempt_and_words(self, jobs, shop):
        lines = shop.tally("history", jobs.good, "shop").out.splitlines()
        assert [line.split(maxsplit=1)[0] for line in lines] == [str(n) for n in range(1, 7)]
        told = [line.split("Z")[1].partition("  took ")[0].strip() for line in lines]
        assert told == [
            "submitted",
            "attempt 1  claimed by a worker",
            "attempt 1  tx reserve returned null",
            "attempt 1  try 1 of quote failed: ValueError: no price yet; again in 1 ms",
            "attempt 1  step quote returned 26",
            "attempt 1  returned: the job has succeeded",
        ]

    def test_the_same_as_data_is_a_chain(self, jobs, shop):
        facts = shop.tally("history", jobs.good, "shop", "--json").data
        assert [fact["prev_hash"] for fact in facts] == ["", *(fact["hash"] for fact in facts[:-1])]
        assert facts[4]["details"] == {
            "step": "quote",
            "occurrence": 1,
            "state": "SUCCEEDED",
            "ledger": "002111000000001",
            "result": 26,
            "error": None,
            "drawn": None,
        }
        assert facts[3]["details"]["error"]["type"] == "ValueError"


@pytest.mark.parametrize("command", ["show", "history"])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_stored_text_reaches_no_terminal_as_a_command(jobs, shop, command, form):
    """X11: a user's text with escapes, a second control set, turned direction, a bell and a line break."""
    text = shop.tally(command, jobs.bad, "shop", *form).out
    assert "evil" in text
    assert not {c for c in text if not c.isprintable() and c != "\n"}
    assert not [line for line in text.splitlines() if line.startswith("line")]


def test_looking_creates_no_file_and_changes_none(shop):
    before = {path.name: path.stat().st_mtime_ns for path in shop.folder.iterdir() if path.suffix == ".db"}
    shop.tally("list", "shop")
    after = {path.name: path.stat().st_mtime_ns for path in shop.folder.iterdir() if path.suffix == ".db"}
    assert after == before


def test_the_clock_of_a_submission_long_ago_is_read_in_days():
    from tallystick.cli.render.wording import ago

    day = 86_400_000
    assert ago(0, 3 * day + 5) == "3 days ago"
    assert ago(5 * day, 3 * day) == "in 2 days"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_data_arrives_whole_whatever_the_terminal_can_draw(tmp_path, encoding):
    shop = Shop(tmp_path)
    job = shop.submit("shop:letter", '"Zo\xeb \u2192 \u6f22"')
    shown = shop.tally("show", job, "shop", "--json", PYTHONIOENCODING=encoding)
    assert shown.data["arguments"] == {"to": "Zo\xeb \u2192 \u6f22"}


class TestWhy:
    def test_a_sentence_and_what_can_be_done(self, jobs, shop):
        done = shop.tally("why", jobs.late, "shop")
        assert (done.code, done.err) == (0, "")
        sentence, action = done.out.splitlines()
        assert sentence.startswith("it is not due before ")
        assert action == f"  tally cancel {jobs.late}"

    def test_the_same_as_data_and_nothing_that_moves_a_cursor(self, jobs, shop):
        told = shop.tally("why", jobs.bad, "shop", "--json").data
        assert told["why"].startswith("it failed at ")
        assert told["actions"] == [f"tally retry {jobs.bad}", f"tally history {jobs.bad}"]
        assert (told["until"], told["child"]) == (None, None)
        assert "\x1b" not in shop.tally("why", jobs.bad, "shop").out

    def test_a_job_that_is_not_there_is_exit_code_three(self, shop):
        assert shop.tally("why", "01a1e109-dad7-70e7-b72a-a7770e0c41df", "shop").code == 3
