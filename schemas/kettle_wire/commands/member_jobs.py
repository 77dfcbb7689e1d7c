"""
What the service of interactive sessions asks its schedd: jobs in the names of the owners of sessions.

It speaks for somebody only about jobs of a session that this person has asked for; the schedd marks those jobs, and lets it do
nothing to others.
"""

from typing import Annotated, Literal

import msgspec

from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.commands.queue import Acted, Submitted
from kettle_wire.commands.schedd import JobsExplained
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Repeat
from kettle_wire.jobs import JobId, Name, Number
from kettle_wire.sessions import SessionId

MOST_MEMBERS = 10_000


class SubmitMembers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One batch of members, as `kettle_wire.commands.queue.Submit`: the number of the first is `first`."""

    id: CommandId
    session: SessionId
    owner: Name
    batch: Number
    first: Number
    ad: Ad
    columns: list[str]
    rows: Annotated[list[list[Scalar]], msgspec.Meta(min_length=1, max_length=MOST_MEMBERS)]


class ActOnMembers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Remove or release jobs of a session, or set attributes of them."""

    id: CommandId
    session: SessionId
    owner: Name
    action: Literal["remove", "release", "edit"]
    clusters: Annotated[list[Number], msgspec.Meta(max_length=MOST_MEMBERS)] = []
    jobs: Annotated[list[JobId], msgspec.Meta(max_length=MOST_MEMBERS)] = []
    """In addition to those of whole clusters."""
    attributes: Ad = {}
    """Of `edit`."""
    reason: str = ""


class ExplainMembers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask why the jobs of a session are where they are."""

    session: SessionId
    owner: Name
    clusters: Annotated[list[Number], msgspec.Meta(max_length=MOST_MEMBERS)]


SUBMIT_MEMBERS = Endpoint(
    "schedd",
    "submit_members",
    SubmitMembers,
    Submitted,
    callers=(Caller.SESSIONS,),
    repeat=Repeat.FIRST_ANSWER,
)
ACT_ON_MEMBERS = Endpoint(
    "schedd", "act_on_members", ActOnMembers, Acted, callers=(Caller.SESSIONS,), repeat=Repeat.FIRST_ANSWER
)
EXPLAIN_MEMBERS = Endpoint(
    "schedd",
    "explain_members",
    ExplainMembers,
    JobsExplained,
    callers=(Caller.SESSIONS,),
    repeat=Repeat.QUERY,
)
