"""
What a machine offers of containers is what it could do when it was tried, and its owner's word is kept or nothing runs.
"""

import sys
import time
from pathlib import Path
from subprocess import PIPE, run

import msgspec
import pytest

from kettle.execution.containers.probe import Order, Tried
from kettle.runtime import SettingsError
from kettle.startd.containers import find_containers
from kettle.startd.settings import StartdSettings


def settings(home: Path, **fields: object) -> StartdSettings:
    return StartdSettings(pool="p", home=str(home), job_account="own", **fields)  # type: ignore[arg-type]  # of any field


async def test_containers_always_and_none_to_be_had_is_an_error(tmp_path: Path) -> None:
    """
    Jobs would run without; the startd does not start instead.
    """
    with pytest.raises(SettingsError, match=r"CONTAINER_ALWAYS.*none could"):
        await find_containers(settings(tmp_path, container_always=True, container_runtimes=()), tmp_path)


async def test_the_reasons_are_told(tmp_path: Path) -> None:
    """
    Each runtime that was tried is named with what is wrong with it: here a mount that jobs would have, too.
    """
    impossible = settings(
        tmp_path, container_always=True, container_runtimes=("crun",), container_bind=["/etc/passwd:/srv"]
    )
    with pytest.raises(SettingsError, match=r"crun: \w+"):
        await find_containers(impossible, tmp_path)


async def test_a_bind_mount_of_nothing_is_an_error(tmp_path: Path) -> None:
    """
    Every container would fail with it.
    """
    with pytest.raises(SettingsError, match="/no/such/place is not there"):
        await find_containers(settings(tmp_path, container_bind=["/no/such/place:/site"]), tmp_path)


async def test_without_runtimes_there_are_no_containers(tmp_path: Path) -> None:
    """
    That is no error: the machine advertises none.
    """
    assert (None, {}) == await find_containers(settings(tmp_path, container_runtimes=()), tmp_path)


def tried(tmp_path: Path, **scripts: str) -> list[Tried]:
    """
    What a probe says of runtimes that are these scripts.
    """
    for name, text in scripts.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    code = (
        "import sys, msgspec\n"
        "from kettle.execution.containers import probe\n"
        f"probe._PATH = {str(tmp_path / 'bin')!r}\n"
        "order = msgspec.json.decode(sys.stdin.buffer.read(), type=probe.Order)\n"
        "sys.stdout.buffer.write(msgspec.json.encode(list(probe.probe(order))))\n"
    )
    order = Order(names=["bubblewrap", "runc"], place=str(tmp_path), account=None, patience=1.0)
    done = run([sys.executable, "-c", code], input=msgspec.json.encode(order), stdout=PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=list[Tried])


def test_a_runtime_that_hangs_costs_only_its_own_time(tmp_path: Path) -> None:
    """
    It is ended with all that it has started, and the others are tried.
    """
    begun = time.monotonic()
    first, second = tried(tmp_path, bwrap=f"sleep 98765 & echo $! > {tmp_path}/pid; wait")

    assert "within 1 s" in first.why
    assert ("runc", "not installed") == (second.name, second.why)
    assert time.monotonic() - begun < 30
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
    assert [] == list(tmp_path.glob("probe-*"))


def test_a_runtime_that_fails_is_not_offered(tmp_path: Path) -> None:
    """
    With a reason.
    """
    first, _ = tried(tmp_path, bwrap="exit 1")
    assert "could not set the container up" in first.why
