"""
Ads of job sets (`QueryOpt.IncludeJobsetAds`): what the jobs of one name and owner have in common, and how they stand.

The schedd keeps no such ads: a set is as long in the queue as one of its jobs, and is told from them and from the history.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from kettle.bindings.history import ended
from kettle.bindings.pool_connections import ask
from kettle.client import PoolFile, Select
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus

_NAMES: Final = ["JobSetId", "JobSetName", "Owner", "User", "JobStatus", "JobUniverse"]
_SCHEDULER: Final = 7
_COUNTS: Final = {
    int(JobStatus.IDLE): "Idle",
    int(JobStatus.RUNNING): "Running",
    int(JobStatus.REMOVED): "Removed",
    int(JobStatus.COMPLETED): "Completed",
    int(JobStatus.HELD): "Held",
    int(JobStatus.TRANSFERRING_OUTPUT): "Running",
    int(JobStatus.SUSPENDED): "Suspended",
}


def job_sets(pool: PoolFile) -> list[Ad]:
    """Those that have jobs in the queue, by their numbers; their jobs that have ended are counted as well."""
    select = Select(constraint="JobSetId isnt undefined")
    queued = ask(pool, lambda client: client.jobs(select, projection=_NAMES))
    numbers = sorted({int(str(ad["JobSetId"])) for ad in queued})
    if not numbers:
        return []
    past = ended(pool, " || ".join(f"JobSetId == {number}" for number in numbers), -1, None)
    return [
        _of(number, [ad for ad in (*queued, *past) if ad.get("JobSetId") == number]) for number in numbers
    ]


def _of(number: int, jobs: list[Ad]) -> Ad:
    first = jobs[0]
    common: Ad = {name: first[name] for name in ("JobSetName", "Owner", "User") if name in first}
    return {"MyType": "JobSet", "JobSetId": number, **common, **_counted(jobs)}


def _counted(jobs: Iterable[Ad]) -> Ad:
    counts = Counter[str]({"NumJobs": 0, "NumSchedulerJobs": 0})
    for each in jobs:
        kind = "Scheduler" if each.get("JobUniverse") == _SCHEDULER else ""
        counts[f"Num{kind}Jobs"] += 1
        status = each.get("JobStatus")
        if isinstance(status, int) and status in _COUNTS:
            counts[f"Num{kind}{_COUNTS[status]}"] += 1
    return dict(counts)
