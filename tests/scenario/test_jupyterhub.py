"""
A real JupyterHub whose servers are jobs: of people who may be anywhere, on machines that nothing reaches, with what they may know alone.
"""

import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.pool.personal_settings import Tables
from kettle.testing.commands.running import execute
from kettle.testing.servers import selection
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.condor import launchers

from .client_environments import SCRIPTS
from .hub_programs import HubPrograms
from .machines_behind_nat import behind_nat, joined

NAME = "behind.example.org"
SERVICES = ["collector", "negotiator", "schedd", "shadow", "accounting", "iam", "gateway"]

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not selection.servers_are_ours(), reason="whom servers of somebody else let in is theirs to say"
    ),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(template: Path) -> AsyncIterator[ThrowawayPool]:
    settings: Tables = {"master": {"daemon_list": SERVICES}, "gateway": {"rest": True}}
    with tempfile.TemporaryDirectory(prefix="kettle-") as directory:
        async with throwaway_pool(Path(directory), cpus=0, settings=settings, template=template) as running:
            yield running
        assert [] == running.left


async def test_a_hub_is_installed_as_its_people_do_it(hub_programs: HubPrograms, tmp_path: Path) -> None:
    """With the extra alone JupyterHub knows the spawner by its name."""
    asks = "from importlib.metadata import entry_points; print(entry_points(group='jupyterhub.spawners')['kettle'].load())"
    said = await execute([hub_programs.python, "-c", asks], tmp_path, {"PATH": hub_programs.path})
    assert (0, "<class 'kettle.jupyterhub.spawner.KettleSpawner'>\n") == (said.status, said.out), said


async def test_servers_run_on_machines_that_nothing_reaches(
    pool: ThrowawayPool, hub_programs: HubPrograms, tmp_path: Path
) -> None:
    """
    The machine connects to the bus, the gateway and the hub, and nothing connects to it: servers start there, their kernels are what they
    were after the hub was killed and started again, and a server that waits or fails says why.
    """
    home = tmp_path / "machine" / "home"
    home.parent.mkdir(mode=0o700)
    hub = held_port()
    await joined(pool, home, NAME)
    async with behind_nat(pool, home, NAME, [hub]):
        place = launchers.install(tmp_path / "condor")
        words = [hub_programs.python, str(SCRIPTS / "jupyterhub_kettle_spawner.py"), str(place)]
        environ = {
            **pool.environ,
            "KETTLE_HOME": str(pool.home),
            "HUB_MACHINE": NAME,
            "HUB_PORT": str(hub),
            "PATH": hub_programs.path,
            "PYTHONPATH": str(place.parent / launchers.PYTHON),
        }
        words += ["--workdir", str(tmp_path / "work"), "--timeout", "120"]
        said = await execute(words, tmp_path, environ, within_s=400)
    assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], said
    assert 0 == said.status
    sys.stderr.write(said.out)
