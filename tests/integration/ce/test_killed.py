"""
A process that is killed between what it records and what it does submits no job twice, and loses none, whatever batch system it asks.
"""

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.conformance.batch.entrypoint import until
from tests.integration.ce.deaths import deaths
from tests.scenario.accounts import people

from kettle.testing.servers.fake_batch import FakeBatch
from kettle.testing.servers.fake_programs import FakePrograms
from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle.testing.servers.grid_engine import ENVIRONMENT, grid_engine, no_grid_engine
from kettle.testing.servers.held_port import held_port
from kettle.testing.servers.slurm import no_slurm, slurm
from kettle.testing.services import Backend
from kettle.testing.throwaway_pool import throwaway_pool
from kettle_services.ce.batch.settings import BatchSettings, FilesSettings
from kettle_services.condor import launchers
from kettle_wire.batch import BatchKind

LONG: Final = "KETTLE_TEST_LONG"
_MORE: Final = pytest.mark.skipif(LONG not in os.environ, reason=f"it takes minutes: set {LONG}")


async def _until_none_runs(fake: FakePrograms) -> None:
    """The entrypoint has ended what it started there: it, and not the end of the test."""
    await until(lambda: not fake.running(), lambda: f"{fake.running()} run on")


def _settings(kind: BatchKind, place: Path, environment: dict[str, str]) -> BatchSettings:
    return BatchSettings(name="site", kind=kind, directory=str(place / "sandboxes"), environment=environment)


@asynccontextmanager
async def slurm_programs(place: Path) -> AsyncGenerator[BatchSettings]:
    """Programs that stand for Slurm."""
    with FakeSlurm(place / "programs") as fake:
        fake.set_mode("runs")
        yield _settings(BatchKind.SLURM, place, fake.environment)
        await _until_none_runs(fake)


def programs(kind: BatchKind) -> Callable[[Path], AbstractAsyncContextManager[BatchSettings]]:
    """Programs that stand for another one."""

    @asynccontextmanager
    async def opened(place: Path) -> AsyncGenerator[BatchSettings]:
        with FakeBatch(place / "programs", kind) as fake:
            yield _settings(kind, place, fake.environment)
            await _until_none_runs(fake)

    return opened


@asynccontextmanager
async def real_slurm(place: Path) -> AsyncGenerator[BatchSettings]:
    """A real one."""
    if why := no_slurm():
        pytest.skip(why)
    with slurm() as cluster:
        yield _settings(BatchKind.SLURM, cluster.place, {"SLURM_CONF": str(cluster.configuration)})


@asynccontextmanager
async def real_grid_engine(place: Path) -> AsyncGenerator[BatchSettings]:
    """
    A real one, whose commands are run in its namespaces.  It takes no jobs of root, so there they are a person's, as are their sandboxes.
    """
    if why := no_grid_engine():
        pytest.skip(why)
    (place / "bin").mkdir()
    with people(1) as (person,), grid_engine() as cell:
        enter = " ".join(cell.commands.enter)
        theirs = f"{enter} setpriv --reuid={person.uid} --regid={person.gid} --clear-groups --"
        own = f'chown -R {person.uid}:{person.gid} "$(printf %s "$script" | sed -n "s/^#[$] -wd //p")"'
        lines = {name: f'exec {enter} {shutil.which(name)} "$@"' for name in ("qstat", "qconf", "qacct")}
        lines["qdel"] = f'exec {theirs} {shutil.which("qdel")} "$@"'
        lines["qsub"] = f'script=$(cat)\n{own}\nprintf %s "$script" | {theirs} {shutil.which("qsub")} "$@"'
        for name, line in lines.items():
            command = place / "bin" / name
            command.write_text(f"#!/bin/sh\n{line}\n")
            command.chmod(0o755)
        environment = {**ENVIRONMENT, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
        yield _settings(BatchKind.SGE, cell.place, environment)


@asynccontextmanager
async def pool(place: Path) -> AsyncGenerator[BatchSettings]:
    """Another pool, by the commands that it shares with HTCondor."""
    own = {"startd": {"job_account": "own"}}
    commands = launchers.install(place / "condor")
    with tempfile.TemporaryDirectory(prefix="kettle-") as directory:
        async with throwaway_pool(Path(directory), cpus=4, settings=own) as running:
            environment = {
                **running.environ,
                "KETTLE_HOME": str(running.home),
                "PATH": f"{commands}:/usr/bin:/bin",
            }
            yield _settings(BatchKind.HTCONDOR, place, environment)


@asynccontextmanager
async def other_pool(place: Path) -> AsyncGenerator[BatchSettings]:
    """Another pool, by its own client."""
    own = {"startd": {"job_account": "own"}}
    with tempfile.TemporaryDirectory(prefix="kettle-") as directory:
        async with throwaway_pool(Path(directory), cpus=4, settings=own) as running:
            yield _settings(BatchKind.KETTLE, place, {**running.environ, "KETTLE_HOME": str(running.home)})


@asynccontextmanager
async def apart(place: Path) -> AsyncGenerator[BatchSettings]:
    """Programs that stand for Slurm, and nodes that fetch the files of their jobs."""
    port = held_port()
    files = FilesSettings(url=f"http://127.0.0.1:{port}", port=port)
    (place / "files").write_bytes(msgspec.json.encode(files))
    async with slurm_programs(place) as settings:
        yield msgspec.structs.replace(settings, shared=False)


@asynccontextmanager
async def this_machine(place: Path) -> AsyncGenerator[BatchSettings]:
    """The machine of the entrypoint."""
    yield _settings(BatchKind.LOCAL, place, {})


_SYSTEMS: Final = {
    "programs of Slurm": slurm_programs,
    "programs of LSF": programs(BatchKind.LSF),
    "programs of OpenPBS": programs(BatchKind.PBS),
    "programs of Torque": programs(BatchKind.TORQUE),
    "programs of HTCondor": programs(BatchKind.HTCONDOR),
    "Slurm": real_slurm,
    "Grid Engine": real_grid_engine,
    "a pool": pool,
    "a pool by its client": other_pool,
    "this machine": this_machine,
    "nodes that share nothing": apart,
}
_ALWAYS: Final = ("programs of Slurm", "this machine")


@pytest.mark.parametrize(
    "system", [pytest.param(name, marks=[] if name in _ALWAYS else [_MORE]) for name in _SYSTEMS]
)
async def test_a_job_survives_all_deaths_of_its_entrypoint(
    backend: Backend, tmp_path: Path, system: str
) -> None:
    """
    The next process finds where the killed one was, at each step: of a job that ends by itself, of one that is removed, and of one
    whose files were on their way.
    """
    async with _SYSTEMS[system](tmp_path) as settings:
        ends = await deaths(settings, backend, tmp_path)
    assert {"ended": 1, "removed": 1, "brought": 0} == ends.submissions
    assert (7, None) == (ends.code("ended"), ends.reason("ended"))
    assert ends.outputs("ended")["runs"] == b"ran\n"
    assert (None, "somebody said so") == (ends.code("removed"), ends.reason("removed"))
    assert "restarted while the files of the job were on their way" in str(ends.reason("brought"))
