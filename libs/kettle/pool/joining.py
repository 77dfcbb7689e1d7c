"""
How a machine joins a pool by a token: `kettle-join-1.<id>.<secret>.<pin>`.

The pin says which pool the token is for.  Over HTTPS it is the SHA-256 of the public key of the pool's authority: its certificate is fetched, compared,
and from then on the only one that is believed, before anything secret is sent.  Without HTTPS, on this machine only, it is the
thumbprint of the key with which the pool signs its answer.

The machine makes its own key; what comes back is a statement about it, which is worth nothing without that key.
"""

import base64
import http.client
import json
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from kettle.auth.trust.keys import KeyPair, Kind, SeedError
from kettle.auth.trust.server import Seeds
from kettle.bus.credentials import Credential
from kettle.pool.access_point import PEOPLE_KEY
from kettle_wire.events.iam import Joins

PREFIX: Final = "kettle-join-1"
GRANT: Final = "urn:kettle:params:oauth:grant-type:join-token"
_KEY: Final = "joining"
WORKER: Final = "worker"
"""The name of the credential of a machine, which its master shares."""
_DEADLINE_S: Final = 20.0
_LARGEST: Final = 1 << 20
_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class JoinError(Exception):
    """The machine has not joined; the text is one sentence, without the token."""


class _Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the pool."""

    pool: str
    worker: str
    joins: str
    owner: str
    jwt: str
    nats_url: str
    expires: float
    by: str = ""
    bus_ca: str = ""
    services: dict[str, str] = {}
    people_account: str = ""
    statement: str = ""


class _Problem(msgspec.Struct, frozen=True):
    """A refusal of the pool."""

    detail: str
    code: str = ""


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine has now."""

    pool: str
    worker: str
    owner: str
    nats_url: str
    credentials: dict[str, str]
    """The text of the files that it shows to the bus, by name; secret."""
    people_account: str
    """Of an access point: the public key of the account of the bus in which its people are."""
    administrator: str
    """Who made the token."""
    bus_ca: str
    """The certificate of the authority of the bus, in PEM; empty: its connections are not encrypted, or the system knows it."""
    authority: str
    """The certificate of the pool's authority, in PEM; empty without HTTPS."""


def join(url: str, token: str, *, home: Path, name: str, owner: str = "", joins: Joins = "worker") -> Joined:
    """
    Join the pool whose iam is at `url`; `owner`: refuse a token that is not for machines of this one.

    The key of the machine is written into `home` first: if the answer is lost, it asks again with the same.

    Raises:
        JoinError: the token is none, the pool is another, does not answer, or does not admit this machine.
    """
    parts = token.strip().split(".")
    if len(parts) != 4 or parts[0] != PREFIX:
        raise JoinError(f"this is no join token: it has four parts, {PREFIX}.ID.SECRET.PIN, all in one line")
    place = urlsplit(url if "://" in url else f"https://{url}")
    local = place.hostname in _LOCAL
    if place.scheme not in {"https", "http"} or not place.hostname or (place.scheme == "http" and not local):
        raise JoinError(f"{url} is no address to which a secret may be sent: it has to begin with https://")
    pin, key = parts[3], _made(home, _KEY, Kind.USER)
    authority = _authority(place.hostname, place.port, pin) if place.scheme == "https" else ""
    asked = {
        "grant_type": GRANT,
        "join_token": token.strip(),
        "name": name,
        "key": key.public,
        "joins": joins,
    }
    if owner:
        asked["owner"] = owner
    if joins == "schedd":
        asked["people"] = _made(home, PEOPLE_KEY, Kind.ACCOUNT).public
    connection = _Connection(place.hostname, place.port, authority)
    if not authority:
        keys = connection.get("/jwks.json")
        signer = _pinned(keys, pin, url)
        admitted = connection.join(asked)
        _require_stated(admitted, signer, url)
    else:
        admitted = connection.join(asked)
    return Joined(
        pool=admitted.pool,
        worker=admitted.worker,
        owner=admitted.owner,
        nats_url=admitted.nats_url,
        credentials={
            role: Credential(key.seed, jwt).text()
            for role, jwt in (admitted.services or {WORKER: admitted.jwt}).items()
        },
        people_account=admitted.people_account,
        administrator=admitted.by,
        bus_ca=admitted.bus_ca,
        authority=authority,
    )


class _Connection:
    """Asks one server, one question at a time."""

    def __init__(self, host: str, port: int | None, authority: str) -> None:
        """`authority`: the only certificate that is believed; empty: this is HTTP."""
        self._host, self._port = host, port
        self._context = ssl.create_default_context(cadata=authority) if authority else None

    def get(self, path: str) -> bytes:
        """A document."""
        status, body = self._ask("GET", path, {})
        if status != 200:
            raise JoinError(f"{self._host} is no iam of a pool: it has no {path}")
        return body

    def join(self, form: dict[str, str]) -> _Admitted:
        """Present the token."""
        status, body = self._ask("POST", "/v1/token", form)
        try:
            if status == 200:
                return msgspec.json.decode(body, type=_Admitted)
            raise JoinError(msgspec.json.decode(body, type=_Problem).detail)
        except msgspec.MsgspecError as error:
            raise JoinError(f"{self._host} does not answer as an iam does (status {status})") from error

    def _ask(self, method: str, path: str, form: dict[str, str]) -> tuple[int, bytes]:
        return _ask(self._host, self._port, self._context, method, path, form)


def _ask(
    host: str, port: int | None, context: ssl.SSLContext | None, method: str, path: str, form: dict[str, str]
) -> tuple[int, bytes]:
    connection: http.client.HTTPConnection
    if context is None:
        connection = http.client.HTTPConnection(host, port, timeout=_DEADLINE_S)
    else:
        connection = http.client.HTTPSConnection(host, port, timeout=_DEADLINE_S, context=context)
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
    try:
        connection.request(method, path, body=urlencode(form) if form else None, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(_LARGEST)
    except (OSError, http.client.HTTPException) as error:
        raise JoinError(f"{host} cannot be asked: {error}") from error
    finally:
        connection.close()


def forget_key(home: Path) -> None:
    """The key that was made to join is in the credentials now."""
    (home / "credentials" / f"{_KEY}.nk").unlink(missing_ok=True)


def _made(home: Path, name: str, kind: Kind) -> KeyPair:
    """A key that this machine makes for one pool, and keeps."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)  # what is above it is nobody's secret
        return Seeds(home / "credentials").key(name, kind)
    except SeedError as error:
        raise JoinError(str(error)) from error
    except OSError as error:
        raise JoinError(f"{error.filename or home} cannot be written: {error.strerror}") from error


def _authority(host: str, port: int | None, pin: str) -> str:
    """The certificate that the token names, from a server that nobody has checked yet: the pin checks it."""
    from kettle.pki.certificates import CertificateError, pins_in  # the only command that needs it

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    status, pem = _ask(host, port, context, "GET", "/ca.pem", {})
    try:
        found = pins_in(pem)
    except CertificateError as error:
        raise JoinError(f"{host} shows no certificate of an authority (status {status})") from error
    if f"sha256:{pin}" not in found:
        raise JoinError(
            f"{host} is not of the pool that the token is for: its authority is another; nothing was sent"
        )
    return found[f"sha256:{pin}"].decode("ascii")


def _pinned(keys: bytes, pin: str, url: str) -> Any:
    """The key that the token names."""
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey  # the only command that needs it

    try:
        found = [ECKey.import_key(key) for key in json.loads(keys)["keys"]]
    except (ValueError, KeyError, TypeError, JoseError) as error:
        raise JoinError(f"{url} does not show its keys as an iam does") from error
    for key in found:
        if _decoded(str(key.thumbprint())).hex() == pin:
            return key
    raise JoinError(f"{url} is not of the pool that the token is for: it has another key; nothing was sent")


def _require_stated(admitted: _Admitted, signer: Any, url: str) -> None:
    """Raise JoinError for an answer that is not signed with the key that the token names."""
    from joserfc import jwt
    from joserfc.errors import JoseError

    try:
        claims = jwt.decode(admitted.statement, signer, algorithms=["ES256"]).claims
    except (JoseError, ValueError) as error:
        raise JoinError(f"the answer of {url} is not signed by the pool that the token is for") from error
    said = {name: value for name, value in msgspec.structs.asdict(admitted).items() if name != "statement"}
    if any(claims.get(name) != value for name, value in said.items()):
        raise JoinError(f"the answer of {url} was changed on its way")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
