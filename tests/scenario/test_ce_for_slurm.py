"""docs/how-to/a-ce-for-a-slurm-site.md, carried out: an entrypoint brings jobs to a real Slurm."""

import asyncio
import re
import tomllib
from collections.abc import Generator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.slurm import SlurmCluster, no_slurm, slurm
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.queue import Select
from kettle_wire.events import JobTold
from kettle_wire.jobs import JobId

from .condor import Condor

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "a-ce-for-a-slurm-site.md"


class Page:
    """What the page has readers write and type."""

    def __init__(self, text: str) -> None:
        self.settings: dict[str, Any] = tomllib.loads(self._block(text, "toml"))
        self.routes = self._block(text, "text")
        self.typed: dict[str, list[str]] = {}
        """By command the lines that follow it."""
        for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
            command = ""
            for line in block.splitlines():
                if line.startswith("$ "):
                    command = line.removeprefix("$ ")
                    self.typed[command] = []
                else:
                    self.typed[command].append(line)

    @staticmethod
    def _block(text: str, kind: str) -> str:
        found = re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)
        assert found is not None, f"the page has no block of {kind}"
        return found[1]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(PAGE.read_text())


@pytest.fixture(scope="module")
def cluster() -> Generator[SlurmCluster]:
    if why := no_slurm():
        pytest.skip(why)
    with slurm() as made:
        yield made


@pytest.fixture(scope="module")
def routes(page: Page, cluster: SlurmCluster) -> Path:
    path = cluster.place / "routes"
    path.write_text(page.routes)
    return path


@pytest.fixture(scope="module")
def configuration(page: Page, cluster: SlurmCluster, routes: Path) -> dict[str, Any]:
    """As on the page, in the places of this test."""
    sandboxes = cluster.place / "kettle"
    sandboxes.mkdir(mode=0o755)
    settings = page.settings
    settings["ce"]["routes"] = str(routes)
    settings["master"]["daemon_list"].append(
        "startd"
    )  # by whose slots it is seen that the pool is empty again
    [batch] = settings["ce"]["batch"]
    batch |= {"directory": str(sandboxes), "environment": {"SLURM_CONF": str(cluster.configuration)}}
    return {"settings": settings}


async def test_the_page_is_right(pool: ThrowawayPool, condor: Condor, page: Page, routes: Path) -> None:
    """
    Each command of it ends well and says what the page shows; the job's output is what it left at Slurm.
    """
    check = next(each for each in page.typed if each.startswith("kettle ce check"))
    status, out, err = await pool.kettle("ce", "check", str(routes))
    assert (0, page.typed[check], "") == (status, [out.strip().replace(str(routes), check.split()[-1])], err)
    status, out, err = await pool.kettle("ce", "status")
    assert (0, "") == (status, err)
    for line in page.typed["kettle ce status"]:
        assert line.split() == [word for word in out.split() if word in line.split()][: len(line.split())], (
            out
        )
    trace = next(each for each in page.typed if each.startswith("condor_ce_trace"))
    said = await condor("condor_ce_trace", "-a", re.findall('"(.*)"', trace)[0])
    assert (0, "") == (said.status, said.err), said
    for line in page.typed[trace]:
        assert line in said.out.splitlines()
    assert said.out.partition("Job output:\n")[2].strip()


async def _batch_id(pool: ThrowawayPool, job: JobId) -> str:
    """What Slurm calls a job, once it has it."""
    async with asyncio.timeout(PATIENCE_S), aclosing(pool.client.follow(job)) as following:
        async for each in following:
            if isinstance(each.event, JobTold) and (name := each.event.attributes.get("GridJobId")):
                return str(name).rpartition("/")[2]
    raise AssertionError("the job ended, and Slurm never had it")


async def test_a_job_is_found_by_the_number_that_slurm_gave_it(
    pool: ThrowawayPool, condor: Condor, cluster: SlurmCluster
) -> None:
    """While it waits there, with its route and what the default transforms ask of Slurm."""
    number = await condor.submitted(
        "executable = /bin/sleep\ntransfer_executable = false\narguments = 600\n+maxWallTime = 20\nqueue\n"
    )
    batch_id = await _batch_id(pool, JobId(number, 0))
    status, out, err = await pool.kettle("ce", "trace", batch_id)
    assert (0, "") == (status, err)
    assert f"  job            {number}.0\n" in out
    status, _, err = await pool.kettle("tail", f"{number}.0")
    assert (1, True) == (
        status,
        "is in the batch system cluster, whose machines cannot be looked into" in err,
    ), err
    shown = cluster.run("scontrol", "show", "job", batch_id)
    assert {"TimeLimit=00:20:00", "Partition=short"} <= set(shown.split())
    await pool.client.remove(Select(clusters=[number]))
