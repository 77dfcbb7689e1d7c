"""
The side of a command that has just started: it asks the command server of its context to be it, see docs/decisions/0165.

A loop of a thousand commands spends its time here, so nothing is imported that is not part of the interpreter: a module
more is a quarter of a millisecond more, `os` and `socket` are four.  `launch.c` does the same where there was a compiler.
"""

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
_PRIME = 2**61 - 1
_ANSWER_BYTES = 16
_STREAMS = 3
"""Standard input, output and errors."""
_NAMESPACES = "cgroup", "ipc", "mnt", "net", "pid", "user", "uts"
_RIGHTS = (
    *(b"Uid:", b"Gid:", b"Groups:", b"CapInh:", b"CapPrm:", b"CapEff:", b"CapBnd:", b"CapAmb:"),
    *(b"NoNewPrivs:", b"Seccomp:", b"Seccomp_filters:", b"Cpus_allowed:", b"Mems_allowed:"),
    *(b"SigBlk:", b"SigIgn:"),  # as `nohup` has them
)
_NOT_EVERYWHERE = "attr/current", "loginuid", "sessionid"
"""Files of a process that a kernel has not always: its label for AppArmor or SELinux, and what its audit knows it by."""
_JOBS = b"_CONDOR_JOB_AD", b"KETTLE_JOB_AD"
"""Variables of jobs, which leave no processes behind."""
_READ_AT_START = b"LC_", b"LANG", b"PYTHON", b"LD_", b"MALLOC_", b"GLIBC_", b"OPENSSL_", b"KETTLE_FAULT"
"""Beginnings of variables that an interpreter, a library or a module of ours reads once."""


class NoServerError(Exception):
    """There is no server for this process, and none can be: it has rights or limits that cannot be told."""


def context(installation: str = "") -> bytes:
    """
    All that a process has from its parent, and that a fork of another process would not have: its rights, and the variables that
    are read once; with what tells its installation. Two processes may do each other's work if these are the same bytes.

    Raises NoServerError or OSError.
    """
    if posix.getuid() != posix.geteuid() or posix.getgid() != posix.getegid():
        raise NoServerError
    read_at_start = (b"%s=%s" % item for item in posix.environ.items() if item[0].startswith(_READ_AT_START))
    return b"\n".join((rights(), *sorted(read_at_start), installation.encode()))


def rights(process: int = 0) -> bytes:
    """
    What the kernel says of a process: identity, rights, namespaces, control groups, limits, confinement, and the login on whose
    account it writes down what is done (audit).

    Raises OSError: it is gone, or has more rights than we have.
    """
    place = f"/proc/{process or 'self'}"
    status = _read(f"{place}/status").split(b"\n")
    parts = [
        *(line for line in status if line.startswith(_RIGHTS)),
        _read(f"{place}/limits"),
        _read(f"{place}/cgroup"),
        *(posix.readlink(f"{place}/ns/{name}").encode() for name in _NAMESPACES),
        posix.readlink(f"{place}/root").encode("utf-8", "surrogateescape"),
        _read(f"{place}/oom_score_adj"),
        *(_if_there(f"{place}/{name}") for name in _NOT_EVERYWHERE),
        b"%d" % posix.getpriority(posix.PRIO_PROCESS, process),
        b"%d" % posix.sched_getscheduler(process),
    ]
    return b"\n".join(parts)


def directory() -> int:
    """
    A descriptor of where this person's servers have their sockets; made if there is none.

    Who may rename what is above it, as the one whose XDG_RUNTIME_DIR came along with `sudo -E`, cannot put anything in its place.

    Raises:
        NoServerError: somebody else may write there.
        OSError: it cannot be made.
    """
    given = posix.environ.get(b"XDG_RUNTIME_DIR", b"").decode("utf-8", "surrogateescape")
    path = f"{given}/kettle" if given.startswith("/") else f"/tmp/kettle-{posix.getuid()}"  # noqa: S108 - looked at below
    flags = posix.O_PATH | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
    try:
        where = posix.open(path, flags)
    except FileNotFoundError:
        posix.mkdir(path, 0o700)
        where = posix.open(path, flags)
    found = posix.fstat(where)
    if found.st_mode != 0o040700 or found.st_uid != posix.getuid():
        posix.close(where)
        raise NoServerError
    return where


def socket_path(where: int, what: bytes) -> str:
    """The address of the server of a context, for the process that has the directory open."""
    return f"/proc/self/fd/{where}/commands-{int.from_bytes(what, 'big') % _PRIME:016x}"


def wanted() -> bool:
    """Whether the person, and the place, let a command be carried out by a server."""
    environ = posix.environ
    return environ.get(VARIABLE.encode()) != b"off" and not any(name in environ for name in _JOBS)


def end_if_carried_out(name: str, installation: str) -> None:
    """
    End this process with the exit status of the command, if a server has carried it out with our words; return if none has.

    The order has the name of the command, the file that it was started by, and its arguments.
    """
    status = forked([name, *sys.argv], installation)
    if status is not None:
        posix._exit(status)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - its name where `os` is not loaded


def forked(words: list[str], installation: str = "") -> int | None:
    """
    Have the server of this context be `words`, with our streams, directory and variables, until it has ended: its exit status.

    None: there is no such server, or it cannot do it. Nothing has happened then.
    """
    try:
        ask = _asked(words, installation)
    except (OSError, NoServerError):
        return None
    if ask is None:
        return None
    try:
        answer = ask.recv(_ANSWER_BYTES)
    except KeyboardInterrupt:
        return 130
    except ConnectionResetError:
        return None  # the server has ended, and has not read the order
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
        return 128 - status  # a signal that does not end us
    return status


def _asked(words: list[str], installation: str) -> _socket.socket | None:
    """
    The connection on which a server has been sent its order; None: it is not to be.

    Raises NoServerError or OSError.
    """
    if not wanted():
        return None
    what = context(installation)
    ask = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC, 0)
    if ask.fileno() < _STREAMS:
        return None  # a stream of ours is closed, and the command would have the connection in its place
    where = directory()
    ask.connect(socket_path(where, what))
    posix.close(where)
    return ask if _is_ours(ask) and _ordered(ask, what, words) else None


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


def _read(path: str) -> bytes:
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(fd, 65536)
    finally:
        posix.close(fd)


def _if_there(path: str) -> bytes:
    """What a file says, without zero bytes: some labels end with one, and they separate the parts of an order."""
    try:
        return _read(path).replace(b"\0", b"")
    except OSError:
        return b""
