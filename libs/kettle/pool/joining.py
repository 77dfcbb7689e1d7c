"""
How a machine joins a pool by a token: `kettle-join-1.<id>.<secret>.<pin>`.

The pin says which pool the token is for.  Over HTTPS it is the SHA-256 of the public key of the pool's authority: its certificate is fetched, compared,
and from then on the only one that is believed, before anything secret is sent.  Without HTTPS, on this machine only, it is the
thumbprint of the key with which the pool signs its answer, and for which the machine seals what it sends: somebody else who has
taken the port hears no secret, even if he shows that key.

The machine makes its own key; what comes back is a statement about it, which is worth nothing without that key.
"""

import base64
import json
import ssl
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.auth.trust.keys import KeyPair, Kind, SeedError
from kettle.auth.trust.server import Seeds
from kettle.bus.credentials import Credential
from kettle.client.errors import ClientError
from kettle.client.iam_http import IamAddress, IamHttp
from kettle.pool.access_point import PEOPLE_KEY
from kettle_wire.events.iam import Joins
from kettle_wire.iam_http import JOIN_GRANT, JOIN_PREFIX

_KEY: Final = "joining"
WORKER: Final = "worker"
"""The name of the credential of a machine, which its master shares."""


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
    if len(parts) != 4 or parts[0] != JOIN_PREFIX:
        raise JoinError(
            f"this is no join token: it has four parts, {JOIN_PREFIX}.ID.SECRET.PIN, all in one line"
        )
    pin = parts[3]
    asking = {"grant_type": JOIN_GRANT, "join_token": token.strip(), "name": name, "joins": joins}
    try:
        address = IamAddress.of(url)
        key = _made(home, _KEY, Kind.USER)
        asking |= {"key": key.public, **({"owner": owner} if owner else {})}
        if joins == "schedd":
            asking["people"] = _made(home, PEOPLE_KEY, Kind.ACCOUNT).public
        if address.scheme == "https":
            authority = _authority(address, pin)
            iam = IamHttp(address, ssl.create_default_context(cadata=authority))
            admitted = _admitted(iam, asking)
        else:
            authority, iam = "", IamHttp(address)
            signer = _pinned(iam.get("/jwks.json"), pin, url)
            from kettle.auth.sealing import sealed

            admitted = _admitted(iam, {"grant_type": JOIN_GRANT, "sealed": sealed(asking, signer)})
            _require_stated(admitted, signer, url)
    except ClientError as error:
        raise JoinError(str(error)) from error
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


def _admitted(iam: IamHttp, asking: dict[str, str]) -> _Admitted:
    """The answer to who presents the token."""
    try:
        return msgspec.json.decode(iam.post("/v1/token", asking), type=_Admitted)
    except msgspec.MsgspecError as error:
        raise JoinError(f"{iam.host} does not answer as an iam does") from error


def _authority(address: IamAddress, pin: str) -> str:
    """The certificate that the token names, from a server that nobody has checked yet: the pin checks it."""
    from kettle.pki.certificates import CertificateError, pins_in  # the only command that needs it

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host = address.host
    status, pem = IamHttp(address, context).ask("GET", "/ca.pem", {})
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
