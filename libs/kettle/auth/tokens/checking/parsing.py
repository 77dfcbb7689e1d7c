"""
The text of a JWT, taken apart strictly.

Two readers of one text must not see two tokens: base64 has one spelling, JSON no key twice, numbers are numbers.
"""

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NoReturn

import msgspec

from kettle.auth.tokens.verified import TokenCode, TokenError

MOST_BYTES: Final = 16 << 10
"""Tokens of real issuers have one or two KiB, and with hundreds of groups eight; headers of HTTP end at about 16."""


class ParsedToken(msgspec.Struct, frozen=True):
    """A token before anything of it is believed."""

    header: dict[str, object]
    claims: dict[str, object]
    signed: bytes
    """The bytes over which the signature was made."""
    signature: bytes


def parse(token: str) -> ParsedToken:
    """Raises TokenError: it is too long, or no JWT in the compact form."""
    if len(token) > MOST_BYTES:
        raise TokenError(
            TokenCode.SIZE,
            f"the token has {len(token)} bytes, and the largest that is read has {MOST_BYTES}: ask its issuer for fewer"
            " scopes or groups",
        )
    if not token.isascii():
        raise _malformed("it has characters that no token has")
    parts = token.split(".")
    if len(parts) != 3:
        raise _malformed(f"it has {len(parts)} parts between dots, and a signed token has three")
    header, claims, signature = (_bytes(part) for part in parts)
    return ParsedToken(
        header=_object(header, "header"),
        claims=_object(claims, "payload"),
        signed=f"{parts[0]}.{parts[1]}".encode(),
        signature=signature,
    )


def _bytes(part: str) -> bytes:
    try:
        data = urlsafe_b64decode(f"{part}{'=' * (-len(part) % 4)}")
    except binascii.Error:
        raise _malformed("one of its parts is not base64") from None
    # The decoder skips what is no base64 and ignores bits behind the end, so one token would have many spellings.
    if urlsafe_b64encode(data).rstrip(b"=") != part.encode():
        raise _malformed("one of its parts is not base64 in the one spelling for URLs")
    return data


def _object(data: bytes, what: str) -> dict[str, object]:
    try:
        msgspec.json.decode(data, type=dict[str, msgspec.Raw])  # UTF-8, and JSON as its standard has it
        found: dict[str, object] = json.loads(
            data, object_pairs_hook=_without_repeats, parse_constant=_no_number
        )
        json.dumps(found, ensure_ascii=False).encode()  # half a character cannot be compared or written
    except RecursionError:
        raise _malformed(f"its {what} is nested too deeply") from None
    except (ValueError, msgspec.DecodeError):  # texts of these errors may hold what they are about
        raise _malformed(f"its {what} is no JSON object, or has a key twice") from None
    return found


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _no_number(_name: str) -> NoReturn:
    raise ValueError


def _malformed(why: str) -> TokenError:
    return TokenError(TokenCode.MALFORMED, f"this is not a token that can be read: {why}")
