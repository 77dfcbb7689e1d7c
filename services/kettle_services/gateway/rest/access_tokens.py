"""
What somebody shows here who has no token: accounts of the pool's machines, whom the bus has vouched for.

Such a token is good at this gateway, for some minutes, and for as long as the account may come; only a digest of it is kept.
"""

import hashlib
import secrets
from collections import OrderedDict
from typing import Final

PREFIX: Final = "kettle-access."
"""How they begin, so that none is sent to anybody who checks others."""
LIFE_S: Final = 600.0
_MOST: Final = 10_000


class AccessTokens:
    """Those that are good."""

    def __init__(self) -> None:
        self._accounts: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        """The oldest is the first."""

    def make(self, account: str, now: float) -> tuple[str, float]:
        """One for an account, and when it is over."""
        self._forget(now)
        while len(self._accounts) >= _MOST:
            self._accounts.popitem(last=False)
        token = PREFIX + secrets.token_urlsafe(32)
        self._accounts[_key(token)] = now + LIFE_S, account
        return token, now + LIFE_S

    def account(self, token: str, now: float) -> str:
        """Whose it is; empty: nobody's."""
        self._forget(now)
        return self._accounts.get(_key(token), (0.0, ""))[1]

    def _forget(self, now: float) -> None:
        while self._accounts and next(iter(self._accounts.values()))[0] <= now:
            self._accounts.popitem(last=False)


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
