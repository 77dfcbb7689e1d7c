"""The `kettle` command as people run it: a process, its output, its exit status."""

import os
import subprocess
from contextlib import closing
from pathlib import Path
from select import select
from tempfile import TemporaryFile
from typing import NamedTuple, Protocol

import pytest

from kettle.testing.commands.running import KETTLE, executable
from kettle.testing.commands.warm import fork
from kettle.testing.patience import PATIENCE_S
from kettle_services.cli.__main__ import main


class Said(NamedTuple):
    status: int
    out: str
    err: str


def kettle(*words: str | Path, stdin: str | bytes = "", **environ: str) -> Said:
    """
    What `kettle classad` does, as a process with nothing in its environment but what is said, our locale and what Python reads.

    It is forked from a process that has its modules, as commands of the suite are; with another locale it is executed.
    """
    data = stdin.encode() if isinstance(stdin, str) else stdin
    order = [*KETTLE, "classad", *map(str, words)]
    ours = {name: value for name, value in os.environ.items() if name.startswith(("LANG", "LC_", "PYTHON"))}
    variables = {"PATH": "/usr/bin:/bin"} | ours | environ
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(data)
        given.seek(0)
        if forked := fork(order, Path.cwd(), variables, (given.fileno(), out.fileno(), err.fileno())):
            with closing(forked):
                assert select([forked.told], [], [], PATIENCE_S)[0], "it has not ended"
                status = forked.status()
            assert status is not None, "it was not carried out"
        else:
            done = subprocess.run(
                executable(order), check=False, stdin=given, stdout=out, stderr=err, env=variables
            )
            status = done.returncode
        out.seek(0)
        err.seek(0)
        return Said(status, out.read().decode("utf-8", "surrogateescape"), err.read().decode())


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
