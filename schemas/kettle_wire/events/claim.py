"""What happens to a claim, on the stream `claim/<public id>`."""

from kettle_wire.ads.types import Ad
from kettle_wire.events.base import Event


class ClaimGranted(Event, frozen=True, tag="claim.granted/1"):
    """A startd accepted our claim of a slot for jobs of this submitter and autocluster."""

    claim: str
    """Public id. The secret part is never recorded: the schedd makes it from the id, with its key."""
    startd: str
    slot: str
    slot_ad: Ad
    submitter: str
    autocluster: int
    lease: float
    """Seconds without renewal after which the startd ends the claim."""
    limits: dict[str, float] = {}
    """How much of which concurrency limits its jobs use, by the match."""


class ClaimEnded(Event, frozen=True, tag="claim.ended/1"):
    """The claim is over on both sides: released, refused by the startd, or its lease ran out."""

    claim: str
    reason: str


ClaimEvent = ClaimGranted | ClaimEnded
