"""
Signing in at an issuer of tokens with a code (RFC 8628), and keeping what comes of it.

An address and a code are shown, and the person confirms it in any browser.  The tokens are in one file for each issuer that only
its owner can read; it is replaced as a whole, and one process at a time refreshes.
"""

import fcntl
import hashlib
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from kettle.auth.private_files import private_directory, write_private
from kettle.client.errors import ClientError

GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
CLIENT: Final = "kettle"
INTERVAL_S: Final = 5.0
"""Between two questions, if the issuer says nothing else (RFC 8628 section 3.5)."""
SLOWER_S: Final = 5.0
"""What `slow_down` adds, for good."""
_LONGEST_PAUSE_S: Final = 60.0
_DEADLINE_S: Final = 20.0
_LARGEST: Final = 1 << 20
_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})

Form = dict[str, str]


class LoginError(ClientError):
    """Nobody was signed in; the text is one sentence, without anything secret."""


class DeviceCode(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has to confirm."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str = ""
    expires_in: float
    interval: float = INTERVAL_S


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an issuer."""

    issuer: str
    client: str
    access_token: str
    refresh_token: str = ""
    obtained: float
    expires: float
    scope: str = ""

    def is_due(self, now: float) -> bool:
        """Whether no more than a third of its life is left."""
        return now >= self.expires - (self.expires - self.obtained) / 3


class Polling:
    """How long to wait before the next question: a state machine without a clock."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._failures = 0

    @property
    def pause(self) -> float:
        """Seconds until the next question."""
        return min(self._interval * (1 << min(self._failures, 10)), max(self._interval, _LONGEST_PAUSE_S))

    def unreachable(self) -> None:
        """The issuer did not answer: ask less often, with the same code."""
        self._failures += 1

    def refused(self, error: str) -> None:
        """The issuer has no token yet. Raises LoginError if it will have none."""
        self._failures = 0
        match error:
            case "authorization_pending":
                return
            case "slow_down":
                self._interval += SLOWER_S
            case "access_denied":
                raise LoginError("the sign-in was refused in the browser")
            case "expired_token":
                raise LoginError("the code was not confirmed in time; say kettle login again")
            case _:
                raise LoginError(f"the issuer does not sign in: {error}")


class Issuer:
    """An issuer, by its metadata."""

    def __init__(self, url: str) -> None:
        """
        Raises:
            LoginError: there is none at the address.
        """
        self.url: Final = url.rstrip("/")
        _require_safe(self.url)
        for path in ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"):
            status, found = _ask(f"{self.url}{path}")
            if status == 200 and isinstance(found.get("issuer"), str):
                break
        else:
            raise LoginError(
                f"{self.url} is no issuer of tokens: it has no /.well-known/openid-configuration"
            )
        if str(found["issuer"]).rstrip("/") != self.url:
            raise LoginError(f"{self.url} says that it is another issuer: {found['issuer']}")
        self._metadata = found

    def _endpoint(self, name: str) -> str:
        url = str(self._metadata.get(name, ""))
        if url:
            _require_safe(url)
        return url

    def device_code(self, client: str, scope: str, audience: str = "") -> DeviceCode:
        """
        Begin; `audience`: for whom the tokens are to be, where the issuer lets one say so. Raises LoginError for an issuer that
        has no such way.
        """
        endpoint = self._endpoint("device_authorization_endpoint")
        if not endpoint:
            grants = (
                ", ".join(map(str, self._metadata.get("grant_types_supported", []))) or "none that it names"
            )
            raise LoginError(f"{self.url} has no sign-in by a code; its grants are: {grants}")
        status, found = _ask(
            endpoint, {"client_id": client, "scope": scope, **({"audience": audience} if audience else {})}
        )
        if status != 200:
            raise LoginError(f"{self.url} gives no code: {_error(found)}")
        try:
            return msgspec.convert(found, DeviceCode, strict=False)
        except msgspec.ValidationError as error:
            raise LoginError(f"{self.url} gives no code: {error}") from error

    def wait(self, code: DeviceCode, client: str, *, sleep: Callable[[float], None] = time.sleep) -> Tokens:
        """Ask until the person has confirmed the code; raises LoginError if that does not happen."""
        polling, ends = Polling(code.interval), time.time() + code.expires_in
        form = {"grant_type": GRANT, "device_code": code.device_code, "client_id": client}
        while True:
            sleep(polling.pause)
            if time.time() >= ends:
                polling.refused("expired_token")
            try:
                status, found = _ask(self._endpoint("token_endpoint"), form)
            except LoginError:
                polling.unreachable()
                continue
            if status == 200:
                return self._tokens(found, client)
            if status >= 500:
                polling.unreachable()
            else:
                polling.refused(_error(found))

    def refreshed(self, tokens: Tokens) -> Tokens:
        """The next tokens; raises LoginError."""
        if not tokens.refresh_token:
            raise LoginError(f"the sign-in at {self.url} is over; say: kettle login --issuer {self.url}")
        form = {
            "grant_type": "refresh_token",
            "refresh_token": tokens.refresh_token,
            "client_id": tokens.client,
        }
        status, found = _ask(self._endpoint("token_endpoint"), form)
        if status != 200:
            raise LoginError(
                f"{self.url} does not renew the sign-in ({_error(found)}); say: kettle login --issuer {self.url}"
            )
        return self._tokens({"refresh_token": tokens.refresh_token, **found}, tokens.client)

    def revoke(self, tokens: Tokens) -> bool:
        """Have the issuer end what was given; whether it has a way to."""
        endpoint = self._endpoint("revocation_endpoint")
        if not endpoint:
            return False
        token = tokens.refresh_token or tokens.access_token
        return _ask(endpoint, {"token": token, "client_id": tokens.client})[0] == 200

    def _tokens(self, found: dict[str, Any], client: str) -> Tokens:
        now = time.time()
        try:
            return Tokens(
                issuer=self.url,
                client=client,
                access_token=str(found["access_token"]),
                refresh_token=str(found.get("refresh_token", "")),
                obtained=now,
                expires=now + float(found.get("expires_in", 600)),
                scope=str(found.get("scope", "")),
            )
        except (KeyError, ValueError, TypeError) as error:
            raise LoginError(f"{self.url} gave no token") from error


class TokenFiles:
    """The tokens of one person, in a directory of her own."""

    def __init__(self, home: Path) -> None:
        self._directory: Final = home / "logins"

    def path(self, issuer: str) -> Path:
        """The file of an issuer."""
        return self._directory / f"{hashlib.sha256(issuer.rstrip('/').encode()).hexdigest()[:16]}.json"

    def load(self, issuer: str) -> Tokens | None:
        """What is kept, if anything is; raises LoginError for a file that cannot be read."""
        try:
            return msgspec.json.decode(self.path(issuer).read_bytes(), type=Tokens)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise LoginError(
                f"{self.path(issuer)} cannot be read; remove it, and say kettle login again"
            ) from error

    def all(self) -> list[Tokens]:
        """Of all issuers, by their address."""
        found = [
            msgspec.json.decode(path.read_bytes(), type=Tokens) for path in self._directory.glob("*.json")
        ]
        return sorted(found, key=lambda tokens: tokens.issuer)

    def save(self, tokens: Tokens) -> Path:
        """Replace the file as a whole: there is the old one or the new one, and never a part."""
        private_directory(self._directory)
        return write_private(self.path(tokens.issuer), msgspec.json.encode(tokens))

    def remove(self, issuer: str) -> None:
        """Keep nothing of an issuer."""
        self.path(issuer).unlink(missing_ok=True)

    @contextmanager
    def locked(self, issuer: str) -> Generator[None]:
        """One process at a time: a refresh token that two use at once is taken for a copy."""
        private_directory(self._directory)
        lock = self.path(issuer).with_suffix(".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def fresh(self, issuer: str) -> Tokens:
        """
        Tokens with more than a third of their life left; renewed ones are stored before the old ones are forgotten.

        Raises:
            LoginError: nobody is signed in there, or the issuer does not renew it.
        """
        with self.locked(issuer):
            tokens = self.load(issuer)
            if tokens is None:
                raise LoginError(f"nobody is signed in at {issuer}; say: kettle login --issuer {issuer}")
            if tokens.is_due(time.time()):
                tokens = Issuer(issuer).refreshed(tokens)
                self.save(tokens)
            return tokens


def _require_safe(url: str) -> None:
    place = urlsplit(url)
    if place.scheme != "https" and not (place.scheme == "http" and place.hostname in _LOCAL):
        raise LoginError(f"{url} is no address to which a secret may be sent: it has to begin with https://")


def _error(found: dict[str, Any]) -> str:
    """The word of OAuth for what is wrong; nothing else of an answer is shown."""
    said = str(found.get("error", "no reason given"))
    return said if said.isprintable() and len(said) < 100 else "no reason given"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A secret goes to the address that was asked for, and to no other."""

    def redirect_request(self, *_args: Any, **_keywords: Any) -> None:
        """None: what redirects is an answer like others."""


_opener: Final = urllib.request.build_opener(_NoRedirect())


def _ask(url: str, form: Form | None = None) -> tuple[int, dict[str, Any]]:
    data = urlencode(form).encode() if form is not None else None
    request = urllib.request.Request(url, data=data, headers={"Accept": "application/json"})  # noqa: S310 - `_require_safe` looked
    try:
        with _opener.open(request, timeout=_DEADLINE_S) as answer:
            return answer.status, _decoded(answer.read(_LARGEST))
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _decoded(error.read(_LARGEST))
    except OSError as error:
        raise LoginError(f"{urlsplit(url).netloc} cannot be asked: {error}") from error


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}
