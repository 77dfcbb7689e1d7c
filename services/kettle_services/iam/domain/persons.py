"""Somebody who has shown a credential, as the pool takes him: what is decided once, when it is shown."""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from kettle.auth.mapping.levels import Level
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_wire.commands.iam import Right
from kettle_wire.people import Shown

KINDS: Final = ((Level.ADMINISTRATOR, "administrator"), (Level.WRITE, "person"), (Level.READ, "reader"))
"""As what the bus lets somebody in who has a level, the most first."""


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Who it is, and what he may do."""

    owner: str
    """The name in the pool."""
    method: str
    """How it was shown, as map files call it."""
    issuer: str
    subject: str
    token: str
    """The token's own name; empty: it has none."""
    groups: tuple[str, ...] = ()
    """All that the credential names, and all that a rule gives."""
    accounting_group: str = ""
    shown: Shown | None = None
    """What services are told of the credential; None: no rule gives anybody a VO."""
    given: Mapping[str, str] = {}
    """Levels that a rule gives beside the site's lists, each with the rule."""
    rights: tuple[Right, ...]
    scopes: tuple[str, ...] = ()
    audiences: tuple[str, ...] = ()
    expires: float
    """Seconds since the epoch; 0: it does not end."""
    client: str = ""
    job: bool = False
    """It is the token of a running job."""
    because: tuple[str, ...] = ()
    """The rules that led to the name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which he may be banned."""
        return (
            f"user:{self.owner}",
            f"subject:{self.issuer},{self.subject}",
            f"issuer:{self.issuer}",
            *([f"client:{self.client}"] if self.client else []),
        )

    @property
    def kind(self) -> str:
        """As what the bus lets him in; raises Denied: he may not even look."""
        has = {right.level for right in self.rights}
        for level, kind in KINDS:
            if level in has:
                return "submitter" if self.job and level is not Level.READ else kind
        raise Denied(
            Code.TOKEN_NO_RIGHTS,
            f"{self.owner} may do nothing here with this token: {no_rights(self.scopes)}",
        )


def no_rights(scopes: Collection[str]) -> str:
    """Why a token that is good for nothing is, as the end of a sentence."""
    if scopes:
        return f"its scopes are {' '.join(scopes)[:200]}, and none of them is condor:/READ or condor:/WRITE"
    return "no list of [authorization] gives him READ or WRITE"
