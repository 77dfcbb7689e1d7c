"""Tutorials work as they stand: files are written, commands run in order, and print what is shown."""

import faulthandler
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from kettle.testing.commands.running import execute
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool

from .client_environments import ORDER

TUTORIALS: Final = Path(__file__).parents[2] / "docs" / "tutorials"
_BLOCK: Final = re.compile(r"^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME: Final = re.compile(r"`([\w.-]+\.\w+)`")
_NUMBERS: Final = re.compile(r"\d+\.\d+\.\d+|\d+\.\d+\b")
"""Ids of jobs are those of the pool on which a tutorial is run."""


class Step(NamedTuple):
    """A file that is written, or a command with what it is said to print."""

    file: str = ""
    text: str = ""
    command: str = ""
    shown: list[str] = []


def steps(page: str) -> list[Step]:
    """
    What a reader does, in order.

    A fenced block is the file whose name stands last before it; indented lines that begin with `$` are commands, and those
    behind one are what it prints.
    """
    found: list[Step] = []
    end = 0
    for block in _BLOCK.finditer(page):
        before = page[end : block.start()]
        found += commands(before)
        names = _NAME.findall(before)
        assert names, f"no name of a file stands before {block[0]}"
        found.append(Step(file=names[-1], text=block[1]))
        end = block.end()
    return found + commands(page[end:])


def commands(text: str) -> list[Step]:
    found: list[Step] = []
    for line in text.splitlines():
        if line.startswith("    $ "):
            found.append(Step(command=line.removeprefix("    $ "), shown=[]))
        elif line.startswith("    ") and found:
            found[-1].shown.append(line.removeprefix("    "))
    return found


def script(found: list[Step], work: Path) -> str:
    """
    One shell that does all of it: what a command changes of it is there for the next one.  It ends at the first failure.
    """
    lines: list[str] = []
    for number, step in enumerate(found):
        if step.file:
            (work / f"{number}.file").write_text(step.text)
            lines.append(f"cp {number}.file {step.file}")
        else:
            lines.append(f"{{ {step.command}\n}} > {number}.out 2>&1 || {{ cat {number}.out; exit 1; }}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    """Jobs run this Python, which an account of a slot may not reach."""
    return {"settings": {"startd": {"job_account": "own"}, "gateway": {"rest": True}}}


@contextmanager
def nothing_left(work: Path) -> Generator[None]:
    """
    What a tutorial has started in its directory does not outlive it: a page that fails in the middle comes not to the line that
    ends its servers, and a proxy lives on when the hub that started it is killed.
    """
    try:
        yield
    finally:
        while left := [pid for pid in processes() if _works_in(pid, work)]:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)


def processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal()]


def _works_in(pid: int, work: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(work)
    except OSError:  # it has ended
        return False


def test_a_tutorial_that_fails_leaves_no_server(tmp_path: Path) -> None:
    """Also none that has left its shell, and its session."""
    with nothing_left(tmp_path):
        subprocess.run(["sh", "-c", "setsid sleep 600 & echo $! > pid; exit 1"], cwd=tmp_path, check=False)
        assert _works_in(int((tmp_path / "pid").read_text()), tmp_path)
    assert not _works_in(int((tmp_path / "pid").read_text()), tmp_path)


async def follow(
    name: str,
    pool: ThrowawayPool,
    work: Path,
    *,
    changes: Mapping[str, str] | None = None,
    within_s: float = 240,
) -> None:
    """
    Do what a tutorial says, and see what it shows; `changes`: what stands for something that only one process of a machine can have.
    """
    page = (TUTORIALS / f"{name}.md").read_text()
    for written, meant in (changes or {}).items():
        page = page.replace(written, meant)
    found = steps(page)
    assert any(step.command for step in found)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home), "PATH": path, "HOME": str(work)}
    environ["KETTLE_SOURCE"] = str(TUTORIALS.parents[1])
    with nothing_left(work):
        said = await execute(["sh", "-c", script(found, work)], work, environ, within_s=within_s)
    assert 0 == said.status, said
    for number, step in enumerate(found):
        if step.shown:
            printed = (work / f"{number}.out").read_text()
            expected = "".join(f"{line}\n" for line in step.shown)
            assert _NUMBERS.sub("#", expected) == _NUMBERS.sub("#", printed), step.command


@pytest.mark.parametrize("name", ["dag"])
async def test_a_tutorial_works_as_it_stands(pool: ThrowawayPool, tmp_path: Path, name: str) -> None:
    """Every command of it ends well, and prints what the page shows."""
    await follow(name, pool, tmp_path)


async def test_the_tutorial_of_jupyterhub_works_as_it_stands(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A hub is installed, starts servers that are jobs, goes and comes back; its page says why a server waits.
    """
    if ORDER not in os.environ:
        pytest.skip(
            f"jupyterhub is not installed ({ORDER}=1 installs clients into environments of their own)"
        )
    faulthandler.cancel_dump_traceback_later()  # what ends a test that hangs knows nothing of what is installed here
    ports = {written: str(held_port()) for written in ("8000", "8001", "8081")}
    await follow("jupyterhub", pool, tmp_path, changes=ports, within_s=900)
