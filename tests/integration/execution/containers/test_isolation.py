"""
What a container keeps apart: the machine from a job that would get out of it, and what its owner allows.
"""

import os
from pathlib import Path

import msgspec
import pytest

from kettle.testing.submit_side import SubmitSide, output, script
from kettle.testing.worker import WorkerPool
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.wiring import running
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import DEACTIVATE, Deactivate, Deactivation

from .wanted import ONE, PLAIN, inside

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_what_is_bound_read_only_is_so_on_every_way(
    submitter: SubmitSide, image: Path, shared: Path
) -> None:
    """Directly, and in file systems below it; what the container is made of is not in the sandbox."""
    text = (
        "for way in /site /site/below; do touch $way/$$ 2>/dev/null && echo $way; done; "
        "find /srv -mindepth 1 -type d; touch /open/written"
    )
    exited = await submitter.run(inside(image, text))

    assert b"/srv/.condor_bin\n" == output(exited)
    assert ["below", "written"] == sorted(path.name for path in shared.iterdir())


@ONE
async def test_the_jobs_environment_is_for_the_inside_only(
    submitter: SubmitSide, image: Path, directory: Path
) -> None:
    """
    Variables that tell a loader what to do reach the job, and nothing that runs outside of its container.
    """
    traces = directory / "traces"
    traces.mkdir()
    traces.chmod(0o777)

    ad = inside(image, "echo $LD_DEBUG", Environment=f"LD_DEBUG=files LD_DEBUG_OUTPUT={traces}/x")
    exited = await submitter.run(ad)

    assert b"files\n" == output(exited)
    assert [] == list(traces.iterdir())


async def test_the_soft_signal_reaches_the_job(
    standing: WorkerPool, submitter: SubmitSide, image: Path, shared: Path
) -> None:
    """
    The job's own signal comes first, and the job has time for its last words; nothing around it dies before it.
    """
    text = (
        "trap 'sleep 0.2; echo bye > /open/said; exit 0' USR1; touch /open/up; while :; do sleep 0.05; done"
    )
    activation = await submitter.start(inside(image, text, KillSig="SIGUSR1", Patient=True))
    await standing.until((shared / "up").exists)

    order = Deactivation(
        key=activation.key, job=activation.job, attempt=1, ending=Ending(code=1023, reason="removed")
    )
    await submitter.shadow.call(DEACTIVATE, submitter.startd, Deactivate(attempts=[order]))

    failed = await submitter.final(activation)
    assert failed.result.exit is None
    assert failed.result.ending is not None
    assert (False, 1023, "removed") == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.reason,
    )
    assert "bye\n" == (shared / "said").read_text()


@PLAIN
async def test_the_owners_word_counts(settings: StartdSettings, pool: WorkerPool) -> None:
    """
    A plain job runs in a container, with the machine's files read-only and without a network, where the owner says so.
    """
    owner = msgspec.structs.replace(settings, container_always=True, container_network="none")
    other = WorkerPool(pool.server, pool.submitter, pool.home, lambda bus: running(bus, owner))
    text = (
        "pwd; tail -n +3 /proc/net/dev | cut -d: -f1; touch /etc/x /usr/x 2>/dev/null || echo closed; ls /tmp"
    )
    async with other.startd() as startd:
        activation = await pool.submitter.start(script(text))
        exited = await pool.submitter.final(activation)
        await startd.drain()

    lines = [line.strip() for line in (output(exited) or b"").decode().splitlines()]
    assert lines[0].startswith(str(pool.execute))
    assert ["lo", "closed"] == lines[1:3]
    assert lines[3:] in ([], [pool.home.name])  # the way to the sandbox


@PLAIN
@pytest.mark.skipif(os.geteuid() != 0, reason="needs jobs that run as another account")
async def test_no_device_is_opened_to_see_whether_it_is_a_program(
    submitter: SubmitSide, image: Path, directory: Path
) -> None:
    """A pipe stands for it: who opens one for reading lets its writer go on.  Hold code 6."""
    os.mkfifo(directory / "image" / "bin" / "pipe", 0o777)

    failed = await submitter.run(inside(image, "true", Cmd="/bin/pipe"))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 6, 13) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )
    with pytest.raises(OSError, match="No such device or address"):  # it has no reader, and had none
        os.open(directory / "image" / "bin" / "pipe", os.O_WRONLY | os.O_NONBLOCK)


@PLAIN
@pytest.mark.skipif(os.geteuid() != 0, reason="needs jobs that run as another account")
async def test_a_closed_directory_of_the_machine_stays_closed(
    submitter: SubmitSide, image: Path, directory: Path
) -> None:
    """
    An image that is a directory of the machine shows what the job's account may see, wherever things are mounted in it.
    """
    home = image / "home" / "alice"
    (home / "papers").mkdir(parents=True)
    (home / "papers" / "thesis").write_text("s")
    home.chmod(0o700)
    (image / "file").touch()
    look = "cat /home/alice/papers/thesis || echo closed"

    assert b"closed\n" == output(await submitter.run(inside(image, look)))
    for way in ({"ContainerTargetDir": "/home/alice/x"}, {"MountUnderScratch": "/home/alice/x"}):
        failed = await submitter.run(inside(image, look, **way))
        assert failed.result.exit is None
        assert failed.result.ending is not None
        assert (True, 35, 13) == (
            failed.result.ending.holds,
            failed.result.ending.code,
            failed.result.ending.subcode,
        )
