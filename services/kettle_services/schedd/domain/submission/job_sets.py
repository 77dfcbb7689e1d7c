"""
Job sets: clusters of one owner with one name, JobSetName, from any number of submissions.

A set has a number of its own, JobSetId: that of its first cluster. It exists as long as one of its jobs is in the
queue; after that the same name is a new set, so that the history can distinguish them.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kettle.jobs.lower_names import lower_names
from kettle_services.schedd.domain.submission.cluster import Cluster
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_wire.ads import Ad

_NAME: Final = "jobsetname"
_ID: Final = "jobsetid"
_LONGEST: Final = 256


def numbered(ad: Ad, columns: Sequence[str], clusters: Iterable[Cluster], *, owner: str, number: int) -> Ad:
    """
    The ad of the submission that becomes cluster `number`, with the JobSetId of its set among the `clusters` of the queue.

    Raises Unacceptable for a set that is none: its name is no text, or not the same for all jobs.
    """
    if not {_NAME, _ID}.isdisjoint(map(str.lower, columns)):
        raise Unacceptable("jobset is the same for all jobs of a submission")
    spelled = lower_names(ad)
    if _ID in spelled:
        raise Unacceptable("the attribute JobSetId is set by the schedd, not by a submission")
    if _NAME not in spelled:
        return ad
    name = ad[spelled[_NAME]]
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST:
        raise Unacceptable(f"jobset is a name of 1 to {_LONGEST} characters")
    return {**ad, "JobSetId": _of(name, clusters, owner) or number}


def _of(name: str, clusters: Iterable[Cluster], owner: str) -> int:
    """The number of somebody's set; 0 if there is none of this name, whatever its case."""
    wanted = name.lower()
    for cluster in clusters:
        submitted = cluster.submitted
        number = submitted.ad.get("JobSetId")
        if submitted.owner == owner and isinstance(number, int):
            given = next((value for key, value in submitted.ad.items() if key.lower() == _NAME), None)
            if isinstance(given, str) and given.lower() == wanted:
                return number
    return 0
