"""
From an archive to a root file system: plain tar files, OCI archives and directories, what `docker save` writes.

An archive is a stranger's work.  Each name is followed inside the new root only, links of earlier members included; what
is no file, directory or link is left out; files keep no more rights than their owner's, and nobody else may write them.
"""

import errno
import hashlib
import os
import posixpath
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import IO, Any, Final

import msgspec

from kettle.execution.containers.policy import ContainerError
from kettle.execution.containers.roots import resolve
from kettle.execution.sandbox import remove_tree

_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_MOST_MEMBERS: Final = 2_000_000
INDEX: Final = "index.json"
"""What an OCI image begins with."""
MOST_JSON: Final = 4 << 20
"""Bytes of a description."""
_MOST_INDEXES: Final = 4
_MOST_NAME: Final = 2048
_MOST_DEPTH: Final = 256
_SHA256: Final = re.compile("[0-9a-f]{64}")
_COMPRESSION: Final = frozenset({"zlib", "lzma", "_lzma"})
_NAMES: Final = frozenset(
    {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.EINVAL, errno.EMLINK}
)
"""What the names in an archive lead to, on every machine."""

Opener = Callable[[str], IO[bytes]]
"""Opens a file of an image by its name in it; raises KeyError or OSError."""


class ImageConfig(msgspec.Struct, frozen=True):
    """
    What an image says about how it is run.
    """

    env: list[str] = []
    entrypoint: list[str] = []
    command: list[str] = []
    size: int = 0
    """Bytes of its files."""


class _Run(msgspec.Struct, frozen=True):
    Env: list[str] | None = None
    Entrypoint: list[str] | None = None
    Cmd: list[str] | None = None


class _Config(msgspec.Struct, frozen=True):
    config: _Run | None = None


class _Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    digest: str
    media_type: str = ""


class _Manifest(msgspec.Struct, frozen=True):
    config: _Descriptor | None = None
    layers: list[_Descriptor] = []
    manifests: list[_Descriptor] = []


class _Saved(msgspec.Struct, frozen=True):
    Config: str
    Layers: list[str]


def unpack_archive(file: IO[bytes], root: str, limit: int) -> ImageConfig:
    """
    Unpack an archive of any kind into the empty directory `root`; at most `limit` bytes.

    Raises:
        ContainerError: it is no image, or does not unpack.
        OSError: the machine has no room, or cannot read it.
    """
    with _readable(), tarfile.open(fileobj=file, mode="r:*") as tar:
        members = _index(tar, limit)
        if not {"manifest.json", INDEX} & members.keys():
            return _finished(_plain(tar, root, limit), None)

        def opener(name: str) -> IO[bytes]:
            found = tar.extractfile(members[posixpath.normpath(name)])
            if found is None:
                raise KeyError(name)
            return found

        if INDEX in members:
            return unpack_layout(opener, root, limit)
        return _unpack_saved(opener, root, limit)


def unpack_layout(opener: Opener, root: str, limit: int) -> ImageConfig:
    """
    Unpack an OCI image layout.

    Raises:
        ContainerError, OSError: as above.
    """
    with _readable():
        with opener(INDEX) as index:
            manifest = _json(index, _Manifest)
        for _ in range(_MOST_INDEXES):
            if not manifest.manifests:
                break
            with _blob(opener, manifest.manifests[0], root, MOST_JSON) as inner:
                manifest = _json(inner, _Manifest)
        if not manifest.layers:
            raise ContainerError("the image has no layers")
        run = None
        if manifest.config is not None:
            with _blob(opener, manifest.config, root, MOST_JSON) as config:
                run = _json(config, _Config).config
        tree = _Tree(root, limit)
        for layer in manifest.layers:
            _check_compression(layer.media_type)
            with _blob(opener, layer, root, limit) as blob, tarfile.open(fileobj=blob, mode="r:*") as tar:
                tree.add(tar)
        return _finished(tree, run)


def _index(tar: tarfile.TarFile, limit: int) -> dict[str, tarfile.TarInfo]:
    """
    The members by name; an archive of endless zeros is not read to its end.
    """
    found: dict[str, tarfile.TarInfo] = {}
    size = 0
    for member in tar:
        size += member.size
        if size > limit or len(found) >= _MOST_MEMBERS:
            raise _too_large(limit)
        found[posixpath.normpath(member.name)] = member
    return found


def _too_large(limit: int) -> ContainerError:
    return ContainerError(
        f"the image has more than {limit >> 20} MiB, which is all that this machine keeps for images"
    )


def _unpack_saved(opener: Opener, root: str, limit: int) -> ImageConfig:
    with opener("manifest.json") as file:
        saved = _json(file, list[_Saved])
    if len(saved) != 1:
        raise ContainerError(f"the archive holds {len(saved)} images: save one of them alone")
    tree = _Tree(root, limit)
    for layer in saved[0].Layers:
        with opener(layer) as file, tarfile.open(fileobj=file, mode="r:*") as tar:
            tree.add(tar)
    with opener(saved[0].Config) as file:
        return _finished(tree, _json(file, _Config).config)


def _plain(tar: tarfile.TarFile, root: str, limit: int) -> "_Tree":
    tree = _Tree(root, limit)
    tree.add(tar)
    if not tree.size:
        raise ContainerError("the archive holds no files")
    return tree


def _finished(tree: "_Tree", run: _Run | None) -> ImageConfig:
    run = run or _Run()
    return ImageConfig(run.Env or [], run.Entrypoint or [], run.Cmd or [], tree.size)


@contextmanager
def _readable() -> Generator[None]:
    """
    What the libraries say of a file that is no image, as one error.
    """
    try:
        yield
    except ContainerError:
        raise
    except Exception as error:
        if why := _fault(error):
            raise ContainerError(why) from error
        raise


def _fault(error: Exception) -> str:
    """
    What is wrong with an image that this comes from; empty: it is not the image's fault.
    """
    match error:
        case tarfile.TarError() | EOFError():
            return f"it is no image, or a damaged one: {error}"
        case msgspec.MsgspecError():
            return f"the image's description cannot be read: {error}"
        case KeyError():
            return f"the image lacks a part that it names: {error.args[0]}"
        case OSError(errno=None):  # what gzip, bz2 and lzma say of damaged data
            return f"it is no image, or a damaged one: {error}"
        case OSError() if error.errno in _NAMES:
            return f"the image has names that exclude each other: {error.strerror}"
        case ValueError():  # a name with a NUL byte, numbers that make no sense
            return f"the image has a member that makes no sense: {error}"
        case _ if type(error).__module__ in _COMPRESSION:
            return f"the image is damaged: {error}"
        case _:
            return ""


def _json(file: IO[bytes], kind: type[Any]) -> Any:
    return msgspec.json.decode(file.read(MOST_JSON), type=kind)


def _check_compression(kind: str) -> None:
    if kind.endswith("+zstd"):
        raise ContainerError(
            "the image's layers are compressed with zstd, which is not supported here: use gzip"
        )


@contextmanager
def _blob(opener: Opener, described: _Descriptor, beside: str, most: int) -> Generator[IO[bytes]]:
    """
    A part of an OCI image, which must be what its name says.

    What is read later is what was counted: a copy of ours, in the directory of `beside`.  The part itself may be in a
    stranger's hands, and what is unpacked here is everybody's who names the same digest.
    """
    kind, _, digest = described.digest.partition(":")
    if kind != "sha256" or not _SHA256.fullmatch(digest):
        raise ContainerError(f"the image names a part by {described.digest!r}, which is no SHA-256")
    counted, size = hashlib.sha256(), 0
    with tempfile.TemporaryFile(dir=posixpath.dirname(beside)) as copy:
        with opener(f"blobs/sha256/{digest}") as file:
            while piece := file.read(1 << 20):
                size += len(piece)
                if size > most:
                    raise _too_large(most)
                counted.update(piece)
                copy.write(piece)
        if counted.hexdigest() != digest:
            raise ContainerError(f"the image is damaged: its part {digest} is another one")
        copy.seek(0)
        yield copy


class _Tree:
    """
    A root file system that grows layer by layer.
    """

    def __init__(self, root: str, limit: int) -> None:
        self._root = root
        self._limit = limit
        self._members = 0
        self.size = 0

    def add(self, tar: tarfile.TarFile) -> None:
        """
        Put the members of a layer over what is there.
        """
        for member in tar:
            self._members += 1
            if self._members > _MOST_MEMBERS:
                raise ContainerError(f"the image has more than {_MOST_MEMBERS} files")
            self._add(tar, member)

    def _add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = posixpath.normpath("/" + member.name).lstrip("/")
        if ".." in member.name.split("/"):
            raise ContainerError(f"the image has a file outside of itself: {member.name!r}")
        if not name:
            return
        if len(os.fsencode(name)) > _MOST_NAME or name.count("/") > _MOST_DEPTH:
            raise ContainerError(f"the image has a name that is too long or too deep: {name[:80]!r}...")
        directory = resolve(self._root, posixpath.dirname(name))
        os.makedirs(f"{self._root}/{directory}", mode=0o755, exist_ok=True)  # noqa: PTH103
        path = posixpath.join(self._root, directory, posixpath.basename(name))
        if posixpath.basename(name).startswith(_WHITEOUT):
            self._white_out(path)
        elif member.isdir():
            self._directory(path, name, member.mode)
        elif member.issym():
            _clear(path)
            os.symlink(member.linkname, path)  # noqa: PTH211 - it is only ever followed inside the root
        elif member.islnk():
            self._link(path, member)
        elif member.isreg():
            self._file(tar, member, path)

    def _white_out(self, path: str) -> None:
        directory, name = posixpath.split(path)
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
        self.size += member.size
        if self.size > self._limit:
            raise _too_large(self._limit)
        _clear(path)
        source = tar.extractfile(member)
        assert source is not None
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as sink:  # noqa: PTH123
            shutil.copyfileobj(source, sink, 1 << 20)
            os.fchmod(fd, (member.mode & 0o755) | 0o600)


def _clear(path: str) -> None:
    """
    Make room for another member of this name.
    """
    try:
        os.unlink(path)  # noqa: PTH108
    except IsADirectoryError:
        remove_tree(path)
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            remove_tree(path)
