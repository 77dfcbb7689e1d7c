"""
The queue of this machine's own jobs, as files: a directory for each, `NUMBER.INTENT`, below `jobs`, and when it has ended below `ended`.

Only who holds the lock of the queue changes it; only the process that looks after a job writes that it has begun and how it ended.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.processes.ancestry import of_a_starter
from kettle.execution.system.linux import signal_process
from kettle.pool.processes import end_all, mark, of_pool
from kettle_services.ce.batch.local_runner import WOKEN, read, write
from kettle_services.ce.domain.batch.local import LOST, LocalJob, Room, Standing, beginning, is_lost
from kettle_wire.batch import BatchEnd, EndCause

_KEPT_S: Final = 7 * 86_400.0
"""So long it is known how a job ended."""
_RUNNER: Final = "kettle_services.ce.batch.local_runner"
_KEPT_VARIABLES: Final = ("HOME", "LOGNAME", "PATH", "USER", "TZ")


class LocalQueue:
    """One, in a directory of its own; every method blocks, and raises OSError."""

    def __init__(self, place: Path, room: Room, environment: Mapping[str, str]) -> None:
        """`environment`: variables that jobs have besides."""
        self._place: Final = place
        self._room: Final = room
        marks = {
            name: value for name, value in of_a_starter(os.environ).items() if name.startswith("_KETTLE_")
        }
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        self._environment: Final = {**kept, **marks, **environment}
        self._runners: Final = set[int]()
        """Children of this process that nobody has waited for."""

    def make(self) -> None:
        """
        Have its directories.  That is done once, when it is opened: one that is away later is no empty one.
        """
        for each in (self._place, self._place / "jobs", self._place / "ended"):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)

    def look(self) -> None:
        """Begin what may begin by now."""
        with self._changing():
            self._begin_what_fits()

    def add(self, job: LocalJob, script: str) -> LocalJob:
        """A job with its number; one of the same intent is there already, and stays as it is."""
        with self._changing():
            if (known := self._named([job.intent]).get(job.intent)) is not None:
                return msgspec.structs.replace(job, number=known)
            job = msgspec.structs.replace(job, number=self._next())
            draft = self._place / f"draft.{job.number}"
            draft.mkdir(mode=0o700)
            fd = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                write(fd, "script", script.encode())
                write(fd, "job", msgspec.msgpack.encode(job))
                (draft / "lock").touch(mode=0o600)
                os.fsync(fd)
            finally:
                os.close(fd)
            draft.rename(self._place / "jobs" / _name(job))
            self._begin_what_fits()
            return job

    def named(self, intents: Collection[str]) -> Mapping[str, int]:
        """Which it has, or has had."""
        with self._changing():
            return self._named(intents)

    def standings(self, wanted: Collection[tuple[int, str]]) -> list[Standing]:
        """How far jobs are, by numbers and intents; those that may begin do so."""
        with self._changing():
            there = self._begin_what_fits()
            found: list[Standing] = []
            for number, intent in wanted:
                name = f"{number}.{intent}"
                if (known := there.get(name)) is not None:
                    found.append(known)
                else:
                    with suppress(FileNotFoundError):
                        found.append(_standing(self._place / "ended" / name))
            return found

    def change(self, number: int, intent: str, *, stopped: bool | None = None, removed: bool = False) -> None:
        """What is wanted of a job from now on; of one that is not there, or has ended, nothing."""
        path = self._place / "jobs" / f"{number}.{intent}"
        with self._changing(), suppress(FileNotFoundError):
            known = _standing(path)
            job = msgspec.structs.replace(
                known.job,
                stopped=known.job.stopped if stopped is None else stopped,
                removed=known.job.removed or removed,
            )
            with _opened(path) as fd:
                write(fd, "job", msgspec.msgpack.encode(job))
            _wake(path)
            self._begin_what_fits()

    @contextmanager
    def _changing(self) -> Generator[None]:
        fd = os.open(self._place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
        for pid in list(self._runners):
            with suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    continue
            self._runners.discard(pid)

    def _next(self) -> int:
        """A number that was never given before."""
        file = self._place / "next"
        number = int(file.read_text()) if file.exists() else 1
        draft = file.with_suffix(".new")
        draft.write_text(str(number + 1))
        draft.rename(file)
        if number % 100 == 0:
            self.forget()
        return number

    def _named(self, intents: Collection[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for place in ("jobs", "ended"):
            for name in os.listdir(self._place / place):  # noqa: PTH208 - strings
                number, _, intent = name.partition(".")
                if intent in intents:
                    found[intent] = int(number)
        return found

    def forget(self) -> None:
        """Forget how jobs ended that ended long ago."""
        for each in (self._place / "ended").iterdir():
            if each.stat().st_mtime < time.time() - _KEPT_S:
                shutil.rmtree(each)

    def _begin_what_fits(self) -> dict[str, Standing]:
        """How all are by now that have not ended, and those that have ended since the last look."""
        there = {path.name: self._settled(path) for path in self._paths()}
        for job in beginning(there.values(), self._room):
            self._begin(job)
            there[_name(job)] = msgspec.structs.replace(there[_name(job)], tended=True)
        return there

    def _paths(self) -> Iterator[Path]:
        return (self._place / "jobs").iterdir()

    def _settled(self, path: Path) -> Standing:
        """How far one is; what nobody looks after any more has ended, and nothing of it stays."""
        found = _standing(path)
        end = found.end
        if is_lost(found):
            left = end_all(partial(of_pool, found.job.intent, Path(found.job.directory)))
            if left:
                return msgspec.structs.replace(found, tended=True)
            end = msgspec.structs.replace(LOST, began=found.began, ended=time.time())
        elif end is None and found.job.removed and not found.tended and not found.began:
            end = BatchEnd(cause=EndCause.REMOVED, words="somebody removed it", ended=time.time())
        if end is None:
            return found
        if found.end is None:
            with _opened(path) as fd:
                write(fd, "end", msgspec.msgpack.encode(end))
        path.rename(self._place / "ended" / path.name)
        return msgspec.structs.replace(found, end=end, tended=False)

    def _begin(self, job: LocalJob) -> None:
        """The process that looks after it has its lock from its first moment on."""
        path = self._place / "jobs" / _name(job)
        lock = os.open(path / "lock", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            runner = subprocess.Popen(
                [sys.executable, "-P", "-m", _RUNNER, str(path), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**self._environment, **mark(job.intent)},
                cwd="/",
                pass_fds=[lock],
                start_new_session=True,
            )
        finally:
            os.close(lock)
        runner.returncode = 0  # it goes on when this process ends, and is waited for by its number
        self._runners.add(runner.pid)


def _name(job: LocalJob) -> str:
    return f"{job.number}.{job.intent}"


@contextmanager
def _opened(path: Path) -> Generator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _standing(path: Path) -> Standing:
    """How far a job is."""
    with _opened(path) as fd:
        tended = _is_tended(fd)  # first: who looks after it writes its end, and then is gone
        job = msgspec.msgpack.decode(read(fd, "job"), type=LocalJob)
        began, end = 0.0, None
        with suppress(FileNotFoundError):
            began = msgspec.msgpack.decode(read(fd, "began"), type=float)
        with suppress(FileNotFoundError):
            end = msgspec.msgpack.decode(read(fd, "end"), type=BatchEnd)
    return Standing(job=job, began=began, tended=tended, end=end)


def _is_tended(place: int) -> bool:
    lock = os.open("lock", os.O_RDWR | os.O_CLOEXEC, dir_fd=place)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _wake(path: Path) -> None:
    """Have who looks after a job look at what is wanted of it; it looks by itself within a second."""
    pid, _, started = (path / "lock").read_text().partition(" ")
    if pid and started.strip().isdigit():
        signal_process(int(pid), WOKEN, started=int(started))
