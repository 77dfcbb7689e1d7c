"""
The files of a job's owner, as the job reads and changes them while it runs: with the owner's rights.

A path is relative to the job's Iwd. Nothing is done to the pool's own directory, nor to one in which it lies, nor to what
the kernel makes up. What a path leads to is looked at by descriptor, so that nobody exchanges it between the look and the
deed; blocks on the disk.
"""

import errno
import os
import stat
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Final

from kettle.execution.sandbox.directory import remove_any_tree
from kettle_services.shadow.chirp.file_protocol import flags, stat_line, statfs_line, strides, trouble
from kettle_services.shadow.files.access import FileAccess, OutsideError, OwnFileError
from kettle_services.shadow.files.path_resolution import real_path, step
from kettle_wire.commands.chirp import (
    PIECE,
    Chirped,
    CloseFile,
    OnFile,
    OnPath,
    OpenFile,
    ReadFile,
    SeekFile,
    Trouble,
    WriteFile,
)

FileWish = OpenFile | CloseFile | ReadFile | WriteFile | SeekFile | OnFile | OnPath

MOST_OPEN: Final = 32
"""Files that one job has open at once."""
_LONGEST_LIST: Final = PIECE


class RemoteFiles:
    """What one attempt does to files below `iwd`, and anywhere else where its owner may."""

    def __init__(self, iwd: str, places: FileAccess, room: threading.Semaphore) -> None:
        """`room`: for the files that all jobs have open together; it is taken and given back here."""
        self._iwd = iwd
        self._places = places
        self._room = room
        self._open: dict[int, int] = {}
        """Our descriptors, by the number that the job knows."""
        self._next = 3
        self._looks: Mapping[str, Callable[..., Chirped]] = {
            "stat": self._stat,
            "lstat": self._lstat,
            "statfs": self._statfs,
            "getdir": self._getdir,
            "getlongdir": self._getlongdir,
            "readlink": self._readlink,
        }
        self._changes: Mapping[str, Callable[..., None]] = {
            "access": self._access,
            "unlink": self._unlink,
            "rename": self._rename,
            "mkdir": self._mkdir,
            "rmdir": self._rmdir,
            "rmall": self._rmall,
            "link": self._link,
            "symlink": self._symlink,
            "chmod": self._chmod,
            "chown": self._chown,
            "lchown": self._lchown,
            "truncate": self._truncate,
            "utime": self._utime,
        }

    def carry_out(self, wish: FileWish) -> Chirped:
        """Do it, or say what kept it from being done."""
        match wish:
            case OnPath(verb=verb, paths=paths):
                what, named = verb, " ".join(paths)
            case OpenFile(path=named):
                what = "open"
            case _:
                what, named = "", ""  # of a file whose opening was audited
        try:
            return self._places.act(what, named, lambda: self._carried_out(wish))
        except OSError as error:
            return Chirped(trouble(error))

    def _carried_out(self, wish: FileWish) -> Chirped:
        try:
            match wish:
                case OpenFile():
                    return self._opened(wish)
                case CloseFile(fd=fd):
                    return self._closed(fd)
                case ReadFile():
                    return self._read(wish)
                case WriteFile():
                    return Chirped(self._write(wish))
                case SeekFile(fd=fd, offset=offset, whence=whence):
                    return Chirped(os.lseek(self._fd(fd), offset, whence))
                case OnFile():
                    return self._on_file(wish)
                case OnPath():
                    return self._on_path(wish)
        except OSError as error:
            return Chirped(trouble(error))
        except (
            ValueError,
            OverflowError,
            TypeError,
        ):  # a zero byte in a path, no room for a number, too few of them
            return Chirped(Trouble.INVALID_REQUEST)

    def close(self) -> None:
        """Close what the job has left open."""
        for number in list(self._open):
            self._closed(number)

    def _fd(self, number: int) -> int:
        return self._open.get(number, -1)

    # -- contents ----------------------------------------------------------------------------------------------------

    def _opened(self, wish: OpenFile) -> Chirped:
        if len(self._open) >= MOST_OPEN:
            return Chirped(Trouble.TOO_MANY_OPEN)
        if not self._room.acquire(blocking=False):
            return Chirped(Trouble.TOO_MANY_OPEN)
        try:
            fd = self._places.open(self._absolute(wish.path), flags(wish.flags), wish.mode & 0o777)
        except BaseException:
            self._room.release()
            raise
        number, self._next = self._next, self._next + 1
        self._open[number] = fd
        return Chirped(number, stat_line(os.fstat(fd)))

    def _closed(self, number: int) -> Chirped:
        fd = self._open.pop(number, None)
        if fd is None:
            return Chirped(Trouble.BAD_FD)
        self._room.release()
        os.close(fd)
        return Chirped()

    def _read(self, wish: ReadFile) -> Chirped:
        fd = self._fd(wish.fd)
        if wish.stride is not None:
            pieces = [
                os.pread(fd, count, at) for at, count in strides(wish.offset or 0, wish.stride, wish.length)
            ]
            data = b"".join(pieces)
        elif wish.offset is not None:
            data = os.pread(fd, wish.length, wish.offset)
        else:
            data = os.read(fd, wish.length)
        return Chirped(len(data), data)

    def _write(self, wish: WriteFile) -> int:
        fd, data = self._fd(wish.fd), wish.data
        if wish.stride is not None:
            done = 0
            for at, count in strides(wish.offset or 0, wish.stride, len(data)):
                done += os.pwrite(fd, data[done : done + count], at)
            return done
        if wish.offset is not None:
            return os.pwrite(fd, data, wish.offset)
        return os.write(fd, data)

    # -- what is known and changed about files -----------------------------------------------------------------------

    def _on_file(self, wish: OnFile) -> Chirped:
        fd = self._fd(wish.fd)
        match wish.verb, wish.numbers:
            case "fsync", []:
                os.fsync(fd)
            case "fstat", []:
                return Chirped(0, stat_line(os.fstat(fd)))
            case "fstatfs", []:
                return Chirped(0, statfs_line(os.fstatvfs(fd)))
            case "fchmod", [mode]:
                os.fchmod(fd, mode & 0o777)
            case "fchown", [uid, gid]:
                os.fchown(fd, uid, gid)
            case "ftruncate", [length]:
                os.ftruncate(fd, length)
            case _:
                return Chirped(Trouble.INVALID_REQUEST)
        return Chirped()

    def _on_path(self, wish: OnPath) -> Chirped:
        if (look := self._looks.get(wish.verb)) is not None:
            return look(*wish.paths, *wish.numbers)
        if (change := self._changes.get(wish.verb)) is None:
            return Chirped(Trouble.INVALID_REQUEST)
        change(*wish.paths, *wish.numbers)
        return Chirped()

    def _stat(self, path: str) -> Chirped:
        with self._place(path) as place:
            return Chirped(0, stat_line(os.fstat(place)))

    def _lstat(self, path: str) -> Chirped:
        with self._directory(path) as (directory, name):
            return Chirped(0, stat_line(os.stat(name, dir_fd=directory, follow_symlinks=False)))

    def _statfs(self, path: str) -> Chirped:
        with self._place(path) as place:
            return Chirped(0, statfs_line(os.fstatvfs(place)))

    def _getdir(self, path: str, *, long: bool = False) -> Chirped:
        lines: list[bytes] = []
        size = 0
        with self._place(path) as place, os.scandir(f"/proc/self/fd/{place}") as entries:
            for entry in entries:
                line = os.fsencode(entry.name) + b"\n"
                if long:
                    with suppress(FileNotFoundError):
                        lines.append(line + stat_line(entry.stat(follow_symlinks=False)))
                else:
                    lines.append(line)
                size += len(lines[-1]) if lines else 0
                if size > _LONGEST_LIST:
                    return Chirped(Trouble.TOO_BIG)
        data = b"".join(sorted(lines))
        return Chirped(len(data), data)

    def _getlongdir(self, path: str) -> Chirped:
        return self._getdir(path, long=True)

    def _readlink(self, path: str, length: int) -> Chirped:
        with self._directory(path) as (directory, name):
            data = os.fsencode(os.readlink(name, dir_fd=directory))[: max(0, length)]
        return Chirped(len(data), data)

    def _access(self, path: str, mode: int) -> None:
        with self._place(path) as place:
            if not os.access(f"/proc/self/fd/{place}", mode & 0o7, effective_ids=True):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def _unlink(self, path: str) -> None:
        with self._directory(path) as (directory, name):
            os.unlink(name, dir_fd=directory)

    def _rename(self, path: str, target: str) -> None:
        with self._directory(path) as (old, name), self._directory(target) as (new, other):
            self._spare(old, name)
            os.rename(name, other, src_dir_fd=old, dst_dir_fd=new)

    def _mkdir(self, path: str, mode: int) -> None:
        with self._directory(path) as (directory, name):
            os.mkdir(name, mode & 0o777, dir_fd=directory)

    def _rmdir(self, path: str) -> None:
        with self._directory(path) as (directory, name):
            self._spare(directory, name)
            os.rmdir(name, dir_fd=directory)

    def _rmall(self, path: str) -> None:
        with self._directory(path) as (directory, name):
            with step(directory, name) as place:
                is_directory = stat.S_ISDIR(os.fstat(place).st_mode)
            if not is_directory:
                os.unlink(name, dir_fd=directory)
                return
            self._spare(directory, name)
            remove_any_tree(name, where=directory)

    def _link(self, path: str, target: str) -> None:
        self._refuse_links()
        with self._directory(path) as (old, name), self._directory(target) as (new, other):
            os.link(name, other, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)

    def _symlink(self, path: str, target: str) -> None:
        self._refuse_links()
        with self._directory(target) as (directory, name):
            os.symlink(path, name, dir_fd=directory)

    def _chmod(self, path: str, mode: int) -> None:
        with self._place(path) as place:
            self._spare(place)
            os.chmod(  # noqa: PTH101 - what is open has this name only
                f"/proc/self/fd/{place}", mode & 0o777
            )

    def _chown(self, path: str, uid: int, gid: int) -> None:
        with self._place(path) as place:
            self._spare(place)
            os.chown(f"/proc/self/fd/{place}", uid, gid)

    def _lchown(self, path: str, uid: int, gid: int) -> None:
        with self._directory(path) as (directory, name):
            self._spare(directory, name)
            os.chown(name, uid, gid, dir_fd=directory, follow_symlinks=False)

    def _truncate(self, path: str, length: int) -> None:
        fd = self._places.open(self._absolute(path), os.O_WRONLY, 0)
        try:
            os.ftruncate(fd, length)
        finally:
            os.close(fd)

    def _utime(self, path: str, accessed: int, modified: int) -> None:
        with self._place(path) as place:
            os.utime(f"/proc/self/fd/{place}", (accessed, modified))

    # -- where it is -------------------------------------------------------------------------------------------------

    def _place(self, path: str) -> AbstractContextManager[int]:
        """What a path leads to, all links followed, as a descriptor that names it and nothing more."""
        return self._places.found(self._absolute(path))

    def _directory(self, path: str) -> AbstractContextManager[tuple[int, str]]:
        """
        The directory of a path, so that it cannot be exchanged, and the name in it, which no link is followed from.
        """
        return self._places.directory(self._absolute(path))

    def _refuse_links(self) -> None:
        """Where a job may use its own directory only, there is no link that could lead out of it."""
        if self._places.confined:
            raise OutsideError

    def _spare(self, directory: int, name: str = "") -> None:
        """
        Raises OwnFileError if the pool's own directory lies in this one: what is done to the one is done to the other.
        """
        if self._places.lies_in(Path(real_path(directory), name)):
            raise OwnFileError

    def _absolute(self, path: str) -> str:
        if not path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return os.path.join(self._iwd, path)  # noqa: PTH118 - a path's last slash says something
