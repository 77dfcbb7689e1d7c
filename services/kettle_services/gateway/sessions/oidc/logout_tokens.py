"""
What an issuer says of sessions that have ended there (OpenID Connect Back-Channel Logout).

Such a token is signed as all others are, and says by its form that it is about a logout: so no token that somebody got for another
purpose ends a session, and none of these lets anybody in.
"""

import time
from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.auth.tokens.checking.issuers import Issuer
from kettle.auth.tokens.checking.parsing import ParsedToken, parse
from kettle.auth.tokens.checking.verification import check_header
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verified import TokenError
from kettle_services.gateway.sessions.oidc.flow import LoginFailed

_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
_LATE_S: Final = 300.0
_TYPES: Final = frozenset({"jwt", "logout+jwt", "application/logout+jwt"})


class Logout(msgspec.Struct, frozen=True):
    """Whose sessions have ended; a session alone if one is named."""

    issuer: str
    subject: str = ""
    session: str = ""


class _Claims(msgspec.Struct, frozen=True):
    iss: str
    aud: str | list[str]
    iat: float
    jti: str
    events: dict[str, object]
    sub: str = ""
    sid: str = ""
    exp: float = 0.0


async def read(token: str, issuers: Mapping[str, Issuer], keys: KeyCache) -> Logout:
    """What a logout token says; raises LoginFailed: it is none, or of no issuer at which people sign in."""
    now = time.time()
    try:
        parsed = parse(token)
        issuer = issuers.get(str(parsed.claims.get("iss", "")))
        if issuer is None:
            raise LoginFailed("nobody signs in at the issuer of this logout token")
        check_header(parsed.header)
        known = await keys.keys(issuer.url, parsed.header.get("kid"), now)
        candidates = known.candidates(parsed.header)
    except TokenError as error:
        raise LoginFailed(str(error)) from error
    if not any(key.verifies(parsed.signed, parsed.signature) for key in candidates):
        raise LoginFailed("the signature of the logout token is not one of its issuer")
    claims = _claims(parsed)
    audience = {claims.aud} if isinstance(claims.aud, str) else set(claims.aud)
    fresh = now - _LATE_S <= claims.iat <= now + _LATE_S and (not claims.exp or now < claims.exp)
    if audience.isdisjoint(issuer.audiences) or not fresh or _EVENT not in claims.events:
        raise LoginFailed("this is no logout token for this gateway, or it is older than five minutes")
    if "nonce" in parsed.claims or not (claims.sub or claims.sid):
        raise LoginFailed("this is no logout token: it has a nonce, or names nobody")
    return Logout(issuer.url, claims.sub, claims.sid)


def _claims(parsed: ParsedToken) -> _Claims:
    kind = parsed.header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise LoginFailed("this is a token for something else, and no logout token")
    try:
        return msgspec.convert(dict(parsed.claims), _Claims)
    except msgspec.ValidationError as error:
        raise LoginFailed(f"this is no logout token: {error}") from error
