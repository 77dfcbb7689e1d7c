#!/usr/bin/env python3
"""
condor_chirp: what a program of a job asks of the access point that the job was submitted to.

A copy of this file lies on each machine that runs jobs, in the directory $_CONDOR_BIN. It stands alone: it takes any Python 3 of
the machine, or of the container, on which the job runs, and nothing else.
"""

import os
import socket
import stat
import sys
import time
from typing import Callable

HELP = """\
usage: condor_chirp COMMAND [ARGUMENT ...]

The job's ad. set_job_attr and get_job_attr take `want_io_proxy = true` in the submit file; the delayed ones do not, but
the attribute's name has to begin with Chirp. A value is an expression: text is quoted twice, for the shell and for it.

  get_job_attr NAME                 condor_chirp get_job_attr RequestMemory
  set_job_attr NAME VALUE           condor_chirp set_job_attr Stage '"second"'
  get_job_attr_delayed NAME
  set_job_attr_delayed NAME VALUE   condor_chirp set_job_attr_delayed ChirpProgress 0.75
  ulog TEXT                         condor_chirp ulog "half of it is done"

Ports of the job, which people reach through the pool's gateway from then on; KIND: tcp, http, http-prefix (Kettle's own):

  publish NAME:PORT/KIND            condor_chirp publish dashboard:8787/http; prints its address
  unpublish NAME

Files at the access point (`want_io_proxy = true`), relative to the directory of the submission:

  fetch REMOTE LOCAL                copy a file here; LOCAL - is standard output
  put [-mode MODE] [-perm PERM] LOCAL REMOTE
                                    copy a file there; LOCAL - is standard input; MODE: letters of w a t c x
  remove REMOTE
  read [-offset N] [-stride LENGTH SKIP] REMOTE LENGTH
  write [-offset N] [-stride LENGTH SKIP] REMOTE LOCAL [LENGTH]
  getdir [-l] REMOTE                list a directory; -l: with all that is known of its files
  stat REMOTE, lstat REMOTE, statfs REMOTE, readlink REMOTE
  rmdir [-r] REMOTE                 -r: with all that is in it
  link [-s] OLD NEW
  access REMOTE MODE                letters of f r w x
  chmod REMOTE PERM, chown REMOTE UID GID, lchown REMOTE UID GID
  truncate REMOTE LENGTH, utime REMOTE ACCESSED MODIFIED
  whoami, whoareyou HOST

The exit status is 0, or 1 after an error, which is said on standard error. "try again" says that the job has set or
logged too much in a short time.
"""

PIECE = 256 * 1024
PATIENCE = 120.0
ERRORS = {
    -1: "not authenticated: the cookie of .chirp.config is not that of this job",
    -2: "not authorized: the job may not do that; files, set_job_attr and ulog take `want_io_proxy = true`",
    -3: "there is nothing by that name",
    -4: "there is something by that name already",
    -5: "too big",
    -6: "there is no space for it",
    -7: "out of memory",
    -8: "invalid request: it makes no sense, or the job lacks `want_io_proxy = true`",
    -9: "too many open files",
    -10: "busy: somebody else uses it",
    -11: "try again: too much was said in a short time, or the access point has too much in hand",
    -12: "bad file descriptor",
    -13: "it is a directory",
    -14: "it is not a directory",
    -15: "the directory is not empty",
    -16: "a link cannot lead to another file system",
    -17: "offline: the access point does not answer now",
}
STAT = (
    "device",
    "inode",
    "mode",
    "nlink",
    "uid",
    "gid",
    "rdevice",
    "size",
    "blksize",
    "blocks",
    "atime",
    "mtime",
    "ctime",
)
STATFS = ("f_type", "f_bsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree")


Command = Callable[..., None]


class ChirpError(Exception):
    """What went wrong, as a sentence."""


class UsageError(Exception):
    """The command line makes no sense."""


def quoted(word: str | int) -> str:
    """A word as the protocol requires it."""
    return "".join("\\" + char if char in "\\ \n\t\r" else char for char in str(word))


class Chirp:
    """The connection to the job's starter."""

    def __init__(self) -> None:
        where = os.environ.get("_CONDOR_CHIRP_CONFIG")
        if not where:
            where = os.path.join(os.environ.get("_CONDOR_SCRATCH_DIR", "."), ".chirp.config")
        try:
            with open(where) as config:
                host, port, cookie = config.read().split()
        except (OSError, ValueError) as error:
            raise ChirpError(f"cannot read {where}: {error}; condor_chirp works in jobs only") from None
        try:
            self.socket = socket.create_connection((host.strip("<>"), int(port)), PATIENCE)
        except OSError as error:
            raise ChirpError(f"cannot connect to the job's starter at {host} port {port}: {error}") from None
        self.stream = self.socket.makefile("rb")
        self.ask("cookie", cookie)

    def say(self, *words: str | int) -> None:
        """Send a request."""
        self.socket.sendall((" ".join(map(quoted, words)) + "\n").encode())

    def result(self) -> int:
        """The number that answers it."""
        line = self.stream.readline()
        if not line:
            raise ChirpError("the job's starter has hung up")
        number = int(line)
        if number < 0:
            raise ChirpError(ERRORS.get(number, f"unknown error {number}"))
        return number

    def ask(self, *words: str | int) -> int:
        """The number that answers a request."""
        self.say(*words)
        return self.result()

    def data(self, *words: str | int) -> bytes:
        """The bytes that answer a request."""
        return self.read_all(self.ask(*words))

    def line(self) -> list[str]:
        """One line of numbers."""
        return self.stream.readline().decode().split()

    def read_all(self, length: int) -> bytes:
        """Exactly so many bytes."""
        data = self.stream.read(length)
        if len(data) < length:
            raise ChirpError("the job's starter has hung up in the middle of the data")
        return data

    def open(self, path: str, flags: str, mode: int = 0o777) -> int:
        """A descriptor."""
        fd = self.ask("open", path, flags, mode)
        self.line()
        return fd

    def write(self, fd: int, data: bytes, *where: str | int) -> None:
        """Write a piece of at most `PIECE` bytes, all of it."""
        verb = {0: "write", 1: "pwrite", 3: "swrite"}[len(where)]
        self.say(verb, fd, len(data), *where)
        self.socket.sendall(data)
        if self.result() != len(data):
            raise ChirpError("not all of it could be written: there is no space for it")


def fetch(chirp: Chirp, remote: str, local: str) -> None:
    """See HELP."""
    left = chirp.ask("getfile", remote)
    sink = sys.stdout.buffer if local == "-" else open(local, "wb")
    with sink:
        while left:
            data = chirp.read_all(min(left, PIECE))
            sink.write(data)
            left -= len(data)


def put(chirp: Chirp, local: str, remote: str, mode: str = "", perm: str = "777") -> None:
    """See HELP."""
    source = sys.stdin.buffer if local == "-" else open(local, "rb")
    with source:
        if not mode and local != "-":
            length = os.fstat(source.fileno()).st_size
            chirp.ask("putfile", remote, int(perm, 8), length)
            left = length
            while left:
                data = source.read(min(left, PIECE))
                if not data:
                    raise ChirpError(f"{local} became shorter while it was sent")
                chirp.socket.sendall(data)
                left -= len(data)
            if chirp.result() != length:
                raise ChirpError("not all of it could be written: there is no space for it")
            return
        fd = chirp.open(remote, mode or "cwt", int(perm, 8))
        while True:
            data = source.read(PIECE)
            if not data:
                break
            chirp.write(fd, data)
        chirp.ask("close", fd)


def read(chirp: Chirp, remote: str, length: str, offset: str = "0", stride: list[str] | None = None) -> None:
    """See HELP."""
    fd = chirp.open(remote, "r")
    if stride:
        data = chirp.data("sread", fd, length, offset, *stride)
    else:
        data, wanted = b"", int(length)
        while len(data) < wanted:
            piece = chirp.data("pread", fd, min(wanted - len(data), PIECE), int(offset) + len(data))
            if not piece:
                break
            data += piece
    chirp.ask("close", fd)
    sys.stdout.buffer.write(data + b"\n")


def write(
    chirp: Chirp,
    remote: str,
    local: str,
    length: str = "",
    offset: str = "0",
    stride: list[str] | None = None,
) -> None:
    """See HELP."""
    source = sys.stdin.buffer if local == "-" else open(local, "rb")
    with source:
        data = source.read() if not length else source.read(int(length))
    fd = chirp.open(remote, "w")
    if stride:
        chirp.write(fd, data, offset, *stride)
    else:
        for at in range(0, len(data), PIECE):
            chirp.write(fd, data[at : at + PIECE], int(offset) + at)
    chirp.ask("close", fd)


def show(names: tuple[str, ...], numbers: list[str], indent: str = "") -> None:
    """What is known of a file, a line for each number."""
    for name, number in zip(names, numbers):
        value = time.ctime(int(number)) if name in ("atime", "mtime", "ctime") else number
        sys.stdout.write(f"{indent}{name}: {value}\n")


def getdir(chirp: Chirp, remote: str, *, long: bool = False) -> None:
    """See HELP."""
    if not long:
        sys.stdout.buffer.write(chirp.data("getdir", remote))
        return
    lines = chirp.data("getlongdir", remote).decode(errors="replace").splitlines()
    for name, numbers in zip(lines[::2], lines[1::2]):
        sys.stdout.write(f"{name}\n")
        show(STAT, numbers.split(), "\t")


def about(verb: str, names: tuple[str, ...]) -> Command:
    """The command that shows what `verb` answers."""

    def command(chirp: Chirp, remote: str) -> None:
        chirp.ask(verb, remote)
        show(names, chirp.line())

    return command


def printed(verb: str, *more: int) -> Command:
    """The command that prints the data that `verb` answers."""

    def command(chirp: Chirp, *words: str) -> None:
        sys.stdout.buffer.write(chirp.data(verb, *words, *more) + b"\n")

    return command


def done(verb: str, count: int, octal: int | None = None) -> Command:
    """The command that does `verb` with so many words, of which one may be an octal number."""

    def command(chirp: Chirp, *words: str) -> None:
        if len(words) != count:
            raise UsageError(f"{verb} takes {count} arguments")
        given: list[str | int] = list(words)
        if octal is not None:
            given[octal] = int(words[octal], 8)
        chirp.ask(verb, *given)

    return command


def access(chirp: Chirp, remote: str, letters: str) -> None:
    """See HELP."""
    bits = {"f": os.F_OK, "r": stat.S_IROTH, "w": stat.S_IWOTH, "x": stat.S_IXOTH}
    if not letters or set(letters) - set(bits):
        raise UsageError("the mode of access is letters of f r w x")
    mode = 0
    for letter in letters:
        mode |= bits[letter]
    chirp.ask("access", remote, mode)


def rmdir(chirp: Chirp, remote: str, *, recursive: bool = False) -> None:
    """See HELP."""
    chirp.ask("rmall" if recursive else "rmdir", remote)


def link(chirp: Chirp, old: str, new: str, *, symbolic: bool = False) -> None:
    """See HELP."""
    chirp.ask("symlink" if symbolic else "link", old, new)


COMMANDS: dict[str, Command] = {
    "fetch": fetch,
    "put": put,
    "remove": done("unlink", 1),
    "get_job_attr": printed("get_job_attr"),
    "set_job_attr": done("set_job_attr", 2),
    "get_job_attr_delayed": printed("get_job_attr_delayed"),
    "set_job_attr_delayed": done("set_job_attr_delayed", 2),
    "ulog": done("ulog", 1),
    "publish": printed("publish"),
    "unpublish": done("unpublish", 1),
    "read": read,
    "write": write,
    "getdir": getdir,
    "stat": about("stat", STAT),
    "lstat": about("lstat", STAT),
    "statfs": about("statfs", STATFS),
    "readlink": printed("readlink", 4096),
    "rmdir": rmdir,
    "link": link,
    "access": access,
    "chmod": done("chmod", 2, octal=1),
    "chown": done("chown", 3),
    "lchown": done("lchown", 3),
    "truncate": done("truncate", 2),
    "utime": done("utime", 3),
    "whoami": printed("whoami", 4096),
    "whoareyou": printed("whoareyou", 4096),
}
OPTIONS: dict[str, dict[str, tuple[str, int]]] = {
    "put": {"-mode": ("mode", 1), "-perm": ("perm", 1)},
    "read": {"-offset": ("offset", 1), "-stride": ("stride", 2)},
    "write": {"-offset": ("offset", 1), "-stride": ("stride", 2)},
    "getdir": {"-l": ("long", 0)},
    "rmdir": {"-r": ("recursive", 0)},
    "link": {"-s": ("symbolic", 0)},
}
"""By command: what an option sets, and how many words follow it."""


def parsed(command: str, words: list[str]) -> tuple[list[str], dict[str, str | bool | list[str]]]:
    """The words of a command without its options, and what these set."""
    known = OPTIONS.get(command, {})
    given: dict[str, str | bool | list[str]] = {}
    rest = list(words)
    while rest and rest[0] in known:
        name, count = known[rest[0]]
        if len(rest) <= count:
            raise UsageError(f"{rest[0]} takes {count} more words")
        given[name] = True if not count else rest[1] if count == 1 else rest[1 : 1 + count]
        del rest[: 1 + count]
    return rest, given


def main(words: list[str]) -> int:
    """The exit status."""
    if not words or words[0] in ("-h", "-help", "--help", "help"):
        (sys.stdout if words else sys.stderr).write(HELP)
        return 0 if words else 1
    name, *rest = words
    try:
        carry_out(name, rest)
    except TypeError:
        trouble = "too few or too many arguments; see condor_chirp --help"
    except (ChirpError, UsageError, OSError, ValueError) as error:
        trouble = str(error)
    else:
        return 0
    sys.stderr.write(f"condor_chirp: {name}: {trouble}\n")
    return 1


def carry_out(name: str, words: list[str]) -> None:
    """One command."""
    command = COMMANDS.get(name)
    if command is None:
        raise UsageError("there is no such command; condor_chirp --help lists them")
    rest, given = parsed(name, words)
    command(Chirp(), *rest, **given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
