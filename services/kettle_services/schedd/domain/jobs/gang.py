"""
The nodes of one attempt of a job that has several: which claims they have, and which of them have begun and ended.

Node 0 stands for the attempt: its claim is the one by which the job and its reports are known.
"""

import msgspec

from kettle_wire.attempts import AttemptResult
from kettle_wire.events import JobAssigned, JobNodeEnded, JobNodeStarted


class Gang(msgspec.Struct, frozen=True, gc=False):
    """All nodes of an attempt; `began` and `ended` have one bit for each."""

    claims: tuple[str, ...]
    """By number of the node."""
    began: int = 0
    ended: int = 0

    def has_ended(self, claim: str) -> bool:
        """Whether the node on a claim has ended, so that the claim is of no more use to it."""
        return claim in self.claims and bool(self.ended >> self.claims.index(claim) & 1)


class NodeBegin(msgspec.Struct, frozen=True):
    """The worker of one node says: its program runs."""

    attempt: int
    claim: str
    """The claim of node 0."""
    node: int
    own_claim: str
    slot: str
    at: float


class NodeEnd(msgspec.Struct, frozen=True):
    """The worker of one node says how it ended."""

    attempt: int
    claim: str
    """The claim of node 0."""
    node: int
    result: AttemptResult


def gang_of(event: JobAssigned) -> Gang | None:
    """The nodes that were given claims; None: there is one only."""
    if not event.nodes:
        return None
    return Gang((event.claim, *(node.claim for node in event.nodes)))


def heard(gang: Gang | None, command: NodeBegin | NodeEnd) -> list[JobNodeStarted | JobNodeEnded]:
    """
    What is recorded of a node; of each node its beginning and its end once, and nothing of one that there is not.
    """
    if gang is None or command.node >= len(gang.claims):
        return []
    bit = 1 << command.node
    if isinstance(command, NodeBegin):
        started = JobNodeStarted(
            attempt=command.attempt,
            node=command.node,
            claim=command.own_claim,
            slot=command.slot,
            at=command.at,
        )
        return [] if (gang.began | gang.ended) & bit else [started]
    result = command.result
    ended = JobNodeEnded(
        attempt=command.attempt,
        node=command.node,
        exit=result.exit,
        ending=result.ending,
        usage=result.usage,
    )
    return [] if gang.ended & bit else [ended]


def evolved(gang: Gang | None, event: JobNodeStarted | JobNodeEnded) -> Gang | None:
    """After what was recorded of a node."""
    if gang is None:
        return None
    bit = 1 << event.node
    if isinstance(event, JobNodeStarted):
        return msgspec.structs.replace(gang, began=gang.began | bit)
    return msgspec.structs.replace(gang, ended=gang.ended | bit)
