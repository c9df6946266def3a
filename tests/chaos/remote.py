"""A remote worker of a run: `python -m tests.chaos.remote FOLDER SLOT`. It does what services are asked for.

It notes what it did before it reports it, reports until it is heard, and forgets what it had in hand when it
is killed: whoever asks it must bear that something is done again.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from tallystick.errors import StoreError
from tallystick.ids import SystemIds
from tallystick.testing.remote_hand import HeldDirective, RemoteHand
from tests.chaos.place import Place
from tests.chaos.work import settle_in
from tests.chaos.work_outside import DEPOT, PRESS, app
from tests.patience import let_time_pass

R = TypeVar("R")
THREADS = 3
_PAUSE = 0.05
_ids = SystemIds()


class Service:
    """So many threads, each with one directive at a time."""

    def __init__(self, place: Place, slot: int) -> None:
        self._place = place
        self._hand = RemoteHand(app, DEPOT, PRESS, worker=f"remote-{slot}")

    def run(self) -> None:
        """Do what is asked for until told to stop."""
        threads = [threading.Thread(target=self._thread) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _thread(self) -> None:
        while not self._place.marked("stop"):
            directive = self._insist(self._hand.look)
            if directive is None:
                let_time_pass(_PAUSE)
            else:
                self._do(directive)

    def _do(self, directive: HeldDirective) -> None:
        mood = _ids.random()
        if mood > 0.2:
            self._insist(directive.ack)
        said = json.loads(directive.row.payload)
        if mood < 0.1:
            self._insist(lambda: directive.fail("BUSY", "later", again=True))
            return
        receipt = _ids.token()
        self._place.note(
            "services.log",
            step=directive.row.step_id,
            label=said["payload"]["label"],
            token=said["payload"].get("token", ""),
            before=said.get("workspace_ref") or "",
            receipt=receipt,
        )
        self._insist(lambda: directive.succeed(receipt, workspace=receipt))

    def _insist(self, call: Callable[[], R]) -> R | None:
        """Repeat a report, which is harmless to repeat, until the store can take it."""
        while not self._place.marked("stop"):
            try:
                return call()
            except StoreError:
                let_time_pass(_PAUSE)
        return None


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(relativeCreated)d %(name)s %(message)s")
    slot = int(sys.argv[2])
    Service(settle_in(sys.argv[1], slot), slot).run()
    app.close()


if __name__ == "__main__":
    main()
