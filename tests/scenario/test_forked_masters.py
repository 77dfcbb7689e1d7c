"""
A master of tests is forked, and so is its zygote; nobody can tell them from those that `kettle up` executes.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from kettle.execution.system.linux import children_of, parent_of
from kettle.pool import startup
from kettle.pool.home import open_home
from kettle.pool.processes import wait_gone
from kettle.runtime import EXIT_SETTINGS
from kettle.testing import warm_masters
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.master.zygote.identity import PROGRAM, ROOM, room
from kettle_services.master.zygote.messages import GO, LONGEST, Answer, Launch, Launched

MASTER = [sys.executable, "-P", "-m", startup.MASTER]


def shown(pid: int, what: str) -> list[str]:
    """The parts of a file in `/proc` that are not empty."""
    return [part.decode() for part in Path(f"/proc/{pid}/{what}").read_bytes().split(b"\0") if part]


def variables(pid: int) -> dict[str, str]:
    """The environment that `/proc` shows."""
    return dict(part.split("=", 1) for part in shown(pid, "environ"))


def opened(pid: int) -> dict[str, str]:
    """What a process has open by descriptor, without what it closes meanwhile."""
    found = dict[str, str]()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found[path.name] = str(path.readlink())
    return found


def zygote_of(master: int) -> int:
    """The process that forks the services."""
    return next(pid for pid in children_of(master) if PROGRAM in shown(pid, "cmdline"))


async def test_the_master_and_its_zygote_are_shown_as_what_they_are(pool: ThrowawayPool) -> None:
    """
    Command line, environment, session, directory, log and lock are those of a master that was executed; its zygote is its
    child, carries the pool's mark and holds nothing of the master's, and the services are the zygote's.
    """
    master = pool.state.pid
    assert MASTER == shown(master, "cmdline")
    assert PROGRAM in shown(parent_of(master) or 0, "cmdline")
    environ, home = variables(master), pool.home.resolve()
    assert ROOM not in environ
    assert str(home) == environ["KETTLE_HOME"]
    assert master == os.getsid(master)
    assert home == Path(f"/proc/{master}/cwd").readlink()
    files = opened(master)
    log = str(home / "log" / "master.log")
    assert ["/dev/null", log, log] == [files[each] for each in "012"]
    assert str(open_home(home).lock) == files[environ["KETTLE_MASTER_LOCK_FD"]]

    zygote = zygote_of(master)
    assert ["-P", "-m", PROGRAM] == shown(zygote, "cmdline")[1:4]
    mark = {name: value for name, value in environ.items() if name.startswith("_KETTLE_ANCESTOR_")}
    assert mark
    assert mark.items() <= variables(zygote).items()
    assert zygote == os.getsid(zygote)
    assert str(open_home(home).lock) not in opened(zygote).values()
    assert {zygote} == {parent_of(pool.pid(role)) for role in ("schedd", "startd", "gateway")}
    lifeline = variables(pool.pid("schedd"))["KETTLE_LIFELINE_FD"]
    assert files[lifeline] == opened(pool.pid("schedd"))[lifeline]


async def test_the_next_zygote_is_executed(pool: ThrowawayPool) -> None:
    """After the end of the one that was forked, services go on, and the next is a program of its own."""
    master, negotiator, schedd = pool.state.pid, pool.pid("negotiator"), pool.pid("schedd")
    first = zygote_of(master)
    handle = os.pidfd_open(first)
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
    pool.kill("negotiator")
    restarted = await pool.restarted("negotiator", after=negotiator)
    second = zygote_of(master)
    assert (second, "kettle_services.negotiator") == (
        parent_of(restarted),
        next(word for word in shown(second, "cmdline") if word.endswith("negotiator")),
    )
    assert first != second
    assert schedd == pool.pid("schedd")


def test_what_could_be_told_apart_is_executed(tmp_path: Path) -> None:
    """
    A master with variables that modules may read, or whose starter makes files with another mask, has an interpreter of its own;
    one that fails says so in its log and by its status, forked or not.
    """
    refused = {**os.environ, "KETTLE_MASTER_NONSENSE": "1", "KETTLE_HOME": str(tmp_path)}

    def ended(environ: Mapping[str, str]) -> tuple[bool, int, bool]:
        """Whether it was executed, its status, and whether its log tells what is wrong."""
        with (tmp_path / "log").open("wb") as log:
            master = warm_masters.launch(environ, tmp_path, log.fileno(), [])
            status = master.wait(PATIENCE_S)
            assert status == master.wait(PATIENCE_S)  # as it is asked while it is given up
        return isinstance(master, subprocess.Popen), status, "NONSENSE" in (tmp_path / "log").read_text()

    assert (False, EXIT_SETTINGS, True) == ended(refused)
    assert (True, EXIT_SETTINGS, True) == ended(refused | {"TZ": "UTC"})
    before = os.umask(0o027)
    try:
        assert (True, EXIT_SETTINGS, True) == ended(refused)
    finally:
        os.umask(before)


def test_a_master_is_not_killed_by_what_has_forked_it(tmp_path: Path) -> None:
    """
    Its own lifeline says when it ends: one that a zygote has forked goes on after it, unlike a service that is stopped.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        zygote = subprocess.Popen(
            [*MASTER[:3], PROGRAM, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **room()},
            pass_fds=[theirs.fileno()],
        )
    handles = list[int]()
    with ours, (tmp_path / "log").open("wb") as log:
        for number, is_master in enumerate([True, False]):
            go, told = os.pipe()
            launch = Launch(number, "asyncio", {}, str(tmp_path), is_master=is_master)
            socket.send_fds(ours, [msgspec.msgpack.encode(launch)], [log.fileno(), go])
            answer = msgspec.msgpack.decode(ours.recv(LONGEST), type=Answer)
            assert isinstance(answer, Launched)
            handles.append(os.pidfd_open(answer.pid))
            signal.pidfd_send_signal(handles[-1], signal.SIGSTOP)
            os.write(told, GO)
    assert 0 == zygote.wait(PATIENCE_S)
    try:
        assert wait_gone(handles[1], PATIENCE_S)
        assert not wait_gone(handles[0], 0.0)
    finally:
        for handle in handles:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)
