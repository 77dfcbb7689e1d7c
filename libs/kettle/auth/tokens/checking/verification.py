"""
All checks of a token, in the order in which they are made: first who signed it, then what it says.

Nothing that a token says is believed before its signature is verified, except the name of its issuer, which chooses the keys.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.auth.tokens.checking.issuers import Issuer
from kettle.auth.tokens.checking.parsing import ParsedToken
from kettle.auth.tokens.checking.profiles import check_audience, check_required, profile_of
from kettle.auth.tokens.checking.public_keys import ALGORITHMS, KeySet
from kettle.auth.tokens.checking.scopes import check_storage_scopes, is_capability
from kettle.auth.tokens.checking.times import check_times
from kettle.auth.tokens.verified import TokenCode, TokenError, VerifiedToken, quoted

_MOST_NAME: Final = 255


def check_header(header: Mapping[str, object]) -> None:
    """
    Raises TokenError: it demands what nobody here understands, or is signed in another way than those accepted.
    """
    if "crit" in header:
        raise TokenError(
            TokenCode.CRITICAL, "the token demands an extension (crit) that is not understood here"
        )
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenError(
            TokenCode.ALG,
            f"the token is signed by {quoted(algorithm)}, and accepted are {' and '.join(ALGORITHMS)}",
        )
    if not isinstance(header.get("kid", ""), str):
        raise TokenError(TokenCode.MALFORMED, "the name of the token's key (kid) is no text")


def check_signature(token: ParsedToken, issuer: str, keys: KeySet) -> None:
    """Raises TokenError: none of the keys of the issuer has signed what the token says."""
    check_header(token.header)
    if not any(key.verifies(token.signed, token.signature) for key in keys.candidates(token.header)):
        raise TokenError(
            TokenCode.SIGNATURE,
            f"the signature of the token is not one of {issuer} over what the token says",
        )


def verify(
    token: ParsedToken, issuer: Issuer, keys: KeySet, now: float, *, for_anybody: bool = False
) -> VerifiedToken:
    """
    The token, if it can be believed; `issuer` is the one that it names, and `keys` are those of that issuer.

    `for_anybody`: an issuer looks at a token of its own, whomever that was made for.

    Raises TokenError.
    """
    check_signature(token, issuer.url, keys)
    claims = token.claims
    if claims.get("iss") != issuer.url:  # or one issuer could speak for another
        raise TokenError(
            TokenCode.ISSUER_UNKNOWN, f"the token was signed by {issuer.url} and names another issuer"
        )
    if "cnf" in claims:
        raise TokenError(
            TokenCode.CRITICAL,
            "the token is good only with a proof of a key (cnf), and such proofs are not read here",
        )
    profile = profile_of(token.header, claims, issuer)
    check_required(claims, profile)
    expires, issued = check_times(claims, now)
    audience = _audience(claims["aud"])
    if not for_anybody:
        check_audience(audience, profile, issuer)
    subject, token_id = _name(claims, "sub"), _name(claims, "jti")
    if not subject and "sub" in claims:
        raise TokenError(TokenCode.MALFORMED, "the subject of the token (sub) is empty")
    scopes = _scopes(claims.get("scope", ""))
    check_storage_scopes(scopes)
    groups = _groups(claims)
    return VerifiedToken(
        issuer=issuer.url,
        subject=subject,
        audience=audience,
        profile=profile,
        scopes=scopes,
        groups=() if any(is_capability(scope) for scope in scopes) else groups,
        expires=int(expires or 0),
        issued=int(issued),
        id=token_id,
        claims=claims,
    )


def _audience(value: object) -> tuple[str, ...]:
    found = (value,) if isinstance(value, str) else _texts(value)
    if not found or not all(found):
        raise TokenError(
            TokenCode.MALFORMED, "the audience of the token (aud) is neither a text nor a list of texts"
        )
    return found


def _texts(value: object) -> tuple[str, ...] | None:
    """A list of texts, or None for anything else."""
    try:
        return msgspec.convert(value, tuple[str, ...])
    except msgspec.ValidationError:
        return None


def _name(claims: Mapping[str, object], name: str) -> str:
    value = claims.get(name, "")
    if not isinstance(value, str) or len(value) > _MOST_NAME or not _printable(value):
        raise TokenError(
            TokenCode.MALFORMED,
            f"the claim {name} of the token is not a text of at most {_MOST_NAME} ASCII characters",
        )
    return value


def _printable(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _scopes(value: object) -> tuple[str, ...]:
    if not isinstance(value, str) or not _printable(value):
        raise TokenError(
            TokenCode.MALFORMED, "the scopes of the token (scope) are not a text with spaces between them"
        )
    return tuple(value.split())


def _groups(claims: Mapping[str, object]) -> tuple[str, ...]:
    """Groups of the WLCG profile begin with a slash; those of other issuers are called as they like."""
    wlcg = "wlcg.groups" in claims
    found = _texts(claims["wlcg.groups"] if wlcg else claims.get("groups", []))
    if found is None or not all(each.isprintable() and (each.startswith("/") or not wlcg) for each in found):
        raise TokenError(TokenCode.MALFORMED, "the groups of the token are not a list of names")
    return found
