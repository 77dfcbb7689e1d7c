"""
The root directory of a container: the image's directories, and what is mounted between them.

A mount needs something to be mounted on.  An image is not ours to change (others use it at the same moment, or it is on
a read-only file system), so what a container gets as its root is a skeleton: a small tree with the image's names, made for
this one container, on which the image's directories are mounted one by one.  Where a mount point is missing in one of them,
the skeleton goes one level deeper there.
"""

import errno
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kettle.execution.containers.policy import ContainerError

_MOST_LINKS: Final = 40
_MOST_MOUNTS: Final = 1000


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """
    A directory or file of the machine, and where it is in the container.
    """

    source: str
    destination: str
    writable: bool = False
    device: bool = False
    optional: bool = False
    """Left out where the image has no place for it."""


def resolve(root: str, path: str) -> str:
    """
    Where `path` leads for somebody whose root is `root`: a relative path without links, whether or not it exists.

    Raises:
        OSError: links lead to links for ever (ELOOP).
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


def furnish(image: str, skeleton: str, wanted: Sequence[Mount]) -> list[Mount]:
    """
    Make the skeleton of `image` for these mounts; all mounts, in their order, parents first.

    `/proc`, `/dev` and `/sys` are left to who mounts them.

    Raises:
        ContainerError: the image has so many names that it cannot be put together like that, or links in a circle.
        OSError: the image cannot be read.
    """
    try:
        own = [_settled(image, mount) for mount in wanted if not (mount.optional and _homeless(image, mount))]
    except OSError as error:
        raise ContainerError(f"a path of the image cannot be followed: {error.strerror}") from error
    points = {mount.destination.strip("/") for mount in own}
    mounts = [*_lay(image, skeleton, "", points), *own]
    for name in ("proc", "dev"):
        os.makedirs(f"{skeleton}/{name}", exist_ok=True)  # noqa: PTH103
    for mount in own:
        _point(f"{skeleton}{mount.destination}", mount.source)
    if len(mounts) > _MOST_MOUNTS:
        raise ContainerError(
            f"the image would take {len(mounts)} mounts: choose a container_target_dir whose parent is in it"
        )
    return mounts


def _settled(image: str, mount: Mount) -> Mount:
    return msgspec.structs.replace(mount, destination="/" + resolve(image, mount.destination))


def _homeless(image: str, mount: Mount) -> bool:
    """
    Whether making its mount point would take a directory of the image apart.
    """
    place = resolve(image, mount.destination)
    return os.path.isdir(f"{image}/{posixpath.dirname(place)}") and not os.path.lexists(f"{image}/{place}")  # noqa: PTH112


def _lay(image: str, skeleton: str, below: str, points: Iterable[str]) -> Iterator[Mount]:
    """
    One directory of the skeleton, and the mounts of the image's directories and files in it.
    """
    os.makedirs(posixpath.join(skeleton, below), mode=0o755, exist_ok=True)  # noqa: PTH103
    with os.scandir(posixpath.join(image, below)) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        name = posixpath.join(below, entry.name)
        place = posixpath.join(skeleton, name)
        inner = [point for point in points if point.startswith(name + "/")]
        if name in {"proc", "dev", "sys"} or name in points:
            continue
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), place)  # noqa: PTH115, PTH211 - strings
        elif not all(os.path.lexists(posixpath.join(image, point)) for point in inner):
            yield from _lay(image, skeleton, name, points)
        elif stat.S_ISDIR(mode := entry.stat(follow_symlinks=False).st_mode) or stat.S_ISREG(mode):
            _point(place, entry.path)
            yield Mount(source=entry.path, destination="/" + name)


def _point(place: str, source: str) -> None:
    """
    Something to mount `source` on.
    """
    if os.path.lexists(place):
        return
    if os.path.isdir(source):  # noqa: PTH112
        os.makedirs(place, mode=0o755, exist_ok=True)  # noqa: PTH103
        return
    os.makedirs(posixpath.dirname(place), mode=0o755, exist_ok=True)  # noqa: PTH103
    os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
