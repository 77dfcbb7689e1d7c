"""
Confirmations: who asks a model to change something sees first what that would be.

A first call changes nothing and gets a token of just this change; a second call with the token carries it out.  Pure.
"""

import base64
import hashlib
import hmac
from typing import Any, Final

import msgspec

VALID_S: Final = 600.0


class Confirmations:
    """Makes tokens, and checks them; nothing is kept of them."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, person: str, tool: str, arguments: dict[str, Any], jobs: int, *, now: float) -> str:
        """A token of a change of so many jobs."""
        until = int(now + VALID_S)
        return f"{until}.{jobs}.{self._mark(person, tool, arguments, jobs, until)}"

    def jobs(
        self, token: str, person: str, tool: str, arguments: dict[str, Any], *, now: float
    ) -> int | None:
        """How many jobs the change was to be about; None: the token is not of this change, or is too old."""
        until, _, rest = token.partition(".")
        jobs, _, mark = rest.partition(".")
        if not (until.isdecimal() and jobs.isdecimal() and max(len(until), len(jobs)) < 16):
            return None
        expected = self._mark(person, tool, arguments, int(jobs), int(until))
        if not hmac.compare_digest(mark.encode(), expected.encode()) or now > int(until):
            return None
        return int(jobs)

    def _mark(self, person: str, tool: str, arguments: dict[str, Any], jobs: int, until: int) -> str:
        said = msgspec.json.encode([person, tool, arguments, jobs, until], order="deterministic")
        digest = hmac.digest(self._secret, said, hashlib.sha256)
        return base64.urlsafe_b64encode(digest[:18]).decode()
