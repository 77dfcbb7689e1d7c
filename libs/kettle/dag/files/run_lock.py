"""
The lock file of a running workflow: who carries it out, and how much of it is in the files.

One process has it at a time.  It survives its process: what runs after it goes on behind what is written, so that each
line is in the logs once.
"""

import fcntl
import os
from pathlib import Path

import msgspec


class InUseError(Exception):
    """Another process carries out the same DAG in this directory."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: another DAGMan is at work on this DAG and has locked the file; wait until it has ended, or remove it "
            "with condor_rm"
        )


class Written(msgspec.Struct):
    """What is in the files."""

    workflow: int = 0
    """The cluster of the DAG job; 0: nothing is written yet."""
    job: str = ""
    """Its GlobalJobId, because other pools give out the same numbers; empty: an earlier version has not written it."""
    events: int = 0
    """So many of its events."""
    sizes: dict[str, int] = {}
    """How long each log was behind the last of them, by its path."""
    rescue: int = 0
    """
    The number of the rescue file that this run writes if it fails; 0: none.  It is known from the beginning, so that a run
    whose process is killed has one and not two.
    """
    rescued_from: int = 0
    """The number of the rescue file with which the run began; 0: none."""
    jobstate_number: int = 0
    """The last number in the jobstate log before this run."""


class RunLock:
    """The file, locked.  Raises InUseError and OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            if isinstance(error, BlockingIOError):
                raise InUseError(path) from error
            raise

    def read(self, workflow: int, job: str) -> Written:
        """What was written of a workflow; nothing, if the file is of another one or torn."""
        data = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        return _decoded(data, workflow, job) or Written(workflow, job)

    def write(self, written: Written) -> None:
        """Replace it, in one write."""
        data = msgspec.json.encode(written) + b"\n"
        os.pwrite(self._fd, data, 0)
        os.ftruncate(self._fd, len(data))

    def release(self, *, over: bool) -> None:
        """Let go of it; `over`: the workflow has ended, so the file goes, too."""
        if over:
            self.path.unlink(missing_ok=True)
        os.close(self._fd)


def written_of(path: Path, workflow: int, job: str) -> Written | None:
    """What earlier processes of a run have written, by its lock file; None: this is the first one."""
    try:
        return _decoded(path.read_bytes(), workflow, job)
    except FileNotFoundError:
        return None


def _decoded(data: bytes, workflow: int, job: str) -> Written | None:
    try:
        found = msgspec.json.decode(data, type=Written)
    except msgspec.MsgspecError:
        return None
    return found if found.workflow == workflow and found.job in {"", job} else None
