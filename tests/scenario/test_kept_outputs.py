"""Results that stay on the machine that made them, for the nodes of a DAG that come next."""

import asyncio
import hashlib
from pathlib import Path
from typing import Final

from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.queue import Select

from .condor import Condor
from .test_workflows import configuration, exit_code, submitted, work

__all__ = ["configuration", "work"]

MAKES: Final = """\
executable = /bin/sh
arguments = "-c 'head -c 200000 /dev/urandom > data'"
transfer_executable = false
transfer_output_files = data
should_transfer_files = yes
request_memory = 16
request_disk = 1024
queue
"""
USES: Final = """\
executable = /usr/bin/sha256sum
arguments = data
output = sum
transfer_executable = false
transfer_input_files = data
should_transfer_files = yes
request_memory = 16
request_disk = 1024
queue
"""


async def test_a_node_finds_on_its_machine_what_the_one_before_it_has_made(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    If that is wanted: the file comes to the submitter as well, and is not sent back; its machine says that it has it, and is preferred.
    """
    (work / "makes.sub").write_text(MAKES)
    (work / "uses.sub").write_text(USES)
    before = await input_counts(pool)
    cluster = await submitted(
        condor,
        "near.dag",
        "JOB makes makes.sub\nJOB uses uses.sub\nPARENT makes CHILD uses\n",
        "-keep_outputs",
    )
    assert 0 == await exit_code(pool.client, cluster)
    assert f"{hashlib.sha256((work / 'data').read_bytes()).hexdigest()}  data\n" == (work / "sum").read_text()
    async with asyncio.timeout(PATIENCE_S):
        while (after := await input_counts(pool)) == before:
            await asyncio.sleep(0.1)  # machines count aloud now and then
    assert (before[0] + 1, before[1]) == after
    mine = Select(constraint=f"DAGManJobId =?= {cluster}")
    ran = {ad["DAGNodeName"]: ad for ad in await pool.client.history(mine, limit=0)}
    name = f"{str(ran['makes']['GlobalJobId']).partition('#')[0]}#{ran['makes']['ClusterId']}"
    assert name in str(ran["uses"]["Rank"])
    assert ran["makes"]["KeepOutputsOnMachine"] is True
    assert "KeepOutputsOnMachine" not in ran["uses"]
    (slot,) = [ad for ad in await pool.client.ads("Machine") if "KeptOutputsOf" in ad]
    assert name in str(slot["KeptOutputsOf"]).split(",")


async def input_counts(pool: ThrowawayPool) -> tuple[int, int]:
    """Input files that jobs have found on the machine, and those that they have not."""
    (ad,) = await pool.client.ads("StartDaemon")
    return int(str(ad["InputCacheHits"])), int(str(ad["InputFilesFetched"]))
