"""Input files of jobs over HTTP: the access point holds the jobs until all of them are there."""

from typing import Annotated, Final

import msgspec

from kettle_wire.rest.files import FilePath
from kettle_wire.rest.jobs import JobName
from kettle_wire.rest.route import Route
from kettle_wire.rest.streams import ClusterName
from kettle_wire.spooling import Digest, Size

_MOST_FILES: Final = 10_000


class PutFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Send an input file, or a part of it, of a job that was submitted with `spool=1`.  It is known by its content: one that several jobs
    of the cluster have is sent once.  A repeat does no harm.
    """

    id: JobName
    path: FilePath


class FileSent(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the file is there."""

    path: str
    sha256: str
    size: int
    have: int
    """Bytes from its beginning; all of them: it is complete.  Else it goes on here, with Content-Range."""


class InputFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that has been sent."""

    path: FilePath
    """In the sandbox."""
    sha256: Digest
    size: Size
    executable: bool = False


class InputsOf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What jobs `first` to `first + count - 1` of the cluster have besides."""

    first: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    count: Annotated[int, msgspec.Meta(ge=1, lt=2**31)] = 1
    files: Annotated[list[InputFile], msgspec.Meta(max_length=_MOST_FILES)]


class GiveInputs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Say which input files the jobs of a cluster have, and have those released that wait for them.  A repeat changes nothing.
    """

    id: ClusterName


class Inputs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which files there are."""

    files: Annotated[list[InputFile], msgspec.Meta(max_length=_MOST_FILES)] = []
    """Of every job."""
    jobs: Annotated[list[InputsOf], msgspec.Meta(max_length=_MOST_FILES)] = []
    """Of some; a path that is in both is here what these jobs have."""


class InputsGiven(msgspec.Struct, frozen=True, kw_only=True):
    """All files are on the access point's disk, and the jobs are released."""

    id: str
    """`CLUSTER@SCHEDD`."""
    manifest: str
    """The SHA-256 of the list of files as the access point has it."""


PUT_FILE = Route(
    "PUT",
    "/jobs/{id}/files/{path}",
    "put_file",
    parameters=PutFile,
    reply=FileSent,
    takes=("application/octet-stream",),
    level="WRITE",
    errors=(404, 408, 409, 413, 422),
    headers=("Content-Range", "Repr-Digest"),
)
GIVE_INPUTS = Route(
    "POST",
    "/clusters/{id}/inputs",
    "give_inputs",
    parameters=GiveInputs,
    body=Inputs,
    reply=InputsGiven,
    level="WRITE",
    errors=(404, 409, 413, 415, 422),
)
