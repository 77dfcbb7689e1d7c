"""
The pass with which a schedd and its shadow visit another pool: made by that pool's administrator, kept here.

    credentials/flock/      in the pool's directory, for its owner only
        NAME.json           the pass
        NAME.creds          what it shows to the bus of that pool: a key, and what the pool says of it
        NAME.pem            the certificate of that pool's authority, if it has one
"""

import os
import re
from pathlib import Path
from typing import Annotated, Final

import msgspec

from kettle.bus.credentials import Credential
from kettle_wire.flocking import POOL, VISITOR

_NAME: Final = re.compile(POOL)


class PassError(Exception):
    """There is no pass, or it is invalid; the message says what to do."""


class Pass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The right to visit a pool. A pass is a secret: its holder is treated as the visitor."""

    pool: Annotated[str, msgspec.Meta(min_length=1)]
    """What that pool calls itself."""
    nats_url: Annotated[str, msgspec.Meta(min_length=1)]
    visitor: Annotated[str, msgspec.Meta(pattern=VISITOR)]
    """The name under which the schedd is admitted, `name@domain`."""
    seed: Annotated[str, msgspec.Meta(pattern=r"^S[A-Z2-7]+$")]
    jwt: str = ""
    """What that pool says of the key; empty: its server knows the key itself."""
    ca: str = ""
    """The certificate of the authority by which that pool's bus is trusted (PEM); empty: connections are not encrypted, or
    the system knows the authority."""

    def __repr__(self) -> str:
        return f"Pass({self.visitor} to {self.pool})"


def encoded(one: Pass) -> bytes:
    """The file of a pass."""
    return msgspec.json.format(msgspec.json.encode(one)) + b"\n"


def decoded(data: bytes, where: str) -> Pass:
    """Inverse of `encoded`; PassError names the place."""
    try:
        return msgspec.json.decode(data, type=Pass)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PassError(f"{where} is no pass: {error}") from error


class Passes:
    """The passes in a pool's directory."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "credentials" / "flock"

    def names(self) -> list[str]:
        """The pools that there are passes for."""
        return sorted(path.stem for path in self._directory.glob("*.json"))

    def load(self, name: str) -> Pass:
        """The pass for a pool. Raises PassError."""
        path = self._directory / f"{name}.json"
        try:
            return decoded(path.read_bytes(), str(path))
        except FileNotFoundError:
            raise PassError(
                f"there is no pass for it: have its administrator make one, and take it in with "
                f"`kettle flock use FILE --as {name}`"
            ) from None
        except OSError as error:
            raise PassError(f"{path} cannot be read: {error.strerror}") from error

    def key(self, name: str) -> Path:
        """The file with the key of a pass."""
        return self._directory / f"{name}.creds"

    def authority(self, name: str) -> Path:
        """The file with the certificate of the authority of a pass."""
        return self._directory / f"{name}.pem"

    def keep(self, name: str, one: Pass) -> Path:
        """Take a pass in, for the owner of the directory alone; where it lies now."""
        if not _NAME.fullmatch(name):
            raise PassError(f"'{name}' is no name for a pool: letters, digits, - and _")
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(self.key(name), Credential(one.seed, one.jwt).text().encode())
        if one.ca:
            _write(self.authority(name), one.ca.encode())
        return _write(self._directory / f"{name}.json", encoded(one))


def _write(path: Path, data: bytes) -> Path:
    stage = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    with os.fdopen(os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
    return stage.replace(path)
