"""
The keys of iam: ES256, in one file that only its owner can read, made and rotated without anybody's help.

A new key is published some time before it signs, so that those who keep copies of the keys have it by then; an old one stays published
until the last token that it has signed is over.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from kettle.auth import sealing
from kettle.auth.private_files import private_directory, write_private
from kettle.auth.sealing import SealingError
from kettle.runtime import SettingsError
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.ports import Claims

_ALGORITHM: Final = "ES256"
_LONGEST: Final = 16 * 1024
"""Characters; longer tokens are none of ours, and are not looked at."""


class _Stored(msgspec.Struct, frozen=True):
    """A key in the file."""

    created: float
    jwk: dict[str, Any]


class _File(msgspec.Struct, frozen=True):
    """The file; the first key signs the statements to machines that join, and is never exchanged."""

    pinned: dict[str, Any]
    keys: list[_Stored]


class KeyFile:
    """The keys of one directory."""

    def __init__(self, directory: Path, *, lifetime: float, overlap: float, now: float) -> None:
        """
        `lifetime`: seconds for which a key signs. `overlap`: seconds for which it is published before, and after.

        Raises:
            SettingsError: the file is damaged.
        """
        self._path: Final = private_directory(directory) / "signing-keys.json"
        self._lifetime = lifetime
        self._overlap = overlap
        try:
            self._file = msgspec.json.decode(self._path.read_bytes(), type=_File)
        except FileNotFoundError:
            first = _Stored(now - overlap, _new())
            self._save(_File(_new(), [first]))
        except msgspec.MsgspecError as error:
            raise SettingsError(
                f"{self._path} holds no signing keys ({error}): restore it, or remove it to have new ones made, "
                "which makes all tokens invalid"
            ) from error
        self._keys = self._loaded()

    @property
    def pin(self) -> str:
        """See `TokenKeys`."""
        return _thumbprint(self._pinned).hex()

    def sign(self, claims: Claims, *, now: float) -> str:
        """See `TokenKeys`."""
        settled = [key for key in self._file.keys if key.created + self._overlap <= now]
        chosen = max(settled or self._file.keys[:1], key=lambda key: key.created)
        key = self._keys[_kid(ECKey.import_key(chosen.jwk))]
        return _signed(claims, key, "at+jwt")

    def statement(self, claims: Claims) -> str:
        """See `TokenKeys`."""
        return _signed(claims, self._pinned, "kettle-join+jwt")

    def opened(self, sealed: str) -> Mapping[str, str]:
        """See `TokenKeys`."""
        try:
            return sealing.opened(sealed, self._pinned)
        except SealingError as error:
            raise Denied(Code.JOIN_MALFORMED, str(error), status=400) from error

    def verified(self, token: str) -> Claims:
        """See `TokenKeys`."""
        if len(token) > _LONGEST or not token.isascii():
            raise Denied(Code.TOKEN_MALFORMED, "this is no token of this pool", status=401)
        try:
            header = msgspec.json.decode(_decoded(token.partition(".")[0]), type=dict[str, Any])
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            raise Denied(Code.TOKEN_MALFORMED, "this is no JWT", status=401) from error
        if header.get("alg") != _ALGORITHM:
            raise Denied(Code.TOKEN_ALG, f"the token is not signed with {_ALGORITHM}", status=401)
        key = self._keys.get(str(header.get("kid")))
        if key is None:
            raise Denied(
                Code.TOKEN_KEY_UNKNOWN,
                "the token is signed with a key that this pool does not have",
                status=401,
            )
        try:
            decoded = jwt.decode(token, key, algorithms=[_ALGORITHM])
        except (JoseError, ValueError, RecursionError) as error:
            raise Denied(Code.TOKEN_SIGNATURE, "the signature of the token is wrong", status=401) from error
        if decoded.header.get("typ") != "at+jwt":
            raise Denied(Code.TOKEN_MALFORMED, "this is no access token", status=401)
        return decoded.claims

    def published(self) -> Claims:
        """See `TokenKeys`."""
        return {
            "keys": [
                {**_plain(key.as_dict(private=False)), "kid": kid, "alg": _ALGORITHM, "use": "sig"}
                for kid, key in {**self._keys, _kid(self._pinned): self._pinned}.items()
            ]
        }

    def rotate(self, *, now: float) -> bool:
        """See `TokenKeys`."""
        keys = [key for key in self._file.keys if now < key.created + self._lifetime + 2 * self._overlap]
        newest = max((key.created for key in keys), default=0.0)
        if now >= newest + self._lifetime:
            keys.append(_Stored(now, _new()))
        if keys == self._file.keys:
            return False
        self._save(_File(self._file.pinned, keys))
        self._keys = self._loaded()
        return True

    def _save(self, file: _File) -> None:
        write_private(self._path, msgspec.json.encode(file).decode())
        self._file = file

    def _loaded(self) -> dict[str, ECKey]:
        self._pinned = ECKey.import_key(self._file.pinned)
        keys = [ECKey.import_key(each.jwk) for each in self._file.keys]
        return {_kid(key): key for key in keys}


def _new() -> dict[str, Any]:
    return _plain(ECKey.generate_key("P-256", private=True).as_dict(private=True))


def _plain(jwk: Mapping[str, Any]) -> dict[str, Any]:
    return {name: jwk[name] for name in ("kty", "crv", "x", "y", "d") if name in jwk}


def _kid(key: ECKey) -> str:
    return str(key.thumbprint())


def _thumbprint(key: ECKey) -> bytes:
    return _decoded(_kid(key))


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _signed(claims: Claims, key: ECKey, kind: str) -> str:
    header = {"alg": _ALGORITHM, "kid": _kid(key), "typ": kind}
    return str(jwt.encode(header, dict(claims), key, algorithms=[_ALGORITHM]))
