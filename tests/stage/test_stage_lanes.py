"""The lanes of a stage: tasks in the caller's loop, and processes that may die."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.core.retry import RetryPolicy
from tallystick.errors import BadInput, SkipItem, WrongColour
from tallystick.stage import CommitBatch, Stage, Summary, WindowLimits, read_journal
from tallystick.stage.outcome import FAIL, SKIP, SUCCESS
from tests.patience import let_time_pass, wait_until
from tests.stage.stage_books import Committed, no_lease_is_left

FAST = RetryPolicy(attempts_max=3, base_ms=1, jitter=0.0)


def test_an_async_stage_cannot_be_run_from_inside_a_loop():
    async def compute(item: int) -> int:
        return item

    async def main() -> None:
        with pytest.raises(WrongColour):
            Stage(compute).run([1])

    asyncio.run(main())


def test_async_functions_run_in_the_callers_loop_and_commit_in_order(tmp_path: Path):
    async def compute(item: int) -> int:
        await asyncio.sleep(0.001 * (item % 3))
        return item

    committed = Committed()

    async def commit(batch: CommitBatch) -> None:
        await asyncio.sleep(0)
        committed(batch)

    async def main() -> Summary:
        stage = Stage(compute, commit=commit, journal=tmp_path / "j", windows=WindowLimits(count=7))
        return await stage.run_async(range(100))

    assert asyncio.run(main()).complete
    assert committed.values == list(range(100))


def test_async_retries_timeouts_and_async_inputs_work_alike():
    tries: list[int] = []

    async def items():
        for number in range(6):
            await asyncio.sleep(0)
            yield number

    async def compute(item: int) -> int:
        tries.append(item)
        if item == 1 and tries.count(1) == 1:
            await asyncio.sleep(30)
        if item == 2 and tries.count(2) == 1:
            raise OSError("hiccup")
        return item

    committed = Committed()
    stage = Stage(compute, commit=committed, timeout="80ms", retry=FAST, workers=3)
    summary = asyncio.run(stage.run_async(items()))
    assert committed.values == list(range(6))
    assert summary.reclaimed == 1
    assert [outcome.attempts for outcome in committed.outcomes] == [1, 2, 2, 1, 1, 1]


def test_cancelling_the_callers_task_stops_an_async_stage(tmp_path: Path):
    async def main() -> Stage:
        begun = asyncio.Event()

        async def compute(item: int) -> int:
            if item < 5:
                return item
            begun.set()
            await asyncio.sleep(60)
            return item

        stage = Stage(compute, journal=tmp_path / "j", name="c", workers=4)
        running = asyncio.ensure_future(stage.run_async(range(100)))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return stage

    stage = asyncio.run(main())
    assert no_lease_is_left(stage)

    async def quick(item: int) -> int:
        return item

    summary = Stage(quick, journal=tmp_path / "j", name="c").run(range(100))
    assert summary.complete
    assert [one.value for one in read_journal(tmp_path / "j")] == list(range(100))


def test_a_plain_function_can_be_awaited_with_an_async_commit():
    committed = Committed()

    async def commit(batch: CommitBatch) -> None:
        await asyncio.sleep(0)
        committed(batch)

    summary = asyncio.run(Stage(abs, commit=commit).run_async([-1, -2]))
    assert summary.complete
    assert committed.values == [1, 2]


def test_processes_compute_and_a_dead_one_costs_one_attempt(tmp_path: Path):
    committed = Committed()
    mark = tmp_path / "died"
    stage = Stage(die_once, commit=committed, lane="processes", workers=2, retry=FAST)
    summary = stage.run([["ok", str(mark)], ["die", str(mark)], ["skip", str(mark)], ["ok", str(mark)]])
    assert [outcome.state for outcome in committed.outcomes] == [SUCCESS, SUCCESS, SKIP, SUCCESS]
    assert committed.outcomes[1].attempts == 2
    assert os.getpid() not in committed.values
    assert summary.complete


def test_a_process_that_hangs_is_killed_and_its_item_fails():
    committed = Committed()
    stage = Stage(hang, commit=committed, lane="processes", workers=1, timeout="1s", retry=1)
    summary = stage.run(["hang", "go"])
    assert [outcome.state for outcome in committed.outcomes] == [FAIL, SUCCESS]
    assert summary.reclaimed == 1


@pytest.mark.parametrize("key", [None, str])
def test_an_item_that_cannot_travel_to_a_process_fails_with_advice_that_helps(key):
    """A key does not help: the item itself has to get there."""
    committed = Committed()
    Stage(hang, commit=committed, lane="processes", workers=1, key=key).run([{1j}, "go"])
    assert [outcome.state for outcome in committed.outcomes] == [FAIL, SUCCESS]
    assert "travel to processes as JSON" in committed.outcomes[0].failure.message
    assert "key=" not in committed.outcomes[0].failure.message


def test_a_journal_gives_no_other_advice_about_an_item_that_cannot_travel(tmp_path: Path):
    with pytest.raises(BadInput, match="travel to processes as JSON"):
        Stage(hang, lane="processes", workers=1, journal=tmp_path / "j").run([{1j}])


def test_a_function_that_has_no_name_elsewhere_cannot_go_to_processes():
    with pytest.raises(BadInput, match="top of a module"):
        Stage(lambda item: item, lane="processes", workers=1).run([1])


def test_a_script_without_the_usual_guard_is_told_about_it(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "from tallystick.stage import Stage\n"
        "def double(item):\n"
        "    return 2 * item\n"
        "print(Stage(double, lane='processes', workers=1).run([1]))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "__main__" in done.stderr


def die_once(item: list[str]) -> int:
    verb, mark = item
    if verb == "skip":
        raise SkipItem
    if verb == "die" and not Path(mark).exists():
        Path(mark).touch()
        os._exit(3)
    return os.getpid()


def hang(item: str) -> str:
    if item == "hang":
        let_time_pass(60)
    return item


def test_an_async_commit_function_is_not_forgotten_by_a_plain_run():
    async def commit(batch: CommitBatch) -> None:
        raise AssertionError

    with pytest.raises(WrongColour):
        Stage(abs, commit=commit).run([1])


def test_objects_with_an_async_call_and_functions_that_return_coroutines_are_recognised():
    class Caller:
        async def __call__(self, item: int) -> int:
            return item + 1

    committed = Committed()
    Stage(Caller(), commit=committed).run([1])
    assert committed.values == [2]

    async def hidden(item: int) -> int:
        return item

    failed = Committed()
    Stage(lambda item: hidden(item), commit=failed).run([1])  # noqa: PLW0108 (hides that it is async)
    assert failed.outcomes[0].failure.type == "BadInput"


def test_a_coroutine_that_refuses_to_be_cancelled_holds_nobody_up():
    async def main() -> Summary:
        begun = asyncio.Event()
        release = asyncio.Event()

        async def stubborn(item: int) -> int:
            begun.set()
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return item

        stage = Stage(stubborn, workers=1, grace="10ms")
        running = asyncio.ensure_future(stage.run_async(range(3)))
        await begun.wait()
        stage.cancel()
        summary = await running
        assert no_lease_is_left(stage)
        release.set()
        await asyncio.sleep(0.01)
        return summary

    assert asyncio.run(main()).stopped == "cancelled"


def test_worker_processes_leave_with_a_stage_that_was_killed(tmp_path: Path):
    script = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from tallystick.stage import Stage\n"
        "from tests.stage.test_stage_lanes import tell_pid_and_hang\n"
        "if __name__ == '__main__':\n"
        f"    Stage(tell_pid_and_hang, lane='processes', workers=2).run([{str(tmp_path)!r}] * 2)\n"
    )
    (tmp_path / "main.py").write_text(script)
    child = subprocess.Popen([sys.executable, str(tmp_path / "main.py")])
    try:
        pids = wait_for(lambda: [int(p.name) for p in tmp_path.glob("[0-9]*")], 2)
    finally:
        child.kill()
        child.wait(10)
    gone = wait_for(lambda: [pid for pid in pids if not Path(f"/proc/{pid}/cmdline").exists()], 2)
    assert sorted(gone) == sorted(pids)


def wait_for(look, count: int) -> list[int]:
    wait_until(lambda: len(look()) == count, f"{count} of them")
    return look()


def tell_pid_and_hang(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    let_time_pass(120)
