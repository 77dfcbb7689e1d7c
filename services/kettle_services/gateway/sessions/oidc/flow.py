"""
What the gateway and an issuer say to each other by way of a browser; it decides, and asks nobody.

Who holds the browser can say anything here.  So the way back counts only in the browser that was sent away, for the issuer that
it was sent to, and the code is worth nothing without what only this gateway knows.
"""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec


class LoginFailed(Exception):  # noqa: N818 - the person may try again
    """Nobody was signed in; the text is a sentence without anything secret."""


class Pending(msgspec.Struct, frozen=True):
    """A login that has begun, as the browser's cookie has it."""

    issuer: str
    state: str
    nonce: str
    verifier: str
    target: str
    """Where the browser goes afterwards."""

    def cookie(self) -> str:
        """As the value of a cookie."""
        return urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def of_cookie(cls, value: str) -> "Pending | None":
        """What a browser shows; None: nothing that we have written."""
        try:
            return msgspec.json.decode(urlsafe_b64decode(value + "=" * (-len(value) % 4)), type=cls)
        except (ValueError, msgspec.MsgspecError):
            return None


class ProviderMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What an issuer says of itself (OpenID Connect Discovery, RFC 8414)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    revocation_endpoint: str = ""
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Returned(msgspec.Struct, frozen=True):
    """With what the issuer sends a browser back."""

    state: str = ""
    code: str = ""
    iss: str = ""
    error: str = ""
    error_description: str = ""

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> "Returned":
        """From an address."""
        return cls(**{name: query[name] for name in cls.__struct_fields__ if name in query})


def authorization_url(
    metadata: ProviderMetadata,
    pending: Pending,
    *,
    client: str,
    back: str,
    scopes: str,
    more: Mapping[str, str],
) -> str:
    """Where the browser is sent; `back` is where it comes back to."""
    digest = hashlib.sha256(pending.verifier.encode()).digest()
    words = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": back,
        "scope": scopes,
        "state": pending.state,
        "nonce": pending.nonce,
        "code_challenge": urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
        **more,
    }
    place = metadata.authorization_endpoint
    return f"{place}{'&' if urlsplit(place).query else '?'}{urlencode(words)}"


def begun(returned: Returned, cookie: str) -> Pending:
    """The login with which a browser has come back; raises LoginFailed: we have not sent it away."""
    pending = Pending.of_cookie(cookie)
    if pending is None or not hmac.compare_digest(
        returned.state.encode("utf-8", "surrogateescape"), pending.state.encode()
    ):
        raise LoginFailed("this browser has not begun this login, or more than ten minutes ago: begin again")
    return pending


def code_of(returned: Returned, metadata: ProviderMetadata) -> str:
    """
    The code with which a browser has come back.

    Raises LoginFailed: it comes from another issuer than it was sent to (RFC 9207), or that one says no.
    """
    named = returned.iss or not metadata.authorization_response_iss_parameter_supported
    if not named or (returned.iss and returned.iss != metadata.issuer):
        raise LoginFailed("another issuer than the one that was asked has answered: begin again")
    if returned.error:
        raise LoginFailed(f"{metadata.issuer} has not signed you in: {_said(returned)}")
    if not returned.code:
        raise LoginFailed(f"{metadata.issuer} has sent no code: begin again")
    return returned.code


_MOST_SAID: Final = 200


def _said(returned: Returned) -> str:
    """What an issuer says of a failure, without anything that a terminal or a log would obey."""
    said = returned.error_description or returned.error
    return ascii(said[:_MOST_SAID])[1:-1]
