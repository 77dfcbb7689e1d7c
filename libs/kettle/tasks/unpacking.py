"""
Archives that a job has fetched, unpacked in its sandbox, and directories that it sends, packed.

An archive is anybody's: nothing leaves the directory in which it is unpacked, neither by its name nor by a link, nothing but
files, directories and links comes out, and not more than there is room for.  It is called with the rights of the job.
"""

import bz2
import gzip
import os
import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Final

_TARS: Final = (".tar", ".tgz", ".tar.gz", ".tar.bz2")
_PIECE: Final = 1 << 20
_MOST_NAMES: Final = 200_000
_LONGEST_LINK: Final = 4096
_COMPRESSED: Final[dict[str, Callable[[str], gzip.GzipFile | bz2.BZ2File]]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
}


class UnpackingError(ValueError):
    """An archive that is not unpacked; the message says why."""


def is_packed(name: str) -> bool:
    """Whether a file of this name is unpacked."""
    return name.endswith((*_TARS, ".zip", *_COMPRESSED))


def unpack(path: str, place: str, room: int) -> int:
    """
    Unpack the archive into a directory by the suffix of its name, and remove it; how many bytes that were, at most `room`.

    Raises:
        UnpackingError: it is none, or is not to be unpacked; what was unpacked before stays.
        OSError: the machine cannot.
    """
    tree = _Tree(place, room)
    try:
        if path.endswith(_TARS):
            _untar(path, tree)
        elif path.endswith(".zip"):
            _unzip(path, tree)
        else:
            suffix = posixpath.splitext(path)[1]
            with _COMPRESSED[suffix](path) as source:
                tree.file(posixpath.basename(path).removesuffix(suffix), 0o644, source)
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        EOFError,
        zlib.error,
        RuntimeError,
        gzip.BadGzipFile,
    ) as error:
        raise UnpackingError(f"it cannot be unpacked: {str(error) or type(error).__name__}") from error
    except OSError as error:
        if error.errno is None:  # bz2 says so of what is no such file
            raise UnpackingError(f"it cannot be unpacked: {error}") from error
        raise
    os.unlink(path)  # noqa: PTH108 - strings, as all paths of sandboxes
    return tree.bytes


def pack(directory: str, target: str) -> int:
    """
    Pack a directory into a `.tgz`, in which its last name is the top; the size of the file.  Raises OSError.
    """
    with tarfile.open(target, "w:gz", compresslevel=6) as tar:
        tar.add(directory, arcname=posixpath.basename(directory.rstrip("/")))
    return os.stat(target).st_size  # noqa: PTH116 - as above


class _Tree:
    """What is unpacked in one directory."""

    def __init__(self, place: str, room: int) -> None:
        self._place = place
        self._room = room
        self._names = 0
        self.bytes = 0

    def directory(self, name: str) -> None:
        """Make one; that it is there already does no harm."""
        self._parents(f"{self._plain(name)}/")

    def file(self, name: str, mode: int, source: IO[bytes] | gzip.GzipFile | bz2.BZ2File) -> None:
        """Make a file of what can be read."""
        path = self._free(name)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as sink:  # noqa: PTH123 - a descriptor
            while piece := source.read(_PIECE):
                self.bytes += len(piece)
                if self.bytes > self._room:
                    raise UnpackingError(
                        f"what is in it takes more than {self._room >> 20} MiB: ask for more disk (request_disk)"
                    )
                sink.write(piece)
            os.fchmod(fd, (mode & 0o777) | 0o600)

    def link(self, name: str, target: str) -> None:
        """
        Make a symbolic link that leads to something in the tree.

        Only a plain way counts, up and then down: one that goes through another link could lead anywhere.
        """
        path = self._free(name)
        plain = posixpath.normpath(target)
        leads = posixpath.normpath(posixpath.join(posixpath.dirname(self._plain(name)), target))
        if posixpath.isabs(target) or target.rstrip("/") != plain or leads.split("/")[0] == "..":
            raise UnpackingError(f"its link {name!r} leads to {target!r}, which is not in it")
        os.symlink(target, path)  # noqa: PTH211 - as above

    def second_name(self, name: str, target: str) -> None:
        """Make another name of a file that was unpacked before."""
        path, there = self._free(name), f"{self._place}/{self._plain(target)}"
        self._parents(self._plain(target))
        if not os.path.lexists(there) or not stat.S_ISREG(os.lstat(there).st_mode):
            raise UnpackingError(f"{name!r} is a second name of {target!r}, which is no file in it")
        os.link(there, path)

    def _plain(self, name: str) -> str:
        plain = posixpath.normpath(name)
        if posixpath.isabs(name) or plain.split("/")[0] == ".." or "\0" in name:
            raise UnpackingError(f"it has {name!r}, which would lie outside")
        return plain

    def _free(self, name: str) -> str:
        """The path of a name at which nothing is any more."""
        plain = self._plain(name)
        if plain == ".":
            raise UnpackingError(f"it has {name!r}, which is no name")
        self._parents(plain)
        path = f"{self._place}/{plain}"
        if os.path.lexists(path):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                raise UnpackingError(f"it has {name!r} twice, or there is a directory of this name")
            os.unlink(path)  # noqa: PTH108 - as above
        return path

    def _parents(self, plain: str) -> None:
        """Make the directories on the way, of which none is a link."""
        self._names += 1
        if self._names > _MOST_NAMES:
            raise UnpackingError(f"it has more than {_MOST_NAMES:,} names")
        for at, char in enumerate(plain):
            if char != "/" or plain[:at] in {"", "."}:
                continue
            path = f"{self._place}/{plain[:at]}"
            try:
                os.mkdir(path, 0o755)  # noqa: PTH102 - as above
            except FileExistsError:
                if not stat.S_ISDIR(os.lstat(path).st_mode):
                    raise UnpackingError(
                        f"{plain[:at]!r} is no directory, and it has names below it"
                    ) from None


def _untar(path: str, tree: _Tree) -> None:
    with tarfile.open(path, "r:*") as tar:
        for member in tar:
            tar.members = []  # type: ignore[attr-defined]  # which typeshed does not know: else all of them are kept
            if member.isdir():
                tree.directory(member.name)
            elif member.issym():
                tree.link(member.name, member.linkname)
            elif member.islnk():
                tree.second_name(member.name, member.linkname)
            elif member.isfile() and (source := tar.extractfile(member)) is not None:
                tree.file(member.name, member.mode, source)
            else:
                raise UnpackingError(f"it has {member.name!r}, which is a device or a pipe")


def _unzip(path: str, tree: _Tree) -> None:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            kind = stat.S_IFMT(mode)
            if entry.is_dir():
                tree.directory(entry.filename)
            elif kind == stat.S_IFLNK:
                with archive.open(entry) as source:
                    tree.link(entry.filename, os.fsdecode(source.read(_LONGEST_LINK)))
            elif kind in {0, stat.S_IFREG}:
                with archive.open(entry) as source:
                    tree.file(entry.filename, mode & 0o777 or 0o644, source)
            else:
                raise UnpackingError(f"it has {entry.filename!r}, which is a device or a pipe")
