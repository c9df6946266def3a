"""A PostgreSQL that can be cut off, killed, restarted and replaced, behind one address that stays."""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from tallystick.testing.postgres_server import free_port
from tests.patience import let_time_pass, wait_until
from tests.postgres.proxy import Plan, Proxy
from tests.postgres.server import Server, make_server, make_standby

_OPTIONS = {"schema": "shop", "answer": "5s", "connect_timeout": "2"}
_PLAIN = {"sslmode": "disable", "gssencmode": "disable"}
_FIRED_SECONDS = 3
# Connections of ours, those in the middle of something before the others.
_BUSY_FIRST = """
    SELECT pid FROM pg_stat_activity WHERE application_name = 'tallystick' AND (state <> 'idle' OR %s)
    ORDER BY state = 'idle', random()
"""
_BEHIND_SECONDS = 0.5
# A standby that has lost its primary for a moment finds it again soon.
_SERVER = {"wal_retrieve_retry_interval": "200ms"}


class Site:
    """A primary behind a proxy; beside it a standby and a pooler, where they can be had."""

    def __init__(self, *, standby: bool, synchronous: bool = True) -> None:
        self._synchronous = synchronous
        self.primary = make_server(fsync=False, settings=_SERVER)
        self.proxy = Proxy(self.primary)
        self.standby: Server | None = None
        self.bouncer = Bouncer(self.proxy.port, self.primary.user)
        if standby:
            self.add_standby()

    def urls(self, slots: int) -> list[str]:
        """Return an address for each process; one of them goes through the pooler if there is one."""
        plain = self.primary.url(port=self.proxy.port, **_OPTIONS, **_PLAIN)
        urls = [plain] * slots
        if not self.bouncer.missing:
            options = {**_OPTIONS, **_PLAIN, "pooler": "transaction"}
            urls[1] = self.primary.url(port=self.bouncer.port, **options)
        return urls

    @contextlib.contextmanager
    def administrator(self) -> Iterator[psycopg.Connection]:
        """Open a connection that no nemesis is in the way of."""
        with psycopg.connect(self.primary.dsn, autocommit=True, application_name="chaos") as connection:
            yield connection

    def add_standby(self) -> None:
        """Copy the primary, and if that was asked for let it acknowledge nothing that the copy has not."""
        self.standby = make_standby(self.primary)
        wait_until(self._follows(), "a standby that follows")
        if self._synchronous:
            with self.administrator() as connection:
                connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                connection.execute("SELECT pg_reload_conf()")
            wait_until(lambda: self._asked("SELECT max(sync_state) FROM pg_stat_replication") == "sync")

    def promote(self) -> None:
        """Lose the primary, and go on with the standby at the same address."""
        assert self.standby is not None
        if self._synchronous:
            # What an earlier nemesis cut off while it waited for the standby has to arrive there too.
            wait_until(self._follows(), "a standby that has everything")
        old, new = self.primary, self.standby
        if not self._synchronous:
            # The last things that the primary acknowledges never reach the standby.
            new.stop("fast")
            let_time_pass(_BEHIND_SECONDS)
        old.stop("immediate")
        if not self._synchronous:
            new.start()
        new.promote()
        self.primary, self.standby = new, None
        self.proxy.lead_to(new)
        old.remove()

    def keep(self, path: Path) -> None:
        """Write down everything that is in the database."""
        program = Path(self.primary.binaries, "pg_dump")
        with path.open("wb") as file, contextlib.suppress(OSError):
            subprocess.run([program, self.primary.dsn], stdout=file, stderr=subprocess.DEVNULL, check=False)

    def remove(self) -> None:
        """Stop everything, and leave nothing behind."""
        self.bouncer.remove()
        self.proxy.close()
        for server in (self.standby, self.primary):
            if server is not None:
                server.remove()

    def _follows(self) -> Callable[[], bool]:
        """Return a condition: the standby has everything that there is now."""
        position = self._asked("SELECT pg_current_wal_lsn()::text")
        there = f"SELECT coalesce(max(flush_lsn) >= '{position}', false) FROM pg_stat_replication"
        return lambda: bool(self._asked(there))

    def _asked(self, query: str) -> object:
        with self.administrator() as connection:
            row = connection.execute(query).fetchone()
        return None if row is None else row[0]


class Bouncer:
    """PgBouncer in transaction mode in front of the proxy."""

    def __init__(self, port: int, user: str) -> None:
        self.missing = "" if shutil.which("pgbouncer", path=_PATHS) else "there is no pgbouncer"
        self.port = free_port()
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None
        if not self.missing:
            self._write(port)
            self.start()

    def _write(self, port: int) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tallystick-bouncer-"))
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "max_client_conn": 500,
            "default_pool_size": 40,
            "ignore_startup_parameters": "extra_float_digits",
            "logfile": "",
        }
        lines = ["[databases]", f"postgres = host=127.0.0.1 port={port} user=tally", "[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in settings.items()]
        path = self._folder / "pgbouncer.ini"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        if os.geteuid() == 0:
            entry = pwd.getpwnam(self._user)
            for made in (self._folder, path):
                os.chown(made, entry.pw_uid, entry.pw_gid)

    def start(self) -> None:
        """Start it, as another user if we are root, because it refuses that."""
        identity = {"user": self._user} if os.geteuid() == 0 else {}
        program = shutil.which("pgbouncer", path=_PATHS)
        assert program is not None
        self._process = subprocess.Popen(
            [program, "-q", str(self._folder / "pgbouncer.ini")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **identity,
        )
        wait_until(self._answers, "a pooler that answers")

    def _answers(self) -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port), 5).close()
            return True
        return False

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def remove(self) -> None:
        """Kill it, and leave nothing behind."""
        if self._process is not None:
            self.kill()
            shutil.rmtree(self._folder, ignore_errors=True)


class Terminate:
    """The server ends connections of ours: one, or all."""

    name = "terminate"
    verb = "SELECT pg_terminate_backend(%s)"
    idle_too = True

    def __init__(self, site: Site) -> None:
        self._site = site

    def missing(self) -> str:
        return ""

    def strike(self, chance: random.Random) -> int:
        fired = 0
        for _ in range(chance.randrange(1, 20)):
            with self._site.administrator() as connection:
                pids = [pid for (pid,) in connection.execute(_BUSY_FIRST, [self.idle_too]).fetchall()]
                some = pids if chance.random() < 0.3 else pids[: chance.randrange(1, 4)]
                for pid in some:
                    connection.execute(self.verb, [pid])
                fired += len(some)
            let_time_pass(chance.uniform(0, 0.1))
        return fired


class Cancel(Terminate):
    """The server interrupts statements of ours, as an administrator or a timeout of the server's does."""

    name = "cancel"
    verb = "SELECT pg_cancel_backend(%s)"
    idle_too = False


class Cut:
    """Every connection is reset."""

    name = "cut"

    def __init__(self, site: Site) -> None:
        self._site = site

    def missing(self) -> str:
        return ""

    def strike(self, chance: random.Random) -> int:
        return self._site.proxy.cut()


class HalfOpen:
    """The other side is silent, and nobody is told: a machine has vanished. Later it is reset."""

    name = "half-open"

    def __init__(self, site: Site) -> None:
        self._site = site

    def missing(self) -> str:
        return ""

    def strike(self, chance: random.Random) -> int:
        proxy = self._site.proxy
        proxy.silent.set()
        let_time_pass(chance.choice((0.5, 2.5, 7.0)))
        fired = proxy.cut()
        proxy.silent.clear()
        return min(fired, 1)


class LostCommit:
    """A COMMIT, or the answer to it, is lost on the way."""

    name = "lost commit"

    def __init__(self, site: Site) -> None:
        self._site = site

    def missing(self) -> str:
        return ""

    def strike(self, chance: random.Random) -> int:
        proxy = self._site.proxy
        before = proxy.fired
        for _ in range(5):
            fired = proxy.fired
            proxy.plan = chance.choice((Plan.BEFORE, Plan.AFTER, Plan.AT_ONCE))
            for _ in range(_FIRED_SECONDS * 100):
                if proxy.fired != fired:
                    break
                let_time_pass(0.01)
            proxy.plan = Plan.PASS
        return proxy.fired - before


class Restart:
    """The server dies and comes back: crash recovery."""

    name = "restart"

    def __init__(self, site: Site) -> None:
        self._site = site

    def missing(self) -> str:
        return ""

    def strike(self, chance: random.Random) -> int:
        self._site.primary.stop("immediate")
        let_time_pass(chance.choice((0, 0, 1.5)))
        self._site.primary.start()
        return 1


class Promote:
    """The primary is gone for good, and its standby takes over. Then there is a new standby."""

    name = "promote"

    def __init__(self, site: Site) -> None:
        self._site = site

    def missing(self) -> str:
        return "" if self._site.standby is not None else "there is no standby"

    def strike(self, chance: random.Random) -> int:
        self._site.promote()
        let_time_pass(chance.uniform(0.5, 1.5))
        self._site.add_standby()
        return 1


class KillBouncer:
    """The pooler is gone, with everything that was on its way through it."""

    name = "kill pgbouncer"

    def __init__(self, site: Site) -> None:
        self._site = site

    def missing(self) -> str:
        return self._site.bouncer.missing

    def strike(self, chance: random.Random) -> int:
        self._site.bouncer.kill()
        let_time_pass(chance.choice((0, 0.3, 1.0)))
        self._site.bouncer.start()
        return 1


_PATHS = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
