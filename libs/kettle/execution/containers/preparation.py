"""
What comes before a container is started, in a process of its own that can be ended at any moment.

Unpacking an image takes minutes, or as long as another job unpacks it, or never ends where a file system hangs; and an
untrusted archive can take any amount of memory and time.  So the starter forks a child for it, and continues to listen
to its startd.  The child has limits of its own; it is not in the job's control group, whose counts are the job's, and
whose memory may be less than it takes to unpack anything.  It works in the sandbox, where the startd finds it when it
has to clean up after a killed starter.
"""

import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn

import msgspec

from kettle.execution.containers.policy import ContainerError, machine_error
from kettle.execution.containers.runtimes.runtime import ContainerSpec
from kettle.execution.system.linux import PAGE_KIB, children_of
from kettle_wire.codes import HoldCode

MEMORY_BYTES: Final = 512 << 20
"""More than the widest window of the usual compressions."""
CPU_S: Final = 3600

Work = Callable[[], tuple[ContainerSpec, int]]
"""Makes a box; with it a descriptor that keeps its image, or -1."""


class _Answer(msgspec.Struct, frozen=True):
    box: ContainerSpec | None = None
    error: str = ""
    code: int = 0
    subcode: int = 0


class Builder:
    """A child at work; `fileno` is readable when it has ended or is about to."""

    def __init__(self, pid: int, line: socket.socket, answer: int) -> None:
        self._pid = pid
        self._line = line
        self._answer = answer

    def fileno(self) -> int:
        """The descriptor to be polled."""
        return self._line.fileno()

    def result(self) -> tuple[ContainerSpec, int]:
        """
        What was made.  Blocks until the child has ended.

        Raises:
            ContainerError: it could not be made.
        """
        _, fds, _, _ = socket.recv_fds(self._line, 1, 1)
        self._ended()
        with open(self._answer, "rb", closefd=False) as file:
            file.seek(0)
            said = file.read()
        try:
            answer = msgspec.msgpack.decode(said, type=_Answer)
        except msgspec.DecodeError as error:
            raise machine_error("the process that prepared the container was killed") from error
        if answer.box is None:
            raise ContainerError(answer.error, code=answer.code, subcode=answer.subcode)
        return answer.box, fds[0] if fds else -1

    def end(self) -> None:
        """Kill it if it is still running."""
        if self._pid in children_of(os.getpid()):
            with suppress(ProcessLookupError):  # it is ending just now
                os.kill(self._pid, signal.SIGKILL)
        self._ended()

    def _ended(self) -> None:
        with suppress(ChildProcessError):  # as always: nobody counts it
            os.waitpid(self._pid, 0)


@contextmanager
def building(work: Work, place: str) -> Generator[Builder]:
    """
    Do `work` in a child, in the directory `place`; nothing is left of it afterwards.

    For processes with one thread only.  What the child uses is not counted as the job's: while it works, the kernel
    collects our children, and forgets what they used.
    """
    ours, theirs = socket.socketpair()
    answer = os.memfd_create("answer", os.MFD_CLOEXEC)
    former = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with ours:
            with theirs:
                pid = os.fork()
                if pid == 0:
                    _work(work, place, theirs.fileno(), answer)
            builder = Builder(pid, ours, answer)
            try:
                yield builder
            finally:
                builder.end()
    finally:
        signal.signal(signal.SIGCHLD, former)
        os.close(answer)


def _work(work: Work, place: str, line: int, answer: int) -> NoReturn:
    """In the child."""
    lock = -1
    try:
        _close_others(line, answer)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # its own children are its own affair
        os.chdir(place)
        _limit()
        said, lock = _answered(work)
        with open(answer, "wb", closefd=False) as file:
            file.write(said)
        with socket.socket(fileno=line) as sock:
            if lock >= 0:
                socket.send_fds(sock, [b"+"], [lock])
    except BaseException as error:  # noqa: BLE001 - the runner of this process: it says why and ends it
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(0)


def _answered(work: Work) -> tuple[bytes, int]:
    encode = msgspec.msgpack.encode
    try:
        box, lock = work()
        return encode(_Answer(box)), lock
    except ContainerError as error:
        return encode(_Answer(None, _spoken(error), error.code, error.subcode)), -1
    except UnicodeEncodeError:
        bad = ContainerError("the image has a name that is no UTF-8 where something has to be mounted")
        return encode(_Answer(None, str(bad), bad.code)), -1
    except Exception as error:  # noqa: BLE001 - as above
        sys.excepthook(type(error), error, error.__traceback__)
        return encode(
            _Answer(None, f"the container cannot be prepared: {_spoken(error)}", HoldCode.StartdHeldJob)
        ), -1


def _spoken(error: Exception) -> str:
    return str(error).encode(errors="backslashreplace").decode()


def _close_others(*kept: int) -> None:
    """The startd must see the starter's end at once, so nobody else may hold its line."""
    first = 3
    for fd in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(first, fd)
        first = fd + 1


def _limit() -> None:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - short
        has = int(file.read().split()[0]) * PAGE_KIB * 1024
    for kind, most in ((resource.RLIMIT_AS, has + MEMORY_BYTES), (resource.RLIMIT_CPU, CPU_S)):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard < 0 else min(most, hard), hard))
    signal.signal(signal.SIGXCPU, _too_long)


def _too_long(_number: int, _frame: FrameType | None) -> NoReturn:
    raise ContainerError(f"it takes more than {CPU_S} s of processor time to unpack")
