"""
What a job leaves: which files are its results, by HTCondor's rules, and getting hold of them safely.

Small results go into the report.  The others stay in the sandbox (`kept_results`), so that the startd can serve them later
without following anything that the job made.
"""

import os
import posixpath
import stat
from collections.abc import Container, Iterator
from enum import Enum
from itertools import islice
from typing import Final

import msgspec

from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.job_environment.node import HOSTS_FILE
from kettle.execution.sandbox import kept_results, manifest, private_directories
from kettle.execution.sandbox.directory import Mark, Sandbox, acting_as
from kettle.jobs.needed_tokens import DIRECTORY
from kettle.transfer.checkpoint_manifest import url as url_of
from kettle.transfer.file_lists import leaves, placed
from kettle.transfer.plugin import Move
from kettle_wire.worker_reports import OutputFile

STDOUT: Final = "_condor_stdout"
STDERR: Final = "_condor_stderr"
OURS: Final = frozenset({".job.ad", ".machine.ad", ".chirp.config", ".update.ad", HOSTS_FILE, STDOUT, STDERR})
_HIDDEN: Final = frozenset({private_directories.PRIVATE, DIRECTORY, kept_results.DIRECTORY})
"""Directories of the sandbox that are no part of what a job has made."""
INLINE_BYTES: Final = 64 * 1024
"""How much of all results together goes into the report."""
MOST_FILES: Final = 10_000
MOST_NAME_BYTES: Final = 1 << 20
"""
How many results a job may leave, and how long their names may be together: the report has to fit into one message.
"""


class TooManyResultsError(Exception):
    """The job left more than a report can name; the message says how much would do."""


class Results(msgspec.Struct, frozen=True):
    """The results of a job; `kept`: some of them are still in the sandbox."""

    files: list[OutputFile]
    missing: list[str]
    sent: int
    kept: bool
    uploads: list[Move]
    """What goes to URLs instead of the submitter."""


class Purpose(Enum):
    """What else than the submitter's results is wanted of a job."""

    EVICTION = "what it has made, for its next run"
    CHECKPOINT = "what its next run, here or elsewhere, goes on from"


def collect(
    sandbox: Sandbox, job: JobAd, before: dict[str, Mark], *, code: int | Purpose = 0, place: str = ""
) -> Results:
    """
    Find the results; `before` is the sandbox's catalogue from before the job started, `code` how it ended: its exit code,
    or the negative of the signal that killed it; or what for they are wanted if it has not ended.  `place`: the URL below
    which a checkpoint goes, but for the streams.

    Everything is opened with the job's own rights.  No process of the job may be left.

    Raises:
        TooManyResultsError: they cannot be reported.
        OSError: the sandbox cannot be read, or a result cannot be copied for want of space.
        ManifestError: the job's list of destinations cannot be read.
    """
    remaps, uploads = job.remaps, list[Move]()
    found: list[OutputFile] = []
    missing: list[str] = []
    room, bounds = INLINE_BYTES, _Bounds()
    secret = posixpath.normpath(f"{sandbox.path}/{job.proxy}") if job.transfers and job.proxy else ""
    with acting_as(sandbox.account):
        for path, name in _wanted(sandbox, job, before, missing, code):
            if secret and posixpath.normpath(path) == secret:
                continue  # it holds a key, and one that is kept would come back in place of a renewed one
            bounds.count(name)
            url = None
            if name not in {STDOUT, STDERR}:
                away = url_of(place, name) if place else None
                url = away if isinstance(code, Purpose) else job.sent_to(remaps, name)
            if url is not None and os.path.isdir(path):  # noqa: PTH112
                continue  # an empty one: there is nothing to be sent
            if url is not None:
                if _speakable(path) and os.path.isfile(path):  # noqa: PTH113
                    uploads.append(Move(url, path))
                else:
                    missing.append(_spelled(name))
                continue
            file = open_result(sandbox, path, name, room) if _speakable(name) else None
            if file is None:
                missing.append(_spelled(name))
            else:
                room -= len(file.data or b"")
                found.append(file)
    listed = {file.name: file for file in found}  # of two with one name the last one wins
    kept = any(file.data is None for file in listed.values())
    sent = sum(file.size for file in listed.values())
    return Results(list(listed.values()), missing, sent, kept, uploads)


class _Bounds:
    """What has been counted so far."""

    def __init__(self) -> None:
        self._files = self._bytes = 0

    def count(self, name: str) -> None:
        self._files += 1
        self._bytes += len(os.fsencode(name))
        if self._files > MOST_FILES or self._bytes > MOST_NAME_BYTES:
            raise TooManyResultsError(
                f"the job left more than {MOST_FILES} files, or files whose names have more than {MOST_NAME_BYTES} bytes "
                "together, as its results: pack them into an archive, or name those that are wanted"
            )


def _speakable(name: str) -> bool:
    """Whether a name can be sent on the wire, which is UTF-8; on disk it is any bytes."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _spelled(name: str) -> str:
    """A name for people, with bytes that are not UTF-8 written as escapes."""
    return name if _speakable(name) else os.fsencode(name).decode(errors="backslashreplace")


def _wanted(
    sandbox: Sandbox, job: JobAd, before: dict[str, Mark], missing: list[str], code: int | Purpose
) -> Iterator[tuple[str, str]]:
    """
    (path, name under which it is shipped) of each result; what was asked for and is not there goes to `missing`.
    """
    if not job.transfers:
        return
    erased = code is Purpose.EVICTION and job.flag("EraseOutputAndErrorOnRestart", default=True)
    streams = () if erased else (STDOUT, STDERR)
    yield from ((path, name) for name in streams if os.path.lexists(path := f"{sandbox.path}/{name}"))
    if isinstance(code, int):
        yield from manifest.write_after(sandbox, job)
    if isinstance(code, int) and not job.wants_results(code):
        # What tells why, as far as it is there: a job that failed need not have made all of it.
        yield from _listed(sandbox, job, job.items("FailureFiles") or [], [], checkpoint=False)
        return
    checkpoint = code is Purpose.CHECKPOINT
    chosen = job.items("TransferCheckpoint") if checkpoint else None
    listed = job.items("TransferOutput") if chosen is None else chosen
    if listed is None:
        skipped = OURS | ({job.command} if job.transfers_executable else set[str]())
        changed = (
            name
            for name, mark in sandbox.files()
            if before.get(name) != mark and name not in skipped and not job.excludes(name)
        )
        few = sorted(islice(changed, MOST_FILES + 1))  # one more is too many, and more need not be looked at
        yield from ((f"{sandbox.path}/{name}", name) for name in few)
        return
    absent: list[str] = []
    yield from _listed(sandbox, job, listed, absent, checkpoint=checkpoint)
    if not checkpoint or chosen is not None:  # results that are not there yet are no fault of a checkpoint
        missing += absent


def _listed(
    sandbox: Sandbox, job: JobAd, items: list[str], absent: list[str], *, checkpoint: bool
) -> Iterator[tuple[str, str]]:
    """The listed files and directories by name; those of a checkpoint come back to where they were."""
    preserve = checkpoint or job.flag("PreserveRelativePaths", default=False)
    for item in items:
        path, name = posixpath.join(sandbox.path, item), placed(item, preserve=preserve)
        if (
            leaves(item) or posixpath.normpath(item).split("/", 1)[0] == DIRECTORY
        ):  # the submit side refuses the first
            absent.append(item)
        elif os.path.isdir(path):  # noqa: PTH112
            prefix = "" if item.endswith("/") and not checkpoint else name
            hidden = _HIDDEN if posixpath.normpath(item) == "." else frozenset[str]()
            below = _tree(path.rstrip("/"), prefix, empty=not checkpoint, hidden=hidden)
            yield from (each for each in below if checkpoint or not job.excludes(each[1]))
        elif os.path.exists(path):  # noqa: PTH110
            yield path, name
        else:
            absent.append(item)


def _tree(path: str, prefix: str, *, empty: bool, hidden: Container[str]) -> Iterator[tuple[str, str]]:
    """
    What is below a directory and is none, without recursion: a job may build deeper than our stack.  With `empty` also the
    directories in which nothing is; never what is `hidden` at the top.
    """
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(posixpath.join(path, below)) as entries:
                found = sorted(
                    (entry.name, entry.is_dir(follow_symlinks=False))
                    for entry in entries
                    if below or entry.name not in hidden
                )
        except OSError:
            continue  # not readable for the job itself
        if empty and not found and (name := posixpath.normpath(posixpath.join(prefix, below))) != ".":
            yield posixpath.join(path, below).rstrip("/"), name
        waiting += [posixpath.join(below, name) for name, branch in reversed(found) if branch]
        for name, branch in found:
            inner = posixpath.join(below, name)
            if not branch and not os.path.isdir(posixpath.join(path, inner)):  # noqa: PTH112 - links to directories
                yield posixpath.join(path, inner), posixpath.normpath(posixpath.join(prefix, inner))


def open_result(sandbox: Sandbox, path: str, name: str, room: int) -> OutputFile | None:
    """
    One result: its bytes if there is room, else it is kept in the sandbox; None if there is no such file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(fd)
        if stat.S_ISDIR(about.st_mode) and name not in {STDOUT, STDERR}:
            return OutputFile(name=name, mode=stat.S_IMODE(about.st_mode), size=0, data=b"", directory=True)
        if not stat.S_ISREG(about.st_mode):
            return None
        mode = stat.S_IMODE(about.st_mode)
        if about.st_size <= room:
            return OutputFile(name=name, mode=mode, size=about.st_size, data=_read(fd, about.st_size))
        kept_results.keep(sandbox.path, path, name, fd)
        return OutputFile(name=name, mode=mode, size=about.st_size)
    finally:
        os.close(fd)


def _read(fd: int, size: int) -> bytes:
    pieces: list[bytes] = []
    while size > 0 and (piece := os.read(fd, size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
