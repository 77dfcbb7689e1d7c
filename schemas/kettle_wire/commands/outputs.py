"""
What people ask about the files that jobs leave at their access point: which there are, and what is in them.

The shadow reads them with the rights of the job's owner; whose they are and where they lie, its schedd says.
"""

from typing import Annotated

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.commands.spooling import LARGEST_REQUEST, FileName, LargestPiece
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.jobs import JobId, Name
from kettle_wire.spooling import Size

MOST_OUTPUTS = 1000
"""Files in one answer."""


class FindOutputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    Ask where the files are that a job leaves, in the queue or out of it, if the caller may have to do with them.
    """

    job: JobId
    person: Name = ""
    """On whose behalf a shadow asks."""


class OutputsFound(msgspec.Struct, frozen=True, kw_only=True):
    """They may."""

    shadow: str = ""
    """Which one to ask; a shadow is not told."""
    present: bool
    """Whether the job is in the queue."""
    ad: Ad
    """What of the job's ad says where they are."""


class ListOutputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    List the files that a job has left: its standard streams and what it names in `transfer_output_files`, of a job whose
    files were sent here everything in its directory.
    """

    job: JobId
    after: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    """Only those behind this name."""


class LeftFile(msgspec.Struct, frozen=True, array_like=True):
    """
    A file that is there, by its name in the sandbox; the streams are `_condor_stdout` and `_condor_stderr`.
    """

    name: str
    size: int
    changed: int
    """Microseconds since the epoch."""


class OutputsListed(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of their names; `more`: ask again, with the name of the last."""

    files: list[LeftFile]
    more: bool = False


class ReadOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Read a piece of one of them."""

    job: JobId
    name: FileName
    offset: Size
    length: LargestPiece


class OutputPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of it, and what it is like at this moment as a whole."""

    file: LeftFile
    data: bytes


FIND_OUTPUTS = Endpoint(
    "schedd",
    "find_outputs",
    FindOutputs,
    OutputsFound,
    callers=(Caller.USER, Caller.SHADOW),
    repeat=Repeat.QUERY,
)
LIST_OUTPUTS = Endpoint(
    "shadow",
    "list_outputs",
    ListOutputs,
    OutputsListed,
    callers=(Caller.USER,),
    repeat=Repeat.QUERY,
    limited=True,
    largest=LARGEST_REQUEST,
)
READ_OUTPUT = Endpoint(
    "shadow",
    "read_output",
    ReadOutput,
    OutputPiece,
    callers=(Caller.USER,),
    repeat=Repeat.QUERY,
    limited=True,
    largest=LARGEST_REQUEST,
)
