"""The processes of a run: workers, clients, a remote worker; each is replaced when it dies."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass

from tallystick.clock import SystemClock
from tests.chaos.place import Place
from tests.patience import let_time_pass
from tests.tidy.tree import ROOT

# By slot: who works, and who submits. The client with an odd number works too.
PROGRAMS = ("worker", "worker", "client", "client", "remote")
_BREATH_SECONDS = 0.5


@dataclass(slots=True)
class Member:
    """One place of the crew, and the process that holds it now."""

    slot: int
    program: str
    process: subprocess.Popen[bytes]
    begun: float

    @property
    def is_client(self) -> bool:
        """Tell whether it submits."""
        return self.program == "client"

    @property
    def alive(self) -> bool:
        """Tell whether it still runs."""
        return self.process.poll() is None


class Crew:
    """All of them; only processes that were started here are ever touched."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._clock = SystemClock()
        self.exits = 0
        self.members = [self._start(slot, program) for slot, program in enumerate(PROGRAMS)]

    def _start(self, slot: int, program: str) -> Member:
        command = [sys.executable, "-m", f"tests.chaos.{program}", str(self._place.folder), str(slot)]
        environment = {name: value for name, value in os.environ.items() if name != "TALLY_URL"}
        with (self._place.folder / f"{program}-{slot}.err").open("ab") as said:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
        return Member(slot, program, process, self._clock.monotonic())

    def heal(self, *, draining: bool = False) -> None:
        """Start another process for each that has ended; a client that was told to drain may end well."""
        for member in self.members:
            status = member.process.poll()
            if status is None or (draining and member.is_client and status == 0):
                continue
            if self._clock.monotonic() - member.begun < _BREATH_SECONDS:
                continue
            self.exits += status >= 0
            self.members[member.slot] = self._start(member.slot, member.program)

    def kill(self, member: Member) -> None:
        """Kill one as `kill -9` does."""
        member.process.kill()
        member.process.wait(30)

    def stop(self, member: Member) -> None:
        """Stop one where it stands, whatever it holds."""
        member.process.send_signal(signal.SIGSTOP)

    def go_on(self, member: Member) -> None:
        """Let one that was stopped go on."""
        with contextlib.suppress(ProcessLookupError):
            member.process.send_signal(signal.SIGCONT)

    def any(self, chance: random.Random) -> Member:
        """Return one of those that run."""
        running = [member for member in self.members if member.alive]
        return chance.choice(running or self.members)

    def drained(self, seconds: float) -> bool:
        """Wait until the clients have seen the end of everything; tell whether they have."""
        until = self._clock.monotonic() + seconds
        while self._clock.monotonic() < until:
            self.heal(draining=True)
            clients = [member for member in self.members if member.is_client]
            if all(client.process.poll() == 0 for client in clients):
                return True
            let_time_pass(0.05)
        return False

    def dismiss(self, seconds: float = 15) -> None:
        """Wait for those that were told to stop, and kill who does not."""
        until = self._clock.monotonic() + seconds
        for member in self.members:
            self.go_on(member)
            try:
                member.process.wait(max(0.1, until - self._clock.monotonic()))
            except subprocess.TimeoutExpired:
                self.kill(member)
