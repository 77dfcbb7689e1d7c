"""
Files of jobs that were sent to the access point, on its disk: one directory for each cluster, which only the shadow can
read.

    <cluster>/objects/<sha256>      an input file, complete, named by its content: many jobs may share it
    <cluster>/objects/<sha256>.part the file while it arrives; nothing reads it
    <cluster>/inputs                which input files each job has; it is there before the first of them may run
    <cluster>/log.<...>             job event logs
    <cluster>/<proc>/               the Iwd of a job: its results, until they are fetched

Everything here blocks on the disk; for one cluster, one call at a time.
"""

import errno
import hashlib
import os
import re
import shutil
import stat
from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from kettle.accounts.rights import Rights, act_as
from kettle.transfer.file_lists import is_inside
from kettle.transfer.spooled_jobs import LOG
from kettle.transfer.submit_side_paths import TransferPath
from kettle_services.shadow.file_transfer.input_files import MAX_FILES
from kettle_services.shadow.files.access import FileAccess
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.spooling import Part, SpooledResult, SpooledResults
from kettle_wire.jobs import JobId
from kettle_wire.spooling import Manifest, Procs, Share, SpooledFile

MANIFEST_BYTES: Final = 64 << 20
_INLINE: Final = 16 * 1024
_INLINE_TOTAL: Final = 256 * 1024
_LISTED: Final = 1000
"""Results in one answer."""
_ARRIVING: Final = 1000
"""Files whose hashes are kept while they arrive; a file that is dropped here arrives again."""
_KNOWN: Final = 16
"""Clusters whose lists of files are remembered."""
_MISSING: Final = 10_000
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_DRAFT: Final = re.compile(r"\..*\.[0-9]+\.[0-9]+-[0-9]+", re.DOTALL)
"""A result that somebody has begun to write (`kettle_services.shadow.file_transfer.output_files`)."""
_WRITE: Final = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class SpoolError(Exception):
    """What was sent cannot be kept; `code` is that of the refusal."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class SpooledFiles:
    """
    The spool of one schedd's jobs; `most` are the bytes that the input files of one job may have together.
    """

    def __init__(self, root: Path, *, most: int) -> None:
        self.root: Final = root
        self._most = most
        self._sums: OrderedDict[Path, tuple[Any, int]] = OrderedDict()
        """Of the bytes of each file that are there so far, and how many these are."""
        self._known: OrderedDict[int, tuple[int, Manifest, dict[int, int]]] = OrderedDict()

    def directory(self, job: JobId) -> Path:
        """The Iwd of a job."""
        return self._cluster(job.cluster) / str(job.proc)

    def _cluster(self, cluster: int) -> Path:
        return self.root / str(cluster)

    def places(self, job: JobId, places: FileAccess, *, confined: bool = False) -> FileAccess:
        """
        Where a job has business: in its own directory as well, or, `confined`, nowhere else; and its input files are read
        for it.
        """
        return places.of_job(self.directory(job), self._cluster(job.cluster) / "objects", confined=confined)

    # -- input -------------------------------------------------------------------------------------------------------

    def keep(self, cluster: int, parts: Iterable[Part]) -> list[int]:
        """
        Write parts of files; how many bytes of each are there now.

        Raises SpoolError for bytes that are not those of the file, or too many of them; OSError.
        """
        objects = self._cluster(cluster) / "objects"
        private(objects.parent)
        objects.mkdir(mode=0o700, exist_ok=True)
        return [self._keep(objects / part.sha256, part) for part in parts]

    def _keep(self, path: Path, part: Part) -> int:
        if part.size > max(self._most, MANIFEST_BYTES):
            raise SpoolError(RefusalCode.TOO_LARGE, _too_large(self._most))
        if part.offset + len(part.data) > part.size:
            raise SpoolError(RefusalCode.MALFORMED, "a file has more bytes than its size says")
        if (size := _size(path)) is not None:
            return size
        draft = path.with_name(f"{path.name}.part")
        total, have = self._sums.get(draft, (hashlib.sha256(), 0))
        if have and _size(draft) != have:  # it is not what was hashed any more: it arrives again
            total, have = hashlib.sha256(), 0
            self._sums.pop(draft, None)
        if part.offset != have or not (part.data or not part.size):
            return have
        fd = os.open(draft, _WRITE if have else _WRITE | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _write(fd, part.data, have)
            total.update(part.data)
            have += len(part.data)
            if have == part.size:
                self._sums.pop(draft, None)
                if total.hexdigest() != path.name:
                    draft.unlink()
                    raise SpoolError(
                        RefusalCode.CHANGED, "a file is not what it was when it was announced: send it again"
                    )
                os.fsync(fd)
                draft.rename(path)
                return have
        except OSError:
            self._sums.pop(draft, None)  # it is unknown how much of it is there: it arrives again
            raise
        finally:
            os.close(fd)
        self._sums.pop(draft, None)
        self._sums[draft] = total, have
        while len(self._sums) > _ARRIVING:
            self._sums.popitem(last=False)
        return have

    def settle(
        self, cluster: int, manifest: str, waiting: Sequence[Procs]
    ) -> tuple[list[str], list[Procs], int]:
        """
        Have the waiting jobs of a manifest use the files that it says: what is missing, and else which jobs they are, and the bytes of
        their files on the disk.

        When it returns without anything missing, it outlives a failure of power.  Raises SpoolError or OSError.
        """
        place = self._cluster(cluster)
        size = _size(place / "objects" / manifest)
        if size is None:
            return [manifest], [], 0
        if size > MANIFEST_BYTES:
            raise SpoolError(
                RefusalCode.TOO_LARGE, f"the list of files has more than {MANIFEST_BYTES >> 20} MiB"
            )
        try:
            said = msgspec.msgpack.decode((place / "objects" / manifest).read_bytes(), type=Manifest)
        except msgspec.MsgspecError as error:
            raise SpoolError(RefusalCode.MALFORMED, f"the list of files makes no sense: {error}") from error
        for files in said.lists:
            self._check(files)
        if missing := _missing(place / "objects", said):
            return missing, [], 0
        shares = list(_among(said, waiting))
        if shares:
            self._remember(cluster, said, shares)
        sizes = {file.sha256: file.size for share in shares for file in said.lists[share.files]}
        return [], [share.jobs for share in shares], sum(sizes.values())

    def _check(self, files: list[SpooledFile]) -> None:
        if len(files) > MAX_FILES:
            raise SpoolError(RefusalCode.TOO_LARGE, f"a job has more than {MAX_FILES} input files")
        if sum(file.size for file in files) > self._most:
            raise SpoolError(RefusalCode.TOO_LARGE, _too_large(self._most))
        if len({file.name for file in files}) != len(files) or not all(
            is_inside(file.name) for file in files
        ):
            raise SpoolError(
                RefusalCode.MALFORMED,
                "the names of a job's input files lead out of its sandbox, or are the same",
            )

    def _remember(self, cluster: int, said: Manifest, shares: list[Share]) -> None:
        place = self._cluster(cluster)
        before = self._load(cluster)
        lists, first = ([], 0) if before is None else (before[0].lists, len(before[0].lists))
        new = [Share(share.jobs, first + share.files) for share in shares]
        whole = Manifest(lists=[*lists, *said.lists], shares=[*(before[0].shares if before else []), *new])
        draft = place / "inputs.part"
        fd = os.open(draft, _WRITE | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _write(fd, msgspec.msgpack.encode(whole), 0)
            os.fsync(fd)
        finally:
            os.close(fd)
        _flush(place / "objects")
        draft.rename(place / "inputs")
        for above in (place, self.root, self.root.parent):  # each may be new
            _flush(above)

    def wanted(self, job: JobId, owner: Rights | None = None) -> list[TransferPath]:
        """
        The input files of a job, and a directory for its results, which is given to its owner.  Raises OSError or
        ValueError if they are not there.
        """
        self._make_place(job, owner)
        loaded = self._load(job.cluster)
        if loaded is None or job.proc not in loaded[1]:
            raise ValueError(f"the files of job {job} are not in the spool of this access point")
        manifest, lists = loaded
        objects = PurePosixPath(self._cluster(job.cluster) / "objects")
        return [
            TransferPath(objects / file.sha256, file.name, mode=file.mode)
            for file in manifest.lists[lists[job.proc]]
        ]

    def without_files(self, job: JobId, owner: Rights | None = None) -> list[TransferPath]:
        """As `wanted`, of a job in the spool that nobody sends files for.  Raises OSError."""
        private(self._cluster(job.cluster))
        self._make_place(job, owner)
        return []

    def _make_place(self, job: JobId, owner: Rights | None) -> None:
        self.directory(job).mkdir(mode=0o700, exist_ok=True)
        if owner is not None:
            os.chown(self.directory(job), owner.uid, owner.gid, follow_symlinks=False)

    def _load(self, cluster: int) -> tuple[Manifest, dict[int, int]] | None:
        path = self._cluster(cluster) / "inputs"
        try:
            written = path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        known = self._known.pop(cluster, None)
        if known is None or known[0] != written:
            manifest = msgspec.msgpack.decode(path.read_bytes(), type=Manifest)
            lists = {
                proc: share.files
                for share in manifest.shares
                for proc in range(share.jobs.first, share.jobs.first + share.jobs.count)
            }
            known = written, manifest, lists
        self._known[cluster] = known
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        return known[1:]

    # -- results -----------------------------------------------------------------------------------------------------

    def results(self, job: JobId, after: str) -> SpooledResults:
        """What a job left, in the order of names; of small files all.  Raises OSError."""
        room = _INLINE_TOTAL
        found: list[SpooledResult] = []
        directory = self.directory(job)
        names = [name for name in sorted(_below(directory)) if name > after]
        for name in names[:_LISTED]:
            fd = _open(directory, name)
            try:
                status = os.fstat(fd)
                data = os.pread(fd, _INLINE, 0) if status.st_size <= min(_INLINE, room) else None
            finally:
                os.close(fd)
            room -= len(data or b"")
            mode = stat.S_IMODE(status.st_mode) & 0o777
            size = status.st_size if data is None else len(data)
            found.append(SpooledResult(name, size, mode, data))
        return SpooledResults(files=found, more=len(names) > _LISTED)

    def piece(self, job: JobId, name: str, offset: int, length: int, *, log: bool) -> bytes:
        """
        Bytes of a result, or of a job event log.  Raises SpoolError for a name that is none of theirs; OSError.
        """
        if not (LOG.fullmatch(name) if log else is_inside(name)):
            raise SpoolError(RefusalCode.NOT_FOUND, f"job {job} has no such result")
        fd = _open(self._cluster(job.cluster) if log else self.directory(job), name)
        try:
            return os.pread(fd, length, offset)
        finally:
            os.close(fd)

    # -- what is there, and what is not needed any more -----------------------------------------------------------------

    def clusters(self) -> list[int]:
        """Of which there is something."""
        return sorted(_numbers(self.root))

    def jobs(self) -> list[JobId]:
        """Whose results there may be."""
        return [
            JobId(cluster, proc)
            for cluster in self.clusters()
            for proc in sorted(_numbers(self._cluster(cluster)))
        ]

    def drop(self, jobs: Iterable[JobId], clusters: Iterable[int]) -> None:
        """They have left the queue."""
        for place in (*map(self.directory, jobs), *map(self._cluster, clusters)):
            shutil.rmtree(place, ignore_errors=True)
            for draft in [draft for draft in list(self._sums) if place in draft.parents]:
                self._sums.pop(draft, None)


def private(cluster: Path) -> None:
    """Make the directory of a cluster, if it is not there, for our eyes only.  Raises OSError."""
    cluster.parent.mkdir(mode=0o700, exist_ok=True)
    cluster.mkdir(mode=0o700, exist_ok=True)


def _too_large(most: int) -> str:
    return f"the input files of a job have more than {most >> 20} MiB together"


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _write(fd: int, data: bytes, at: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(fd, left, at)
        left, at = left[written:], at + written


def _flush(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _missing(objects: Path, said: Manifest) -> list[str]:
    there: dict[str, int] = {}
    missing: dict[str, None] = {}
    for file in (file for files in said.lists for file in files):
        if file.sha256 in missing:
            continue
        if file.sha256 not in there:
            size = _size(objects / file.sha256)
            if size is None:
                missing[file.sha256] = None
                continue
            there[file.sha256] = size
        if there[file.sha256] != file.size:
            raise SpoolError(
                RefusalCode.MALFORMED, "the size of a file is not the one that the list of files says"
            )
    return list(missing)[:_MISSING]


def _among(said: Manifest, waiting: Sequence[Procs]) -> Iterator[Share]:
    """The shares of a manifest, as far as their jobs wait.  Raises SpoolError."""
    for share in said.shares:
        if share.files >= len(said.lists):
            raise SpoolError(RefusalCode.MALFORMED, "a job has a list of files that is not there")
        first, end = share.jobs.first, share.jobs.first + share.jobs.count
        for procs in waiting:
            low, high = max(first, procs.first), min(end, procs.first + procs.count)
            if low < high:
                yield Share(Procs(low, high - low), share.files)


def _below(directory: Path) -> list[str]:
    """
    The names of regular files, with the rights of whom the directory belongs to; links are neither followed nor listed.
    """
    try:
        with _given(directory) as (base, owner):
            return act_as(owner, lambda: list(_files(base)))
    except FileNotFoundError:
        return []


def _files(base: int) -> Iterator[str]:
    for place, branches, names, here in os.fwalk(".", dir_fd=base):
        branches.sort()
        for name in names:
            try:
                about = os.stat(name, dir_fd=here, follow_symlinks=False)
            except FileNotFoundError:  # the job has just removed it
                continue
            if _DRAFT.fullmatch(name) is None and stat.S_ISREG(about.st_mode):
                yield str(PurePosixPath(place) / name)


def _open(directory: Path, name: str) -> int:
    """
    A regular file below a directory, on the way to which there is no link, with the rights of whom the directory belongs
    to.  Raises OSError.
    """
    with _given(directory) as (base, owner):
        fd = act_as(owner, lambda: os.open(name, _READ, dir_fd=base))
        real = Path(f"/proc/self/fd/{fd}").readlink()
        if real == Path(f"/proc/self/fd/{base}").readlink() / name and stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(directory / name))


@contextmanager
def _given(directory: Path) -> Generator[tuple[int, Rights | None]]:
    """A directory that we have made, and whom it was given to; None: it is ours."""
    base = os.open(directory, _DIRECTORY)
    try:
        about = os.fstat(base)
        yield base, None if about.st_uid == os.geteuid() else Rights(about.st_uid, about.st_gid)
    finally:
        os.close(base)


def _numbers(directory: Path) -> Iterator[int]:
    if directory.is_dir():
        for path in directory.iterdir():
            if _NUMBER.fullmatch(path.name) and int(path.name) < 1 << 31:
                yield int(path.name)
