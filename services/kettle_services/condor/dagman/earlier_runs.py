"""Earlier runs of a DAG: the workflows of those DAG jobs that ran the same files in the same directory."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from kettle.classad.printing import quoted_string
from kettle.client import Client, select
from kettle.dag.submission.command_line import OptionError, of_dagman
from kettle.jobs.quoting import QuotingError, split_v2
from kettle_services.condor.dagman.node_jobs import NodesInCommon
from kettle_wire.ads.types import Ad
from kettle_wire.codes import Universe
from kettle_wire.events.workflow import WorkflowEvent

_RUNS: Final = 5
"""So many are looked at, the newest: what was so long ago may be different now."""
_JOBS: Final = 50
"""So many DAG jobs of the same directory."""
_PATIENCE_S: Final = 30.0
"""For the history of jobs: a run that begins a moment later, and knows them, is the shorter one."""


async def earlier_runs(
    client: Client, source: NodesInCommon
) -> AsyncIterator[tuple[int, Sequence[tuple[float, WorkflowEvent]]]]:
    """The numbers of their workflows and their events with times, the newest first; raises ClientError."""
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
            yield cluster, await client.workflows.history(cluster)


def _files(ad: Ad) -> list[str]:
    """The DAG files of a DAG job; none if it is another job."""
    try:
        return of_dagman(split_v2(str(ad.get("Arguments", "")))).dag_files
    except (OptionError, QuotingError):
        return []
