"""The async side: every call has its twin, and a worker runs async workflows on the caller's loop."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from tallystick import Job, JobFailed, Tally

PATIENCE = 30
# What only declares, or is quick and touches no store; and blocks of code in the caller's thread.
WITHOUT_TWIN = {
    *(
        "step",
        "tx",
        "remote",
        "effect",
        "probes",
        "workflow",
        "codec",
        "bind",
        "on_worker_start",
        "on_worker_stop",
        "job",
        "runtime",
    ),
    *(
        "load_protocols",
        "protocol",
        "protocols",
        "schedule",
        "schedules",
        "declare_schedules",
        "queue",
        "routing",
        "queues",
        "declare_queues",
        "declared_schedules",
    ),
    *(
        "around",
        "is_working",
        "keep_effects_ms",
        "keep_ms",
        "keep_turns",
        "url",
        "workflows",
        "worker",
        "connect",
        "transaction",
        "effect",
    ),
    *("on_cancelled", "on_failed", "on_held", "on_succeeded"),
    *("asked_services", "asks_remote_workers", "callback_url", "endpoints", "service", "taking"),
    *("id", "created", "tags", "child", "only_of", "opts", "declare", "fn", "run", "run_async"),
    *("app", "check", "is_async", "options", "raises", "result_codec", "submission"),
}


def test_every_method_that_may_block_has_an_async_twin_with_the_same_parameters(app):
    @app.workflow
    def flow() -> None: ...

    for kind in (Tally, Job, type(flow), type(app.schedules), type(app.queues)):
        names = {name for name in dir(kind) if not name.startswith("_")}
        plain = {name for name in names if not name.endswith("_aio")} - WITHOUT_TWIN
        assert plain, "there is something to compare"
        for name in sorted(plain):
            twin = getattr(kind, f"{name}_aio", None)
            assert twin is not None, f"{kind.__name__}.{name} has no twin"
            mine = inspect.signature(getattr(kind, name)).parameters
            assert list(mine) == list(inspect.signature(twin).parameters), name


def test_async_workflows_run_on_the_loop_of_the_block_with_its_clients(app):
    async def main() -> None:
        client = asyncio.Queue[str]()  # bound to this loop, as clients of web frameworks are
        loop, thread = asyncio.get_running_loop(), threading.get_ident()

        @app.step
        async def fetch() -> str:
            assert (asyncio.get_running_loop(), threading.get_ident()) == (loop, thread)
            return await client.get()

        @app.workflow
        async def flow() -> str:
            return await fetch()

        async with app.worker(concurrency=2):
            job = await flow.submit_aio()
            await client.put("from the caller")
            assert await job.result_aio("30s") == "from the caller"
            assert await job.state_aio() == "SUCCEEDED"
            assert next(event.name for event in await job.history_aio()) == "submit"
            assert "SUCCEEDED" in (await job.view_aio()).name
            assert (await job.row_aio()).job_id == job.id
            assert await job.why_aio()
            assert [each.id for each in await app.jobs_aio()] == [job.id]

    asyncio.run(main())


def test_sync_workflows_run_beside_them_and_the_loop_is_left_open(app):
    @app.workflow
    def plain(n: int) -> int:
        return n + 1

    async def main() -> None:
        for n in range(2):
            async with app.worker():
                assert await (await plain.submit_aio(n)) == n + 1
            assert asyncio.get_running_loop().is_running()

    asyncio.run(main())


def test_work_aio_ends_with_its_event_and_with_its_task(app):
    @app.workflow
    async def flow() -> int:
        return 1

    async def main() -> None:
        until = asyncio.Event()
        work = asyncio.create_task(app.work_aio(until=until))
        assert await (await flow.submit_aio()) == 1
        until.set()
        await asyncio.wait_for(work, PATIENCE)
        work = asyncio.create_task(app.work_aio())
        assert await (await flow.submit_aio()) == 1
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert not app.is_working

    asyncio.run(main())


def test_a_result_that_does_not_come_in_time_is_a_timeout(app):
    @app.workflow
    async def flow() -> None: ...

    async def main() -> None:
        job = await flow.submit_aio()
        with pytest.raises(TimeoutError, match=job.id):
            await job.result_aio("50ms")

    asyncio.run(main())


def test_dead_letters_and_pruning_have_twins(app):
    @app.workflow
    async def fails() -> None:
        raise ValueError("no")

    async def main() -> None:
        async with app.worker():
            job = await fails.submit_aio()
            with pytest.raises(JobFailed):
                await job
        assert [each.id for each in await app.dead_aio()] == [job.id]
        assert await app.prune_aio(older_than="0s") == 1
        await app.close_aio()

    asyncio.run(main())
