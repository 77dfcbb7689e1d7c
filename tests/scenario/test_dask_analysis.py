"""
An analysis with the tools of high-energy physics on a Dask cluster of a pool, as a facility's people run it.
"""

import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from kettle.testing.commands.running import execute
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, merged

from .client_environments import SCRIPTS, python_with
from .dask_pools import SETTINGS

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

TOP: Final = Path(__file__).parents[2]
PACKAGES: Final = (f"{TOP}[dask]", "coffea")
PROFILE: Final = '[coffea]\nkind = "dask"\npython = {python}\nmemory_allowed = [64, 4000]\n'


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("profiles") / "profiles.toml"
    made.write_text("")
    return made


@pytest.fixture(scope="module")
def configuration(profiles: Path) -> dict[str, Any]:
    sessions: dict[str, dict[str, Any]] = {"sessions": {"profiles": str(profiles), "profiles_interval": 0.2}}
    return {"cpus": 4, "settings": merged(SETTINGS, sessions)}


async def test_coffea_makes_the_same_histogram_on_a_cluster(
    profiles: Path, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """Workers read files of ROOT in parts, and the mass of pairs of muons is what one process makes of it."""
    python = await python_with(PACKAGES, "coffea", tmp_path)
    profiles.write_text(PROFILE.format(python=msgspec.json.encode(python).decode()))
    environ = {**pool.environ, "KETTLE_HOME": str(pool.home)}
    words = [python, str(SCRIPTS / "coffea_on_a_cluster.py"), "coffea", "--workdir", str(tmp_path / "work")]
    said = await execute(words, tmp_path, environ, within_s=4 * PATIENCE_S)
    assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], said
    sys.stderr.write(said.out)
