"""What is said of a job: by people and the schedd, and by those who look after its attempt."""

import msgspec

from kettle_services.schedd.domain.jobs.gang import NodeBegin, NodeEnd
from kettle_services.schedd.domain.jobs.orders import Defer, Order
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult, Transfer, Usage
from kettle_wire.codes import HoldCode
from kettle_wire.events import NodeSlot
from kettle_wire.tasks import Step


class Assign(msgspec.Struct, frozen=True):
    """Run the job on a claim."""

    claim: str
    slot: str
    startd: str
    notes: Ad = {}
    """What the job's ad is to say of the machine."""
    nodes: tuple[NodeSlot, ...] = ()
    """Of a job of several nodes, those from number 1 on."""


class Begin(msgspec.Struct, frozen=True):
    """The worker says: the executable runs."""

    attempt: int
    claim: str
    pid: int
    at: float
    input: Transfer | None = None


class Suspend(msgspec.Struct, frozen=True):
    """The worker reports that the job's processes are stopped."""

    attempt: int
    claim: str
    processes: int
    at: float


class Continue(msgspec.Struct, frozen=True):
    """The worker says: they go on."""

    attempt: int
    claim: str
    at: float


class Disconnect(msgspec.Struct, frozen=True):
    """The machine of the attempt does not answer any more."""

    attempt: int
    claim: str
    reason: str


class Reconnect(msgspec.Struct, frozen=True):
    """It answers again, and has the attempt."""

    attempt: int
    claim: str


class Checkpoint(msgspec.Struct, frozen=True):
    """The worker says: what the job has done so far is saved, and it goes on."""

    attempt: int
    claim: str
    number: int
    at: float
    usage: Usage


class Tell(msgspec.Struct, frozen=True):
    """The worker says: the program of the job wants this in its ad, and these lines in its log."""

    attempt: int
    claim: str
    id: str
    attributes: Ad
    notes: list[str]


class End(msgspec.Struct, frozen=True):
    """The attempt is over: by the worker's word, or because its lease ran out on both sides."""

    attempt: int
    claim: str
    result: AttemptResult
    cool_down: float = 0.0
    """Seconds that the job waits if its start failed for a reason that may repeat; doubled each time."""
    more: Ad = {}
    """What its next run asks for, instead of being held because it ran out of that."""


class Hold(msgspec.Struct, frozen=True):
    """Keep the job from running until it is released."""

    reason: str
    by: str
    code: int = HoldCode.UserRequest
    subcode: int = 0


class Release(msgspec.Struct, frozen=True):
    """Let a held job run again."""

    reason: str
    by: str


class Remove(msgspec.Struct, frozen=True):
    """Never run the job again."""

    reason: str
    by: str


class RemoveX(msgspec.Struct, frozen=True):
    """Keep a removed job in the queue no longer, whatever its LeaveJobInQueue says."""

    reason: str
    by: str


class Pass(msgspec.Struct, frozen=True):
    """
    The worker says: these steps of the job's tasks are over; `first` is the number of the first of them, from 1.
    """

    attempt: int
    claim: str
    first: int
    steps: list[Step]


AttemptNews = (
    Begin | Suspend | Continue | Disconnect | Reconnect | Checkpoint | Tell | End | Pass | NodeBegin | NodeEnd
)
"""Of an attempt: it counts for the one that lives only."""
Command = Assign | Defer | Hold | Order | Release | Remove | RemoveX | AttemptNews
