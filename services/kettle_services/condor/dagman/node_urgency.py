"""How urgent the nodes of a DAG are that is ordered by its critical path."""

import logging
from array import array
from collections.abc import AsyncIterator
from typing import Final

from kettle.classad.printing import quoted_string
from kettle.client import Client, select
from kettle.client.errors import ClientError
from kettle.dag.node_order import estimates, urgency
from kettle.dag.node_runs import NodeRun, node_runs
from kettle.dag.submission.command_line import OptionError, of_dagman
from kettle.submit.errors import PlacelessError
from kettle.submit.quoting import split_v2
from kettle_services.condor.dagman.node_jobs import NodesInCommon
from kettle_wire.ads.types import Ad
from kettle_wire.codes import Universe
from kettle_wire.workflows import unpacked

_RUNS: Final = 5
"""So many earlier runs are looked at, the newest: what was long then may be short now."""
_JOBS: Final = 50
"""So many DAG jobs of the same directory."""
_PATIENCE_S: Final = 30.0
"""For the history of jobs: a run that begins a moment later in the better order is the shorter one."""
_log: Final = logging.getLogger(__name__)


async def node_urgency(client: Client, source: NodesInCommon) -> list[int]:
    """
    By node, as a plan has it: what was recorded when the workflow began, else by how long its nodes took in earlier runs.

    Where nothing is known of these, the number of nodes counts.
    """
    begun = await client.workflows.begun(source.workflow)
    if begun is not None:
        recorded = array("I", unpacked(begun.plan).urgency)
        return recorded.tolist()
    try:
        runs = [run async for run in _earlier(client, source)]
    except ClientError as error:
        _log.warning("it is not known how long nodes took in earlier runs: %s", error)
        runs = []
    return urgency(source.dag, estimates(source.dag, runs))


async def _earlier(client: Client, source: NodesInCommon) -> AsyncIterator[dict[str, NodeRun]]:
    """Earlier runs of the DAG, the newest first."""
    directory = quoted_string(str(source.directory))
    dag_jobs = select(
        owners=[client.pool.user] if client.pool.user else [],
        constraint=f"JobUniverse == {int(Universe.SCHEDULER)} && Iwd == {directory}",
    )
    ended = await client.history(dag_jobs, limit=_JOBS, patience=_PATIENCE_S)
    same = [ad for ad in ended if _files(ad) == source.options.dag_files]
    for ad in same[:_RUNS]:
        cluster = ad.get("ClusterId")
        assert isinstance(cluster, int), "a job has a number"
        if await client.workflows.begun(cluster) is not None:
            yield node_runs(await client.workflows.history(cluster))


def _files(ad: Ad) -> list[str]:
    """The DAG files of a DAG job; none if it is another job."""
    try:
        return of_dagman(split_v2(str(ad.get("Arguments", "")))).dag_files
    except (OptionError, PlacelessError):
        return []
