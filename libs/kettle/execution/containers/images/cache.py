"""
Unpacked images of this machine, each once, for all jobs that want it.

A user of an image has a shared lock on it, a process that unpacks or removes it an exclusive one; the kernel releases
locks when a process dies.  So nothing is recorded, nothing can be recorded wrongly, and the next process finds what a
killed one left: a draft without an owner.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.containers.images.archives import ImageConfig
from kettle.execution.containers.policy import ContainerError
from kettle.execution.sandbox.directory import remove_tree

_LOCK: Final = ".lock"
_DRAFT: Final = ".draft"
_CONFIG: Final = "config.json"
_KEY: Final = re.compile("[0-9a-f]{64}")

Unpack = Callable[[str, int], ImageConfig]
"""Fills an empty directory with an image of at most so many bytes."""
Discard = Callable[[ImageConfig], bool]
"""Has an engine remove its part of an image; whether it did."""


class Image(msgspec.Struct, frozen=True):
    """An image that is there as long as `lock` (a descriptor) is open; -1: it is nobody's to remove."""

    root: str
    config: ImageConfig = ImageConfig()
    lock: int = -1
    fresh: bool = False
    """It was got now, and not there before."""

    def release(self) -> None:
        """It may go."""
        if self.lock >= 0:
            os.close(self.lock)


class ImageCache:
    """
    The images below a directory; `limit` in bytes counts for those that nobody uses.

    Of an image whose files an engine has, only the description is here.
    """

    def __init__(self, directory: str, limit: int, discard: Discard | None = None) -> None:
        self._directory = Path(directory)
        self._limit = limit
        self._discard = discard

    def have(self, key: str, unpack: Unpack) -> Image:
        """
        The image `key`, unpacked now if need be; another process that unpacks the same is waited for.

        Raises:
            ContainerError, OSError: `unpack` failed; nothing is left of it.
            ValueError: `key` is no SHA-256; it becomes the name of a directory.
        """
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no SHA-256, and cannot name an image")
        fresh = False
        while True:
            if (image := self.find(key)) is not None:
                return msgspec.structs.replace(image, fresh=True) if fresh else image
            fresh = self._make(key, unpack)

    def find(self, key: str) -> Image | None:
        """The image `key` if it is there."""
        self._directory.parent.mkdir(parents=True, exist_ok=True)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._directory.chmod(0o700)  # an image is for jobs that have it, not for all who know its digest
        entry = self._directory / key
        lock = self._lock(key, fcntl.LOCK_SH)
        assert lock is not None
        try:
            config = _described(entry)
        except FileNotFoundError:
            os.close(lock)
            return None
        os.utime(lock)
        return Image(str(entry / "root"), config, lock)

    def drop(self, key: str) -> bool:
        """Remove an image; false: somebody uses it."""
        return self._remove(key, self._directory / key)

    def _make(self, key: str, unpack: Unpack) -> bool:
        """Whether it was unpacked, and not by somebody else meanwhile."""
        entry, draft = self._directory / key, self._directory / (key + _DRAFT)
        lock = self._lock(key, fcntl.LOCK_EX)
        assert lock is not None
        try:
            if entry.exists():
                return False
            remove_tree(str(draft))
            (draft / "root").mkdir(mode=0o755, parents=True)
            draft.chmod(0o755)
            try:
                config = unpack(str(draft / "root"), self._limit)
                (draft / _CONFIG).write_bytes(msgspec.json.encode(config))
                draft.rename(entry)
            except BaseException:
                remove_tree(str(draft))
                raise
        finally:
            os.close(lock)
        self.shrink(but=key)
        return True

    def shrink(self, *, but: str = "") -> None:
        """
        Remove drafts that nobody works on, and the images longest unused until the others fit; never one in use.
        """
        if not self._directory.is_dir():
            return
        for draft in self._directory.glob("*" + _DRAFT):
            self._remove(draft.name.removesuffix(_DRAFT), draft)
        known = sorted((_used(path), path.stem, _size(path)) for path in self._directory.glob("*" + _LOCK))
        excess = sum(size for _, _, size in known) - self._limit
        for _, key, size in known:
            if excess <= 0:
                break
            if key != but and self._remove(key, self._directory / key):
                excess -= size

    def _remove(self, key: str, path: Path) -> bool:
        lock = self._lock(key, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if lock is None:
            return False
        try:
            if not self._discarded(path):
                return False
            remove_tree(str(path))
            if not (self._directory / key).exists():
                (self._directory / (key + _LOCK)).unlink(missing_ok=True)
        finally:
            os.close(lock)
        return True

    def _discarded(self, path: Path) -> bool:
        try:
            config = _described(path)
        except (FileNotFoundError, msgspec.MsgspecError):
            return True  # a draft, or nothing
        return not config.engine or (self._discard is not None and self._discard(config))

    def _lock(self, key: str, how: int) -> int | None:
        """
        Lock an image; None if it is in use and we would not wait.  A lock file that was removed meanwhile locks nothing.
        """
        path = self._directory / (key + _LOCK)
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, how)
            except BlockingIOError:
                os.close(fd)
                return None
            with suppress(FileNotFoundError):
                if os.fstat(fd).st_ino == path.stat().st_ino:
                    return fd
            os.close(fd)


def key_of(*parts: object) -> str:
    """
    The name of an image that is not identified by the digest of an archive: it distinguishes it from any other image.
    """
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()


def no_image(name: str, error: OSError) -> ContainerError:
    """The image's file cannot be read."""
    return ContainerError(f"the image {name} cannot be read: {error.strerror}", subcode=error.errno or 0)


def _described(entry: Path) -> ImageConfig:
    return msgspec.json.decode((entry / _CONFIG).read_bytes(), type=ImageConfig)


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _size(lock: Path) -> int:
    try:
        return _described(lock.with_suffix("")).size
    except (OSError, msgspec.MsgspecError):
        return 0
