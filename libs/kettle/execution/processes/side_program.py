"""
A program beside a running job: it is started by a child process, because the job could interfere with the process that
starts it.

`kettle.execution.processes.launch.launch` changes its caller for a moment: its real account, by which a job could
signal it, and its control group, in which it would be frozen with the job. Here only the child has these, and the
starter waits for it with a deadline.
"""

import os
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from kettle.execution.attempts.job_spec import Account
from kettle.execution.processes import namespaces
from kettle.execution.processes.isolation import lock_privileges
from kettle.execution.processes.launch import SIGNALS, Program
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.linux import signal_child

_ERRNO: Final = struct.Struct("!i")


class SpawnError(Exception):
    """The program could not be started; the message says why."""


class SpawnedProgram:
    """A child process that becomes a program; `told` is readable when it has become one, or has failed."""

    def __init__(self, pid: int, told: int, path: str) -> None:
        self.pid = pid
        self.told = told
        self._path = path

    def finish(self) -> None:
        """
        Call this when `told` is readable: the child is the program now.

        Raises:
            BirthError: it is not, and ends; the caller has to wait for it.
        """
        try:
            said = os.read(self.told, _ERRNO.size)
        finally:
            os.close(self.told)
            self.told = -1
        if said:
            raise SpawnError(f"{self._path} cannot be run there: {os.strerror(*_ERRNO.unpack(said))}")

    def abandon(self) -> None:
        """End the child, whatever keeps it, if it has not ended; somebody has to wait for it."""
        if self.told >= 0:
            os.close(self.told)
            self.told = -1
        signal_child(self.pid, signal.SIGKILL)


def spawn_beside(cgroup: Cgroup | None, program: Program, *, job: int = 0) -> SpawnedProgram:
    """
    Begin a program with streams or a terminal of its own, as its account, isolated as the process `job` is.

    Raises OSError: there can be no child.
    """

    def join() -> None:
        enclosure = program.enclosure
        if enclosure is not None and enclosure.mounts:
            namespaces.join(job)
        become_account(program.account)
        if enclosure is not None and enclosure.isolation.no_new_privileges:
            lock_privileges()

    return spawn(program, cgroup, join)


def spawn(program: Program, cgroup: Cgroup | None, join: Callable[[], None]) -> SpawnedProgram:
    """
    Begin a program whose child of ours first does `join`: become who it is to be, where it is to be. Raises OSError.
    """
    told, tell = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(told)
        os.close(tell)
        raise
    if child == 0:
        _become(program, cgroup, join, tell)
    os.close(tell)
    return SpawnedProgram(child, told, program.path)


def become_account(account: Account | None) -> None:
    """Change to the account permanently."""
    if account is not None:
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)


def _become(program: Program, cgroup: Cgroup | None, join: Callable[[], None], tell: int) -> NoReturn:
    """In the child: nothing is written if all goes well, because the pipe closes itself."""
    try:
        os.setsid()
        _let_go(tell, *(program.streams or ()))
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if cgroup is not None:
            cgroup.join()
        streams = (os.open(program.terminal, os.O_RDWR),) * 3 if program.terminal else program.streams
        assert streams is not None
        join()
        os.chdir(program.directory)
        for descriptor, fd in enumerate(streams):
            os.dup2(fd, descriptor)
        os.execve(  # noqa: S606 - no shell of ours, which the job's words have nothing to do with
            program.path, [program.path, *program.arguments], dict(program.environment)
        )
    except OSError as error:
        os.write(tell, _ERRNO.pack(error.errno or 0))
    except BaseException as error:  # noqa: BLE001 - the runner of this process: it says why and ends it
        sys.excepthook(type(error), error, error.__traceback__)
        os.write(tell, _ERRNO.pack(0))
    finally:
        os._exit(1)


def _let_go(*kept: int) -> None:
    """
    What is open of our parent's is not kept open by a child that the job may stop: its end has to be seen.
    """
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - short
        if (fd := int(name)) > 2 and fd not in kept:
            with suppress(OSError):  # the descriptor of the list itself
                os.close(fd)
