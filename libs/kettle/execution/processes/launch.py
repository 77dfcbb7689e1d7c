"""
Starting the job's own process.

With `posix_spawn`, which shares memory with its parent until the program is there: a `fork` of the starter would cost
each job 3 ms of copied pages, here and in the child, half of all that a short job costs.  What `posix_spawn` cannot do
in the child, the starter does to itself for that moment: it has one thread and nothing else to do.

The price: no parent-death signal.  A job whose starter was killed is ended by the startd, which sees the line break.
"""

import errno as errno_codes
import os
import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final, Literal

import msgspec

from kettle.execution.attempts.job_spec import Account
from kettle.execution.processes.isolation import Enclosure, files_of, in_thread
from kettle.execution.processes.kept_namespaces import NamespaceKeeper
from kettle.execution.sandbox.directory import acting_as
from kettle.execution.sandbox.safe_open import open_place
from kettle.execution.system.cgroup import Cgroup

Step = Literal["group", "account", "isolation", "directory", "input", "output", "error", "program"]
_SHEBANG_BYTES: Final = 256
SIGNALS: Final = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
"""
Signals that were ignored where the pool was started (a shell in the background, `nohup`) must not be ignored in the
job.
"""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What to execute, and in which surroundings."""

    path: str
    arguments: Sequence[str]
    """Without the name of the program itself."""
    environment: Mapping[str, str]
    directory: str
    stdin: str
    stdout: str
    stderr: str
    account: Account | None = None
    lowers_itself: bool = False
    """
    It is started with our rights, and gives them up itself for `account`'s; the streams are opened as that account.
    """
    appends: bool = False
    """Its output goes on where that of an earlier life of the program ended."""
    descriptors: Sequence[int] = ()
    """What else it gets, as descriptors 3, 4 and so on; each must be above those numbers here."""
    streams: tuple[int, int, int] | None = None
    """Descriptors here that become its streams, instead of the paths."""
    terminal: str = ""
    """The path of a terminal that becomes its streams and controls its session, instead of the paths."""
    enclosure: Enclosure | None = None
    """What it does not share with the machine; None: it shares all."""


class LaunchError(Exception):
    """
    The process could not be started.  `step` says where it failed, `errno` why; the message is for people.
    """

    def __init__(self, step: Step, errno: int, message: str) -> None:
        super().__init__(message)
        self.step: Step = step
        self.errno = errno


def launch(program: Program, cgroup: Cgroup | None = None, keeper: NamespaceKeeper | None = None) -> int:
    """
    Start the program in a session of its own; returns its pid once it really is that program.

    For processes with one thread only: the working directory and the real account change for a moment.  `keeper` has the
    namespaces of enclosed programs; None: they end with this one.

    Raises:
        LaunchError: some step failed; nothing is left running.
    """
    with ExitStack() as undo:
        enclosure = program.enclosure
        if enclosure is None or not enclosure.mounts:
            with _step("directory", program), acting_as(None if program.lowers_itself else program.account):
                os.chdir(program.directory)  # which the job may have named: with its own rights
            undo.callback(os.chdir, "/")
        try:
            actions = _actions(program, undo)
        except LaunchError as error:
            if error.errno == errno_codes.ENOENT:  # perhaps for want of the directory in which it is
                with _step("directory", program), acting_as(program.account):
                    os.stat(program.directory)  # noqa: PTH116 - as all around it
            raise
        becomes = None if program.lowers_itself else program.account
        if becomes is not None:
            with _step("account", program):
                undo.enter_context(_real_account(becomes))
        if enclosure is None:
            return _spawn(program, cgroup, actions, resets=becomes is not None)
        if keeper is None:
            keeper = NamespaceKeeper()
            undo.callback(keeper.drop)
        return in_thread(partial(_spawn_enclosed, enclosure, keeper, program, cgroup, actions))


def _spawn_enclosed(
    enclosure: Enclosure,
    keeper: NamespaceKeeper,
    program: Program,
    cgroup: Cgroup | None,
    actions: list[tuple[Any, ...]],
) -> int:
    """
    Have it executed by a child of this thread, which is isolated.

    That comes before the thread joins the group: what outlives the job is not charged to it.
    """
    with _step("isolation", program):
        enclosure.enter(keeper)
    if enclosure.mounts:
        with _step("directory", program), files_of(program.account):
            os.chdir(program.directory)
    return _spawn(program, cgroup, actions, resets=program.account is not None)


def _spawn(program: Program, cgroup: Cgroup | None, actions: list[tuple[Any, ...]], *, resets: bool) -> int:
    """Have it executed by a child of this thread, which is in the job's group only for that moment."""
    with ExitStack() as undo:
        if cgroup is not None:
            with _step("group", program):
                cgroup.join()
            # Also if the thread ends now: a group in which the kernel knows one that ends cannot be removed.
            undo.callback(cgroup.leave)
        with _step("program", program):
            return os.posix_spawn(
                program.path,
                [program.path, *program.arguments],
                program.environment,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=SIGNALS,
                resetids=resets,
            )


def _actions(program: Program, undo: ExitStack) -> list[tuple[Any, ...]]:
    """What gives the child its descriptors."""
    if program.terminal:
        # Opened by the child, after it has got a session: so it becomes the session's.
        first: list[tuple[Any, ...]] = [
            (os.POSIX_SPAWN_OPEN, 0, program.terminal, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ]
    else:
        streams = program.streams or open_streams(program, undo)
        first = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(streams)]
    return [*first, *((os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(program.descriptors, 3))]


def open_streams(program: Program, undo: ExitStack) -> list[int]:
    """
    Standard input, output and error, opened with the rights of the job until `undo`.

    Raises:
        LaunchError: one of them cannot be opened.
    """
    if program.stdin == program.stdout == program.stderr == os.devnull:
        # For all three, and for anybody.
        nothing = os.open(os.devnull, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        undo.callback(os.close, nothing)
        return [nothing] * 3
    create = os.O_WRONLY | os.O_CREAT | os.O_APPEND  # both may be one file
    if not program.appends:
        create |= os.O_TRUNC
    same = program.stdout == program.stderr and program.stdout != os.devnull
    wanted: tuple[tuple[Step, str, int], ...] = (
        ("input", program.stdin, os.O_RDONLY),
        ("output", program.stdout, create),
        ("error", program.stderr, os.O_WRONLY | os.O_APPEND if same else create),
    )
    opened: list[int] = []
    with acting_as(program.account):
        for step, path, flags in wanted:
            with _step(step, program):
                fd = os.open(path, flags | os.O_NOCTTY | os.O_CLOEXEC, 0o644)
            undo.callback(os.close, fd)
            opened.append(fd)
    return opened


@contextmanager
def _real_account(account: Account) -> Generator[None]:
    """
    Have the job's account as real and root as effective account: a child that resets its identity has the account
    permanently.
    """
    os.setresgid(account.gid, 0, 0)
    os.setresuid(account.uid, 0, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)


@contextmanager
def _step(step: Step, program: Program) -> Generator[None]:
    try:
        yield
    except OSError as error:
        errno = error.errno or 0
        raise LaunchError(step, errno, _sentence(program, step, errno)) from error
    except ValueError as error:  # a NUL byte in an argument, a name or a variable
        raise LaunchError(step, 22, f"{_sentence(program, step, 22)} ({error})") from error


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
        case "isolation":
            return f"cannot give the job directories and rights of its own: {why}"
        case "account":
            return f"cannot become the job's account: {why}"


def _beginning(program: Program) -> bytes:
    """
    What it begins with, if the job may read it and it is a file: to open a device may have any effect, and to open a pipe may
    never end.
    """
    with files_of(program.account):
        place = os.open(program.path, os.O_PATH | os.O_CLOEXEC)
        try:
            with open(open_place(place), "rb") as file:  # noqa: PTH123 - a descriptor
                return file.read(_SHEBANG_BYTES)
        finally:
            os.close(place)


def _why_not_executable(program: Program, errno: int) -> str:
    """
    The kernel reports the same error for a missing file and for a missing interpreter; people need to know which.
    """
    try:
        head = _beginning(program)
    except (OSError, ValueError):
        return os.strerror(errno)
    if not head.startswith(b"#!"):
        unfit = "it is neither a program for this machine nor a script that names its interpreter"
        return f"{os.strerror(errno)}: {unfit}" if errno == 8 else os.strerror(errno)
    interpreter = head[2:].split(b"\n")[0].strip().split(b" ")[0].decode(errors="replace")
    if errno == 2:
        return f"bad interpreter: {interpreter!r} does not exist on this machine"
    return f"{os.strerror(errno)} (its interpreter is {interpreter!r})"
