"""Which jobs a command selects, in the forms that people type."""

from collections.abc import Iterable

from kettle.client.errors import ClientError
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId


def select(*ids: str | int | JobId, owners: Iterable[str] = (), constraint: str = "") -> Select:
    """
    Jobs by id: `12.3` or a JobId for one, `12` for a whole cluster.  Without ids, all that meet the rest.

    Raises:
        ClientError: something is not an id.
    """
    jobs: list[JobId] = []
    clusters: list[int] = []
    for one in ids:
        if isinstance(one, JobId):
            jobs.append(one)
        elif isinstance(one, int) or one.isdecimal():
            clusters.append(int(one))
        else:
            jobs.append(job_id(one))
    return Select(jobs=jobs, clusters=clusters, owners=list(owners), constraint=constraint)


def job_id(text: str) -> JobId:
    """
    The id of one job; a cluster's number alone means its first job.

    Raises:
        ClientError: it is not an id.
    """
    try:
        return JobId(int(text), 0) if text.isdecimal() else JobId.parse(text)
    except ValueError as error:
        raise ClientError(
            f"'{text}' is not the id of a job: write CLUSTER.PROC or CLUSTER, as in 12.0 or 12"
        ) from error
