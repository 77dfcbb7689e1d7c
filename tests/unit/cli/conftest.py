"""The `kettle` command as people run it: a process, its output, its exit status."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from kettle_services.cli.__main__ import main


class Said(NamedTuple):
    status: int
    out: str
    err: str


def kettle(*words: str | Path, stdin: str | bytes = "", **environ: str) -> Said:
    """What `kettle classad` does, as a process with nothing in its environment but what is said."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kettle_services.cli", "classad", *map(str, words)],
        input=data,
        capture_output=True,
        timeout=120,
        check=False,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"} | environ,
    )
    return Said(done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode())


class Typed(Protocol):
    def __call__(self, *words: str | Path) -> Said: ...


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    """The output of a command that runs in this process, without standard input."""

    def run(*words: str | Path) -> Said:
        try:
            status = main(["classad", *map(str, words)])
        except SystemExit as ended:
            status = int(str(ended.code))
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return run
