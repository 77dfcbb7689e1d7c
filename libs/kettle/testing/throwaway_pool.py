"""
A whole pool for one test: real servers, real services, real jobs, and hands to break them with.

    async with throwaway_pool(tmp_path, cpus=8) as pool:
        cluster = await pool.client.submit(...)
        pool.kill("schedd")
        await pool.restarted("schedd")

It is a child of the test: however the test ends, the pool ends.
"""

import asyncio
import os
import secrets
import shutil
import signal
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle import pool
from kettle.client import Client
from kettle.command_server import asking
from kettle.pool import DaemonState, MasterState, processes
from kettle.pool.home import open_home
from kettle.pool.personal_settings import Tables, Value, write_settings
from kettle.runtime import Lifeline, make_lifeline
from kettle.testing import warm_masters
from kettle.testing.commands.running import KETTLE, Said, run
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.selection import pool_settings

_LAST_WORDS: Final = 20
"""Lines of a service's log that are shown with a failure."""
_WITHIN_S: Final = 120.0
"""After this something hangs: on a machine with much else to do all takes many times as long as alone."""
_DOWN_S: Final = 30.0
_SHARED: Final = frozenset({"kettle", "authorization", "telemetry"})
"""Tables of settings that all services have."""
_SERVERS: Final = frozenset({"nats", "postgres"})
_LOOK_S: Final = 0.01

SHORT: Final[Tables] = {
    "master": {
        "throwaway": True,
        "minimum_disk_mib": 16,
        "backoff_constant": 0.02,
        "backoff_unit": 0.02,
        "recover_factor": 2.0,
        "shutdown_graceful_timeout": 10.0,
        "update_interval": 2.0,
        "not_responding_timeout": 120.0,
    },
    "schedd": {
        "alive_interval": 0.5,
        "lease": 60.0,
        "lease_margin": 1.0,
        "sync_interval": 0.5,
        "cooldown_duration": 0.5,
        "ad_interval": 2.0,
    },
    "collector": {"classad_lifetime": 10.0, "ad_interval": 2.0},
    "negotiator": {"interval": 2.0, "ad_interval": 2.0},
    "accounting": {"patience": 9.0},
    "startd": {
        "update_interval": 1.0,
        "machine_max_vacate_time": 2.0,
        "shutdown_kill_timeout": 0.5,
        "report_repeat": 0.3,
        "container_runtimes": [],
        "mount_under_scratch": [],  # jobs leave evidence for their tests below /tmp
    },
}
"""
Times with which a test that waits does not take long; but nothing is taken for lost or hung because a machine is loaded,
or because a test has stopped it.
"""

SHORT_LEASE: Final[Mapping[str, Value]] = {"lease": 4.5, "lease_margin": 1.0}
"""Settings of a schedd whose test waits for a claim to be lost."""


class Audit(msgspec.Struct, frozen=True):
    """What `kettle log check` said."""

    clean: bool
    said: str


class ThrowawayPool:
    """The running pool of one test."""

    def __init__(
        self, home: Path, *, environ: Mapping[str, str], settings: Tables, lifeline: Lifeline
    ) -> None:
        self.home = home
        self.environ = environ
        self.settings = settings
        """What its processes are told, table by table."""
        self._lifeline = lifeline
        self.client: Client
        """Connected as the person who runs the test."""
        self.left: list[str] = []
        """After the end of the pool: what was still there of it."""
        self._pool_id = ""
        self._elsewhere: list[Path] = []

    @property
    def state(self) -> MasterState:
        """What the master last said."""
        state = pool.state(self.home)
        assert state is not None, "the pool's master is gone"
        return state

    def daemon(self, name: str) -> DaemonState:
        """A service by its role, or a server: `nats`, `postgres`."""
        found = self.state.daemon(name)
        assert found is not None, f"this pool has no {name}"
        return found

    def pid(self, name: str) -> int:
        """The process id of a service or server that runs; 0 while it does not."""
        return self.daemon(name).pid

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """
        Send a signal to a service or server, if it runs; its process id, 0 while it does not.

        Raises:
            ProcessLookupError: it has ended, and the master has not said so yet, or it is none of this pool's: who has ended nothing
                would wait for a restart that nobody makes.
        """
        # The number may be another process's by now.
        if (pid := self.pid(name)) and not processes.signal_service(
            pid, number, self._pool_id, master=self.state.pid
        ):
            raise ProcessLookupError(f"{name}, {pid} by its master's word, has not got {number.name}")
        return pid

    @property
    def lives(self) -> bool:
        """Whether there is a master."""
        return pool.state(self.home) is not None

    def kill_master(self) -> int:
        """SIGKILL for the master: its services die with it, jobs go on; its process id."""
        pid = self.state.pid
        os.kill(pid, signal.SIGKILL)
        return pid

    async def restarted(self, name: str, *, after: int = 0, within_s: float = _WITHIN_S) -> int:
        """Wait until a service or server serves that is not the process `after`; its process id."""
        with self.telling():
            async with asyncio.timeout(within_s):
                while True:
                    daemon = self.daemon(name)
                    if daemon.status == "running" and daemon.pid not in {0, after}:
                        return daemon.pid
                    await asyncio.sleep(_LOOK_S)

    @contextmanager
    def telling(self) -> Generator[None]:
        """Have an end of patience say what does not run, and the last words of that."""
        try:
            yield
        except TimeoutError as error:
            for daemon in self.state.daemons:
                if daemon.status != "running":
                    last = "\n".join(self.log(daemon.name).splitlines()[-_LAST_WORDS:])
                    error.add_note(f"{daemon}\n{last}")
            raise

    def log(self, name: str) -> str:
        """Everything that a service wrote."""
        path = self.home / "log" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    async def kettle(self, *arguments: str, within_s: float = _WITHIN_S, cwd: Path | None = None) -> Said:
        """Run a `kettle` command against this pool."""
        return await run(
            [*KETTLE, *arguments],
            cwd or self.home.parent,
            {**self.environ, "KETTLE_HOME": str(self.home)},
            within_s=within_s,
        )

    async def log_check(self, *, within_s: float = _WITHIN_S) -> Audit:
        """Audit the event log: positions, versions, fences, and that bus and projections agree with it."""
        status, out, err = await self.kettle("log", "check", within_s=within_s)
        return Audit(status == 0, out + err)

    def processes(self) -> list[str]:
        """The living processes of the pool, each with its command."""
        found = processes.of_pool(self._pool_id, self.home / "execute")
        return [f"{each.pid} {each.command}" for each in found if each.pid != os.getpid()]

    @property
    def sandboxes(self) -> list[Path]:
        """The sandboxes of jobs, wherever they are."""
        places = [self.home / "execute", self.home / "startd" / "execute"]
        return sorted(path for place in places if place.is_dir() for path in place.glob("dir_*"))

    def _leftovers(self) -> list[str]:
        """Processes of the pool, and files that only a running pool needs."""
        files = [self.home / name for name in ("run", "state.json", "pool.json")]
        paths = (*files, *self.sandboxes, *self._elsewhere)
        return self.processes() + [str(path) for path in paths if os.path.lexists(path)]

    async def start(self) -> None:
        """Bring it up, or up again."""
        started = await asyncio.to_thread(
            pool.up,
            self.home,
            settings=self.settings,
            environ=self.environ,
            deadline_s=_WITHIN_S,
            lifeline_fd=self._lifeline.read_fd,
            launch=warm_masters.launch,
        )
        self._pool_id = started.state.pool_id
        links = [self.home / "run", self.home / "postgres" / "socket", self.home / "startd" / "execute"]
        self._elsewhere = [link.readlink() for link in links if link.is_symlink()]

    async def reconfigure(self, settings: Tables) -> None:
        """
        Change the settings as an administrator does: what runs with others than it is to have is started again.

        The master and the servers stay, so tables that are theirs cannot be changed.
        """
        changed = [
            table for table in {*self.settings, *settings} if self.settings.get(table) != settings.get(table)
        ]
        home = open_home(self.home)
        home.settings.unlink()
        write_settings(home, settings)
        self.settings = settings
        shared = not _SHARED.isdisjoint(changed)
        daemons = [
            each
            for each in self.state.daemons
            if each.name not in _SERVERS
            and (shared or each.name.partition(".")[0].partition("#")[0] in changed)
        ]
        before = {each.name: each.pid for each in daemons}
        controlled = await self.client.hosts.control("reconfig", daemons=sorted(before))
        for switched in controlled.switched:
            assert switched.outcome == "begun", switched
            await self.restarted(switched.daemon, after=before[switched.daemon])

    async def stop(self) -> None:
        """Bring it down; its data stay."""
        await asyncio.to_thread(pool.down, self.home, deadline_s=_DOWN_S)
        self.left = self._leftovers()


@asynccontextmanager
async def throwaway_pool(
    directory: Path,
    *,
    cpus: int = 8,
    memory_mib: int = 8192,
    settings: Tables | None = None,
    template: Path | None = None,
    environ: Mapping[str, str] | None = None,
    home: Path | None = None,
) -> AsyncGenerator[ThrowawayPool]:
    """
    A running pool below `directory`, or in `home`, with short times (see `SHORT`); gone at the end, except for its log files.

    Its servers have their data in memory where there is enough; a pool in `home` has all that it has there.

    Its servers are those of the lane of tests; the pool's own unless that says otherwise (see `kettle.testing.servers.selection`).
    `settings` replaces and adds single settings, by table.
    `template` (see `kettle.testing.servers.embedded.postgres_template`) makes the start faster.
    """
    tables = merged({"startd": {"num_cpus": cpus, "memory": memory_mib}}, settings or {})
    async with (
        unconnected_pool(directory, tables, template=template, environ=environ, home=home) as running,
        Client.connect(home=running.home, patience=PATIENCE_S) as running.client,
    ):
        yield running


@asynccontextmanager
async def unconnected_pool(
    directory: Path,
    settings: Tables,
    *,
    template: Path | None = None,
    environ: Mapping[str, str] | None = None,
    home: Path | None = None,
) -> AsyncGenerator[ThrowawayPool]:
    """
    A `throwaway_pool` without a client, since a client belongs to the event loop that it was connected in.
    """
    inherited = dict(os.environ if environ is None else environ)
    kept = ("_BIN", asking.VARIABLE)
    clean = {k: v for k, v in inherited.items() if not k.startswith("KETTLE_") or k.endswith(kept)}
    with _kept(home) if home else _home(directory) as place:
        async with pool_settings() as lane:
            tables = merged(
                SHORT,
                {"kettle": lane},
                {"master": {"postgres_template": str(template)}} if template else {},
                settings,
            )
            lifeline = make_lifeline()
            running = ThrowawayPool(place, environ=clean, settings=tables, lifeline=lifeline)
            try:
                await running.start()
                yield running
            finally:
                await running.stop()
                lifeline.close()


def merged(*many: Tables) -> dict[str, dict[str, Any]]:
    """One setting after another, the last word counts."""
    result: dict[str, dict[str, Any]] = {}
    for tables in many:
        for table, values in tables.items():
            result.setdefault(table, {}).update(values)
    return result


@contextmanager
def _home(directory: Path) -> Generator[Path]:
    """A home whose servers have their data in memory: on a disk they cost half of a server's time."""
    with server_directory() as memory, _kept(directory / f"pool-{secrets.token_hex(3)}") as path:
        home = open_home(path).path
        for server in sorted(_SERVERS):
            (memory / server).mkdir(mode=0o700)
            (home / server).symlink_to(memory / server)
        yield path


@contextmanager
def _kept(home: Path) -> Generator[Path]:
    """At the end only the logs of a home are left."""
    try:
        yield home
    finally:
        _keep_logs(home)


def _keep_logs(home: Path) -> None:
    for path in home.iterdir():
        if path.name != "log":
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
