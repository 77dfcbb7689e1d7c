"""
Starting the job's own process.

`fork` and `execve` by hand, not `subprocess`: the order of the steps between them matters (group before account, death
signal after account), and each has its own meaning when it fails.
"""

import os
import resource
import signal
import struct
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NoReturn

import msgspec

from kettle.execution.attempt import Account
from kettle.execution.cgroups import Cgroup
from kettle.execution.linux import die_with_parent

Step = Literal["group", "account", "directory", "input", "output", "error", "limits", "program"]
_STEPS: Final[tuple[Step, ...]] = (
    "group", "account", "directory", "input", "output", "error", "limits", "program",
)  # fmt: skip
_FAILURE: Final = struct.Struct("ii")
_UMASK: Final = 0o022
_SHEBANG_BYTES: Final = 256


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """
    What to execute, and in which surroundings.
    """

    path: str
    arguments: Sequence[str]
    """Without the name of the program itself."""
    environment: Mapping[str, str]
    directory: str
    stdin: str
    stdout: str
    stderr: str
    account: Account | None = None
    core_bytes: int = 0


class LaunchError(Exception):
    """
    The process could not be started.  `step` says where it failed, `errno` why; the message is for people.
    """

    def __init__(self, step: Step, errno: int, message: str) -> None:
        super().__init__(message)
        self.step: Step = step
        self.errno = errno


def launch(program: Program, cgroup: Cgroup | None = None) -> int:
    """
    Start the program in a session of its own; returns its pid once it really is that program.

    Raises:
        LaunchError: some step failed; nothing is left running.
    """
    report_fd, child_fd = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _become(program, cgroup, child_fd)
    os.close(child_fd)
    try:
        failure = os.read(report_fd, _FAILURE.size)  # empty: `execve` closed the other end
    finally:
        os.close(report_fd)
    if not failure:
        return pid
    os.waitpid(pid, 0)
    index, errno = _FAILURE.unpack(failure)
    raise LaunchError(_STEPS[index], errno, _sentence(program, _STEPS[index], errno))


def _become(program: Program, cgroup: Cgroup | None, report_fd: int) -> NoReturn:
    """
    In the child: become the program, or say which step failed.
    """
    step = 0
    try:
        parent = os.getppid()
        os.setsid()
        if cgroup is not None:
            cgroup.join()
        step = 1
        if program.account is not None:
            os.setgroups([])
            os.setresgid(program.account.gid, program.account.gid, program.account.gid)
            os.setresuid(program.account.uid, program.account.uid, program.account.uid)
        die_with_parent()
        if os.getppid() != parent:
            os._exit(1)  # the parent died before its death could reach us
        step = 2
        os.umask(_UMASK)
        os.chdir(program.directory)
        for step, (fd, path, flags) in enumerate(_streams(program), start=3):  # noqa: B020, PLW2901 - the step that fails
            _open_as(fd, path, flags)
        step = 6
        resource.setrlimit(resource.RLIMIT_CORE, (program.core_bytes, program.core_bytes))
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)  # Python ignores the first two, the zygote the third
        step = 7
        os.execve(program.path, [program.path, *program.arguments], program.environment)
    except OSError as error:
        os.write(report_fd, _FAILURE.pack(step, error.errno or 0))
    except ValueError:  # a NUL byte in an argument, or a limit that cannot be raised
        os.write(report_fd, _FAILURE.pack(step, 22))
    finally:
        os._exit(127)


def _streams(program: Program) -> tuple[tuple[int, str, int], ...]:
    create = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    same = program.stdout == program.stderr and program.stdout != os.devnull
    return (
        (0, program.stdin, os.O_RDONLY),
        (1, program.stdout, create),
        (2, program.stderr, os.O_WRONLY | os.O_APPEND if same else create),
    )


def _open_as(fd: int, path: str, flags: int) -> None:
    opened = os.open(path, flags | os.O_NOCTTY, 0o644)
    if opened == fd:
        os.set_inheritable(fd, True)
        return
    os.dup2(opened, fd, inheritable=True)
    os.close(opened)


def _sentence(program: Program, step: Step, errno: int) -> str:
    why = os.strerror(errno)
    match step:
        case "program":
            return f"cannot execute {program.path}: {_why_not_executable(program, errno)}"
        case "directory":
            return f"cannot enter {program.directory}: {why}"
        case "input":
            return f"cannot open {program.stdin} as standard input: {why}"
        case "output":
            return f"cannot open {program.stdout} as standard output: {why}"
        case "error":
            return f"cannot open {program.stderr} as standard error: {why}"
        case "group":
            return f"cannot put the job into its control group: {why}"
        case "account":
            return f"cannot become the job's account: {why}"
        case "limits":
            return f"cannot set the job's limits: {why}"


def _why_not_executable(program: Program, errno: int) -> str:
    """
    The kernel says the same of a missing file and of a missing interpreter; people need to know which.
    """
    path = os.path.join(program.directory, program.path)  # noqa: PTH118 - an absolute one stays what it is
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - short
            head = file.read(_SHEBANG_BYTES)
    except OSError:
        return os.strerror(errno)
    if not head.startswith(b"#!"):
        unfit = "it is neither a program for this machine nor a script that names its interpreter"
        return f"{os.strerror(errno)}: {unfit}" if errno == 8 else os.strerror(errno)
    interpreter = head[2:].split(b"\n")[0].strip().split(b" ")[0].decode(errors="replace")
    if errno == 2:
        return f"bad interpreter: {interpreter!r} does not exist on this machine"
    return f"{os.strerror(errno)} (its interpreter is {interpreter!r})"
