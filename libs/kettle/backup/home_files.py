"""
Which files of a pool's directory are in a backup, as two archives: secrets apart from what the queue has on disk.

What is made again by itself is left out: sockets, logs, sandboxes of running jobs, JetStream, and the state of machines,
whose processes do not outlive the machine that is lost.  Everything else is in it, whether it is known here or not.
"""

import errno
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from kettle.auth.private_files import private_directory
from kettle.backup.errors import BackupError
from kettle.backup.manifest import Told, nowhere
from kettle.execution.sandbox.safe_open import open_beneath

SECRET: Final = ("credentials", "pki", "iam", "kettle.toml")
"""Keys, what iam keeps, and settings, among which may be passwords."""
_LEFT_OUT: Final = frozenset({
    "execute", "log", "run", "nats", "postgres", "master.lock", "state.json", "pool.json", "local_jobs.json",
})  # fmt: skip
_OF_MACHINES: Final = "startd"
_PIECE: Final = 1 << 20
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, None})
"""What an error says of a file that was removed, or that has become something else (None: see `open_beneath`)."""
_KEPT_BELOW: Final = ("nats/port",)
"""Where clients look for the bus."""

Seen = dict[str, tuple[int, int]]
"""Of each file that is in an archive: its size, and when it was changed, in nanoseconds."""


def secrets_of(home: Path) -> bytes:
    """The archive of all keys and settings."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in SECRET:
            for path in _below(home / name):
                archive.add(path, arcname=str(path.relative_to(home)), recursive=False)
    return buffer.getvalue()


def write_files(home: Path, target: Path, *, seen: Seen, told: Told = nowhere) -> None:
    """
    Write the archive of all other files that are not as `seen` has them, and note them there.

    A file that goes while it is read is left out: who removes a file of the queue has recorded why before.
    """
    found = [path for path in _others(home) if _changed(home, path, seen)]
    with _private(target) as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for number, path in enumerate(found, 1):
            _add(archive, home, path, seen)
            told(target.name, number, len(found))


def extract(
    archive: IO[bytes],
    home: Path,
    *,
    owners: bool,
    keep: bool = False,
    told: Told = nowhere,
    name: str = "files",
) -> None:
    """
    Write what an archive has below a directory; `owners`: with the numbers of owners, as root can; `keep`: except what is there.

    Nothing is written elsewhere whatever the archive says, and nothing that others could read which they could not before.

    Raises:
        BackupError: the archive is none, or names a place elsewhere.
    """
    try:
        private_directory(home)
        with tarfile.open(fileobj=archive, mode="r:") as opened:
            members = opened.getmembers()
            for number, member in enumerate(members, 1):
                if not (keep and os.path.lexists(home / member.name)):
                    _extract(opened, member, home, owners=owners)
                told(name, number, len(members))
    except (tarfile.TarError, OSError) as error:
        raise BackupError(f"{name} of the backup cannot be written to {home}: {error}") from error


def links_elsewhere(home: Path) -> Iterator[Path]:
    """
    Where links lead that are in a backup and whose targets are not: somebody has given a part of the directory another place.
    """
    for path in [*_others(home), *(each for name in SECRET for each in _below(home / name))]:
        if path.is_symlink() and not (target := path.resolve()).is_relative_to(home.resolve()):
            yield target


def read_files(archive: IO[bytes]) -> Mapping[str, bytes]:
    """The plain files of an archive by their names, for who only looks at them."""
    with tarfile.open(fileobj=archive, mode="r:") as opened:
        return {
            member.name: file.read()
            for member in opened
            if member.isreg() and (file := opened.extractfile(member))
        }


@contextmanager
def _private(path: Path) -> Generator[IO[bytes]]:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _others(home: Path) -> Iterator[Path]:
    for entry in sorted(home.iterdir()):
        name = entry.name
        if name in _LEFT_OUT or name in SECRET or name.startswith((_OF_MACHINES, ".")):
            continue
        yield from _below(entry)
    for name in _KEPT_BELOW:
        yield from _below(home / name)


def _below(top: Path) -> Iterator[Path]:
    """A file, or a directory with all that is below it; no sockets and devices, and links as links."""
    try:
        mode = top.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        yield top
    elif stat.S_ISDIR(mode):
        yield top
        try:
            entries = sorted(top.iterdir())
        except FileNotFoundError:
            return
        for entry in entries:
            yield from _below(entry)


def _changed(home: Path, path: Path, seen: Seen) -> bool:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return seen.get(str(path.relative_to(home))) != (found.st_size, found.st_mtime_ns)


def _add(archive: tarfile.TarFile, home: Path, path: Path, seen: Seen) -> None:
    name = str(path.relative_to(home))
    try:
        archive.inodes = {}  # type: ignore[attr-defined]  # two names of one file are two files
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            archive.addfile(archive.gettarinfo(path, arcname=name))
        else:
            # Its owner may exchange it, or what is above it, for a link: what is read is what the archive says it is.
            with os.fdopen(open_beneath(str(home), name), "rb") as file:
                member = archive.gettarinfo(arcname=name, fileobj=file)
                # What is appended meanwhile is in the next backup, what is cut off is filled: the archive stays whole.
                archive.addfile(member, _Padded(file, member.size))
    except OSError as error:
        if error.errno not in _GONE:
            raise
        return
    seen[name] = (found.st_size, found.st_mtime_ns)


class _Padded(io.RawIOBase):
    """Exactly so many bytes of a file that others write."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted)
        data += bytes(wanted - len(data))
        self._left -= wanted
        return data


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, home: Path, *, owners: bool) -> None:
    """By descriptors: those whose directories are below may exchange them for links meanwhile."""
    *above, name = member.name.split("/")
    if any(part in {"", ".", ".."} for part in (*above, name)):
        raise BackupError(f"the backup names a place outside of {home}: {member.name}")
    secret = [*above, name][0] in SECRET
    mode = member.mode & (0o700 if secret else 0o777)  # of a secret, whatever it had become
    place = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in above:
            place = _deeper(place, part)
        if member.isdir():
            place = _deeper(place, name, instead_of_link=True)
            _finish(place, member, mode | 0o700, owners=owners and not secret)
        elif member.isreg():
            _write(archive, member, place, name, mode, owners=owners and not secret)
        elif member.issym():
            _remove(place, name)
            os.symlink(member.linkname, name, dir_fd=place)
            if owners and not secret:
                os.chown(name, member.uid, member.gid, dir_fd=place, follow_symlinks=False)
        else:
            raise BackupError(f"{member.name} of the backup is neither file nor directory nor link")
    finally:
        os.close(place)


def _deeper(place: int, name: str, *, instead_of_link: bool = False) -> int:
    """
    A directory in one that is open, which is closed then; made if there is none.

    Raises OSError: it is a link, or no directory.
    """
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=place)
    if instead_of_link and stat.S_ISLNK(os.lstat(name, dir_fd=place).st_mode):
        os.unlink(name, dir_fd=place)
        os.mkdir(name, 0o700, dir_fd=place)
    deeper = os.open(name, _DIRECTORY, dir_fd=place)
    os.close(place)
    return deeper


def _write(
    archive: tarfile.TarFile, member: tarfile.TarInfo, place: int, name: str, mode: int, *, owners: bool
) -> None:
    source = archive.extractfile(member)
    assert source is not None, "a plain file"
    _remove(place, name)
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=place)
    with source, os.fdopen(fd, "wb") as file:
        shutil.copyfileobj(source, file, _PIECE)
        file.flush()
        _finish(fd, member, mode, owners=owners)
        os.utime(fd, (member.mtime, member.mtime))
        os.fsync(fd)


def _remove(place: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=place)


def _finish(fd: int, member: tarfile.TarInfo, mode: int, *, owners: bool) -> None:
    if owners:
        os.fchown(fd, member.uid, member.gid)
    os.fchmod(fd, mode)
