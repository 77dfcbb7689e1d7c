"""What a master is asked: by administrators alone, to switch the daemons of its host."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.endpoint import Caller, CommandId, Endpoint, Repeat
from kettle_wire.jobs import Name

ControlAction = Literal["on", "off", "restart", "reconfig"]

How = Literal["graceful", "fast", "peaceful"]
"""
How a daemon ends: `graceful` in its time, `fast` at once, `peaceful` when the jobs that run have ended by themselves.
"""

Outcome = Literal["done", "begun", "nothing", "refused"]


class Control(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Switch some daemons of the host, or all of them; the same `id` again gets the first answer."""

    id: CommandId
    action: ControlAction
    daemons: list[Name] = []
    """Entries of the daemon list, or roles; empty: the whole host."""
    how: How = "graceful"


class Switched(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it for one daemon: `begun`, and its state will tell; `nothing`: it was so already."""

    daemon: Name
    outcome: Outcome
    why: str = ""


class Controlled(msgspec.Struct, frozen=True, kw_only=True):
    """One answer per daemon, in the order of the daemon list."""

    switched: list[Switched]
    warnings: list[str] = []
    """What looks wrong in the configuration and is used all the same."""


class QueryDaemons(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the daemons of the host are now."""


class DaemonReport(msgspec.Struct, frozen=True, kw_only=True):
    """One daemon; the words of `status` are those of the master's ad."""

    name: Name
    status: str
    pid: int = 0
    since: float = 0.0
    starts: int = 0
    hangs: int = 0
    last_exit: str = ""
    settings: str = ""
    """What the last `reconfig` came to."""


class Daemons(msgspec.Struct, frozen=True, kw_only=True):
    """`started` changes when the master itself was restarted."""

    started: float
    version: str
    ready: bool
    daemons: list[DaemonReport]


PublicKey = Annotated[str, msgspec.Meta(pattern=r"^U[A-Z2-7]{55}$")]
"""The public NKey of a user of the bus."""


class RevokeMembers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Believe nothing any more of what was said until now of these keys, and end their connections."""

    kind: Literal["worker", "schedd"]
    keys: Annotated[list[PublicKey], msgspec.Meta(min_length=1, max_length=1000)]


class MembersRevoked(msgspec.Struct, frozen=True, kw_only=True):
    """The server has been told."""


class ShutOut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Let none of these people in by the account that they have on this machine, and end their connections; all others are let
    in again.
    """

    people: Annotated[
        list[Annotated[str, msgspec.Meta(min_length=1, max_length=256)]], msgspec.Meta(max_length=10_000)
    ]


class PeopleShutOut(msgspec.Struct, frozen=True, kw_only=True):
    """The server has been told."""


AccountKey = Annotated[str, msgspec.Meta(pattern=r"^A[A-Z2-7]{55}$")]
"""The public NKey of an account of the bus, or of one that signs for it."""
AccessPointName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,63}$")]
"""The name of an access point that joins: it stands in the names of streams, which have no dots."""


class AdmitAccessPoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Believe what an access point says of the people who use it, and have the pool's services read its events.
    """

    name: AccessPointName
    people: AccountKey
    """The key that it has made to sign for them."""


class ForgetAccessPoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Undo `AdmitAccessPoint`."""

    name: AccessPointName


class AccessPointAdmitted(msgspec.Struct, frozen=True, kw_only=True):
    """The server and the services have been told."""

    people_account: str
    """The public key of the account that people are in."""


ADMIT_ACCESS_POINT = Endpoint(
    "master",
    "admit_access_point",
    AdmitAccessPoint,
    AccessPointAdmitted,
    callers=(Caller.IAM,),
    repeat=Repeat.HARMLESS,
)
FORGET_ACCESS_POINT = Endpoint(
    "master",
    "forget_access_point",
    ForgetAccessPoint,
    AccessPointAdmitted,
    callers=(Caller.IAM,),
    repeat=Repeat.HARMLESS,
)
REVOKE_MEMBERS = Endpoint(
    "master", "revoke_members", RevokeMembers, MembersRevoked, callers=(Caller.IAM,), repeat=Repeat.HARMLESS
)
SHUT_OUT = Endpoint(
    "master", "shut_out", ShutOut, PeopleShutOut, callers=(Caller.IAM,), repeat=Repeat.HARMLESS
)
CONTROL = Endpoint(
    "master", "control", Control, Controlled, callers=(Caller.ADMINISTRATOR,), repeat=Repeat.FIRST_ANSWER
)
QUERY_DAEMONS = Endpoint(
    "master", "query_daemons", QueryDaemons, Daemons, callers=(Caller.ADMINISTRATOR,), repeat=Repeat.QUERY
)
