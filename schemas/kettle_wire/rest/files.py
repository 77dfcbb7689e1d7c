"""The files of jobs over HTTP."""

from typing import Annotated, Final, Literal

import msgspec

from kettle_wire.rest.jobs import JobName
from kettle_wire.rest.route import Moment, Route

FilePath = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]

FILES: Final = (404, 409, 410)
LARGEST_TAIL: Final = 262_144
"""Bytes that are shown at once."""
_PARTS: Final = ("Range", "If-Range", "Want-Repr-Digest")


class ListFiles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List the files that a job has left, or has so far: its standard streams, and what it names in `transfer_output_files`.
    Of a job whose files were sent to the access point, everything.
    """

    id: JobName
    after: Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00]*$")] = ""
    """Only those behind this path."""


class JobFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of a job."""

    path: str
    """In its sandbox; `_condor_stdout` and `_condor_stderr` are its streams."""
    size: int
    """Bytes."""
    changed: Moment | None = None
    """Absent while the job runs."""


class JobFiles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Files of a job, by their paths."""

    id: str
    running: bool
    """Whether they are those of a run that goes on."""
    files: list[JobFile]
    next: str | None = None
    """What `after` has to be for more; absent: that was all."""


class GetFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get a file that a job has left, or a part of it; of a job that runs, of its sandbox as it is now."""

    id: JobName
    path: FilePath


class GetStdout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get what a job has written to its standard output."""

    id: JobName
    offset: Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] = 0
    """Begin at this byte; a negative one is counted from the end."""
    follow: bool = False
    """Go on as it grows, until the run is over."""


class GetStderr(GetStdout, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get what a job has written to its standard error."""


class GetTail(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get what a job has written last to one of its standard streams, as text that can be shown."""

    id: JobName
    stream: Literal["stdout", "stderr"] = "stdout"
    bytes: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_TAIL)] = 65_536
    """Not more than this."""


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """What a job has written last."""

    id: str
    running: bool
    """Whether it is that of a run that goes on."""
    text: str
    """Bytes that are no UTF-8 are replaced."""
    offset: int
    """Where in the stream it begins, in bytes."""
    end: int
    """Where it ends: what comes behind begins there."""
    size: int
    """Bytes of the stream."""


class GetArchive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get all files that a job has left, in one archive; of a job that has ended also a part of that."""

    id: JobName
    format: Literal["tar"] = "tar"


LIST_FILES = Route(
    "GET", "/jobs/{id}/files", "list_files", parameters=ListFiles, reply=JobFiles, errors=(*FILES, 422)
)
GET_FILE = Route(
    "GET",
    "/jobs/{id}/files/{path}",
    "get_file",
    parameters=GetFile,
    reply=None,
    octets="application/octet-stream",
    errors=(*FILES, 416, 422),
    headers=_PARTS,
)
GET_STDOUT = Route(
    "GET",
    "/jobs/{id}/stdout",
    "get_stdout",
    parameters=GetStdout,
    reply=None,
    octets="text/plain",
    errors=(*FILES, 416, 422, 423),
    headers=_PARTS,
)
GET_STDERR = Route(
    "GET",
    "/jobs/{id}/stderr",
    "get_stderr",
    parameters=GetStderr,
    reply=None,
    octets="text/plain",
    errors=(*FILES, 416, 422, 423),
    headers=_PARTS,
)
GET_TAIL = Route("GET", "/jobs/{id}/tail", "get_tail", parameters=GetTail, reply=Tail, errors=(*FILES, 422))
GET_ARCHIVE = Route(
    "GET",
    "/jobs/{id}/archive",
    "get_archive",
    parameters=GetArchive,
    reply=None,
    octets="application/x-tar",
    errors=(*FILES, 416, 422),
    headers=_PARTS,
)
