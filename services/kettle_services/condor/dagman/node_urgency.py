"""How urgent the nodes of a DAG are that is ordered by its critical path."""

import logging
from array import array
from typing import Final

from kettle.client import Client
from kettle.client.errors import ClientError
from kettle.dag.node_order import estimates, urgency
from kettle.dag.node_runs import node_runs
from kettle_services.condor.dagman.earlier_runs import earlier_runs
from kettle_services.condor.dagman.node_jobs import NodesInCommon
from kettle_wire.workflows import unpacked

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
        runs = [node_runs(events) async for _, events in earlier_runs(client, source)]
    except ClientError as error:
        _log.warning("it is not known how long nodes took in earlier runs: %s", error)
        runs = []
    return urgency(source.dag, estimates(source.dag, runs))
