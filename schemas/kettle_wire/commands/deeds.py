"""What services report to iam: deeds of administrators, and denials, of which they keep no record."""

from typing import Annotated

import msgspec

from kettle_wire.commands.iam import Login, Recorded
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Repeat

_Text = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$")]


class ReportDeed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Record what somebody had a service do as its administrator, or was refused: services have no record of their own for that.
    """

    id: CommandId
    at: float
    who: Login
    action: Annotated[str, msgspec.Meta(max_length=128, pattern=r"^[a-z_]+\.[a-z_]+$")]
    """The command, such as `startd.drain`."""
    where: _Text
    """The name of the service that was asked, such as that of a machine."""
    sentence: _Text
    """What was asked for, or why it was refused."""
    denied: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """The code of the refusal; empty: it was done."""
    more: Annotated[int, msgspec.Meta(ge=0)] = 0
    """So many further refusals of the same service came before this one and are not told one by one."""


REPORT_DEED = Endpoint(
    "iam",
    "report_deed",
    ReportDeed,
    Recorded,
    callers=(
        Caller.MASTER,
        Caller.COLLECTOR,
        Caller.SCHEDD,
        Caller.SHADOW,
        Caller.STARTD,
        Caller.NEGOTIATOR,
        Caller.ACCOUNTING,
        Caller.GATEWAY,
        Caller.IAM,
        Caller.DAGMAN,
        Caller.SESSIONS,
        Caller.SCALER,
        Caller.CE,
    ),
    repeat=Repeat.FIRST_ANSWER,
)
