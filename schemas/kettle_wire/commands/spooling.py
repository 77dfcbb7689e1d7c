"""
What submitters ask a shadow about files of their jobs: to take the input before they run, to give the results after it.
"""

from typing import Annotated

import msgspec

from kettle_wire.commands.startd import Piece
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.jobs import JobId, Number
from kettle_wire.spooling import PIECE, Digest, Size

MOST_PARTS = 1000
"""Files of which one message has something."""
LARGEST_REQUEST = 8 * PIECE
"""Bytes of a request."""

LargestPiece = Annotated[int, msgspec.Meta(ge=0, le=4 * PIECE)]
FileName = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class Part(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Bytes of a file of `size` bytes, from `offset` on; none: only asks how many of them are there."""

    sha256: Digest
    size: Size
    offset: Size
    data: bytes = b""


class SpoolParts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    Keep parts of files for jobs of a cluster.  What is there already stays as it is, so a repeat does no harm.
    """

    cluster: Number
    parts: Annotated[list[Part], msgspec.Meta(max_length=MOST_PARTS)]


class PartsSpooled(msgspec.Struct, frozen=True, kw_only=True):
    """
    How many bytes of each file are there, from its beginning; all of them: it is complete and on the disk.
    """

    have: list[int]


class SpoolJobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    Let jobs run that are held for their input files, if all of those are there.

    `manifest` is a file that was sent like the others.  A repeat changes nothing.
    """

    cluster: Number
    manifest: Digest


class JobsSpooled(msgspec.Struct, frozen=True, kw_only=True):
    """With nothing missing the jobs are released, and that is recorded."""

    missing: list[str] = []
    """Files that are still to be sent; not more than one message takes, so ask again then."""


class ListSpooled(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Results of a job, in the order of their names."""

    job: JobId
    after: str = ""
    """Only those behind this name."""


class SpooledResult(msgspec.Struct, frozen=True, array_like=True):
    """A result, by its name in the sandbox."""

    name: str
    size: int
    mode: int
    data: bytes | None = None
    """Of a small one all of it."""


class SpooledResults(msgspec.Struct, frozen=True, kw_only=True):
    """`more`: ask again, with the name of the last."""

    files: list[SpooledResult]
    more: bool = False


class FetchSpooled(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Read a piece of a result, or of a job event log in the spool."""

    job: JobId
    name: FileName
    offset: Size
    length: LargestPiece
    log: bool = False


SPOOL_PARTS = Endpoint(
    "shadow",
    "spool_parts",
    SpoolParts,
    PartsSpooled,
    callers=(Caller.USER, Caller.JOB),
    repeat=Repeat.HARMLESS,
    limited=True,
    largest=LARGEST_REQUEST,
)
SPOOL_JOBS = Endpoint(
    "shadow",
    "spool_jobs",
    SpoolJobs,
    JobsSpooled,
    callers=(Caller.USER, Caller.JOB),
    repeat=Repeat.HARMLESS,
    limited=True,
    largest=LARGEST_REQUEST,
)
SPOOL_JOBS_FROM_JOB = Endpoint(
    "shadow",
    "spool_jobs_from_job",
    SpoolJobs,
    JobsSpooled,
    callers=(Caller.USER,),
    repeat=Repeat.HARMLESS,
    limited=True,
    largest=LARGEST_REQUEST,
)
"""What the token of a running job says of files that it has sent: not of those of jobs that run on the access point."""
LIST_SPOOLED = Endpoint(
    "shadow",
    "list_spooled",
    ListSpooled,
    SpooledResults,
    callers=(Caller.USER, Caller.JOB),
    repeat=Repeat.QUERY,
    limited=True,
    largest=LARGEST_REQUEST,
)
FETCH_SPOOLED = Endpoint(
    "shadow",
    "fetch_spooled",
    FetchSpooled,
    Piece,
    callers=(Caller.USER, Caller.JOB),
    repeat=Repeat.QUERY,
    limited=True,
    largest=LARGEST_REQUEST,
)
