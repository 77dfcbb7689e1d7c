"""What happens to the servers when their supervisor dies, and as whom they run."""

import contextlib
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Final

import pytest

from kettle.embedded import binaries
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import servers, temporary

SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")

Supervise = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def supervise() -> Generator[Supervise]:
    started: list[subprocess.Popen[str]] = []

    def start(
        directory: Path, *arguments: str, prefix: Sequence[str] = (), python: str = sys.executable
    ) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*prefix, python, str(SUPERVISOR), str(directory), *arguments],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONDONTWRITEBYTECODE": "1",
                "KETTLE_NATS_BIN": str(
                    binaries.nats_server()
                ),  # another interpreter has other scripts beside it
            },
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def numbers(process: "subprocess.Popen[str]") -> list[int]:
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return [int(word) for word in line.split()]


def gone(pid: int, seconds: float = PATIENCE_S) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_servers_die_with_their_supervisor(
    directory: Path, template: Path, supervise: Supervise, number: signal.Signals
) -> None:
    """
    However the supervisor ends, also by SIGKILL, both servers end too; the next supervisor finds the data in order.
    """
    process = supervise(directory, str(template))
    postgres, _, nats, _ = numbers(process)
    process.send_signal(number)
    assert gone(postgres)
    assert gone(nats)

    process = supervise(directory)
    numbers(process)
    output, errors = process.communicate("go\n", timeout=PATIENCE_S)
    assert ("7\n", 0) == (output, process.returncode), errors


def test_ctrl_c_does_not_reach_the_servers(directory: Path, template: Path, supervise: Supervise) -> None:
    """The servers are in sessions of their own, so that the services above them can end first."""
    process = supervise(directory, str(template))
    postgres, _, nats, _ = numbers(process)
    assert os.getsid(process.pid) not in {os.getsid(postgres), os.getsid(nats)}


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@needs_root
def test_as_root_the_servers_are_two_others(directory: Path, template: Path, supervise: Supervise) -> None:
    """
    Started by root, each server has an account number that belongs to nobody, although both the directory and its
    parents are root's own.
    """
    process = supervise(directory, str(template))
    _, postgres, _, nats = numbers(process)
    assert len({0, postgres, nats}) == 3
    for number in (postgres, nats):
        with pytest.raises(KeyError):
            pwd.getpwuid(number)
    assert directory.stat().st_mode & 0o777 == 0o700
    output, errors = process.communicate("go\n", timeout=PATIENCE_S)
    assert ("7\n", 0) == (output, process.returncode), errors


@needs_root
async def test_programs_may_lie_where_only_root_can_go(
    directory: Path, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    With everything installed below a directory that is closed to others, such as the home of root, the servers run all the same,
    and the directory stays closed.
    """
    closed = directory / "closed"
    closed.mkdir(mode=0o700)
    shutil.copytree(binaries.postgres_bin().parent, closed / "pg", symlinks=True)
    shutil.copy2(binaries.nats_server(), closed / "nats-server")
    monkeypatch.setenv("KETTLE_PG_BIN", str(closed / "pg" / "bin"))
    monkeypatch.setenv("KETTLE_NATS_BIN", str(closed / "nats-server"))
    with temporary() as cache:
        cache.chmod(0o755)
        monkeypatch.setattr("kettle.embedded.server_account._CACHE", cache)
        async with servers(directory, template=template) as pair:
            assert pair.postgres.running
            assert pair.nats.running
        (copy,) = cache.iterdir()
        async with servers(directory) as pair:
            assert [copy] == list(cache.iterdir())
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def theirs() -> Generator[Path]:
    """A directory to be given to another account."""
    with temporary() as path:
        yield path


@needs_root
@pytest.mark.parametrize("uid", [pwd.getpwnam("nobody").pw_uid, 65530], ids=["named", "nameless"])
def test_as_an_ordinary_user_the_servers_are_theirs(theirs: Path, supervise: Supervise, uid: int) -> None:
    """
    Started by an ordinary user, from nothing, both servers run as that user, also if the number has no name.
    """
    python = interpreter_for_all()
    prefix = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    if (
        uid == 65530
        and subprocess.run(
            [*prefix, "unshare", "--user", "true"], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip(
            "this machine lets nobody make user namespaces, which initdb needs under a nameless number"
        )
    os.chown(theirs, uid, uid)
    process = supervise(theirs / "home", prefix=prefix, python=python)
    assert {uid} == set(numbers(process)[1::2])
    output, errors = process.communicate("go\n", timeout=PATIENCE_S)
    assert ("7\n", 0) == (output, process.returncode), errors


def interpreter_for_all() -> str:
    """A Python of our version that another account can execute; the usual one may lie in the home of root."""
    candidates = [sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"]
    for candidate in candidates:
        path = Path(candidate).resolve()
        with contextlib.suppress(OSError):
            if path.is_file() and all(parent.stat().st_mode & 0o001 for parent in path.parents):
                return candidate
    pytest.skip("no Python of this version that another account can execute")
