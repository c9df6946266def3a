"""The workflows that are measured on both stores: steps that do nothing, in a thread and on a loop."""

from __future__ import annotations

from tallystick import Tally

app = Tally()


@app.step
def sync_step(number: int) -> int:
    return number


@app.workflow
def sync_workflow(steps: int) -> int:
    for number in range(steps):
        sync_step(number)
    return steps


@app.step
async def async_step(number: int) -> int:
    return number


@app.workflow
async def async_workflow(steps: int) -> int:
    for number in range(steps):
        await async_step(number)
    return steps
