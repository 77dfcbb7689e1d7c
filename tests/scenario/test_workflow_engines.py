"""
Workflows of others, run as DAGs: synthetic ones of wfcommons, by the recipes that it has made of real
workflows.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from kettle.client import select
from kettle.testing.commands.running import execute
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.condor import launchers

from .client_environments import python_with
from .condor import Condor

pytestmark = pytest.mark.asyncio(loop_scope="module")

GENERATE: Final = """\
import sys
from pathlib import Path
from wfcommons import WorkflowGenerator
from wfcommons.wfchef import recipes
for name in sys.argv[2:] or dir(recipes):
    if name.endswith("Recipe"):
        made = getattr(recipes, name).from_num_tasks(int(sys.argv[1]))
        WorkflowGenerator(made).build_workflow().write_json(Path(f"{name}.json"))
"""
RECIPES: Final = 10
LONG: Final = "KETTLE_TEST_LONG"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(template: Path) -> AsyncIterator[ThrowawayPool]:
    with tempfile.TemporaryDirectory(prefix="kettle-") as directory:
        # The processes of DAG jobs are this Python, which an account of a slot may not reach.
        own = {"startd": {"job_account": "own"}}
        async with throwaway_pool(Path(directory), cpus=16, settings=own, template=template) as running:
            yield running
        assert [] == running.left


async def test_every_recipe_of_wfcommons_runs(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Each is translated, all run at the same time by their critical paths, and every node of every one
    succeeds.
    """
    clusters = await begun(pool, tmp_path, 200)
    assert RECIPES == len(clusters)
    await have_succeeded(pool, clusters, within_s=240)


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: recipes of 10,000 nodes ({LONG}=1 runs them)"
)
@pytest.mark.parametrize("recipe", ["EpigenomicsRecipe", "MontageRecipe"])
async def test_recipes_of_ten_thousand_nodes_run(pool: ThrowawayPool, tmp_path: Path, recipe: str) -> None:
    """Every node of a deep one, and of one that is wide."""
    clusters = await begun(pool, tmp_path, 10_000, recipe)
    assert all(9_000 <= count <= 10_000 for count in clusters.values())
    await have_succeeded(pool, clusters, within_s=1200)


async def begun(pool: ThrowawayPool, tmp_path: Path, nodes: int, *recipes: str) -> dict[int, int]:
    """Submit a workflow of each of these recipes, else of all: by its cluster how many nodes it has."""
    python = await python_with(["wfcommons==1.6"], "wfcommons", tmp_path)
    condor = Condor(launchers.install(tmp_path / "condor"), pool, tmp_path)
    words = [python, "-c", GENERATE, str(nodes), *recipes]
    made = await execute(words, tmp_path, condor.environ, within_s=600)
    assert 0 == made.status, made
    clusters: dict[int, int] = {}
    for instance in sorted(tmp_path.glob("*Recipe.json")):
        said = await pool.kettle("workflow", "dag", "--replay", "0", str(instance))
        assert 0 == said.status, said
        dag = instance.with_suffix(".dag")
        small = "request_cpus = 1\n    request_memory = 16\n    request_disk = 1024"
        dag.write_text(said.out.replace("request_cpus = 1", small))
        submitted = await condor("condor_submit_dag", "-order", "critical-path", dag.name)
        assert 0 == submitted.status, submitted
        cluster = int(submitted.out.partition("submitted to cluster ")[2].partition(".")[0])
        tasks = json.loads(instance.read_text())["workflow"]["specification"]["tasks"]
        clusters[cluster] = len(tasks)
    return clusters


async def have_succeeded(pool: ThrowawayPool, clusters: dict[int, int], *, within_s: float) -> None:
    """Wait for the end of all, and look whether all of their nodes are done."""
    async with asyncio.timeout(within_s):
        await pool.client.wait(select(*clusters))
    for cluster, count in clusters.items():
        state = await pool.client.workflows.show(cluster)
        assert (0, {"done": count}) == (state.exit_code, state.counts), state.files
