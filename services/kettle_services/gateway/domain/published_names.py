"""
Names of published services: `<service>-<cluster>-<proc>[-s<access point>].<domain>`, as programs say them that speak TLS.  Pure.

The service, its job and its access point are one label, because the star of a certificate, `*.tcp.example.org`, stands for one.  A name
has one spelling; only of its letters the size does not count, as in all names of hosts.
"""

import hashlib
import re
from typing import Final

import msgspec

from kettle_wire.jobs import JobId

_LABEL: Final = re.compile(
    r"(?P<service>[a-z][a-z0-9-]{0,31})-(?P<cluster>\d{1,10})-(?P<proc>\d{1,10})(?:-s(?P<digest>[0-9a-f]{6}))?"
)
_NUMBERS: Final = 2**31
_DIGITS: Final = 6
"""Of the digest: with the longest of everything else a label has 62 characters, and may have 63."""


class BadNameError(ValueError):
    """The name is none of a published service here; the text is one sentence."""


class ServiceName(msgspec.Struct, frozen=True):
    """Which service a program wants."""

    service: str
    job: JobId
    digest: str = ""
    """Of the access point; empty: it names none."""

    def may_be_at(self, schedd: str) -> bool:
        """Whether it names a job of this access point."""
        return self.digest in {"", _digest(schedd)}

    def __str__(self) -> str:
        return f"{self.service} of job {self.job}"


class ServiceDomain:
    """The domain that the names are below."""

    def __init__(self, domain: str) -> None:
        self._domain: Final = domain.lower()

    def read(self, name: str) -> ServiceName:
        """What a name says; raises BadNameError."""
        label, dot, rest = name.lower().partition(".")
        if not name.isascii() or not dot or rest != self._domain:
            raise BadNameError(f"the name is none below {self._domain}")
        found = _LABEL.fullmatch(label)
        if found is None:
            raise BadNameError(
                f"a service is called SERVICE-CLUSTER-PROC.{self._domain}, as in db-12-0.{self._domain}"
            )
        job = JobId(int(found["cluster"]), int(found["proc"]))
        if max(job.cluster, job.proc) >= _NUMBERS:
            raise BadNameError("no job has such a number")
        if f"{found['cluster']}.{found['proc']}" != str(job):
            raise BadNameError(f"the job is {job}, and its number is written without leading zeros")
        return ServiceName(found["service"], job, found["digest"] or "")

    def name(self, service: str, job: JobId, schedd: str) -> str:
        """By which a service is reached, whatever other access points there are."""
        return f"{service}-{job.cluster}-{job.proc}-s{_digest(schedd)}.{self._domain}"


def _digest(schedd: str) -> str:
    return hashlib.sha256(schedd.encode()).hexdigest()[:_DIGITS]
