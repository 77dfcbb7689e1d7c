"""What a shadow is asked: by its schedd to look after jobs, by startds for input files."""

import msgspec

from kettle.wire.ads.types import Ad
from kettle.wire.commands.startd import ClaimKey, Done, Piece
from kettle.wire.endpoint import Endpoint
from kettle.wire.jobs import JobId


class Assignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A recorded decision to run a job on a claim; the shadow makes it so."""

    job: JobId
    attempt: int
    key: ClaimKey
    startd: str
    slot: str
    ad: Ad
    trace: str = ""


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """End an attempt; `code` and `reason` are VacateReasonCode and its sentence."""

    job: JobId
    attempt: int
    code: int
    reason: str


class LookAfter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Changes to what this shadow looks after. Repeats change nothing."""

    start: list[Assignment] = []
    stop: list[Stop] = []


class FetchInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Read a piece of an input file of an attempt."""

    key: ClaimKey
    job: JobId
    attempt: int
    name: str
    offset: int
    length: int


LOOK_AFTER = Endpoint("shadow", "look_after", LookAfter, Done)
FETCH_INPUT = Endpoint("shadow", "fetch_input", FetchInput, Piece)

ENDPOINTS = (LOOK_AFTER, FETCH_INPUT)
