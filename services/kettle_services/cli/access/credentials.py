"""What a person gives to be tried out: a token, or the claims of one. No message has any part of a token."""

import base64
import binascii
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

import msgspec

from kettle.auth.mapping.principals import Address, Principal, of_claims
from kettle_services.cli.errors import UsageError

_MOST_BYTES: Final = 1024 * 1024
_LONGEST_NAME: Final = 120
"""Characters of a name of a file that an error says again."""


class ShownToken(msgspec.Struct, frozen=True):
    """The claims that somebody would show."""

    claims: Mapping[str, object]
    algorithm: str = ""
    """Of the signature, which nobody has checked; empty: there is none."""

    def principal(self, address: Address) -> Principal:
        """
        Who this would be if it was verified; a token that is signed with a key of the pool is one of the pool's.
        """
        method = "IDTOKENS" if self.algorithm.startswith("HS") else "SCITOKENS"
        return of_claims(self.claims, method=method, address=address)


def shown(said: str) -> ShownToken:
    """
    The claims in a file, in what comes on standard input (`-`), or in a token that was typed.

    Raises:
        UsageError: it is neither a token nor claims.
    """
    text = said if said.count(".") == 2 and said.startswith("ey") else _content(said)
    text = text.strip()
    if text.startswith("{"):
        return ShownToken(_object(text.encode()))
    parts = text.split(".")
    if len(parts) != 3:
        raise UsageError("this is no token in its compact form, and no JSON object with claims")
    return ShownToken(_object(_decoded(parts[1])), str(_object(_decoded(parts[0])).get("alg", "")))


def _content(said: str) -> str:
    try:
        data = sys.stdin.buffer.read(_MOST_BYTES) if said == "-" else _read(Path(said))
        return data.decode()
    except OSError as error:
        # what was meant as a token must not be printed
        name = "what was given" if said.startswith("ey") or len(said) > _LONGEST_NAME else said
        raise UsageError(f"{name} is no token, and no file that can be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError("what was given is no text in UTF-8") from error


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)


def _decoded(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError("a part of the token is not in base64") from error


def _object(data: bytes) -> Mapping[str, object]:
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError("a part of the token, or the claims, are no JSON") from error
    if not isinstance(value, dict):
        raise UsageError("a part of the token, or the claims, are no JSON object")
    return cast("Mapping[str, object]", value)
