"""A token's text in, a verified token out. Pure: the keys and the time are given in."""

import hashlib
import hmac
from collections.abc import Mapping

import msgspec

from kettle.auth.idtokens.idtoken import ALGORITHM, LEVELS
from kettle.auth.mapping.levels import SCOPE
from kettle.auth.tokens.checking.parsing import ParsedToken, parse
from kettle.auth.tokens.checking.times import check_times
from kettle.auth.tokens.verified import TokenCode, TokenError, quoted

_MOST_NAME = 255


class IdToken(msgspec.Struct, frozen=True):
    """A token whose signature, time and trust domain are good."""

    trust_domain: str
    identity: str
    """`user@domain`."""
    key: str
    """The name of the key that signed it."""
    levels: frozenset[str] | None
    """To which it is limited; None if its identity alone says what it allows."""
    issued: int
    """Seconds since the epoch."""
    expires: int | None
    """Seconds since the epoch; None if it does not end."""
    id: str
    claims: Mapping[str, object]


def verify(token: str, trust_domain: str, secrets: Mapping[str, bytes], now: float) -> IdToken:
    """
    The token, if one of these secrets, by the names of their keys, has signed it.

    Raises TokenError.
    """
    parsed = parse(token)
    key = _check_signature(parsed, secrets)
    claims = parsed.claims
    if claims.get("iss") != trust_domain:
        raise TokenError(
            TokenCode.ISSUER_UNKNOWN,
            f"the token is one of the trust domain {quoted(claims.get('iss'))}, and this is {trust_domain}",
        )
    if "iat" not in claims:
        raise TokenError(TokenCode.MALFORMED, "the token lacks iat, the time at which it was made")
    expires, issued = check_times(claims, now)
    return IdToken(
        trust_domain=trust_domain,
        identity=_identity(claims),
        key=key,
        levels=_levels(claims),
        issued=int(issued),
        expires=None if expires is None else int(expires),
        id=str(claims.get("jti", "")),
        claims=claims,
    )


def _check_signature(parsed: ParsedToken, secrets: Mapping[str, bytes]) -> str:
    """The name of the key that signed it."""
    header = parsed.header
    if "crit" in header:
        raise TokenError(
            TokenCode.CRITICAL, "the token demands an extension (crit) that is not understood here"
        )
    if header.get("alg") != ALGORITHM:
        raise TokenError(
            TokenCode.ALG,
            f"the token is signed by {quoted(header.get('alg'))}, and a pool signs by {ALGORITHM}",
        )
    kid = header.get("kid")
    secret = secrets.get(kid) if isinstance(kid, str) else None
    if not isinstance(kid, str) or secret is None:
        raise TokenError(
            TokenCode.KEY_UNKNOWN, f"the token names the key {quoted(kid)}, which this pool does not have"
        )
    if not hmac.compare_digest(hmac.digest(secret, parsed.signed, hashlib.sha256), parsed.signature):
        raise TokenError(
            TokenCode.SIGNATURE,
            f"the signature of the token is not one of the key {quoted(kid)} of this pool",
        )
    return kid


def _identity(claims: Mapping[str, object]) -> str:
    found = claims.get("sub")
    if (
        not isinstance(found, str)
        or not found
        or len(found) > _MOST_NAME
        or not (found.isascii() and found.isprintable())
    ):
        raise TokenError(TokenCode.MALFORMED, "the token does not name an identity in its claim sub")
    return found


def _levels(claims: Mapping[str, object]) -> frozenset[str] | None:
    """A scope that means nothing here limits to nothing: it must not become a token without limits."""
    if "scope" not in claims:
        return None
    scope = claims["scope"]
    if not isinstance(scope, str):
        raise TokenError(TokenCode.MALFORMED, "the scopes of the token (scope) are no text")
    named = (each.removeprefix(SCOPE) for each in scope.split() if each.startswith(SCOPE))
    return frozenset(level for level in named if level in LEVELS)
