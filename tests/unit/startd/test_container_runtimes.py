"""
What a machine offers of containers is what it could do when it was tried, and its owner's word is kept or nothing runs.
"""

import asyncio
import os
import sys
from pathlib import Path
from subprocess import PIPE, run

import msgspec
import pytest

from kettle.execution.attempts.job_spec import AttemptId
from kettle.execution.containers.policy import ContainerPolicy, FoundRuntime
from kettle.execution.containers.probe import ProbeOrder, ProbeResult
from kettle.execution.containers.runtimes import engine_client
from kettle.runtime import SettingsError
from kettle.testing.patience import PATIENCE_S
from kettle_services.startd.machine.container_offer import ContainerOffer
from kettle_services.startd.machine.container_runtimes import find_containers, tidy_containers
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.starters.cleanup_tasks import CleanupTasks
from kettle_wire.jobs import JobId


def settings(home: Path, **fields: object) -> StartdSettings:
    return StartdSettings(pool="p", home=str(home), job_account="own", **fields)  # type: ignore[arg-type]  # of any field


async def test_containers_always_and_none_to_be_had_is_an_error(tmp_path: Path) -> None:
    """Jobs would run without; the startd does not start instead."""
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
    """Every container would fail with it."""
    with pytest.raises(SettingsError, match="/no/such/place is not there"):
        await find_containers(settings(tmp_path, container_bind=["/no/such/place:/site"]), tmp_path)


async def test_without_runtimes_there_are_no_containers(tmp_path: Path) -> None:
    """That is no error: the machine advertises none."""
    assert (None, {}) == await find_containers(settings(tmp_path, container_runtimes=()), tmp_path)


def tried(
    tmp_path: Path,
    names: tuple[str, ...] = ("bubblewrap", "runc"),
    *,
    patience: float = PATIENCE_S,
    systemd: bool = True,
    **scripts: str,
) -> list[ProbeResult]:
    """What a probe says of runtimes that are these scripts."""
    for name, text in scripts.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    code = (
        "import sys, msgspec\n"
        "from kettle.execution.containers import probe\n"
        f"probe._PATH = {str(tmp_path / 'bin')!r}\n"
        f"probe._SYSTEMD = {str(tmp_path if systemd else tmp_path / 'none')!r}\n"
        "order = msgspec.json.decode(sys.stdin.buffer.read(), type=probe.ProbeOrder)\n"
        "sys.stdout.buffer.write(msgspec.json.encode(list(probe.probe(order))))\n"
    )
    order = ProbeOrder(names=list(names), place=str(tmp_path), account=None, patience=patience)
    done = run([sys.executable, "-c", code], input=msgspec.json.encode(order), stdout=PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=list[ProbeResult])


def test_a_runtime_that_hangs_costs_only_its_own_time(tmp_path: Path) -> None:
    """It is ended with all that it has started, and the others are tried."""
    first, second = tried(tmp_path, patience=5.0, bwrap=f"sleep 98765 & echo $! > {tmp_path}/pid; wait")

    assert "within 5 s" in first.why
    assert ("runc", "not installed") == (second.name, second.why)
    assert not _lives((tmp_path / "pid").read_text().strip())
    assert [] == list(tmp_path.glob("probe-*"))


def test_a_runtime_that_fails_is_not_offered(tmp_path: Path) -> None:
    """With a reason."""
    first, _ = tried(tmp_path, bwrap="exit 1")
    assert "could not set the container up" in first.why


def test_each_way_of_an_engine_has_its_own_time(tmp_path: Path) -> None:
    """One that hangs does not keep the next from being tried; the reason is that of the machine as it is."""
    script = f"echo $* >> {tmp_path}/asked; case $1 in --cgroup*) exit 1;; esac; exec sleep 98766"
    (podman,) = tried(tmp_path, ("podman",), patience=1.5, podman=script)

    assert "within 3 s" in podman.why
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [False, True, True] == [line.startswith("--cgroup") for line in asked if "import" in line]


def test_without_systemd_an_engine_is_not_asked_to_use_it(tmp_path: Path) -> None:
    """That way takes the time of a trial on each machine that boots with something else, and cannot work."""
    (podman,) = tried(tmp_path, ("podman",), systemd=False, podman=f"echo $* >> {tmp_path}/asked; exit 1")
    assert podman.why
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [True, True] == [line.startswith("--cgroup") for line in asked if "import" in line]


async def test_engines_are_tried_beside_the_others(tmp_path: Path) -> None:
    """What is found is told in the order of the settings, and nothing of either trial is left."""
    names = ("docker", "bubblewrap", "podman", "runc")
    policy, _ = await find_containers(settings(tmp_path, container_runtimes=names), tmp_path)
    found = [] if policy is None else [each.name for each in policy.runtimes]
    assert [name for name in names if name in found] == found
    assert [] == list(tmp_path.glob("probe-*"))


async def test_what_engines_have_is_tidied_up_again_and_again(tmp_path: Path) -> None:
    """A starter that was killed after its report leaves its container to the startd."""
    fifo, command = tmp_path / "fifo", tmp_path / "docker"
    os.mkfifo(fifo)
    command.write_text(f"#!/bin/sh\n[ $1 = ps ] && echo asked > {fifo}; true\n")
    command.chmod(0o755)
    policy = ContainerPolicy(
        runtimes=[FoundRuntime("docker", str(command))], images=str(tmp_path / "images"), limit=0
    )
    tidying = asyncio.create_task(tidy_containers(policy, tmp_path, every=0.01))
    try:
        for _ in range(2):
            assert "asked\n" == await asyncio.to_thread(fifo.read_text)
    finally:
        tidying.cancel()
        fifo.unlink()


async def test_an_engine_that_hangs_holds_nobody_who_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Given an engine that does not answer, when the startd ends or an eviction is hurried, then what was asked of it is ended
    with all that it has started; the job's sandbox goes all the same.
    """
    os.mkfifo(fifo := tmp_path / "fifo")
    attempt = AttemptId("a", JobId(1, 0), 1)
    command, sandbox = tmp_path / "docker", tmp_path / attempt.sandbox
    command.write_text(f"#!/bin/sh\necho $$ > {fifo}\nexec sleep 98762\n")
    command.chmod(0o755)
    sandbox.mkdir()
    found = FoundRuntime("docker", str(command))
    policy = ContainerPolicy(runtimes=[found], images=str(tmp_path / "images"), limit=0)
    monkeypatch.setattr(engine_client, "ANSWER_S", 3600.0)  # who waited for an answer would not be back here

    tidying = asyncio.create_task(tidy_containers(policy, tmp_path))
    asked = [await asyncio.to_thread(fifo.read_text)]
    tidying.cancel()
    async with asyncio.TaskGroup() as tasks:
        evictions = CleanupTasks(tmp_path, None, ContainerOffer(policy), tasks)
        evictions.begin(attempt, None, lambda: None)
        asked.append(await asyncio.to_thread(fifo.read_text))
        evictions.hurry()
    async with asyncio.timeout(PATIENCE_S):
        while any(_lives(pid.strip()) for pid in asked):
            await asyncio.sleep(0.01)

    assert not sandbox.exists()


def _lives(pid: str) -> bool:
    try:
        return "State:\tZ" not in Path("/proc", pid, "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
