"""
Addresses of published services: `/jobs/<id>/<service>/<path>`, read from a request as it was sent. Pure.

The beginning decides who is asked for, so it has one spelling and is compared as it stands: nothing is decoded and nothing is
resolved.  What follows belongs to the job, but is refused where programs on the way could understand it differently.
"""

import re
from typing import Final

import msgspec

from kettle_wire.jobs import JobId

LONGEST: Final = 16 * 1024
"""Bytes of an address."""
_ADDRESS: Final = re.compile(
    r"/jobs/(?P<id>(?P<number>\d{1,10}\.\d{1,10})(?:@(?P<schedd>[A-Za-z0-9][A-Za-z0-9._-]{0,127}))?)"
    r"/(?P<service>[a-z][a-z0-9-]{0,31})(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?"
)
_VISIBLE: Final = re.compile(r"[!-~]+")
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_AMBIGUOUS: Final = re.compile(r"%(?:2f|5c|00)|\\|//", re.IGNORECASE)
"""A separator in disguise, an end of text, or an empty segment, which some programs leave out."""
_DOT: Final = re.compile(r"%2e", re.IGNORECASE)
_NUMBERS: Final = 2**31


class BadAddressError(ValueError):
    """
    The address is none of a published service, or can be read in more than one way; the text is one sentence.
    """


class Address(msgspec.Struct, frozen=True):
    """What a request asks for."""

    job: JobId
    schedd: str
    """Empty: it names none."""
    service: str
    path: str
    """Behind the name of the service, as it was sent; empty: the address ends with the name."""
    query: str
    """With its question mark; empty: none."""
    id: str
    """The job as the address names it."""

    @property
    def prefix(self) -> str:
        """What stands before the service's own path."""
        return f"/jobs/{self.id}/{self.service}"

    @property
    def whole(self) -> str:
        """The address as it was sent."""
        return self.prefix + self.path + self.query


def read_address(target: str) -> Address:
    """What the first line of a request names; raises BadAddressError."""
    if len(target) > LONGEST:
        raise BadAddressError(f"the address has more than {LONGEST} bytes")
    if not _VISIBLE.fullmatch(target):
        raise BadAddressError("the address has a character that must be escaped there")
    found = _ADDRESS.fullmatch(target)
    if found is None:
        raise BadAddressError(
            "the address of a published service is /jobs/CLUSTER.PROC/SERVICE/, as in /jobs/12.0/dashboard/"
        )
    path = found["path"] or ""
    require_one_reading(path)
    job = JobId.parse(found["number"])
    if max(job.cluster, job.proc) >= _NUMBERS:
        raise BadAddressError(f"no job has the number {found['number']}")
    if str(job) != found["number"]:
        raise BadAddressError(f"the job is {job}, and its number is written without leading zeros")
    return Address(job, found["schedd"] or "", found["service"], path, found["query"] or "", found["id"])


def require_one_reading(path: str) -> None:
    """Raises BadAddressError: programs differ about what a path means."""
    if _ESCAPE.search(path):
        raise BadAddressError("a percent sign in the path is not followed by two hexadecimal digits")
    if found := _AMBIGUOUS.search(path):
        raise BadAddressError(f"the path has {found[0]}, which programs read in different ways; leave it out")
    segments = [_DOT.sub(".", each).partition(";")[0] for each in path.split("/")]
    if {".", ".."} & set(segments):
        raise BadAddressError("the path has a segment . or .., which programs resolve in different ways")
