"""
What a workflow is made of, as the service that decides about it needs it, and what may be set about one.
"""

import zlib
from typing import Annotated, Final, TypeAlias

import msgspec

PLAN_BYTES: Final = 16 * 1024 * 1024
"""So large a packed plan may be: it is part of one event."""
UNPACKED_BYTES: Final = 256 * 1024 * 1024
"""So large one may become when it is unpacked."""
WORKFLOW_FILE: Final = "KettleWorkflowFile"
"""Attribute of a DAG job that runs a workflow of PROMINENCE: the file that says what is to run."""
BY_TOKEN: Final = "SubmittedByToken"  # noqa: S105 - the name of an attribute
"""
Attribute of a DAG job that came by a token: its process runs nothing on the access point with the rights of its owner's account.
"""
MOST_NODES: Final = 5_000_000
"""So many a workflow may have: a few packed bytes could say far more than there is memory for."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
NodeNumber: TypeAlias = Count
"""A node by its place in the list of names, from 0."""


_OfNodes: Final = msgspec.Meta(max_length=MOST_NODES)
_Nodes: TypeAlias = Annotated[list[NodeNumber], _OfNodes]


class Retries(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """RETRY of a node: how many more attempts it has, and the node value after which there is none."""

    most: Count
    unless: int | None = None


class AbortRule(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """ABORT-DAG-ON of a node: the node value, and what the workflow then exits with; None: that value."""

    value: int
    exit_code: int | None = None


class Deferral(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """DEFER of a script: after this exit code it runs again, so many seconds later."""

    status: int
    seconds: Count


class Tolerance(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """TOLERANCE of a node: how many of its jobs may fail, or how many of a hundred."""

    most: Count
    percent: bool = False
    wait: bool = False
    """Whether the other jobs go on when more have failed; if not, they are removed."""

    def covers(self, failed: int, total: int) -> bool:
        """Whether it is no failure of the node that so many of its jobs have failed."""
        return failed <= (total * self.most // 100 if self.percent else self.most)


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    The graph of a workflow and the rules of its nodes, without what is only needed to run them: files, macros, arguments.

    A node is a number, its place in `names`. Behind the nodes come joins, which nobody has named: a join waits for several
    nodes, and others wait for it. Edges are little-endian words of 32 bits, one behind the other.
    """

    names: Annotated[list[str], _OfNodes]
    joins: Count = 0
    starts: bytes = b""
    """The children of vertex `v` are those in `ends` from place `starts[v]` up to, but without, `starts[v + 1]`."""
    ends: bytes = b""
    weak: bytes = b""
    """For each of `ends` one byte: 1 if the child only waits until its parent has finished, well or not."""
    noop: _Nodes = []
    """Nodes that submit nothing."""
    done: _Nodes = []
    """Nodes that were done before."""
    final: NodeNumber | None = None
    provisioner: NodeNumber | None = None
    services: _Nodes = []
    priorities: Annotated[dict[NodeNumber, int], _OfNodes] = {}
    retries: Annotated[dict[NodeNumber, Retries], _OfNodes] = {}
    pre: Annotated[dict[NodeNumber, Deferral | None], _OfNodes] = {}
    """Nodes that have a PRE script, and when it is deferred."""
    post: Annotated[dict[NodeNumber, Deferral | None], _OfNodes] = {}
    hold: _Nodes = []
    pre_skip: Annotated[dict[NodeNumber, int], _OfNodes] = {}
    aborts: Annotated[dict[NodeNumber, AbortRule], _OfNodes] = {}
    tolerances: Annotated[dict[NodeNumber, Tolerance], _OfNodes] = {}
    categories: Annotated[dict[NodeNumber, str], _OfNodes] = {}
    category_limits: Annotated[dict[str, int], _OfNodes] = {}
    """MAXJOBS by category."""
    save_points: _Nodes = []
    urgency: bytes = b""
    """
    For each node one word of 32 bits: of those that are ready and have equal priorities the larger one begins first. Empty: they go
    by when they became ready.
    """


class WorkflowOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How fast a workflow goes and how it behaves; 0 as a limit: none."""

    max_jobs: Count = 0
    """Nodes that have jobs in the queue."""
    max_idle: Count = 1000
    """Their jobs that wait for a machine."""
    max_pre: Count = 20
    """PRE scripts at a time."""
    max_post: Count = 20
    """POST scripts at a time."""
    max_hold: Count = 20
    """HOLD scripts at a time."""
    always_run_post: bool = False
    """Whether a POST script runs after its PRE script has failed."""
    reruns: Count = 0
    """How often nodes that have failed begin again, and what waits for them with them, when nothing else runs any more."""
    memo: bool = False
    """Whether a node is not run that is the same as one that has run, and whose files are still there."""


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Plan).decode


def packed(plan: Plan) -> bytes:
    """A plan as it is sent and recorded: msgpack, compressed by zlib."""
    return zlib.compress(_encode(plan), 1)


def unpacked(data: bytes) -> Plan:
    """Raises ValueError for what is no plan, or has more than `UNPACKED_BYTES`."""
    decompressor = zlib.decompressobj()
    try:
        plain = decompressor.decompress(data, UNPACKED_BYTES)
        if decompressor.unconsumed_tail or not decompressor.eof:
            raise ValueError(f"the plan of a workflow has more than {UNPACKED_BYTES:,} bytes, or was cut off")
        return _decode(plain)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(f"that is no plan of a workflow: {error}") from error


_BEGINNING: Final = 32
"""Bytes of an unpacked plan up to its first name, and more."""
_NAMES: Final = b"\xa5names"


def node_count(data: bytes) -> int:
    """
    How many nodes a packed plan has, of which no more is unpacked.

    Raises ValueError for what is no plan, or does not begin with its names: all that is recorded does.
    """
    try:
        head = zlib.decompressobj().decompress(data, _BEGINNING)
    except zlib.error as error:
        raise ValueError(f"that is no plan of a workflow: {error}") from error
    at = head.find(_NAMES, 1, 1 + 2 + len(_NAMES)) + len(_NAMES)  # behind the size of the map
    kind, size = head[at : at + 1], {b"\xdc": 2, b"\xdd": 4}.get(head[at : at + 1], 0)
    if at < len(_NAMES) or not (size or b"\x90" <= kind <= b"\x9f"):
        raise ValueError("that is no plan of a workflow: it does not begin with the names of its nodes")
    return int.from_bytes(head[at + 1 : at + 1 + size]) if size else kind[0] & 0x0F
