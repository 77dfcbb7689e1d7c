"""A token's text in, a verified token out."""

from kettle.auth.tokens.checking.issuers import Issuers
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.checking.verification import check_header, verify
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verified import VerifiedToken


class Verifier:
    """Checks tokens of the issuers of a table, with the keys that these publish."""

    def __init__(self, issuers: Issuers, cache: KeyCache) -> None:
        self.issuers = issuers
        """May be exchanged at any time."""
        self._cache = cache

    async def verify(self, token: str, now: float) -> VerifiedToken:
        """`now`: seconds since the epoch. Raises TokenError."""
        parsed = parse(token)
        check_header(parsed.header)
        issuer = self.issuers.of(parsed.claims.get("iss"))
        keys = await self._cache.keys(issuer.url, parsed.header.get("kid"), now)
        return verify(parsed, issuer, keys, now)
