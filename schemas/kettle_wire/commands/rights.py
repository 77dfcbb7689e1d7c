"""What every service that people command answers: what the caller may do there, and by which rule."""

from typing import Annotated, Final

import msgspec

from kettle_wire.endpoint import Caller, Endpoint, Repeat

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z_]+$")]
_Words = Annotated[list[Word], msgspec.Meta(max_length=100)]


class QueryRights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the caller may do; without levels and commands: the levels that commands of people take."""

    levels: _Words = []
    """Such as WRITE."""
    commands: _Words = []
    """Such as submit."""


class RightAt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the caller has a level, and why."""

    level: str
    command: str = ""
    """The command that takes it, if one was asked about."""
    allowed: bool
    rule: str
    """What decided: a line of a file, or what holds where there is none."""
    missing: str = ""
    """What would have to be different."""


class Rights(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of the question: levels, then commands."""

    identity: str
    """Whom the service takes the caller for, `user@domain`."""
    service: str
    """The role of the service."""
    rights: list[RightAt]


def _asked_of(role: str) -> Endpoint[QueryRights, Rights]:
    return Endpoint(role, "query_rights", QueryRights, Rights, callers=(Caller.USER,), repeat=Repeat.QUERY)


ACCOUNTING_RIGHTS = _asked_of("accounting")
COLLECTOR_RIGHTS = _asked_of("collector")
GATEWAY_RIGHTS = _asked_of("gateway")
IAM_RIGHTS = _asked_of("iam")
MASTER_RIGHTS = _asked_of("master")
NEGOTIATOR_RIGHTS = _asked_of("negotiator")
SCHEDD_RIGHTS = _asked_of("schedd")
STARTD_RIGHTS = _asked_of("startd")
RIGHTS_AT: Final = {
    endpoint.role: endpoint
    for endpoint in (
        SCHEDD_RIGHTS,
        COLLECTOR_RIGHTS,
        NEGOTIATOR_RIGHTS,
        ACCOUNTING_RIGHTS,
        STARTD_RIGHTS,
        MASTER_RIGHTS,
        GATEWAY_RIGHTS,
        IAM_RIGHTS,
    )
}
"""By the role of the service."""
