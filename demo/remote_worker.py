"""A remote worker over NATS, as one in any language would be: no database, nothing of Tallystick but JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import nats
from nats.aio.client import Client
from nats.errors import TimeoutError as NothingCame

STREAM = "WORK"


async def report(client: Client, kind: str, said: dict[str, object], **members: object) -> dict[str, object]:
    """Send a report on a directive, with its token, and return the answer."""
    fence = {name: said[name] for name in ("jobId", "stepId", "attempt_no", "lease_id")}
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    headers = {"Tally-Token": str(said["token"]), "Tally-Reply-To": inbox}
    body = json.dumps({**fence, **members}).encode()
    await client.jetstream().publish(f"{STREAM}-reports.{kind}", body, headers=headers)
    answer: dict[str, object] = json.loads((await answers.next_msg(timeout=30)).data)
    await answers.unsubscribe()
    return answer


async def work(url: str, name: str, seconds: float) -> None:
    """Take directives one by one: acknowledge, work, answer."""
    client = await nats.connect(url)
    taken = await client.jetstream().pull_subscribe(f"{STREAM}.>", durable="readers", stream=STREAM)
    while True:
        try:
            (message,) = await taken.fetch(1, timeout=1)
        except NothingCame:
            continue
        said = json.loads(message.data)
        await message.ack()
        if (await report(client, "ack", said))["status"] != 200:
            continue
        print(name, said["jobId"], said["attempt_no"], os.getpid(), flush=True)
        await asyncio.sleep(seconds)
        await report(client, "result", said, status="SUCCEEDED", value={"by": name})


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], float(sys.argv[3])))
