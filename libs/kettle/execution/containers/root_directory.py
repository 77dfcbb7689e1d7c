"""
The root directory of a container: the image's directories, and what is mounted between them.

A mount needs something to be mounted on.  An image is not ours to change (others use it at the same moment, or it is on
a read-only file system), so what a container gets as its root is a skeleton: a small tree with the image's names, made for
this one container, on which the image's directories are mounted one by one.  Where a mount point is missing in one of them,
the skeleton goes one level deeper there.

A skeleton must not show what the image's own directories would hide.  So a directory of the machine is looked at with the
rights of the job's account; only then is the skeleton made, with ours.
"""

import errno
import os
import posixpath
import stat
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.policy import ContainerError
from kettle.execution.sandbox.directory import acting_as

_OTHERS: Final = frozenset({"proc", "dev", "sys"})
"""Mounted by the runtime, whatever the image has there."""
_IMAGES_FAULT: Final = frozenset({errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS: Final = 40
_MOST_MOUNTS: Final = 1000


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A directory or file of the machine, and where it is in the container."""

    source: str
    destination: str
    writable: bool = False
    device: bool = False
    identity: tuple[int, int] | None = None
    """Device and inode of the source when it was looked at, where somebody else may exchange it meanwhile."""
    optional: bool = False
    """Left out where the image has no place for it."""


def resolve(root: str, path: str) -> str:
    """
    Where `path` leads for a process whose root is `root`: a relative path without links, whether or not it exists.

    Raises:
        OSError: there are too many links (ELOOP).
    """
    todo, done, links = path.split("/")[::-1], list[str](), 0
    while todo:
        part = todo.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            del done[-1:]
            continue
        try:
            target = os.readlink(posixpath.join(root, *done, part))  # noqa: PTH115 - for every file of an image
        except OSError:
            done.append(part)  # no link, or not there
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if target.startswith("/"):
            done = []
        todo += target.split("/")[::-1]
    return "/".join(done)


def make_mount_points(
    image: str, skeleton: str, wanted: Sequence[Mount], reader: Account | None = None
) -> list[Mount]:
    """
    Make the skeleton of `image` for these mounts; all mounts, in their order, parents first.

    `reader`: whose rights count in the image, if not ours.  `/proc`, `/dev` and `/sys` are left to who mounts them.

    Raises:
        ContainerError: the image cannot be put together like that: it has too many names, files or links in the way, or
            directories that are closed to the reader.
        OSError: the image cannot be read.
    """
    directories = {mount.source for mount in wanted if os.path.isdir(mount.source)}  # noqa: PTH112
    try:
        with acting_as(reader):
            own = [
                _settled(image, mount, directory=mount.source in directories)
                for mount in wanted
                if not (mount.optional and _homeless(image, mount))
            ]
            places = list(_lay(image, "", {mount.destination.strip("/") for mount in own}))
    except OSError as error:
        if error.errno not in _IMAGES_FAULT:
            raise
        where = f" ({error.filename})" if error.filename else ""
        raise ContainerError(
            f"its directories cannot be put together: {error.strerror}{where}", subcode=error.errno or 0
        ) from error
    own.sort(key=lambda mount: mount.destination.count("/"))
    mounts = [*(place.mount for place in places if place.mount is not None), *own]
    if len(mounts) > _MOST_MOUNTS:
        raise ContainerError(
            f"the image would take {len(mounts)} mounts: choose a container_target_dir whose parent is in it"
        )
    os.makedirs(skeleton, mode=0o755, exist_ok=True)  # noqa: PTH103
    root = os.open(skeleton, _DIRECTORY)
    try:
        for place in places:
            place.make(root)
        for name in ("proc", "dev"):
            _point(root, name, directory=True)
        for mount in own:
            _point(root, mount.destination, directory=mount.source in directories)
    finally:
        os.close(root)
    return mounts


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """A name in the skeleton: a link, or something to mount on, or else a directory of its own."""

    name: str
    link: str = ""
    mount: Mount | None = None
    directory: bool = True

    def make(self, root: int) -> None:
        if not self.link:
            _point(root, self.name, directory=self.directory)
            return
        with _parent(root, self.name) as (directory, name):
            os.symlink(self.link, name, dir_fd=directory)


def _settled(image: str, mount: Mount, *, directory: bool) -> Mount:
    """Where a mount really is in this image."""
    if _first(mount.destination) in _OTHERS:
        return mount
    place = resolve(image, mount.destination)
    if not place or _first(place) in _OTHERS:
        raise ContainerError(f"its {mount.destination} is a link to /{place}, where nothing can be mounted")
    there = f"{image}/{place}"
    if os.path.lexists(there) and os.path.isdir(there) != directory:  # noqa: PTH112
        kind = "a directory" if directory else "a file"
        raise ContainerError(f"its {mount.destination} is in the way of {kind} that is mounted there")
    return msgspec.structs.replace(mount, destination="/" + place)


def _first(path: str) -> str:
    return path.strip("/").split("/")[0]


def _homeless(image: str, mount: Mount) -> bool:
    """Whether making its mount point would take a directory of the image apart."""
    place = resolve(image, mount.destination)
    return os.path.isdir(f"{image}/{posixpath.dirname(place)}") and not os.path.lexists(f"{image}/{place}")  # noqa: PTH112


def _lay(image: str, below: str, points: Collection[str]) -> Iterator[_Place]:
    """What the skeleton contains for one directory of the image."""
    directory = posixpath.join(image, below)
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    if not os.access(directory, os.X_OK, effective_ids=True):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), directory)
    for entry in found:
        name = posixpath.join(below, entry.name)
        inner = [point for point in points if point.startswith(name + "/")]
        if name in _OTHERS or name in points:
            continue
        if entry.is_symlink():
            yield _Place(name=name, link=os.readlink(entry.path))  # noqa: PTH115 - strings
            continue
        if not all(os.path.lexists(posixpath.join(image, point)) for point in inner):
            yield _Place(name=name)
            yield from _lay(image, name, points)
            continue
        about = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(about.st_mode) or stat.S_ISREG(about.st_mode):
            # Only root changes what is in /, and an automatic mount there is seen when it is mounted.
            identity = (about.st_dev, about.st_ino) if directory != "/" else None
            mount = Mount(source=entry.path, destination="/" + name, identity=identity)
            yield _Place(name=name, mount=mount, directory=stat.S_ISDIR(about.st_mode))


def _point(root: int, path: str, *, directory: bool) -> None:
    """Something to mount on, if nothing is there."""
    with _parent(root, path) as (place, name), suppress(FileExistsError):
        if directory:
            os.mkdir(name, 0o755, dir_fd=place)
        else:
            os.close(os.open(name, _NEW, 0o644, dir_fd=place))


@contextmanager
def _parent(root: int, path: str) -> Generator[tuple[int, str]]:
    """
    Where in the skeleton a path is to be made, and its last name; directories on the way to it are made.

    No link is followed: those of the skeleton are the image's, and lead anywhere on the machine.  None was on the way when the image was
    looked at, but an image may be a directory to which the job's owner, or a program beside the job, writes meanwhile.
    """
    *parts, name = path.strip("/").split("/")
    place = os.dup(root)
    try:
        for part in parts:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=place)
            deeper = os.open(part, _DIRECTORY, dir_fd=place)
            os.close(place)
            place = deeper
        yield place, name
    finally:
        os.close(place)
