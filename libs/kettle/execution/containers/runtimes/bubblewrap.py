"""
Bubblewrap: a container for any account, made of a user namespace and mounts.

Its own process would stay as the job's parent, die of the job's soft kill signal and turn a signal into an exit code.
So it is ended as soon as the job's program runs, and the job becomes a child of the starter, its subreaper.  So that
nothing is missed of a job that ends at once, bubblewrap is stopped before the job is released.

It runs outside of the container, so it has none of the job's environment: variables that tell the loader what to load
would let the job out.  The variables are among its options, which come through a descriptor.
"""

import fcntl
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Final

import msgspec

from kettle.execution.containers.policy import ContainerError, machine_error
from kettle.execution.containers.root_directory import Mount
from kettle.execution.containers.runtimes.runtime import MARK, STARTING_S, ContainerSpec, StartCheck
from kettle.execution.processes.launch import launch
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.linux import children_of, parent_of
from kettle.retry.deadline import Deadline
from kettle_wire.codes import HoldCode

_SHELL: Final = "/bin/sh"
_UNSHARE: Final = "/usr/bin/unshare"
_SETPRIV: Final = "/usr/bin/setpriv"
_SHOW: Final = '/bin/mount --bind "$1" "$2" && shift 2 && exec "$@"'
_PAUSE_S: Final = 0.001
_ABOVE: Final = 10
_MOST_WORDS: Final = 9000
"""Bubblewrap takes no more."""


def arguments(box: ContainerSpec) -> list[str]:
    """Its options, without what concerns descriptors; the job's variables are among them."""
    opened = _opened(box)
    variables = [
        word for name, value in box.program.environment.items() if name for word in ("--setenv", name, value)
    ]
    mounts = [
        word for mount in box.mounts for word in (_kind(mount), opened(mount.source), mount.destination)
    ]
    return [
        "--unshare-user", "--unshare-ipc", "--unshare-uts", "--new-session", "--cap-drop", "ALL",
        *(["--unshare-net"] if box.network == "none" else []),
        "--bind", box.skeleton, "/", "--bind", "/proc", "/proc", "--dev", "/dev",
        *mounts,
        "--remount-ro", "/", "--chdir", box.program.directory, "--clearenv", *variables,
    ]  # fmt: skip


def _shown(box: ContainerSpec) -> str:
    """Where the job's account gets to an image that is closed to it; empty: where it is."""
    return f"{box.area}/image" if box.closed and box.program.account is not None else ""


def _opened(box: ContainerSpec) -> Callable[[str], str]:
    shown, closed = _shown(box), f"{box.closed}/"
    return lambda path: f"{shown}/{path[len(closed) :]}" if shown and path.startswith(closed) else path


def _kind(mount: Mount) -> str:
    return "--dev-bind" if mount.device else "--bind" if mount.writable else "--ro-bind"


class Bubblewrap:
    """`bwrap` at `path`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def start(self, box: ContainerSpec, cgroup: Cgroup | None, check: StartCheck) -> int:
        """See `Runtime`."""
        with ExitStack() as closing:
            given = closing.enter_context(ExitStack())  # what is bubblewrap's alone as soon as that runs
            status, theirs = _pipe(closing, given)
            gate, ours = _pipe(given, closing)
            told = _told([*arguments(box), "--json-status-fd", "3", "--block-fd", "4"], closing)
            words = [self._path, "--args", "5", "--", box.program.path, *box.program.arguments]
            before = self._before(box)
            outer = launch(
                msgspec.structs.replace(
                    box.program,
                    path=[*before, *words][0],
                    arguments=[*before, *words][1:],
                    environment={MARK: box.sandbox},
                    directory="/",
                    lowers_itself=bool(before),
                    descriptors=(theirs, gate, told),
                ),
                cgroup,
            )
            given.close()
            try:
                return _Birth(outer, status, ours).job(check)
            except BaseException:
                # Its child first: when nobody holds the gate any longer, that would go on with the job.
                for pid in (*children_of(outer), outer):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(outer, 0)
                raise

    def _before(self, box: ContainerSpec) -> list[str]:
        """
        What shows the job's account an image to which it cannot get, in a mount namespace of this container alone.
        """
        account, shown = box.program.account, _shown(box)
        if account is None or not shown:
            return []
        os.mkdir(shown, 0o755)  # noqa: PTH102
        become = [_SETPRIV, f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--"]
        return [
            _UNSHARE, "-m", "--propagation", "slave", "--", _SHELL, "-c", _SHOW, "sh", box.closed, shown, *become,
        ]  # fmt: skip

    def end(self) -> None:
        """See `Runtime`: all of it is in the area."""


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    """A pipe whose ends are above those that a program is given, each closed with its stack."""
    read, written = os.pipe()
    return _raised(read, reading), _raised(written, writing)


def _told(words: list[str], closing: ExitStack) -> int:
    """
    A descriptor from which bubblewrap reads its options; they must not contain the separator.

    Raises:
        ContainerError: the job's variables cannot be passed like that.
    """
    if len(words) > _MOST_WORDS:
        raise ContainerError(
            "the job has more variables than bubblewrap takes", code=HoldCode.FailedToCreateProcess
        )
    if any("\0" in word for word in words):
        raise ContainerError(
            "a variable of the job or of its image has a NUL byte", code=HoldCode.FailedToCreateProcess
        )
    fd = _raised(os.memfd_create("options", os.MFD_CLOEXEC), closing)
    with open(fd, "wb", closefd=False) as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in words))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _raised(fd: int, closing: ExitStack) -> int:
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(fd)
    closing.callback(os.close, high)
    return high


class _Birth:
    """From a running bubblewrap to a job that is our child."""

    def __init__(self, outer: int, status: int, gate: int) -> None:
        self._outer = outer
        self._status = status
        self._gate = gate
        self._said = b""
        self._deadline = Deadline(STARTING_S)

    def job(self, check: StartCheck) -> int:
        """The pid of the job's program."""
        inner = self._inner()
        here = os.stat("/")  # noqa: PTH116 - beside the next one
        for _ in self._looks():  # until it has got a root of its own bubblewrap still has to help it
            with suppress(OSError):
                there = os.stat(f"/proc/{inner}/root")  # noqa: PTH116 - short
                if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
                    break
            if _ended(inner):
                raise self._failed()
        os.kill(self._outer, signal.SIGSTOP)
        ours = _command(self._outer)
        check(inner)
        os.write(self._gate, b"+")
        for _ in self._looks():
            if (now := _command(inner)) and now != ours:
                break
            if (code := _ended(inner)) is not None:
                if code == 1 << 8 and not self._ran():
                    raise self._failed()
                if code == 1 << 8:
                    return self._outer  # it ends with 1 as well, and nobody has waited for it
                break
        os.kill(self._outer, signal.SIGKILL)
        os.waitpid(self._outer, 0)
        return inner

    def _inner(self) -> int:
        while b"\n" not in self._said:
            if not self._read():
                raise self._failed()
        said = msgspec.json.decode(self._said.partition(b"\n")[0])
        inner = int(said["child-pid"])
        if parent_of(inner) != self._outer:  # it will get signals, so it has to be a process of this job
            raise self._failed()
        return inner

    def _read(self) -> bool:
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        if not poll.poll(self._deadline.left() * 1000):
            raise machine_error(f"bubblewrap did not set the container up within {STARTING_S:g} s")
        piece = os.read(self._status, 4096)
        self._said += piece
        return bool(piece)

    def _looks(self) -> Iterator[None]:
        """There is no event to wait for: the execution of a program causes no notification."""
        while not self._deadline.passed:
            yield
            time.sleep(_PAUSE_S)
        raise machine_error(f"bubblewrap did not set the container up within {STARTING_S:g} s")

    def _ran(self) -> bool:
        """
        Whether a program that ended with 1 was the job's: only then does bubblewrap report an exit code.
        """
        os.kill(self._outer, signal.SIGCONT)
        while self._read():
            pass
        return b'"exit-code"' in self._said

    def _failed(self) -> ContainerError:
        return machine_error("bubblewrap could not set the container up on this machine")


def _command(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - short
            return file.read()
    except OSError:
        return b""


def _ended(pid: int) -> int | None:
    """The wait status of a process that has ended and was not waited for; None if it lives."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - short
            text = file.read()
    except OSError:
        return 1 << 8  # waited for: only a bubblewrap that failed does that before it is stopped
    fields = text[text.rindex(b")") + 2 :].split()
    return int(fields[49]) if fields[0] in {b"Z", b"X"} else None
