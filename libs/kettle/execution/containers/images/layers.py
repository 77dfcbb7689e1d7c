"""
A root file system that grows layer by layer, out of tar files.

An archive is not trusted.  Each name is resolved only inside the new root, including links of earlier members; anything
but files, directories and links is left out; files keep no more rights than their owner's, and nobody else may write
them. Its size is counted during unpacking: not only bytes, but every name as a block, as on disk.
"""

import os
import posixpath
import shutil
import tarfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final, cast

from kettle.execution.containers.policy import ContainerError
from kettle.execution.containers.root_directory import resolve
from kettle.execution.sandbox.directory import remove_tree

_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_MOST_MEMBERS: Final = 2_000_000
_MOST_NAME: Final = 2048
_MOST_DEPTH: Final = 256
_MOST_HEADER: Final = 1 << 20
"""Maximum bytes of the headers of one member, which the reader holds in memory."""
_BLOCK: Final = 4096
_HEADERS: Final = frozenset(
    {
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    }
)


class _Bounded(tarfile.TarInfo):
    """A member whose description is not larger than what anybody needs."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        """See `tarfile`: this is where a subclass may look at a header first."""
        if self.type in _HEADERS and self.size > _MOST_HEADER:
            raise ContainerError(f"the image has a member that is described by {self.size} bytes")
        return cast("tarfile.TarInfo", super()._proc_member(tar))  # type: ignore[misc]  # not in the stubs


@contextmanager
def tar_file(file: IO[bytes]) -> Generator[tarfile.TarFile]:
    """An archive, compressed or not, from the file's beginning."""
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:*", tarinfo=_Bounded) as tar:
        yield tar


def members_of(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members in their order; none is kept in memory."""
    for number, member in enumerate(iter(tar.next, None)):
        if number >= _MOST_MEMBERS:
            raise ContainerError(f"the image has more than {_MOST_MEMBERS} files")
        yield member
        tar.members.clear()  # type: ignore[attr-defined]  # not in the stubs


def too_large(limit: int) -> ContainerError:
    """An image of more than `limit` bytes."""
    return ContainerError(
        f"the image has more than {limit >> 20} MiB, which is all that this machine keeps for images"
    )


class RootFileSystem:
    """The root file system below `root`, of at most `limit` bytes."""

    def __init__(self, root: str, limit: int) -> None:
        self._root = root
        self._limit = limit
        self.files = 0
        self.size = 0
        """Bytes, as far as they were put in: what a later layer covers was there all the same."""

    def add(self, file: IO[bytes]) -> None:
        """Put the members of an archive over what is there."""
        with tar_file(file) as tar:
            for member in members_of(tar):
                self._add(tar, member)

    def add_stream(self, file: IO[bytes]) -> None:
        """Add an archive that can be read only once."""
        with tarfile.open(fileobj=file, mode="r|", tarinfo=_Bounded) as tar:
            for member in members_of(tar):
                self._add(tar, member)

    def cover(self, file: IO[bytes]) -> None:
        """
        Put a layer over what is there: its whiteouts first, because they are about the layers below it, wherever in the
        archive they are.
        """
        if self.size:  # the lowest layer has nothing below it
            with tar_file(file) as tar:
                for member in members_of(tar):
                    if _whites_out(member):
                        self._white_out(member)
        with tar_file(file) as tar:
            for member in members_of(tar):
                if not _whites_out(member):
                    self._add(tar, member)

    def _add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = _name(member)
        if not name:
            return
        directory = resolve(self._root, posixpath.dirname(name))
        self._parents(directory)
        path = posixpath.join(self._root, directory, posixpath.basename(name))
        self._charge(member.size if member.isreg() else 0)
        if member.isdir():
            self._directory(path, name, member.mode)
        elif member.issym():
            _clear(path)
            os.symlink(member.linkname, path)  # noqa: PTH211 - it is only ever followed inside the root
        elif member.islnk():
            self._link(path, member)
        elif member.isreg():
            self._file(tar, member, path)

    def _parents(self, directory: str) -> None:
        """Make the directories that nobody has named."""
        missing = list[str]()
        while directory and not os.path.isdir(f"{self._root}/{directory}"):  # noqa: PTH112 - for every member
            missing.append(directory)
            directory = posixpath.dirname(directory)
        for place in reversed(missing):
            self._charge(0)
            os.mkdir(f"{self._root}/{place}", 0o755)  # noqa: PTH102

    def _charge(self, size: int) -> None:
        """Count a name and its bytes before they are on the disk."""
        self.size += _BLOCK + -(-size // _BLOCK) * _BLOCK
        if self.size > self._limit:
            raise too_large(self._limit)

    def _white_out(self, member: tarfile.TarInfo) -> None:
        place, name = posixpath.split(_name(member))
        directory = f"{self._root}/{resolve(self._root, place)}"
        if not os.path.isdir(directory):  # noqa: PTH112
            return
        if name == _OPAQUE:
            for entry in os.listdir(directory):  # noqa: PTH208
                _clear(f"{directory}/{entry}")
        elif name.removeprefix(_WHITEOUT) not in {"", ".", ".."}:
            _clear(f"{directory}/{name.removeprefix(_WHITEOUT)}")

    def _directory(self, path: str, name: str, mode: int) -> None:
        if os.path.isdir(f"{self._root}/{resolve(self._root, name)}"):  # noqa: PTH112
            return  # a link to a directory stays one, as `tar` has it
        _clear(path)
        os.mkdir(path, 0o755)  # noqa: PTH102
        os.chmod(path, (mode & 0o755) | 0o700)  # noqa: PTH101

    def _link(self, path: str, member: tarfile.TarInfo) -> None:
        parent, name = posixpath.split(posixpath.normpath("/" + member.linkname))
        target = posixpath.join(self._root, resolve(self._root, parent), name)
        if target == path:
            return
        if os.path.isdir(target) or not os.path.lexists(target):  # noqa: PTH112
            raise ContainerError(
                f"{member.name!r} in the image is a link to {member.linkname!r}, which is no file of it"
            )
        _clear(path)
        os.link(target, path, follow_symlinks=False)

    def _file(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        self.files += 1
        _clear(path)
        source = tar.extractfile(member)
        assert source is not None
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as sink:  # noqa: PTH123
            shutil.copyfileobj(source, sink, 1 << 20)
            os.fchmod(fd, (member.mode & 0o755) | 0o600)


def _name(member: tarfile.TarInfo) -> str:
    """A relative path; empty for the root itself."""
    name = posixpath.normpath("/" + member.name).lstrip("/")
    if ".." in member.name.split("/"):
        raise ContainerError(f"the image has a file outside of itself: {member.name!r}")
    if len(os.fsencode(name)) > _MOST_NAME or name.count("/") > _MOST_DEPTH:
        raise ContainerError(f"the image has a name that is too long or too deep: {name[:80]!r}...")
    return name


def _whites_out(member: tarfile.TarInfo) -> bool:
    return posixpath.basename(member.name).startswith(_WHITEOUT)


def _clear(path: str) -> None:
    """Make room for another member of this name."""
    try:
        os.unlink(path)  # noqa: PTH108
    except IsADirectoryError:
        remove_tree(path)
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            remove_tree(path)
