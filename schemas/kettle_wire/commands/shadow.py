"""
What a shadow is asked: by its schedd to look after jobs, by startds for input files and with questions of starters.
"""

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.attempts import Ending
from kettle_wire.commands.questions import Answered, Ask
from kettle_wire.commands.startd import ClaimKey, Done, Piece
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.jobs import JobId, Number


class NodeAssignment(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """The claim of one node of a job, and what its ad says that the ad of node 0 says otherwise."""

    key: ClaimKey
    startd: str
    slot: str
    differs: Ad = {}


class Assignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A recorded decision to run a job on a claim; the shadow makes it so."""

    job: JobId
    attempt: int
    key: ClaimKey
    startd: str
    slot: str
    ad: Ad
    trace: str = ""
    nodes: list[NodeAssignment] = []
    """Of a job of several nodes, those from number 1 on; all else here is of node 0."""


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """End an attempt; its final report shall say `ending`."""

    job: JobId
    attempt: int
    ending: Ending
    hard: bool | None = None
    """Without time to end; None: as the job wants it when it is removed (WantGracefulRemoval)."""
    lost: list[str] = []
    """Claims of nodes that are over with what ran there: nobody reports from them any more."""


class Still(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Suspend an attempt, or continue it; the one with the largest `number` counts."""

    job: JobId
    attempt: int
    suspended: bool
    number: Number


class LookAfter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Changes to what this shadow looks after. Repeats change nothing."""

    start: list[Assignment] = []
    stop: list[Stop] = []
    still: list[Still] = []


class FetchInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Read a piece of an input file of an attempt."""

    key: ClaimKey
    job: JobId
    attempt: int
    name: str
    offset: int
    length: int


class OfferInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    Ask whether an input file of an attempt is in the pool's object store; it may be put there for the question.
    """

    key: ClaimKey
    job: JobId
    attempt: int
    name: str


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """Where the file is read."""

    piece: int = 0
    """
    Bytes of each piece but the last in the object store, under the file's SHA-256; 0: only the shadow has it.
    """


LOOK_AFTER = Endpoint(
    "shadow", "look_after", LookAfter, Done, callers=(Caller.SCHEDD,), repeat=Repeat.HARMLESS
)
FETCH_INPUT = Endpoint(
    "shadow", "fetch_input", FetchInput, Piece, callers=(Caller.STARTD, Caller.CE), repeat=Repeat.QUERY
)
OFFER_INPUT = Endpoint(
    "shadow", "offer_input", OfferInput, Offered, callers=(Caller.STARTD, Caller.CE), repeat=Repeat.HARMLESS
)
ANSWER = Endpoint(
    "shadow", "answer", Ask, Answered, callers=(Caller.STARTD,), repeat=Repeat.HARMLESS, limited=True
)
