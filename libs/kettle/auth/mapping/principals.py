"""
A credential after it was verified: what it says about who shows it, and to what it limits what that person may do.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal, cast

import msgspec

from kettle.auth.mapping.levels import Level, closure

Profile = Literal["scitokens", "wlcg", "at+jwt", "plain"]

_CONDOR: Final = "condor:/"
_FAMILIES: Final = ("storage.", "compute.")
_OF_SCITOKENS: Final = frozenset({"condor", "read", "write", "queue", "execute"})
"""Capabilities that have a path behind a colon."""
_ALL_OF_COMPUTE: Final = frozenset({"compute.create", "compute.modify", "compute.cancel"})
"""The scopes that together are WRITE: two of them are not."""


class Address(msgspec.Struct, frozen=True):
    """From where somebody asks, as far as that is known."""

    ip: str = ""
    names: tuple[str, ...] = ()
    """The host names of it."""

    @property
    def is_known(self) -> bool:
        """Whether anything is known."""
        return bool(self.ip or self.names)


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who shows a verified credential."""

    method: str
    """The way in which it was shown, as map files call it: SCITOKENS, IDTOKENS, SSL, FS."""
    text: str
    """What map files look at: `issuer,subject` of a token, the subject of a certificate, a login name."""
    claims: Mapping[str, object] = {}
    groups: tuple[str, ...] = ()
    """Groups by whose membership something may be decided: none if the token has any capability."""
    scopes: tuple[str, ...] = ()
    limits: frozenset[Level] | None = None
    """The only levels that the credential is good for; None: it does not limit them."""
    address: Address = Address()

    @property
    def issuer(self) -> str:
        """Who vouches for it; empty if nobody else does."""
        return _text(self.claims.get("iss"))

    @property
    def subject(self) -> str:
        """Whom the issuer means."""
        return _text(self.claims.get("sub"))

    @property
    def id(self) -> str:
        """The token's own name; empty if it has none."""
        return _text(self.claims.get("jti"))


def of_token(
    *,
    issuer: str,
    subject: str,
    profile: Profile,
    scopes: tuple[str, ...],
    groups: tuple[str, ...],
    claims: Mapping[str, object],
    address: Address | None = None,
) -> Principal:
    """The principal of a verified token of another issuer."""
    return Principal(
        method="SCITOKENS",
        text=f"{issuer},{subject}",
        claims=claims,
        groups=() if any(map(is_capability, scopes)) else groups,
        scopes=scopes,
        limits=limits_of(scopes, profile),
        address=address or Address(),
    )


def of_claims(
    claims: Mapping[str, object], *, method: str = "SCITOKENS", address: Address | None = None
) -> Principal:
    """
    The principal of a token from its claims, which have been verified; `method` IDTOKENS for tokens of the pool's own keys.
    """
    issuer, subject = _text(claims.get("iss")), _text(claims.get("sub"))
    pools = method == "IDTOKENS"
    found = of_token(
        issuer=issuer,
        subject=subject,
        profile="plain" if pools else profile_of(claims),
        scopes=scopes_of(claims),
        groups=groups_of(claims),
        claims=claims,
        address=address,
    )
    return msgspec.structs.replace(found, method=method, text=subject) if pools else found


def local(login: str, address: Address | None = None) -> Principal:
    """The principal of an account of this machine."""
    return Principal(method="FS", text=login, address=address or Address())


def profile_of(claims: Mapping[str, object]) -> Profile:
    """By which rules a token is written."""
    if "wlcg.ver" in claims:
        return "wlcg"
    return "scitokens" if _text(claims.get("ver")).startswith("scitoken") else "plain"


def scopes_of(claims: Mapping[str, object]) -> tuple[str, ...]:
    """The scopes of a token, as it spells them."""
    return _words(claims.get("scope", claims.get("scp")))


def groups_of(claims: Mapping[str, object]) -> tuple[str, ...]:
    """The groups that a token names, whether or not anything may be decided by them."""
    return _words(claims.get("wlcg.groups", claims.get("groups")), separators=False)


def is_capability(scope: str) -> bool:
    """
    Whether a scope permits something by itself: then the token's groups decide nothing, here or at any other service.
    """
    name, colon, _ = scope.partition(":")
    return scope.startswith(_FAMILIES) or (bool(colon) and name in _OF_SCITOKENS)


def limits_of(scopes: Collection[str], profile: Profile) -> frozenset[Level] | None:
    """
    The levels that scopes permit, and no others; None if they limit nothing.

    A SciToken is nothing but its scopes, so one without any of ours is good for no level. The same is true of a WLCG token
    with capabilities for others; without any capability its groups count, and so do those of a token without a profile.
    """
    found = {level for level in Level if f"{_CONDOR}{level}" in scopes}
    if profile == "wlcg":
        if "compute.read" in scopes:
            found.add(Level.READ)
        if set(scopes) >= _ALL_OF_COMPUTE:
            found.add(Level.WRITE)
    if found:
        return closure(found)
    return frozenset() if profile == "scitokens" or any(map(is_capability, scopes)) else None


def in_group(groups: Iterable[str], wanted: str) -> bool:
    """
    Whether one of the groups is the wanted one; `/cms/*` wants one below `/cms`.

    A group says nothing about those above or below it, and only whole segments are compared.
    """
    if wanted.endswith("/*"):
        return any(group.startswith(wanted[:-1]) and len(group) >= len(wanted) for group in groups)
    return wanted in groups


def claim_texts(claims: Mapping[str, object], name: str) -> tuple[str, ...]:
    """What a claim says, as texts; dots lead into nested claims. A list says each of its elements."""
    value = claims[name] if name in claims else _nested(claims, name.split("."))
    values = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,)
    return tuple(_claim_text(each) for each in values if isinstance(each, str | int | float))


def _nested(value: object, names: Sequence[str]) -> object:
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, object]", value).get(name)
    return value


def _claim_text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _words(value: object, *, separators: bool = True) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split(" ") if separators else (value,)) if value else ()
    values = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return tuple(each for each in values if isinstance(each, str) and each)
