"""
In which origin a browser shows the pages of a job.  Pure.

A page's script may do in its origin what the person may who looks at it.  So pages of jobs are in no origin of the gateway's own pages,
and, where hosts of any name lead here, each job has one to itself.
"""

import hashlib
import re
from typing import Final
from urllib.parse import urlsplit

from kettle_wire.jobs import JobId

_ANY: Final = "*"
_LENGTH: Final = 10


class ServiceOrigins:
    """
    Of all jobs, by an address in which `*` stands for the job: `https://*.jobs.example.org`; without it they share one.
    """

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._scheme: Final = place.scheme.lower()
        self._host: Final = place.netloc.lower()
        self.encrypted: Final = self._scheme == "https"
        self.shared: Final = _ANY not in self._host
        """Whether scripts of one job reach what the person may reach of another one's."""

    def of(self, schedd: str, job: JobId) -> str:
        """The origin of a job, without a slash."""
        return f"{self._scheme}://{self._host.replace(_ANY, label(schedd, job), 1)}"

    def may_be(self, host: str, job: JobId) -> bool:
        """Whether a host is that of a job of this number at some access point, as far as its name tells."""
        before, star, after = self._host.partition(_ANY)
        if not star:
            return host == self._host
        found = host.removeprefix(before).removesuffix(after)
        return host == f"{before}{found}{after}" and re.fullmatch(_labels(job), found) is not None


def _labels(job: JobId) -> str:
    return rf"job{job.cluster}-{job.proc}-[0-9a-f]{{{_LENGTH}}}"


def label(schedd: str, job: JobId) -> str:
    """The job as a label of a host's name; jobs of the same number at two access points have two."""
    digest = hashlib.sha256(schedd.encode()).hexdigest()[:_LENGTH]
    return f"job{job.cluster}-{job.proc}-{digest}"


def why_no_services_url(url: str) -> str:
    """What is wrong with such an address; empty: nothing."""
    try:
        place = urlsplit(url)
        port_is_one = place.port != 0
    except ValueError:
        port_is_one = False
        place = urlsplit("")
    if place.scheme not in {"http", "https"} or not place.netloc or not port_is_one:
        return "it is no address: https://*.jobs.example.org"
    if place.path.strip("/") or place.query or place.fragment or "@" in place.netloc:
        return "it is more than the address of a host"
    if _ANY in place.netloc and not (place.netloc.startswith(f"{_ANY}.") and place.netloc.count(_ANY) == 1):
        return "the star stands for the first part of the host's name: https://*.jobs.example.org"
    return ""
