"""
A token that allows a part of what another allows: fewer scopes, for whom it is meant, and not for longer. Pure.

The name of a token and the time are given in; the signature alone needs chance, which the library for keys takes.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.auth.tokens.capabilities import STORAGE_OPERATIONS, storage_allows
from kettle.auth.tokens.checking.scopes import check_storage_scopes, is_capability
from kettle.auth.tokens.verified import Profile, VerifiedToken, quoted

if TYPE_CHECKING:
    from kettle.auth.tokens.issuing.signing_keys import SigningKey  # it loads cryptography

LIFETIME_S: Final = 20 * 60
"""How long a token for a job is valid; it is renewed while the job runs."""
_OWN_CLAIMS: Final[Mapping[Profile, Mapping[str, str]]] = {
    "wlcg": {"wlcg.ver": "1.0"},
    "scitokens": {"ver": "scitoken:2.0"},
    "at+jwt": {},
    "plain": {},
}


class NotNarrowerError(Exception):
    """What is asked for is more than there is; the text is one sentence."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a token of ours says."""

    issuer: str
    subject: str
    audience: tuple[str, ...]
    scopes: tuple[str, ...]
    lifetime: int = LIFETIME_S
    """Seconds."""
    profile: Profile = "wlcg"
    claims: Mapping[str, object] = {}
    """More claims; none of them replaces one of those above."""


def narrowed(
    parent: VerifiedToken,
    grant: Grant,
    now: int,
    *,
    audiences: Collection[str],
) -> Grant:
    """
    The grant, cut to the time that is left of the token from which it is derived.

    `audiences`: those for which a token may be made of this one, in addition to its own.

    Raises NotNarrowerError: it would allow more, name somebody else, or be good for nothing.
    """
    if grant.subject != parent.subject:
        raise NotNarrowerError(
            f"a token of {quoted(parent.subject)} cannot be made one of {quoted(grant.subject)}"
        )
    wider = [scope for scope in grant.scopes if not any(covers(held, scope) for held in parent.scopes)]
    if wider:
        raise NotNarrowerError(
            f"the token does not have {quoted(wider[0])}, so no token with it can be made of it"
        )
    if not any(is_capability(scope) for scope in grant.scopes):
        # Without a capability a token is not limited at all: rules say what its subject may do.
        raise NotNarrowerError(
            "a derived token needs a capability, such as condor:/READ or storage.read:/path"
        )
    elsewhere = [each for each in grant.audience if each not in parent.audience and each not in audiences]
    if elsewhere or not grant.audience:
        whom = quoted(elsewhere[0]) if elsewhere else "everybody"
        raise NotNarrowerError(f"no token for {whom} can be made of this one")
    left = parent.expires - now
    if left <= 0 or grant.lifetime <= 0:
        raise NotNarrowerError(
            "the token has expired, so none can be made of it" if left <= 0 else "no lifetime is left"
        )
    return msgspec.structs.replace(grant, lifetime=min(grant.lifetime, left))


def covers(held: str, wanted: str) -> bool:
    """Whether who has one scope may have the other: the same, or one of a part of its storage."""
    if held == wanted:
        return True
    name, _, path = wanted.partition(":")
    operation = STORAGE_OPERATIONS.get(name)
    return operation is not None and storage_allows([held], operation, path)


def issue(grant: Grant, key: "SigningKey", now: int, token_id: str) -> str:
    """
    The signed token; `token_id` is a name that no other token has.

    Raises TokenError: a scope has a form that its profile forbids.
    """
    from joserfc import jws

    from kettle.auth.tokens.issuing.signing_keys import ALGORITHM

    check_storage_scopes(grant.scopes)
    claims = {
        **grant.claims,
        "iss": grant.issuer,
        "sub": grant.subject,
        "aud": grant.audience[0] if len(grant.audience) == 1 else list(grant.audience),
        "scope": " ".join(grant.scopes),
        "iat": now,
        "nbf": now,
        "exp": now + grant.lifetime,
        "jti": token_id,
        **_OWN_CLAIMS[grant.profile],
    }
    kind = "at+jwt" if grant.profile == "at+jwt" else "JWT"
    header = {"alg": ALGORITHM, "typ": kind, "kid": key.kid}
    return jws.serialize_compact(header, msgspec.json.encode(claims), key.key, algorithms=[ALGORITHM])
