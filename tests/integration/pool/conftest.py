"""A pool of dummy services under a real master, without servers."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kettle import pool
from kettle.pool import processes
from kettle.runtime import Lifeline, make_lifeline
from kettle.testing.commands.running import KETTLE, Said, run
from kettle.testing.patience import PATIENCE_S

_BEFORE_THE_REAL_SERVICES = """
from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)  # what is not a dummy is the real service
"""


def eventually(holds: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
    """Look again until it holds or the time is over; whether it does."""
    until = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


class DummyPool:
    """What a test does with the pool of dummies."""

    def __init__(self, top: Path, lifeline: Lifeline, roles: list[str]) -> None:
        self.home = top / "home"
        self._lifeline = lifeline
        services = top / "dummies" / "kettle_services"
        services.mkdir(parents=True)
        (services / "__init__.py").write_text(_BEFORE_THE_REAL_SERVICES)
        for role in roles:
            package = services / role
            package.mkdir()
            (package / "__init__.py").touch()
            shutil.copyfile(Path(__file__).with_name("dummy_service.py"), package / "__main__.py")
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("KETTLE_") or name.endswith("_BIN")
        }
        self.environ = inherited | {
            "PYTHONPATH": os.pathsep.join([str(top / "dummies"), os.environ.get("PYTHONPATH", "")]),
            "KETTLE_NATS_URL": "nats://127.0.0.1:1",
            "KETTLE_DATABASE_URL": "postgresql://nowhere/nothing",
            "KETTLE_MASTER_MIGRATE": "false",
            "KETTLE_MASTER_DAEMON_LIST": str(roles).replace("'", '"'),
            "KETTLE_MASTER_BACKOFF_CONSTANT": "0.05",
            "KETTLE_MASTER_BACKOFF_UNIT": "0",
        }

    def up(self, *, detached: bool = False, deadline_s: float = PATIENCE_S, **environ: str) -> pool.Started:
        return pool.up(
            self.home,
            environ=self.environ | {f"KETTLE_{name}": value for name, value in environ.items()},
            deadline_s=deadline_s,
            lifeline_fd=None if detached else self._lifeline.read_fd,
        )

    def install(self, version: str) -> None:
        """As an installer does: this version of Kettle is the installed one from now on."""
        top = self.home.parent / "dummies"
        for old in top.glob("kettle-*.dist-info"):
            shutil.rmtree(old)
        new = top / f"kettle-{version}.dist-info"
        new.mkdir()
        (new / "METADATA").write_text(f"Metadata-Version: 2.1\nName: kettle\nVersion: {version}\n")
        (new / "RECORD").write_text(f"kettle_services/first/__main__.py,sha256={version},1\n")

    def kettle(self, *arguments: str) -> Said:
        """A `kettle` command for this pool, of the real Kettle."""
        servers = {"KETTLE_NATS_URL", "KETTLE_DATABASE_URL"}
        clean = {name: value for name, value in self.environ.items() if name not in servers | {"PYTHONPATH"}}
        environ = {**clean, "KETTLE_HOME": str(self.home)}
        return asyncio.run(run([*KETTLE, *arguments], self.home.parent, environ))

    def cut(self) -> None:
        self._lifeline.close()

    def pid(self, name: str) -> int:
        state = pool.state(self.home)
        daemon = state.daemon(name) if state else None
        return daemon.pid if daemon and daemon.status == "running" else 0

    def runs_anew(self, name: str, killed: int) -> bool:
        return self.pid(name) not in {0, killed}

    def daemon(self, name: str) -> pool.DaemonState:
        state = pool.state(self.home)
        found = state.daemon(name) if state else None
        assert found is not None
        return found

    def processes(self) -> list[int]:
        home = pool.open_home(self.home)
        return [process.pid for process in processes.of_pool(home.pool_id(), home.execute)]

    def noted(self, name: str) -> int:
        return int((self.home / name).read_text())


def alive(pid: int) -> bool:
    return processes.start_ticks(pid) != 0


@contextmanager
def dummy_pool(tmp_path: Path, roles: list[str]) -> Generator[DummyPool]:
    lifeline = make_lifeline()
    dummy = DummyPool(tmp_path, lifeline, roles)
    try:
        yield dummy
    finally:
        pool.down(dummy.home, deadline_s=5.0)
        lifeline.close()


@pytest.fixture
def dummies(tmp_path: Path) -> Iterator[DummyPool]:
    with dummy_pool(tmp_path, ["first", "second"]) as dummy:
        yield dummy


@pytest.fixture
def switched(dummies: DummyPool) -> DummyPool:
    """A pool of dummies that runs a NATS server of its own, so that its master hears commands."""
    del dummies.environ["KETTLE_NATS_URL"]
    return dummies


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[DummyPool]:
    """The pool with a dummy in place of the startd, too."""
    with dummy_pool(tmp_path, ["startd", "second"]) as dummy:
        del dummy.environ["KETTLE_NATS_URL"]
        # The settings that a personal pool starts with are those of the real services.
        (tmp_path / "empty.toml").touch()
        dummy.environ["KETTLE_CONFIG"] = str(tmp_path / "empty.toml")
        yield dummy
