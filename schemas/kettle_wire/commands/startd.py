"""What a startd is asked to do. Claims are named by their public id and proved by their secret."""

from typing import Annotated, Final, Literal

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.attempts import Ending
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Repeat
from kettle_wire.jobs import JobId, Number
from kettle_wire.worker_reports import ReportKey


class ClaimKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A claim's public id (minted by the schedd) and the secret that proves the right to use it."""

    claim: str
    secret: str


class Occupied(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A slot that somebody has, and what proves that it is to make room."""

    slot: str
    capability: str


class RequestClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Ask for as many claims as `claims` has, out of one slot; a repeat returns what was granted."""

    schedd: str
    slot: str
    capability: str
    """What the negotiator handed over with the match; a stale one is refused."""
    submitter: str
    job: Ad
    """The job that stands for the autocluster."""
    claims: list[ClaimKey]
    lease: float
    """Seconds a claim outlives its last renewal, on the worker's clock."""
    also: list[Occupied] = []
    """Other parts of the same partitionable slot that make room together with `slot`, for one claim."""
    instead_of: list[ClaimKey] = []
    """
    Claims of the schedd's own that make room, at once: what they have together is for the one claim that is asked for.
    """


class GrantedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """One accepted claim and the ad of the slot that was carved for it."""

    claim: str
    slot: str
    ad: Ad


class ClaimsDecided(msgspec.Struct, frozen=True, kw_only=True):
    """What the startd accepted; the rest it refused for `reason`."""

    granted: list[GrantedClaim]
    clock: float
    """The worker's monotonic clock when it answered, seconds: leases are counted on it."""
    reason: str = ""
    waiting: list[str] = []
    """Claims that will have the slot when the job that has it is gone: ask again, which renews them too."""


class Alive(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Renew all claims of a schedd on this machine. The list is complete: it is also the reconciliation."""

    schedd: str
    claims: list[ClaimKey]
    deadline: float | None
    """On the worker's clock; None asks for the clock only. A late message therefore grants nothing extra."""
    at: float | None = None
    """When this was said, on the worker's clock: each claim goes on from then for the lease that it was granted with. None:
    all go on until `deadline`."""


class AliveReply(msgspec.Struct, frozen=True, kw_only=True):
    """`unknown`: claims of the request that do not exist here; `extra`: claims that the request left out."""

    clock: float
    unknown: list[str] = []
    extra: list[str] = []


class InputFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A file for the sandbox. Small ones carry their bytes; the others are fetched by their hash."""

    name: str
    """Relative path in the sandbox."""
    mode: int
    size: int
    sha256: str
    data: bytes | None = None
    saved: bool = False
    """An earlier run of the job left it: it is a result, whether this run changes it or not."""
    directory: bool = False
    """It is a directory with nothing in it; its `data` is empty."""


class Activation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Run this attempt of a job on a claim."""

    key: ClaimKey
    job: JobId
    attempt: int
    ad: Ad
    inputs: list[InputFile]
    shadow: str
    """Who serves the input files that are not inline."""
    probe: bool = False
    """Start nothing: only say whether the attempt runs or ran here (code 0) or not (`NOT_KNOWN`)."""
    trace: str = ""
    """W3C traceparent of the job."""


NOT_KNOWN = 1
"""The code that answers a probe for an attempt that neither runs nor ran here."""


class Activate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Start attempts, and in the same message confirm reports. A repeat starts nothing twice."""

    activations: list[Activation]
    recorded: list[ReportKey] = []


class ActivationResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`code` is 0 when it runs (or ran) here, else HTCondor's VacateReasonCode 1026-1036."""

    claim: str
    job: JobId
    attempt: int
    code: int = 0
    reason: str = ""


class Activated(msgspec.Struct, frozen=True, kw_only=True):
    """One result per activation, in order."""

    results: list[ActivationResult]


class Deactivation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """End an attempt; the claim stays. Its final report shall say `ending`."""

    key: ClaimKey
    job: JobId
    attempt: int
    ending: Ending
    hard: bool = False
    """Without the soft kill signal."""


class Deactivate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """End attempts; each ends in its final report, unless that was sent already."""

    attempts: list[Deactivation]


class Suspension(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    What the owner of a job wants of an attempt: that it is suspended, or that it continues as far as the machine lets it.
    """

    key: ClaimKey
    job: JobId
    attempt: int
    suspended: bool
    number: Number
    """Counts the orders to this attempt: an earlier one that comes later changes nothing."""


class Suspend(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Suspend attempts, or continue them; one that is over or is being ended stays as it is."""

    orders: list[Suspension]


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Give claims back; what still runs on them is ended."""

    claims: list[ClaimKey]
    reason: str


class Confirm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """These reports are recorded: the worker may forget them."""

    recorded: list[ReportKey]


class Done(msgspec.Struct, frozen=True):
    """Understood."""


class FetchOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Read a piece of an output file that was too large for the report."""

    key: ClaimKey
    job: JobId
    attempt: int
    name: str
    offset: int
    length: int


class Piece(msgspec.Struct, frozen=True):
    """Bytes of a file; fewer than asked for at its end."""

    data: bytes


class Drain(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    Empty the machine: nothing new begins, and what runs is ended in the given way. Said again it changes nothing.
    """

    id: CommandId
    """Made by the asker: names the request from now on."""
    speed: Literal["peaceful", "graceful", "quick", "fast"] = "graceful"
    """When they are over, however long that takes; after retirement and vacate time; after vacate time; or at once."""
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    check: str = ""
    """An expression that has to be true of every slot, else nothing is drained; empty: there is none."""
    start: str = ""
    """START meanwhile; empty: false."""
    resume: bool = False
    """Take work again when the machine is empty."""
    idle: bool = False
    """
    Only if nothing of it is claimed and all results of its jobs have arrived, else nothing is drained: a claim that comes before
    wins, one that comes after is refused.
    """


class CancelDrain(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Take work again. With `request` only if it is that one which drains the machine."""

    request: str = ""


REQUEST_CLAIMS = Endpoint(
    "startd",
    "request_claims",
    RequestClaims,
    ClaimsDecided,
    callers=(Caller.SCHEDD, Caller.VISITOR),
    repeat=Repeat.HARMLESS,
)
ALIVE = Endpoint(
    "startd", "alive", Alive, AliveReply, callers=(Caller.SCHEDD, Caller.VISITOR), repeat=Repeat.HARMLESS
)
ACTIVATE = Endpoint(
    "startd", "activate", Activate, Activated, callers=(Caller.SHADOW, Caller.VISITOR), repeat=Repeat.HARMLESS
)
DEACTIVATE = Endpoint(
    "startd", "deactivate", Deactivate, Done, callers=(Caller.SHADOW, Caller.VISITOR), repeat=Repeat.HARMLESS
)
SUSPEND = Endpoint(
    "startd", "suspend", Suspend, Done, callers=(Caller.SHADOW, Caller.VISITOR), repeat=Repeat.HARMLESS
)
RELEASE = Endpoint(
    "startd", "release", Release, Done, callers=(Caller.SCHEDD, Caller.VISITOR), repeat=Repeat.HARMLESS
)
CONFIRM = Endpoint(
    "startd", "confirm", Confirm, Done, callers=(Caller.SHADOW, Caller.VISITOR), repeat=Repeat.HARMLESS
)
FETCH_OUTPUT = Endpoint(
    "startd", "fetch_output", FetchOutput, Piece, callers=(Caller.SHADOW, Caller.VISITOR), repeat=Repeat.QUERY
)

_DRAINS: Final = (Caller.ADMINISTRATOR, Caller.SCALER)
"""A scaler does so with machines of leases, and with those that may hibernate."""
DRAIN = Endpoint("startd", "drain", Drain, Done, callers=_DRAINS, repeat=Repeat.HARMLESS)
"""`refused`: it is drained already, or is not as it has to be; nothing has changed."""
CANCEL_DRAIN = Endpoint("startd", "cancel_drain", CancelDrain, Done, callers=_DRAINS, repeat=Repeat.HARMLESS)
