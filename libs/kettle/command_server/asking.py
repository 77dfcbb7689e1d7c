"""
The side of a command that has just started: it asks the command server of its context to be it, see docs/decisions/0165.

A loop of a thousand commands spends its time here, so nothing is imported that is not part of the interpreter: a module
more is a quarter of a millisecond more, `os` and `socket` are four.
"""

import _imp
import _socket
import posix
import sys

VARIABLE = "KETTLE_COMMAND_SERVER"
"""`off`: each command is carried out by an interpreter of its own, and starts no server."""
HAND_BACK = b"x"
"""The answer of a server that does not carry out a command: nothing has happened."""
LONGEST = 1 << 17
"""Bytes of an order; one with more words or variables is not sent."""
LOST = 70
"""The exit status, EX_SOFTWARE, of a command whose server ended before it."""
_ERRORS = 2
"""The highest descriptor of the standard streams."""
_KEY = 0x6B6574746C65
_ANSWER_BYTES = 16
_NAMESPACES = "cgroup", "ipc", "mnt", "net", "pid", "user", "uts"
_RIGHTS = (
    *(b"Uid:", b"Gid:", b"Groups:", b"CapInh:", b"CapPrm:", b"CapEff:", b"CapBnd:", b"CapAmb:"),
    *(b"NoNewPrivs:", b"Seccomp:", b"Seccomp_filters:", b"Cpus_allowed:", b"Mems_allowed:"),
)
_LOGIN = "/proc/self/loginuid", "/proc/self/sessionid", "/proc/self/attr/current"
"""In whose name the kernel's audit writes down what a process does, and its label of SELinux or its profile of AppArmor."""
_JOBS = b"_CONDOR_JOB_AD", b"KETTLE_JOB_AD"
"""Variables of jobs, which leave no processes behind."""
_READ_AT_START = b"LC_", b"LANG", b"PYTHON", b"LD_", b"MALLOC_", b"GLIBC_", b"OPENSSL_", b"KETTLE_FAULT"
"""Beginnings of variables that an interpreter, a library or a module of ours reads once."""


class NoServerError(Exception):
    """There is no server for this process, and none can be: it has rights or limits that cannot be told."""


def context() -> bytes:
    """
    All that a process has from its parent, and that a fork of another process would not have: its identity, rights, login,
    label, namespaces, control groups, limits and installation. Two processes may do each other's work if these are the same bytes.

    Raises NoServerError or OSError.
    """
    if posix.getuid() != posix.geteuid() or posix.getgid() != posix.getegid():
        raise NoServerError
    status = _read("/proc/self/status").split(b"\n")
    read_at_start = sorted(item for item in posix.environ.items() if item[0].startswith(_READ_AT_START))
    parts = [
        *(line for line in status if line.startswith(_RIGHTS)),
        _read("/proc/self/limits"),
        _read("/proc/self/cgroup"),
        *(posix.readlink(f"/proc/self/ns/{name}").encode() for name in _NAMESPACES),
        posix.readlink("/proc/self/root").encode("utf-8", "surrogateescape"),
        _read("/proc/self/oom_score_adj"),
        b"%d" % posix.getpriority(posix.PRIO_PROCESS, 0),
        *(_read_if_any(path) for path in _LOGIN),
        *(b"%s=%s" % item for item in read_at_start),
        "\n".join((sys.version, sys.executable, *sys.path)).encode("utf-8", "surrogateescape"),
    ]
    return b"\n".join(parts)


def directory() -> str:
    """
    Where this person's servers have their sockets; made if there is none.

    Raises:
        NoServerError: somebody else may write there.
        OSError: it cannot be made.
    """
    given = posix.environ.get(b"XDG_RUNTIME_DIR", b"").decode("utf-8", "surrogateescape")
    path = f"{given}/kettle" if given.startswith("/") else f"/tmp/kettle-{posix.getuid()}"  # noqa: S108 - looked at below
    try:
        found = posix.lstat(path)
    except FileNotFoundError:
        posix.mkdir(path, 0o700)
        found = posix.lstat(path)
    if found.st_mode != 0o040700 or found.st_uid != posix.getuid():
        raise NoServerError
    return path


def socket_path(where: str, what: bytes) -> str:
    """The address of the server of a context."""
    return f"{where}/commands-{_imp.source_hash(_KEY, what).hex()}"


def wanted() -> bool:
    """Whether the person, and the place, let a command be carried out by a server."""
    environ = posix.environ
    return environ.get(VARIABLE.encode()) != b"off" and not any(name in environ for name in _JOBS)


def end_if_carried_out(name: str) -> None:
    """
    End this process with the exit status of the command, if a server has carried it out with our words; return if none has.
    """
    status = forked([name, *sys.argv[1:]])
    if status is not None:
        posix._exit(status)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - its name where `os` is not loaded


def forked(words: list[str]) -> int | None:
    """
    Have the server of this context be `words`, with our streams, directory and variables, until it has ended: its exit status.

    None: there is no such server, or it cannot do it. Nothing has happened then.
    """
    if not wanted():
        return None
    try:
        ask = _asked(words)
    except (OSError, NoServerError):
        return None
    try:
        answer = ask.recv(_ANSWER_BYTES)
    except KeyboardInterrupt:
        return 130
    except ConnectionResetError:  # the kernel says so, and not the end of the data, if our order was not read
        return None
    except OSError:
        answer = b""
    if answer == HAND_BACK:
        return None
    if not answer:
        posix.write(
            2,
            b"%s: the process that carried it out was ended; look whether it was done\n" % words[0].encode(),
        )
        return LOST
    status = int(answer)
    if status < 0:
        posix.kill(posix.getpid(), -status)
    return status


def _asked(words: list[str]) -> _socket.socket:
    """
    Give the order; the connection over which its end is told.

    Raises NoServerError or OSError: nobody has read it.
    """
    what = context()
    ask = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC, 0)
    if ask.fileno() <= _ERRORS:  # one of our streams is closed, and this has its number
        raise NoServerError
    ask.connect(socket_path(directory(), what))
    if not _is_ours(ask) or not _ordered(ask, what, words):
        raise NoServerError
    return ask


def _is_ours(ask: _socket.socket) -> bool:
    """Whether the one that listens is of our account."""
    credentials = ask.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder) == posix.getuid()


def _ordered(ask: _socket.socket, what: bytes, words: list[str]) -> bool:
    """Send the order, as `kettle.command_server.order` reads it; False: it is too long."""
    encoded = [word.encode("utf-8", "surrogateescape") for word in words]
    variables = [b"%s=%s" % item for item in posix.environ.items()]
    mask = posix.umask(0o077)
    posix.umask(mask)
    head = (what, b"%o" % mask, b"%d" % len(encoded))
    data = b"\0".join((*head, *encoded, *variables))
    if len(data) > LONGEST:
        return False
    here = posix.open(".", posix.O_PATH | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        descriptors = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2, here))
        ask.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
    finally:
        posix.close(here)
    return True


def _read_if_any(path: str) -> bytes:
    """Of a kernel without the facility, nothing."""
    try:
        return _read(path)
    except OSError:
        return b""


def _read(path: str) -> bytes:
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(fd, 65536)
    finally:
        posix.close(fd)
