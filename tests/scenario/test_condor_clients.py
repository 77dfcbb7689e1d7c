"""
Programs that were written for HTCondor run unmodified: the scripts in tests/acceptance say what they have to come to.
"""

import sys
import tempfile
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.testing.commands.running import Said, execute
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.condor import launchers

from .client_environments import SCRIPTS, python_of


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(template: Path) -> AsyncIterator[ThrowawayPool]:
    # The jobs run this Python, which an account of a slot may not reach.
    own = {"startd": {"job_account": "own"}}
    # And they make sockets in their scratch directories, whose paths must not be long.
    with tempfile.TemporaryDirectory(prefix="kettle-") as directory:
        async with throwaway_pool(Path(directory), cpus=4, settings=own, template=template) as running:
            yield running
        assert [] == running.left


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def accepted(script: str, pool: ThrowawayPool, tmp_path: Path, python: str = sys.executable) -> Said:
    place = launchers.install(tmp_path / "condor")
    work = tmp_path / "work"
    words = [python, str(SCRIPTS / script), str(place), "--workdir", str(work), "--timeout", "120"]
    modules = str(place.parent / launchers.PYTHON)
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home), "PYTHONPATH": modules}
    return await execute(words, tmp_path, environ, within_s=240)


@pytest.mark.skipif(find_spec("dask_jobqueue") is None, reason="dask-jobqueue is not installed")
async def test_dask_computes_on_workers_that_are_jobs(pool: ThrowawayPool, tmp_path: Path) -> None:
    """HTCondorCluster of dask-jobqueue: workers start, compute, are scaled down and start on demand."""
    said = await accepted("dask_jobqueue_cluster.py", pool, tmp_path)
    assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], said
    assert 0 == said.status


@pytest.mark.skipif(find_spec("parsl") is None, reason="parsl is not installed")
async def test_parsl_computes_on_a_block_that_is_a_job(pool: ThrowawayPool, tmp_path: Path) -> None:
    """CondorProvider of Parsl: a block starts, runs apps, is asked for its status and is cancelled."""
    said = await accepted("parsl_condor_provider.py", pool, tmp_path)
    assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], said
    assert 0 == said.status


@pytest.mark.parametrize(
    ("script", "module"),
    [
        ("htmap_maps.py", "htmap"),
        ("ipyparallel_cluster.py", "ipyparallel"),
        ("snakemake_htcondor.py", "snakemake"),
        ("lsst_bps.py", "lsst-ctrl-bps-htcondor"),
        ("harvester_workers.py", "pandaharvester"),
        ("jupyterhub_batchspawner.py", "batchspawner"),
    ],
)
async def test_a_client_in_an_environment_of_its_own(
    script: str, module: str, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """Installed as its users do it, it finds commands and modules by `kettle condor-env`."""
    python = await python_of(script, module, tmp_path)
    said = await accepted(script, pool, tmp_path, python)
    assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], said
    assert 0 == said.status
