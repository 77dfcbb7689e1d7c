"""
Files that were fetched by URL, kept for the next job of the same person that names the same URL.

A file is used again only if its server says that it is still the same, and if its bytes are still what was fetched:

    <sha256 of owner and URL>.<what the server names this state by>.<sha256 of the bytes>

By owner, because what a job fetches may come through a proxy of its own choice.  Who works here has the machine's
rights, not a job's; the job's account has the file's descriptor, and can only read it.
"""

import base64
import binascii
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kettle.retry.deadline import Deadline
from kettle.transfer.plugin import Cached, Move, Plugin

_PIECE: Final = 1 << 20
_TAG_BYTES: Final = 64
_LOCK: Final = ".lock"
PATIENCE_S: Final = 10.0
"""How long another job's fetch of the same file is waited for: its server may be slow on purpose."""
_AT_ONCE: Final = 200
"""Files of one transfer: each takes two descriptors."""
_PAUSE_S: Final = 0.1
_SCHEMES: Final = frozenset({"http", "https"})
_SIGNED: Final = frozenset({"s3", "gs"})


def cacheable(moves: Sequence[Move], plugins: Sequence[Plugin]) -> list[Move]:
    """
    What our own plugin fetches, by URLs that hold no secret: no name or password, no query, which may be a signature.  Objects
    that need one are known by what the job calls them.  Of very many, some; none for which the site wants no cache.
    """
    found: list[Move] = []
    for move in moves:
        plugin = next((each for each in plugins if move.method in each.methods), None)
        parts = urlsplit(move.named)
        if (
            plugin is not None
            and plugin.ours
            and move.method in (_SIGNED if move.name else _SCHEMES)
            and (move.rule is None or move.rule.form != "none")
            and not parts.query
            and "@" not in parts.netloc
        ):
            found.append(move)
    return found[:_AT_ONCE]


class UrlCache:
    """
    The files of one person in a directory that no job can enter; the least recently used of everybody's are removed
    when there are more than `limit` bytes.
    """

    def __init__(self, directory: Path, *, owner: str, limit: int) -> None:
        self._directory = directory
        self._owner = owner
        self._limit = limit

    def _key(self, url: str) -> str:
        return hashlib.sha256(f"{self._owner}\0{url}".encode()).hexdigest()

    @contextmanager
    def turn(self, urls: Iterable[str]) -> Generator[bool]:
        """
        Of several jobs of one person that want a file at once, one fetches it and the others wait for that, but not for
        long: whether it is our turn; if not, the cache is not to be used.  Raises OSError.
        """
        self._directory.mkdir(mode=0o700, exist_ok=True)
        deadline, held = Deadline(PATIENCE_S), dict[Path, int]()
        wanted = sorted({self._directory / f"{self._key(url)}{_LOCK}" for url in urls})
        try:
            for path in wanted:  # in one order: nobody waits in a ring
                if (fd := _locked(path, deadline)) is None:
                    break
                held[path] = fd
            yield len(held) == len(wanted)
        finally:
            for path, fd in held.items():
                path.unlink(missing_ok=True)  # who waits for it sees that, and makes another
                os.close(fd)

    def known(self, url: str) -> Cached | None:
        """A file that may still be what the URL names, opened for reading."""
        for path in self._directory.glob(f"{self._key(url)}.*.*"):
            _, tag, total = path.name.split(".")
            with suppress(OSError, binascii.Error, UnicodeDecodeError):
                text = base64.urlsafe_b64decode(tag).decode()
                fd = os.open(path, os.O_RDONLY)
                os.utime(fd)
                return Cached(fd=fd, tag=text, sha256=total)
        return None

    def keep(self, url: str, tag: str, path: str) -> None:
        """Take over a file that was just fetched, in place of an older state.  Raises OSError."""
        if not 0 < len(tag.encode()) <= _TAG_BYTES:
            return
        key = self._key(url)
        draft = self._directory / f"{key}.draft"
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(source)
            # A job's own plugin has run: what it may have linked here is no file of the job.
            plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if not plain or status.st_size > self._limit:
                return
            self._make_room(status.st_size)
            total = _copy(source, draft, 0o600)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        finally:
            os.close(source)
        for old in self._directory.glob(f"{key}.*.*"):
            old.unlink(missing_ok=True)
        draft.rename(self._directory / f"{key}.{base64.urlsafe_b64encode(tag.encode()).decode()}.{total}")

    def _make_room(self, size: int) -> None:
        found: list[tuple[float, int, Path]] = []
        for path in self._directory.iterdir():
            with suppress(FileNotFoundError):  # another job's turn has replaced it
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        excess = size + sum(each for _, each, _ in found) - self._limit
        for _, freed, path in sorted(found):
            if excess <= 0:
                break
            if path.suffix not in {_LOCK, ".draft"}:
                path.unlink(missing_ok=True)
                excess -= freed


def _locked(path: Path, deadline: Deadline) -> int | None:
    """A lock; None: somebody else has it, and goes on having it.  Raises OSError."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_nlink:
                return fd
        except BlockingIOError:
            if deadline.passed:
                os.close(fd)
                return None
            time.sleep(_PAUSE_S)  # no notification tells when a lock is free
        os.close(fd)


def copied(cached: Cached, target: str) -> int | None:
    """
    Copy a cached file to a path; its size, None if it is not any more what was fetched.  Raises OSError.
    """
    os.lseek(cached.fd, 0, os.SEEK_SET)
    same = _copy(cached.fd, Path(target), 0o666) == cached.sha256
    return Path(target).stat().st_size if same else None


def _copy(source: int, target: Path, mode: int) -> str:
    """Copy what an open file has; its SHA-256."""
    total = hashlib.sha256()
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as sink:
        while data := os.read(source, _PIECE):
            total.update(data)
            sink.write(data)
    return total.hexdigest()
