"""A container engine that does not answer: the job that wanted it can be stopped, and its machine too."""

import json
import os
import secrets
from pathlib import Path

import pytest

from kettle.execution.containers.policy import ContainerPolicy, FoundRuntime
from kettle.testing.submit_side import job_ad
from kettle.testing.worker import WorkerPool
from kettle_services.startd.settings import StartdSettings
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import DEACTIVATE, Deactivate, Deactivation

IMAGE = json.dumps([{"Id": "sha256:1", "Size": 1}])
NAP = str(10**7 + secrets.randbelow(9 * 10**7))
"""Seconds that the engine hangs, which nothing else sleeps."""


@pytest.fixture
def engine(settings: StartdSettings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """
    A machine with an engine that has every image, and hangs when it is to make or to remove a container: what it says
    that it does is in the file.
    """
    home = Path(settings.home)
    command, asked = home / "docker", home / "asked"
    command.write_text(
        "#!/bin/sh\n"
        f"case $1 in run|rm) echo $1 >> {asked}; exec sleep {NAP};;\n"
        f"image) [ $2 = inspect ] && echo '{IMAGE}';; esac\n"
    )
    command.chmod(0o755)
    policy = ContainerPolicy(
        runtimes=[FoundRuntime("docker", str(command))], images=str(home / "images"), limit=1 << 30
    )

    async def found(*_: object) -> tuple[ContainerPolicy, dict[str, bool]]:
        return policy, {"HasContainer": True, "HasDocker": True}

    monkeypatch.setattr("kettle_services.startd.machine.container_offer.find_containers", found)
    return asked


@pytest.mark.skipif(os.geteuid() != 0, reason="docker takes a startd that is root")
@pytest.mark.parametrize("stopped", ["by its submit side", "by its machine"])
async def test_a_job_whose_engine_hangs_can_be_stopped(pool: WorkerPool, engine: Path, stopped: str) -> None:
    """
    Given a starter that waits for its container, when the job or the machine is to stop, then it hears it at once, the
    command is ended, and nobody waits for the engine to remove what it may have made.
    """
    async with pool.startd() as startd:
        submitter = pool.submitter
        key = await submitter.claim()
        activation = submitter.activation(
            key, job_ad(Cmd="/bin/true", WantDocker=True, DockerImage="busybox")
        )
        await submitter.activate(activation)
        await pool.until(lambda: engine.exists() and "run" in engine.read_text())
        if stopped == "by its submit side":
            one = Deactivation(
                key=key, job=activation.job, attempt=1, ending=Ending(code=1005, reason="vacated")
            )
            order = Deactivate(attempts=[one])
            await submitter.shadow.call(DEACTIVATE, submitter.startd, order)
        else:
            await startd.drain()
        end = await submitter.final(activation)

        assert end.result.exit is None

        assert end.result.ending is not None
        assert 1021 != end.result.ending.code, "the engine was waited for"
        await startd.drain()
    assert [] == pool.processes(f"sleep\0{NAP}\0")
    assert [] == pool.sandboxes
