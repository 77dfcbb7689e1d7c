"""What a shadow reports to its schedd about one node of a job of several."""

import msgspec

from kettle_wire.attempts import AttemptResult
from kettle_wire.jobs import Number


class NodeBegan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="node_began"):
    """The program of one node of a job runs; `at` is on the worker's clock."""

    node: Number
    claim: str
    slot: str
    at: float = 0.0


class NodeEnded(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="node_ended"):
    """One node of a job has ended; others may go on."""

    node: Number
    result: AttemptResult
