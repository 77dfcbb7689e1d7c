"""Who somebody is, what he may do, and the rule that gives or lacks it."""

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from kettle.auth.mapping.levels import Level
from kettle.auth.tokens.capabilities import LEVEL_SCOPES
from kettle.runtime.authorizer import level_of
from kettle_wire.commands.iam import AccessExplained, Right, Whoami
from kettle_wire.endpoint import Caller, Endpoint

_DAEMONS: Final = frozenset(Caller) - {Caller.USER, Caller.ADMINISTRATOR, Caller.JOB, Caller.VISITOR}


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who has shown a credential."""

    subject: str
    """The login name in this pool."""
    method: str
    issuer: str = ""
    rights: tuple[Right, ...]
    scopes: tuple[str, ...] = ()
    audiences: tuple[str, ...] = ()
    expires: float = 0.0
    token: str = ""
    """The id of the token that he has shown."""
    client: str = ""
    job: bool = False
    """The token is one that a job has in its sandbox."""
    session: str = ""
    """Of whose refresh token the token came, or the one from which it was made; empty: of none."""
    parents: tuple[str, ...] = ()
    """The ids of the tokens from which it was made, the first one first."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which he may be banned."""
        return (
            f"user:{self.subject}",
            *([f"subject:{self.issuer},{self.subject}", f"issuer:{self.issuer}"] if self.issuer else []),
            *([f"client:{self.client}"] if self.client else []),
        )

    @property
    def levels(self) -> set[str]:
        """The levels that he has."""
        return {right.level for right in self.rights}


def on_the_bus(login: str, administrators: Collection[str]) -> Known:
    """A person whom the bus has authenticated."""
    person = f"the bus knows {login} as a person of this pool"
    rights = [Right(level=Level.READ, because=person), Right(level=Level.WRITE, because=person)]
    if login in administrators:
        rights.append(
            Right(
                level=Level.ADMINISTRATOR, because=f"[iam] administrators, or the account of iam, is {login}"
            )
        )
    scopes = tuple(Level(right.level).scope for right in rights)
    return Known(subject=login, method="BUS", rights=tuple(rights), scopes=scopes)


def by_scopes(scopes: Sequence[str]) -> tuple[Right, ...]:
    """What the scopes of a token give, each level with the scope that gives it."""
    found: dict[str, Right] = {}
    for scope in scopes:
        for level in LEVEL_SCOPES[scope].implied() if scope in LEVEL_SCOPES else ():
            found.setdefault(level, Right(level=level, because=f"the scope {scope} of the token"))
    return tuple(found[level] for level in Level if level in found)


def needed(endpoint: Endpoint[Any, Any]) -> Level | None:
    """The level that a command needs, by its declaration; None: it is for no level."""
    if endpoint.callers & {Caller.USER, Caller.ADMINISTRATOR}:
        return level_of(endpoint)
    return Level.DAEMON if endpoint.callers & _DAEMONS else None


def explained(known: Known, action: str, endpoint: Endpoint[Any, Any]) -> AccessExplained:
    """Whether somebody may send a command, and the first rule that decided."""
    level = needed(endpoint)
    named = level or ""
    right = next((each for each in known.rights if each.level == level), None)
    if right is not None:
        return AccessExplained(action=action, allowed=True, level=named, rule=right.because)
    has = ", ".join(level for level in Level if level in known.levels) or "none"
    rule = f"{action} needs {level or 'another kind of caller'} by its declaration; {known.subject} has {has}"
    missing = (
        f"a token with the scope {level.scope}" if level and known.method == "TOKEN" else f"the level {named}"
    )
    return AccessExplained(action=action, allowed=False, level=named, rule=rule, missing=missing)


def whoami(known: Known, ban: str) -> Whoami:
    """Somebody, as he is told of himself."""
    return Whoami(
        identity=f"user:{known.subject}",
        method=known.method,
        subject=known.subject,
        issuer=known.issuer,
        levels=list(known.rights),
        scopes=list(known.scopes),
        expires=known.expires,
        banned=ban,
    )
