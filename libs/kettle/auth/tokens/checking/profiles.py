"""
Which profile a token has, and which claims that demands.

A WLCG token of version 1.1 still says "1.0", so both are accepted, as any other 1.x. A token may say that it is
an access token of RFC 9068 and of WLCG at once: then the claims of WLCG hold.
"""

import re
from collections.abc import Mapping
from typing import Final

from kettle.auth.tokens.checking.issuers import Issuer
from kettle.auth.tokens.verified import Profile, TokenCode, TokenError, quoted

ANY: Final[Mapping[Profile, str]] = {"scitokens": "ANY", "wlcg": "https://wlcg.cern.ch/jwt/v1/any"}
"""What stands in the claim `aud` of a token for every service, in the profiles that have such tokens."""

REQUIRED: Final[Mapping[Profile, tuple[str, ...]]] = {
    "scitokens": ("exp", "iat", "aud"),
    "wlcg": ("sub", "exp", "iat", "aud", "jti"),
    "at+jwt": ("sub", "exp", "iat", "aud", "jti"),
    "plain": ("sub", "exp", "iat", "aud"),
}
"""The claims without which a token is refused, beside `iss` and the one that says the version."""

_SCITOKENS_2: Final = frozenset({"scitoken:2.0", "scitokens:2.0"})
_SCITOKENS: Final = ("scitoken:", "scitokens:")
_WLCG_1: Final = re.compile(r"1\.\d{1,4}")
_ACCESS_TOKEN: Final = frozenset({"at+jwt", "application/at+jwt"})
_KINDS: Final = _ACCESS_TOKEN | {"jwt", "application/jwt"}


def profile_of(header: Mapping[str, object], claims: Mapping[str, object], issuer: Issuer) -> Profile:
    """What the token claims to be; raises TokenError: nothing that is accepted of this issuer."""
    _check_kind(header)
    profile = _claimed(header, claims)
    if profile not in issuer.profiles:
        raise TokenError(
            TokenCode.PROFILE,
            f"the token has the profile {profile}, and of {issuer.url} are accepted: {', '.join(issuer.profiles)}",
        )
    return profile


def _claimed(header: Mapping[str, object], claims: Mapping[str, object]) -> Profile:
    wlcg, version = claims.get("wlcg.ver"), claims.get("ver")
    # Other issuers have versions of their own in `ver`; only those of SciTokens are about the form of the token.
    scitoken = version if isinstance(version, str) and version.startswith(_SCITOKENS) else None
    if wlcg is not None and scitoken is not None:
        raise TokenError(
            TokenCode.PROFILE, "the token says that it is a SciToken and a WLCG token: it can be one of them"
        )
    if wlcg is not None:
        if not isinstance(wlcg, str) or not _WLCG_1.fullmatch(wlcg):
            raise TokenError(
                TokenCode.PROFILE,
                f"the token has version {quoted(wlcg)} of the WLCG profile, and 1.x is read",
            )
        return "wlcg"
    if scitoken is not None:
        if scitoken not in _SCITOKENS_2:
            raise TokenError(
                TokenCode.PROFILE, f"the token says {quoted(scitoken)}, and scitoken:2.0 is read"
            )
        return "scitokens"
    return "at+jwt" if _kind(header) in _ACCESS_TOKEN else "plain"


def _check_kind(header: Mapping[str, object]) -> None:
    """Raises TokenError: its issuer signed it for another use than access, as a logout or a proof."""
    if _kind(header) not in _KINDS:
        raise TokenError(TokenCode.PROFILE, f"the token is a {quoted(header['typ'])}, and not one for access")


def _kind(header: Mapping[str, object]) -> str:
    kind = header.get("typ", "JWT")
    return kind.lower() if isinstance(kind, str) else ""


def check_required(claims: Mapping[str, object], profile: Profile) -> None:
    """Raises TokenError: a claim is missing that this profile demands."""
    missing = [name for name in REQUIRED[profile] if name not in claims]
    if missing:
        raise TokenError(
            TokenCode.MALFORMED,
            f"the token lacks {' and '.join(missing)}, and a token of the profile {profile} has {', '.join(REQUIRED[profile])}",
        )


def check_audience(audience: tuple[str, ...], profile: Profile, issuer: Issuer) -> None:
    """Raises TokenError: the token was made for somebody else."""
    if any(each in issuer.audiences for each in audience):
        return
    if issuer.any_audience and ANY.get(profile) in audience:
        return
    made_for = ", ".join(quoted(each) for each in audience[:3])
    raise TokenError(
        TokenCode.AUDIENCE,
        f"the token was made for {made_for}, and tokens of {issuer.url} for this pool say {' or '.join(issuer.audiences)}",
    )
