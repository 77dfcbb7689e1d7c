"""
Numbers of jobs: PROMINENCE's are whole numbers, and ours are a cluster and a place in it.

A job that was submitted alone has the number of its cluster, and so has a workflow; the second job of a workflow and those after it
have numbers beyond all clusters.
"""

from typing import Final

from kettle_services.gateway.prominence.application import refused
from kettle_wire.jobs import JobId

_CLUSTERS: Final = 1 << 31
DIGITS: Final = "[0-9]{1,19}"
NUMBER: Final = f"{{id:{DIGITS}}}"
"""Of a job or a workflow, in the pattern of a path."""
_LONGEST: Final = 19


def number_of(cluster: int, proc: int) -> int:
    """The number of a job."""
    return proc * _CLUSTERS + cluster


def job_of(number: int) -> JobId:
    """Inverse of `number_of`; raises RequestRefused: no job has this number."""
    proc, cluster = divmod(number, _CLUSTERS)
    if proc >= _CLUSTERS:
        raise refused(f"there is nothing with the number {number}")
    return JobId(cluster, proc)


def numbers_of(text: str) -> list[int]:
    """The numbers that a parameter names, with commas between them; raises RequestRefused."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) <= _LONGEST for word in words):
        raise refused(f"the parameter id has to be numbers with commas between them, and is '{text}'")
    return [int(word) for word in words]
