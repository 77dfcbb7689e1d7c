"""
The input files of jobs as they are sent to an access point: each is identified by its content, for any number of jobs.
"""

import hashlib
import os
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from kettle.client.errors import ClientError
from kettle.client.jobs.status import id_of
from kettle.transfer.directory_walk import walk
from kettle.transfer.exclusions import Exclusions
from kettle.transfer.file_lists import ManifestError, is_inside
from kettle.transfer.spooled_jobs import as_submitted
from kettle.transfer.submit_side_paths import TransferPath, excluded, inputs
from kettle_wire.ads.types import Ad
from kettle_wire.commands.spooling import Part
from kettle_wire.spooling import PIECE, Manifest, Procs, Share, SpooledFile

SMALL: Final = PIECE // 4
"""Bytes up to which a file travels with others."""
_TOGETHER: Final = 200
_EXECUTABLE: Final = 0o755
_PIECE: Final = 1 << 20
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class SpoolingError(ClientError):
    """Files of jobs cannot be sent or fetched; the message names the first that is in the way."""


class LocalFile(msgspec.Struct, frozen=True):
    """A file here."""

    path: Path
    sha256: str
    size: int
    mode: int


class InputFiles:
    """Of some jobs of one cluster.  Reads all of their files, once each; raises SpoolingError."""

    def __init__(self, ads: Sequence[Ad]) -> None:
        self.files: Final[dict[str, LocalFile]] = {}
        """By digest."""
        self._seen: dict[Path, LocalFile] = {}
        lists: dict[tuple[object, ...], int] = {}
        said: list[list[SpooledFile]] = []
        shares: list[Share] = []
        for ad in map(as_submitted, ads):
            wanted, but = _wanted(ad)
            key = (*wanted, ad.get("TransferExcludeFiles"))
            if key not in lists:
                lists[key] = len(said)
                said.append(self._list(wanted, but))
            _share(shares, id_of(ad).proc, lists[key])
        self.manifest: Final = msgspec.msgpack.encode(Manifest(lists=said, shares=shares))
        self.digest: Final = hashlib.sha256(self.manifest).hexdigest()

    def batches(self, missing: Sequence[str]) -> tuple[list[list[LocalFile]], list[LocalFile]]:
        """The missing files in groups that are sent together, and the large ones that are sent alone."""
        wanted = [self.files[digest] for digest in missing if digest in self.files]
        small, size = [list[LocalFile]()], 0
        for file in (file for file in wanted if file.size <= SMALL):
            if size + file.size > 2 * PIECE or len(small[-1]) == _TOGETHER:
                small.append([])
                size = 0
            small[-1].append(file)
            size += file.size
        return [some for some in small if some], [file for file in wanted if file.size > SMALL]

    def _list(self, wanted: Sequence[TransferPath], but: Exclusions) -> list[SpooledFile]:
        """
        Of two files for one place in the sandbox the last one counts; a program that is listed as well stays one.
        """
        found: dict[str, SpooledFile] = {}
        programs: set[Path] = set()
        for one in wanted:
            with path_error(Path(one.path)):
                for path, name in walk(one, but):
                    if name is None:
                        continue
                    if not is_inside(name):
                        raise SpoolingError(f"{name!r} is no name of a file inside a sandbox")
                    file = self._file(path)
                    if one.executable:
                        programs.add(path)
                    mode = _EXECUTABLE if path in programs else one.mode or file.mode
                    found.pop(name, None)
                    found[name] = SpooledFile(name, file.sha256, file.size, mode)
        return list(found.values())

    def _file(self, path: Path) -> LocalFile:
        if path not in self._seen:
            with path_error(path):
                digest, size, mode = _read(path)
            file = self._seen[path] = LocalFile(path, digest, size, mode)
            self.files.setdefault(digest, file)
        return self._seen[path]


def read_unchanged(files: Sequence[LocalFile]) -> list[Part]:
    """Small files as they are sent.  Raises SpoolingError for one that has changed."""
    parts: list[Part] = []
    for file in files:
        with path_error(file.path):
            data = file.path.read_bytes()
        if len(data) != file.size or hashlib.sha256(data).hexdigest() != file.sha256:
            raise changed_file_error(file.path)
        parts.append(Part(file.sha256, file.size, 0, data))
    return parts


def changed_file_error(path: Path) -> SpoolingError:
    """The error for a file that has changed since it was first read."""
    return SpoolingError(f"{path} changed while it was sent: submit again when nobody writes to it")


@contextmanager
def path_error(path: Path) -> Generator[None]:
    """The error of the system about a path."""
    try:
        yield
    except OSError as error:
        shown = error.filename if isinstance(error.filename, str) else path
        raise SpoolingError(f"{shown}: {error.strerror or error}") from error
    except ValueError as error:
        raise SpoolingError(f"{path}: {error}") from error


def _wanted(ad: Ad) -> tuple[list[TransferPath], Exclusions]:
    try:
        return inputs(ad), excluded(ad)
    except ManifestError as error:
        raise SpoolingError(f"the input files of job {id_of(ad)} cannot be told: {error}") from error


def _share(shares: list[Share], proc: int, files: int) -> None:
    last = shares[-1] if shares else None
    if last is not None and last.files == files and last.jobs.first + last.jobs.count == proc:
        shares[-1] = Share(Procs(last.jobs.first, last.jobs.count + 1), files)
    else:
        shares.append(Share(Procs(proc, 1), files))


def _read(path: Path) -> tuple[str, int, int]:
    """
    Digest, bytes and permission bits of a regular file; opening anything else may have side effects, or block.
    """
    _refuse_special(path.stat())
    fd = os.open(path, _READ)
    try:
        status = os.fstat(fd)
        _refuse_special(status)
        total, size = hashlib.sha256(), 0
        for piece in _pieces(fd):
            total.update(piece)
            size += len(piece)
    finally:
        os.close(fd)
    return total.hexdigest(), size, stat.S_IMODE(status.st_mode) & 0o777


def _pieces(fd: int) -> Iterator[bytes]:
    while piece := os.read(fd, _PIECE):
        yield piece


def _refuse_special(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a regular file")
