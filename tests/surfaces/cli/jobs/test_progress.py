"""`tally list` and `tally show` draw how far a job is, by what the job shows of itself."""

from __future__ import annotations

from tallystick import Tally, progress, set_value, wait
from tests.patience import wait_until
from tests.surfaces.commands import Shop


def test_list_and_show_draw_how_far_a_job_is(tmp_path):
    url = f"sqlite:///{tmp_path}/shown.db"
    app = Tally(url)

    @app.workflow
    def copies() -> str:
        progress(3, 8)
        set_value("file", "a.txt")
        return wait("go", str)

    @app.workflow
    def odd() -> str:
        set_value("progress", "soon")
        return wait("go", str)

    with app.worker():
        job, other = copies.submit(), odd.submit()
        wait_until(job.values)
        wait_until(other.values)
    app.close()
    shop = Shop(tmp_path)
    second, first = shop.tally("list", "--url", url).out.splitlines()
    assert first.endswith("37%")
    assert "%" not in second
    listed = shop.tally("list", "--url", url, "--json").data["jobs"]
    assert [each["progress"] for each in listed] == ["soon", {"done": 3, "total": 8}]
    shown = shop.tally("show", job.id, "--url", url).out
    assert "progress    [#######-------------] 37%, 3 of 8" in shown
    assert 'file        "a.txt"' in shown
    values = shop.tally("show", job.id, "--url", url, "--json").data["values"]
    assert values == {"progress": {"done": 3, "total": 8}, "file": "a.txt"}
