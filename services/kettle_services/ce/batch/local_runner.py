"""
The process that looks after one job of this machine: it begins it, ends it when it is over its limits or is to go, and writes down how
it ended.  It outlives the entrypoint, which finds it again by the lock that it holds.

    python -m kettle_services.ce.batch.local_runner DIRECTORY LOCK

DIRECTORY is that of the job in the queue, LOCK the descriptor of its lock, which is held as long as this process is there.
"""

import os
import resource
import signal
import subprocess
import sys
import time
from typing import Final

import msgspec

from kettle.execution.system.linux import (
    become_subreaper,
    descendants_of,
    proportional_kib,
    resident_kib,
    signal_process,
    start_time,
)
from kettle_services.ce.domain.batch.local import LocalJob
from kettle_wire.batch import BatchEnd, EndCause

WOKEN: Final = signal.SIGUSR1
"""Look at what is wanted of the job: that has changed."""
HEEDED: Final = frozenset({signal.SIGCHLD, WOKEN})
_LOOK_S: Final = 1.0
_GRACE_S: Final = 5.0
"""So long a job may take to end by itself once it is told to."""


class Runner:
    """Of one job."""

    def __init__(self, place: int) -> None:
        """`place`: the directory, which may be moved meanwhile."""
        self._place: Final = place
        self._job = msgspec.msgpack.decode(read(place, "job"), type=LocalJob)
        self._child = 0
        self._stopped = False
        self._ran_s = 0.0
        """Seconds that it has run, those in which it was stopped not counted."""
        self._peak_kib = 0

    def run(self) -> BatchEnd:
        """The job, from its beginning to its end."""
        began = time.time()
        write(self._place, "began", msgspec.msgpack.encode(began))
        try:
            self._begin()
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            return BatchEnd(
                cause=EndCause.NOT_STARTED, words=f"it cannot be started: {error}"[:1000], ended=time.time()
            )
        cause, words, status = self._until_over()
        self._end_others()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        code = os.waitstatus_to_exitcode(status)
        ran = cause is EndCause.EXITED
        return BatchEnd(
            cause=cause,
            exit_code=code if ran and code >= 0 else None,
            signal=-code if ran and code < 0 else None,
            words=words,
            began=began,
            ended=time.time(),
            cpu=used.ru_utime + used.ru_stime,
            memory_kib=max(self._peak_kib, used.ru_maxrss),
        )

    def _begin(self) -> None:
        """Its script comes from memory: it may hold secrets, and only this service may read the queue."""
        job, script = self._job, os.memfd_create("script")
        with open(script, "wb", closefd=False) as file:
            file.write(read(self._place, "script"))
        uid, gid, groups = job.rights if job.rights is not None else (None, None, None)
        own = {"HOME": "/", "LOGNAME": job.owner, "USER": job.owner} if job.owner else {}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEEDED)  # a job is not to inherit that they are blocked
        process = subprocess.Popen(
            ["/bin/sh", f"/dev/fd/{script}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, **own, "KETTLE_BATCH_ID": str(job.number)},
            pass_fds=[script],
            start_new_session=True,
            umask=0o077,
            user=uid,
            group=gid,
            extra_groups=groups,
            restore_signals=True,
        )
        signal.pthread_sigmask(signal.SIG_BLOCK, HEEDED)
        os.close(script)
        self._child = process.pid
        process.returncode = 0  # it is waited for here, with all others

    def _until_over(self) -> tuple[EndCause, str, int]:
        """Why it is over, in words too, and how its first process ended."""
        asked = 0.0
        cause, words = EndCause.EXITED, ""
        last = time.monotonic()
        while (status := self._reaped()) is None:
            signal.sigtimedwait(HEEDED, _LOOK_S)
            now = time.monotonic()
            self._ran_s += 0.0 if self._stopped else now - last
            last = now
            if asked:
                if now - asked > _GRACE_S:
                    self._signal(signal.SIGKILL)
                continue
            self._job = msgspec.msgpack.decode(read(self._place, "job"), type=LocalJob)
            if over := self._is_over():
                cause, words = over
                asked = now
                self._signal(signal.SIGTERM)
                self._signal(signal.SIGCONT)
            elif self._job.stopped != self._stopped:
                self._stopped = self._job.stopped
                self._signal(signal.SIGSTOP if self._stopped else signal.SIGCONT)
        return cause, words, status

    def _is_over(self) -> tuple[EndCause, str] | None:
        request = self._job.request
        if self._job.removed:
            return EndCause.REMOVED, "somebody removed it"
        if request.wall and self._ran_s > request.wall:
            return EndCause.TIME, f"it has run for more than {request.wall} s"
        has = _memory_kib(most=request.memory << 10)
        self._peak_kib = max(self._peak_kib, has)
        if request.memory and has > request.memory << 10:
            return (
                EndCause.MEMORY,
                f"its processes have {has >> 10} MB, and it had asked for {request.memory}",
            )
        return None

    def _reaped(self) -> int | None:
        """How its first process ended; whatever else has ended is waited for as well."""
        found: int | None = None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return found
            if pid == 0:
                return found
            if pid == self._child:
                found = status

    def _signal(self, number: int) -> None:
        for pid in descendants_of(os.getpid()):
            if (started := start_time(pid)) is not None:
                signal_process(pid, number, started=started)

    def _end_others(self) -> None:
        """Nothing of the job stays, whatever sessions it has made."""
        while descendants_of(os.getpid()):
            self._signal(signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, _LOOK_S)
            self._reaped()


def _memory_kib(*, most: int) -> int:
    """
    What the processes of the job have; pages that they share are told apart, which takes longer, only where it matters: above `most`.
    """
    there = descendants_of(os.getpid())
    has = sum(map(resident_kib, there))
    if not most or has <= most:
        return has
    shares = {pid: proportional_kib(pid) for pid in there}
    return sum(resident_kib(pid) if share is None else share for pid, share in shares.items())


def read(place: int, name: str) -> bytes:
    """A file of a job in the queue."""
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=place), "rb") as file:  # noqa: PTH123 - as is said
        return file.read()


def write(place: int, name: str, data: bytes) -> None:
    """Write one, whole or not at all."""
    draft = f".{name}.{os.getpid()}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=place)
    with open(fd, "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(data)
        file.flush()
        os.fsync(fd)
    os.rename(draft, name, src_dir_fd=place, dst_dir_fd=place)


def _woken(number: int, frame: object) -> None:
    """While a job is begun its signals are not blocked, and this one is not to end us."""


def main(directory: str, lock: int) -> None:
    """Look after one job to its end."""
    os.set_inheritable(lock, False)
    signal.signal(WOKEN, _woken)
    signal.pthread_sigmask(signal.SIG_BLOCK, HEEDED)
    become_subreaper()
    # Only now it can be woken; its number may be another's later, so when it began is said too.
    os.pwrite(lock, f"{os.getpid()} {start_time(os.getpid())}\n".encode(), 0)
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    end = Runner(place).run()
    write(place, "end", msgspec.msgpack.encode(end))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
