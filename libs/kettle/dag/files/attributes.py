"""
What the ad of the DAG job says of its workflow: `condor_q` shows it, `htcondor dag status` and LSST read it.

Pure.
"""

from kettle.dag.files.progress import Progress
from kettle_wire.ads.types import Ad


def attributes(progress: Progress) -> Ad:
    """The attributes `DAG_…` of the moment."""
    counts, jobs = progress.counts, progress.job_counts
    return {
        "DAG_AdUpdateTime": int(progress.changed),
        "DAG_NodesTotal": counts.total,
        "DAG_NodesDone": counts.done,
        "DAG_NodesPrerun": counts.pre,
        "DAG_NodesQueued": counts.queued,
        "DAG_NodesPostrun": counts.post,
        "DAG_NodesReady": counts.ready,
        "DAG_NodesUnready": counts.unready,
        "DAG_NodesFailed": counts.failed,
        "DAG_NodesFutile": counts.futile,
        "DAG_JobsSubmitted": jobs.submitted,
        "DAG_JobsIdle": jobs.idle,
        "DAG_JobsHeld": jobs.held,
        "DAG_JobsRunning": jobs.running,
        "DAG_JobsCompleted": jobs.completed,
        "DAG_InRecovery": 0,
        "DAG_Status": progress.dag_status.value,
    }
