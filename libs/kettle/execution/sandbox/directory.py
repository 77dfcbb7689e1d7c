"""
The directory in which a job runs: made, filled, looked through and removed.

Only the job's account gets in.  Nothing here follows a link that a job made with more rights than the job has: files
that come out are opened as the job's account, and a tree is removed by descriptors.
"""

import contextlib
import errno
import os
import posixpath
import stat
from collections.abc import Generator, Iterator
from typing import Final

from kettle.execution.attempts.job_spec import Account, Input
from kettle.execution.job_environment import helper_programs
from kettle.execution.sandbox import private_directories

SYSTEM_EXECUTE: Final = "/var/lib/kettle/execute"
"""
Where pools of root have their sandboxes, each in a directory of its own: a pool's home lets no other account in.
"""

AREAS: Final = "area_"
"""What the area of a sandbox's containers is called, with the name of the sandbox behind it."""

_COPY_BYTES: Final = 1 << 30
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNSUPPORTED: Final = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}

Mark = tuple[int, int, int]
"""Modification time in ns, size, inode: what changes when a file is written or replaced."""


class Sandbox:
    """The sandbox at `path` of a job that runs as `account` (None: as we do)."""

    def __init__(self, path: str, account: Account | None = None) -> None:
        self.path = path
        self.account = account

    def make(self) -> None:
        """Make it empty; what a former life left in its place goes."""
        try:
            os.mkdir(self.path, 0o700)  # noqa: PTH102 - as a string it costs a third
        except FileExistsError:
            self.remove()
            os.mkdir(self.path, 0o700)  # noqa: PTH102
        self.own()

    def own(self) -> None:
        """Give the directory to the job's account."""
        self._own(self.path)

    def place(self, file: Input) -> None:
        """Put a file in; its name is a relative path that was checked before it came here."""
        path = f"{self.path}/{file.name}"
        for at, char in enumerate(file.name):
            if char == "/":
                self._have_directory(f"{self.path}/{file.name[:at]}")
        if file.directory:
            self._have_directory(path)
            return
        fd = _new(path, 0o600)  # of two files with one name the last one wins
        try:
            if file.data is not None:
                _write_all(fd, file.data)
            else:
                _copy(file.path, fd)
            os.fchmod(fd, (file.mode & 0o777) | 0o600)
            if self.account is not None:
                os.fchown(fd, self.account.uid, self.account.gid)
        finally:
            os.close(fd)

    def _have_directory(self, path: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o755)  # noqa: PTH102
            self._own(path)

    def write(self, name: str, text: str) -> None:
        """
        Put a file of ours in: readable by the job, not counted among its files.

        The job's own plugins may have run before: whatever they have put under its name goes, and is not written to.
        """
        fd = _new(f"{self.path}/{name}", 0o644)
        try:
            _write_all(fd, text.encode())
        finally:
            os.close(fd)

    def catalogue(self) -> dict[str, Mark]:
        """Regular files at the top level, links to files included, by name."""
        return dict(self.files())

    def files(self) -> Iterator[tuple[str, Mark]]:
        """The files one by one: a job may leave more than should be held in memory at once."""
        with os.scandir(self.path) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # a link that points nowhere
                    about = entry.stat()
                    if stat.S_ISREG(about.st_mode):
                        yield entry.name, (about.st_mtime_ns, about.st_size, about.st_ino)

    def size_kib(self) -> int:
        """
        Disk space of everything in it and in the area of its containers, whose private directories are there; a file of many names
        counts once.
        """
        blocks, linked = 0, dict[tuple[int, int], int]()
        for about in _walk(self.path, area_of(self.path)):
            if about.st_nlink > 1 and not stat.S_ISDIR(about.st_mode):
                linked[about.st_dev, about.st_ino] = about.st_blocks
            else:
                blocks += about.st_blocks
        return (blocks + sum(linked.values())) // 2

    def close_to_others(self) -> None:
        """Take the directory from the job's account: the next job of this slot has the same one."""
        if self.account is not None:
            os.chown(self.path, os.geteuid(), os.getegid())

    def remove_area(self) -> None:
        """Remove what its containers had.  Raises OSError."""
        remove_tree(area_of(self.path))

    def remove(self) -> None:
        """Remove it with all that is in it, and what its containers had.  Raises OSError."""
        try:
            self.remove_area()
        finally:
            remove_tree(self.path)

    def _own(self, path: str) -> None:
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid, follow_symlinks=False)


def area_of(sandbox: str) -> str:
    """
    Where the containers of a sandbox are made: beside it, with rights that the job has not.  In a sandbox the job, or what runs beside
    it, could exchange any name for another directory or a link while somebody with more rights works there.
    """
    execute, name = posixpath.split(sandbox)
    return f"{execute}/{AREAS}{name}"


@contextlib.contextmanager
def acting_as(account: Account | None) -> Generator[None]:
    """With the account's rights instead of ours.  For the whole process: only where there is one thread."""
    if account is None:
        yield
        return
    uid, gid = os.geteuid(), os.getegid()
    os.setegid(account.gid)
    os.seteuid(account.uid)
    try:
        yield
    finally:
        os.seteuid(uid)
        os.setegid(gid)


def release_execute(execute: str) -> None:
    """
    Remove a directory for sandboxes that Kettle made in the system's place, if it is empty; others belong to their
    pool.

    The last process does it: the startd, or after the end of their lifeline the zygote or a starter.
    """
    private_directories.remove_spares(execute)  # their starters run nothing any more
    helper_programs.remove(execute)
    if posixpath.dirname(execute) == SYSTEM_EXECUTE:
        with contextlib.suppress(OSError):
            for directory in (execute, SYSTEM_EXECUTE, posixpath.dirname(SYSTEM_EXECUTE)):
                os.rmdir(directory)  # noqa: PTH106 - as above


def remove_tree(path: str) -> None:
    """
    Remove a directory tree, also where its owner took his own rights away; one that is not there is removed already.

    Raises OSError: also for a link, and then nothing of what it leads to is removed.
    """
    try:
        top = os.open(path, _DIRECTORY)
        try:
            _empty(top)  # the usual sandbox is flat: this is cheaper than a walk
        finally:
            os.close(top)
        os.rmdir(path)  # noqa: PTH106
    except OSError:
        if os.path.lexists(path):  # one file of it may be what was not there
            remove_any_tree(path)


def remove_any_tree(path: str, *, where: int | None = None) -> None:
    """
    Remove a tree of any depth and any modes, by its path or by its name in an open directory; raises OSError.

    A directory inside a directory is moved up to the top before its turn comes: then no path becomes too long, and
    neither the stack nor the number of open descriptors grows with what a job has built.
    """
    top = _enter(path, where)
    prefix, moved = f".{os.urandom(8).hex()}.", 0  # no name that the job could have taken
    try:
        while directories := _empty(top):
            for name in directories:
                inner = _enter(name, top)
                try:
                    for deeper in _empty(inner):
                        moved += 1
                        # The account that moves a directory must be allowed to write to it.
                        os.close(_enter(deeper, inner))
                        os.rename(deeper, f"{prefix}{moved}", src_dir_fd=inner, dst_dir_fd=top)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(path, dir_fd=where)


def _enter(name: str, where: int | None) -> int:
    """Open a directory, never a link to one; if its modes forbid it, it gets others."""
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=where)
    except PermissionError:
        if stat.S_ISLNK(os.stat(name, dir_fd=where, follow_symlinks=False).st_mode):
            raise
        os.chmod(name, 0o700, dir_fd=where)
        return os.open(name, _DIRECTORY, dir_fd=where)
    with contextlib.suppress(PermissionError):  # it is not ours: then perhaps we need not change it
        os.fchmod(fd, 0o700)
    return fd


def _empty(directory: int) -> list[str]:
    """Remove what is no directory; the names of the directories that are left."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, branch in found:
        if not branch:
            os.unlink(name, dir_fd=directory)
    return [name for name, branch in found if branch]


def _walk(*paths: str) -> Iterator[os.stat_result]:
    """Everything below, without recursion: what a job builds may be deeper than our stack."""
    waiting = [*paths]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    yield entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)


def _new(path: str, mode: int) -> int:
    """
    Create a file for writing, in place of anything with its name.  Raises OSError, also if another process is faster.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, mode)
    except FileExistsError:
        os.unlink(path)  # noqa: PTH108 - strings, as above
    return os.open(path, flags, mode)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _copy(source: str, target: int) -> None:
    """
    Copy in the kernel, sharing blocks where the file system can; a job may change its inputs, so a link would not do.
    """
    fd = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while True:
            try:
                if not os.copy_file_range(fd, target, _COPY_BYTES):
                    return
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
                break
        while data := os.read(fd, 1 << 20):
            _write_all(target, data)
    finally:
        os.close(fd)
