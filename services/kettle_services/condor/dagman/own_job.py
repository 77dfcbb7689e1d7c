"""What the process of a DAG job reads of itself: the ad of its job, which its starter has written for it."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kettle.classad import ClassAdError, read_long
from kettle.transfer.spooled_jobs import is_spooled
from kettle_services.condor.errors import ToolError
from kettle_wire.ads.types import Ad
from kettle_wire.workflows import BY_TOKEN, WORKFLOW_FILE


class OwnJob(msgspec.Struct, frozen=True):
    """The DAG job."""

    cluster: int
    directory: Path
    """
    Where it was submitted, and all paths of the DAG are relative to it; of one whose files were sent to the access point, its own
    directory.
    """
    batch: str
    """The name under which it and its nodes are one row of the queue; empty: nobody has given it one."""
    parent: str
    """The cluster of the DAG job whose node it is; empty: it is none."""
    name: str = ""
    """Its GlobalJobId."""
    sent: bool = False
    """Whether its files were sent to the access point."""
    document: str = ""
    """The file that says what is to run, if that is a workflow of PROMINENCE; empty: a DAG file does."""
    by_token: bool = False
    """Whether it came by a token, and may have nothing run on the access point."""

    @property
    def schedd(self) -> str:
        """
        In whose queue it is, and its nodes are to be: the same numbers mean other jobs elsewhere; empty: the usual one's.
        """
        return self.name.partition("#")[0]

    def batch_name(self, dag_file: str) -> str:
        """Its name in the queue, as DAGMan makes one where there is none."""
        return self.batch or f"{Path(dag_file).name}+{self.cluster}"


def own_job(environ: Mapping[str, str] = os.environ) -> OwnJob:
    """Read the ad.  Raises ToolError."""
    path = environ.get("_CONDOR_JOB_AD", "")
    if not path:
        raise ToolError("ERROR: condor_dagman is the program of a job, which condor_submit_dag submits")
    try:
        ad = read_long(Path(path).read_text(encoding="utf-8", errors="surrogateescape")).to_wire()
    except (OSError, ClassAdError) as error:
        raise ToolError(f"ERROR: cannot read the ad of this job: {error}") from error
    cluster, directory = ad.get("ClusterId"), ad.get("Iwd")
    if not isinstance(cluster, int) or not isinstance(directory, str):
        raise ToolError(f"ERROR: {path} is not the ad of a job: it has no ClusterId or no Iwd")
    parent = ad.get("DAGManJobId")
    return OwnJob(
        cluster,
        Path(environ.get("_CONDOR_JOB_IWD") or directory),
        _text(ad, "JobBatchName"),
        str(parent) if isinstance(parent, int) else "",
        _text(ad, "GlobalJobId"),
        is_spooled(ad),
        _text(ad, WORKFLOW_FILE),
        ad.get(BY_TOKEN) is True,
    )


def _text(ad: Ad, name: str) -> str:
    value = ad.get(name)
    return value if isinstance(value, str) else ""
