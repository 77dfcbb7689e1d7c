"""
A real Grid Engine of one host for tests, in namespaces of its own: its master, its execution daemon and its jobs.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Final

from kettle.commands.local import LocalCommands
from kettle.commands.port import NotStartedError, Ran
from kettle.testing.patience import PATIENCE_S

_SCRIPT: Final = Path(__file__).with_name("grid_engine.sh")
_PROGRAMS: Final = {
    "sge_qmaster": "gridengine-master",
    "sge_execd": "gridengine-exec",
    "qsub": "gridengine-client",
    "ip": "iproute2",
}
ENVIRONMENT: Final = {
    "SGE_ROOT": "/var/lib/gridengine",
    "SGE_CELL": "default",
    "SGE_QMASTER_PORT": "6444",
    "SGE_EXECD_PORT": "6445",
}


def no_grid_engine() -> str:
    """Why there can be no Grid Engine here; empty if there can."""
    if os.geteuid():
        return "only root can start Grid Engine"
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            return f"there is no {program} (Debian package {package})"
    return ""


class InNamespaces:
    """Commands inside of the namespaces, as an account of this machine."""

    def __init__(self, process: int) -> None:
        self._local: Final = LocalCommands(ENVIRONMENT)
        self.enter: Final = ["nsenter", f"--target={process}", "--net", "--uts", "--mount", "--pid", "--"]
        """The words before each of them."""

    lingering: float = LocalCommands.lingering

    async def run(
        self, words: Sequence[str], standard_input: str = "", *, within: float, account: str = ""
    ) -> Ran:
        """As the port of commands says."""
        become: list[str] = []
        if account:
            try:
                about = pwd.getpwnam(account)
            except KeyError:
                raise NotStartedError(f"there is no account {account}") from None
            become = ["setpriv", f"--reuid={about.pw_uid}", f"--regid={about.pw_gid}", "--init-groups", "--"]
        return await self._local.run([*self.enter, *become, *words], standard_input, within=within)

    async def close(self) -> None:
        """There is nothing to give up."""


class GridEngine:
    """One that runs."""

    def __init__(self, place: Path, process: "subprocess.Popen[str]") -> None:
        self.place: Final = place
        self._process: Final = process

    @property
    def commands(self) -> InNamespaces:
        """What runs its commands."""
        (first,) = _children(self._process)
        return InNamespaces(first)

    def order(self, word: str) -> None:
        """`stop` or `start` the master, or `end` all jobs."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        self._until("done")

    def _until(self, word: str) -> None:
        assert self._process.stdout is not None
        late = Timer(PATIENCE_S, self._process.kill)  # its last words then say how far it has come
        late.start()
        try:
            while line := self._process.stdout.readline():
                if line.strip() == word:
                    return
        finally:
            late.cancel()
        errors = (self.place / "errors").read_text()
        raise AssertionError(
            f"Grid Engine has ended, or has not said {word!r} within {PATIENCE_S:g} s: {errors}"
        )

    def wait_until_ready(self) -> None:
        """Its host is there."""
        self._until("ready")


def _children(process: "subprocess.Popen[str]") -> list[int]:
    """Of `unshare`: the first process of its namespaces, or none when it has ended."""
    if process.poll() is not None:
        return []
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(each) for each in children.split()]


@contextmanager
def grid_engine() -> Generator[GridEngine]:
    """One with a host of eight slots in queue `main.q`, and with the parallel environment `smp`."""
    with tempfile.TemporaryDirectory(prefix="kettle-sge-", dir="/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        words = [
            "unshare",
            "--net",
            "--uts",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
        ]
        with (place / "errors").open("w") as errors:
            process = subprocess.Popen(
                [*words, str(_SCRIPT), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **ENVIRONMENT},
            )
        try:
            made = GridEngine(place, process)
            made.wait_until_ready()
            yield made
            made.order("end")
        finally:
            for first in _children(process):
                os.kill(first, signal.SIGKILL)  # and with it all that is in its namespaces
            process.communicate()  # `unshare` ends when nothing of them is left that writes into `place`
