"""What somebody has shown, kept for as long as it is needed: for a request, or for the life of a session."""

import hashlib
from typing import Final


class Credential:
    """
    A token, or the name of an account that the bus has vouched for; it has no text, so that no log has it.
    """

    __slots__ = ("_shown", "_token", "account")

    def __init__(self, *, token: str = "", account: str = "") -> None:
        """One of the two."""
        self._shown = token
        self._token = token
        self.account: Final = account

    @property
    def token(self) -> str:
        """The token as it is now; empty: it is an account."""
        return self._token

    @property
    def key(self) -> bytes:
        """What names the credential; it stays when the token is renewed."""
        return hashlib.sha256((self._shown or f"account {self.account}").encode("utf-8", "replace")).digest()

    async def renew(self, now: float) -> None:
        """
        Have a token that is good at a time, where another one can be had; raises RequestRefused: it is over.
        """
