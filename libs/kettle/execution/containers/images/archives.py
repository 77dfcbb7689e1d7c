"""
From an archive to a root file system: plain tar files, OCI archives and directories, what `docker save` writes, SIF files.

What they hold is put together by `Tree`; what is read for it is bounded here.
"""

import errno
import hashlib
import os
import platform
import posixpath
import re
import tarfile
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, TypeVar

import msgspec

from kettle.execution.containers.images.layers import RootFileSystem, members_of, tar_file, too_large
from kettle.execution.containers.images.sif import is_sif, tar_of_sif
from kettle.execution.containers.policy import ContainerError
from kettle.execution.containers.root_directory import resolve

_SAVED: Final = "manifest.json"
"""What `docker save` begins with."""
INDEX: Final = "index.json"
"""What an OCI image begins with."""
MOST_JSON: Final = 4 << 20
"""Bytes of a description."""
_RUNSCRIPT: Final = ".singularity.d/runscript"
"""The entry point of a SIF image."""
_MOST_INDEXES: Final = 4
_MOST_PARTS: Final = 10_000
"""Files of an archive that is an image of layers; a root file system has more."""
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}
"""As images name them, where that is not the kernel's name."""
_MOST_LAYERS: Final = 512
_SHA256: Final = re.compile("[0-9a-f]{64}")
_COMPRESSION: Final = frozenset({"zlib", "lzma", "_lzma"})
_NAMES: Final = frozenset(
    {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.EINVAL, errno.EMLINK}
)
"""What the names in an archive lead to, on every machine."""

Opener = Callable[[str], IO[bytes]]
"""Opens a file of an image by its name in it; raises KeyError or OSError."""


class ImageConfig(msgspec.Struct, frozen=True):
    """What an image says about how it is run."""

    env: list[str] = []
    entrypoint: list[str] = []
    command: list[str] = []
    size: int = 0
    """Bytes of its files."""
    engine: str = ""
    """Which engine has its files; empty: they are beside this."""
    reference: str = ""
    """What the engine calls it."""


class RunConfig(msgspec.Struct, frozen=True):
    """The image's settings for running it, with the names of its format."""

    Env: list[str] | None = None
    Entrypoint: list[str] | None = None
    Cmd: list[str] | None = None


class _Config(msgspec.Struct, frozen=True):
    config: RunConfig | None = None


class _Platform(msgspec.Struct, frozen=True):
    architecture: str = ""
    os: str = ""


class _Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    digest: str
    media_type: str = ""
    platform: _Platform | None = None


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
    if is_sif(file):
        return _unpack_sif(file, root, limit)
    with _readable():
        members = _index(file, limit)
        if not {_SAVED, INDEX} & members.keys():
            return _finished(_plain(file, root, limit), None)
    with _readable(), tar_file(file) as tar:

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
            with _blob(opener, _chosen(manifest.manifests), root, MOST_JSON) as inner:
                manifest = _json(inner, _Manifest)
        if not manifest.layers:
            raise ContainerError("the image has no layers")
        run = None
        if manifest.config is not None:
            with _blob(opener, manifest.config, root, MOST_JSON) as config:
                run = _json(config, _Config).config
        tree, read = RootFileSystem(root, limit), 0
        for layer in _counted(manifest.layers):
            _check_compression(layer.media_type)
            with _blob(opener, layer, root, limit) as blob:
                read += os.fstat(blob.fileno()).st_size
                if read > limit:
                    raise too_large(limit)
                tree.cover(blob)
        return _finished(tree, run)


def architecture() -> str:
    """The machine's, as images name it."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def _chosen(manifests: list[_Descriptor]) -> _Descriptor:
    """The image for this machine, of those that an index names."""
    ours = _Platform(architecture(), "linux")
    fit = [each for each in manifests if each.platform in {None, ours}]
    if len(fit) == 1:
        return fit[0]
    if fit:
        raise ContainerError(f"it holds {len(fit)} images for this machine: save one of them alone")
    have = {
        f"{each.platform.os}/{each.platform.architecture}" for each in manifests if each.platform is not None
    }
    raise ContainerError(
        f"it is for {', '.join(sorted(have))}, and this machine is {ours.os}/{ours.architecture}"
    )


_Layer = TypeVar("_Layer")


def _counted(layers: Sequence[_Layer]) -> Sequence[_Layer]:
    if len(layers) > _MOST_LAYERS:
        raise ContainerError(f"the image has {len(layers)} layers; at most {_MOST_LAYERS} are supported")
    return layers


def _index(file: IO[bytes], limit: int) -> dict[str, tarfile.TarInfo]:
    """
    The files of an archive by name, or some of them where there are many; one of endless zeros is not read to its end.
    """
    found: dict[str, tarfile.TarInfo] = {}
    size = 0
    with tar_file(file) as tar:
        for member in members_of(tar):
            size += member.size
            if size > limit:
                raise too_large(limit)
            name = posixpath.normpath(member.name)
            if member.isreg() and (len(found) < _MOST_PARTS or name in {_SAVED, INDEX}):
                found[name] = member
    return found


def _unpack_saved(opener: Opener, root: str, limit: int) -> ImageConfig:
    with opener(_SAVED) as file:
        saved = _json(file, list[_Saved])
    if len(saved) != 1:
        raise ContainerError(f"the archive holds {len(saved)} images: save one of them alone")
    tree, read = RootFileSystem(root, limit), 0
    for layer in _counted(saved[0].Layers):
        with opener(layer) as file:
            read += file.seek(0, os.SEEK_END)
            if read > limit:
                raise too_large(limit)
            tree.cover(file)
    with opener(saved[0].Config) as file:
        return _finished(tree, _json(file, _Config).config)


def _unpack_sif(file: IO[bytes], root: str, limit: int) -> ImageConfig:
    with _readable(), tar_of_sif(file, root, limit) as stream:
        tree = RootFileSystem(root, limit)
        tree.add_stream(stream)
    has_script = os.path.isfile(f"{root}/{resolve(root, _RUNSCRIPT)}")  # noqa: PTH113 - a string
    return _finished(tree, RunConfig(Entrypoint=[f"/{_RUNSCRIPT}"] if has_script else None))


def _plain(file: IO[bytes], root: str, limit: int) -> RootFileSystem:
    tree = RootFileSystem(root, limit)
    tree.add(file)
    if not tree.files:
        raise ContainerError("the archive holds no files")
    return tree


def _finished(tree: RootFileSystem, run: RunConfig | None) -> ImageConfig:
    return configured(run or RunConfig(), tree.size)


def configured(run: RunConfig, size: int) -> ImageConfig:
    """The image's settings with Kettle's names, for an image of so many bytes."""
    return ImageConfig(run.Env or [], run.Entrypoint or [], run.Cmd or [], size)


@contextmanager
def _readable() -> Generator[None]:
    """What the libraries say of a file that is no image, as one error."""
    try:
        yield
    except ContainerError:
        raise
    except Exception as error:
        if why := _fault(error):
            raise ContainerError(why) from error
        raise


def _fault(error: Exception) -> str:
    """What is wrong with an image that this comes from; empty: it is not the image's fault."""
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
        case RecursionError():
            return "the image has a member with too many descriptions"
        case MemoryError():
            return "the image takes more memory to unpack than an image may"
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
    A part of an OCI image, whose contents must match its name.

    What is read later is what was hashed: a copy, in the directory of `beside`.  The original may be changed by others,
    and the unpacked image is used by all jobs that name the same digest.
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
                    raise too_large(most)
                counted.update(piece)
                copy.write(piece)
        if counted.hexdigest() != digest:
            raise ContainerError(f"the image is damaged: its part {digest} is another one")
        copy.seek(0)
        yield copy
