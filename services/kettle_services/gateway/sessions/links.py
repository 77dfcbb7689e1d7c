"""Codes by which a browser begins a session: each works once, within a minute."""

import hashlib
import secrets
from collections import OrderedDict
from typing import Final

from kettle_services.gateway.rest.credential import Credential

LIFE_S: Final = 60.0
_MOST: Final = 1_000
_MOST_OF_ONE: Final = 5


class Links:
    """The codes that may be used; only digests of them are kept."""

    def __init__(self) -> None:
        self._credentials: OrderedDict[bytes, tuple[float, str, Credential]] = OrderedDict()
        """The oldest is the first."""

    def make(self, person: str, credential: Credential, now: float) -> str:
        """
        A code for a person who has shown a credential; the oldest of the same person's ends if these are many, and the oldest
        of all if all are very many.
        """
        self._forget(now)
        own = [key for key, (_, owner, _) in self._credentials.items() if owner == person]
        for key in own[: len(own) + 1 - _MOST_OF_ONE]:
            del self._credentials[key]
        while len(self._credentials) >= _MOST:
            self._credentials.popitem(last=False)
        made = secrets.token_urlsafe(32)
        self._credentials[_key(made)] = now + LIFE_S, person, credential
        return made

    def shown(self, code: str, now: float) -> Credential | None:
        """What a link would give, which is good afterwards; None: nothing."""
        self._forget(now)
        return self._credentials.get(_key(code), (0.0, "", None))[2]

    def redeem(self, code: str, now: float) -> Credential | None:
        """What was shown for the code, which works no more; None: there is no such code."""
        self._forget(now)
        _, _, credential = self._credentials.pop(_key(code), (0.0, "", None))
        return credential

    def _forget(self, now: float) -> None:
        while self._credentials and next(iter(self._credentials.values()))[0] <= now:
            self._credentials.popitem(last=False)


def _key(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "surrogateescape")).digest()
