"""What the programs of one node of a job know of the others."""

from typing import Final

from kettle.execution.job_environment.job_ad import JobAd
from kettle.jobs.nodes import HOSTS, NUMBER

HOSTS_FILE: Final = ".machines"
"""In the sandbox of a node: the host of each node of the job, one a line, node 0 first."""


def node_variables(job: JobAd, sandbox: str) -> dict[str, str]:
    """The number of the node, how many there are, and where their hosts stand; nothing of other jobs."""
    number = job.number(NUMBER)
    if number is None:
        return {}
    return {
        "_CONDOR_PROCNO": str(int(number)),
        "_CONDOR_NPROCS": str(len(_hosts(job))),
        "MACHINE_FILE": f"{sandbox}/{HOSTS_FILE}",
    }


def hosts_file(job: JobAd) -> dict[str, str]:
    """The text of that file, by its name; none for a job that is no node."""
    if job.number(NUMBER) is None:
        return {}
    return {HOSTS_FILE: "".join(f"{host}\n" for host in _hosts(job))}


def _hosts(job: JobAd) -> list[str]:
    return (job.text(HOSTS) or "").split()
