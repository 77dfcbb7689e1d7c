"""
The job ad as it was submitted: what all jobs of a cluster have in common, and what each has of its own.

Pure.  `kettle.jobs.ad` changes it by each event of the job.
"""

from collections.abc import Callable, Container, Mapping
from typing import Final

from kettle.jobs.ad import ALWAYS, DEFERRAL, KEPT, MEASURED, UNLESS_SAID
from kettle.jobs.lower_names import lower_names, remembered_by_names
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.codes import JobStatus
from kettle_wire.events.cluster import ClusterSubmitted

CLUSTER_MACRO: Final = "$(ClusterId)"
"""A submitter does not know the cluster's number yet; the schedd's answer stands in its place."""

_SPELLING: Final = {name.lower(): name for name in (*UNLESS_SAID, *MEASURED, *DEFERRAL, "User")}


def job_ad(submitted: ClusterSubmitted, at_us: int, proc: int, *, schedd: str = "") -> Ad:
    """
    The ad of one job as it was submitted at `at_us`, microseconds since the epoch.

    `User` is kept when it names the owner in some domain.  Raises IndexError if the cluster has no such job.
    """
    return job_ads(submitted, at_us)(proc, schedd)


def job_ads(
    submitted: ClusterSubmitted, at_us: int, *, only: Container[str] | None = None
) -> Callable[[int, str], Ad]:
    """
    The ads of a cluster's jobs, as `job_ad` says, by number of the job and name of its schedd.

    Common values of the jobs are computed once. The order of the attributes is the same as well. `only`: the requested
    attributes, in lower case; others are not computed for each job.
    """
    queued_at = at_us // 1_000_000
    cluster, owner, rows = submitted.cluster, submitted.owner, submitted.rows
    common, own = _laid_out(submitted, queued_at)
    if only is not None:
        common = {name: value for name, value in common.items() if name.lower() in only}
        own = [(index, name) for index, name in own if name in common]
    own_user = any(name == "User" for _, name in own)
    identified, numbered = "GlobalJobId" in common, "ProcId" in common

    def made(proc: int, schedd: str) -> Ad:
        ad = common.copy()
        if own or only is None:
            fill(ad, rows[proc])
        if own_user:
            ad["User"] = _user(ad["User"], owner)
        if numbered:
            ad["ProcId"] = proc
        if identified:
            ad["GlobalJobId"] = f"{schedd}#{cluster}.{proc}#{queued_at}"
        return ad

    def fill(ad: Ad, row: list[Scalar]) -> None:
        if len(row) != len(submitted.columns):
            raise ValueError(f"a job of cluster {cluster} has not as many values as this has columns")
        for index, name in own:
            ad[name] = _with_cluster(row[index], cluster)

    return made


def _laid_out(submitted: ClusterSubmitted, queued_at: int) -> tuple[Ad, list[tuple[int, str]]]:
    """
    An ad with the common values of all jobs and a place for everything else; and the places of the columns in it.
    """
    places, known = _places(tuple(submitted.ad))
    ad, cluster = submitted.ad, submitted.cluster
    common: Ad = {place: _with_cluster(ad[name], cluster) for name, place in places}
    own: list[tuple[int, str]] = []
    spelled = dict(known) if submitted.columns else {}
    for index, name in enumerate(submitted.columns):
        if (folded := name.lower()) not in KEPT:
            place = spelled.setdefault(folded, name)
            common.setdefault(place, 0)  # each job has a value of its own
            if place != "TotalSubmitProcs":  # that is counted, no matter what was submitted
                own.append((index, place))
    _settle(common, submitted, queued_at)
    return common, own


@remembered_by_names
def _places(names: tuple[str, ...]) -> tuple[list[tuple[str, str]], Mapping[str, str]]:
    """
    Which attributes of a submitted ad count, each with how it is spelled in the ads of jobs; and all spellings, by names in lower case.
    """
    spelled: dict[str, str] = dict(_SPELLING)
    places = [
        (name, spelled.setdefault(folded, name)) for name in names if (folded := name.lower()) not in KEPT
    ]
    return places, spelled


def _settle(ad: Ad, submitted: ClusterSubmitted, queued_at: int) -> None:
    """Set what a submitter cannot state, and what he did not."""
    ad.update(ALWAYS)
    ad.update(
        {
            "ClusterId": submitted.cluster,
            "ProcId": 0,
            "Owner": submitted.owner,
            "User": _user(ad.get("User"), submitted.owner),
            "QDate": queued_at,
            "GlobalJobId": "",
            "EnteredCurrentStatus": queued_at,
            "TotalSubmitProcs": len(submitted.rows),
        }
    )
    for name, value in UNLESS_SAID.items():
        ad.setdefault(name, value)


def _user(said: Scalar | None, owner: str) -> str:
    return said if isinstance(said, str) and said.startswith(f"{owner}@") else owner


def fold_base(submitted: ClusterSubmitted) -> Callable[[int], Ad]:
    """
    By number of the job in its cluster, what `apply` looks at in a job's ad before the first of its events.

    A fold over millions of events has no time for the other hundred attributes of each ad.
    """
    cluster = submitted.cluster
    # Of several spellings the last one counts, as in `job_ad`.
    columns = [i for i, name in enumerate(submitted.columns) if name.lower() == "requestcpus"]
    column = columns[-1] if columns else None
    said = lower_names(submitted.ad).get("requestcpus")
    same = UNLESS_SAID["RequestCpus"] if said is None else _with_cluster(submitted.ad[said], cluster)

    def base(proc: int) -> Ad:
        cpus = same if column is None else _with_cluster(submitted.rows[proc][column], cluster)
        return {"JobStatus": int(JobStatus.IDLE), "RequestCpus": cpus}

    return base


def _with_cluster(value: Scalar, cluster: int) -> Scalar:
    if isinstance(value, str):
        return value.replace(CLUSTER_MACRO, str(cluster)) if CLUSTER_MACRO in value else value
    if isinstance(value, Expr) and CLUSTER_MACRO in value.expr:
        return Expr(value.expr.replace(CLUSTER_MACRO, str(cluster)))
    return value
