"""The keys that an issuer publishes (RFC 7517), and what they may verify."""

from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

from kettle.auth.tokens.verified import TokenCode, TokenError, quoted

ALGORITHMS: Final[Mapping[str, Mapping[str, str]]] = {
    "RS256": {"kty": "RSA"},
    "ES256": {"kty": "EC", "crv": "P-256"},
}
"""The ways to sign that are accepted, with what a key for it says of itself: those of SciTokens and WLCG."""

_REGISTRY: Final = JWSRegistry(algorithms=list(ALGORITHMS))
_MODELS: Final = {name: _REGISTRY.get_alg(name) for name in ALGORITHMS}
_PUBLIC: Final = {"RSA": ("kty", "n", "e"), "EC": ("kty", "crv", "x", "y")}
_LEAST_RSA_BITS: Final = 2048
_MOST_RSA_BITS: Final = 8192
_MOST_KEYS: Final = 100
_MOST_OF_ONE_NAME: Final = 4
"""So many keys under one name are tried; more would let an issuer choose how long we work on a token."""


class PublicKey(msgspec.Struct, frozen=True):
    """One key, and the one way of signing that it is for."""

    kid: str
    algorithm: str
    key: RSAKey | ECKey

    def verifies(self, signed: bytes, signature: bytes) -> bool:
        """Whether the signature is one of this key over these bytes."""
        return _MODELS[self.algorithm].verify(signed, signature, self.key)


class KeySet(msgspec.Struct, frozen=True):
    """The keys of an issuer that can be used."""

    keys: tuple[PublicKey, ...] = ()

    def candidates(self, header: Mapping[str, object]) -> Sequence[PublicKey]:
        """
        The keys with which a token may have been signed: one, unless its issuer gave several the same name.

        `header` is one that was checked.

        Raises TokenError.
        """
        algorithm, kid = header["alg"], header.get("kid")
        named = self._named(kid)
        fitting = [key for key in named if key.algorithm == algorithm]
        if not fitting:
            raise TokenError(
                TokenCode.ALG,
                f"the token is signed by {algorithm}, and the key that it names is not for that",
            )
        return fitting[:_MOST_OF_ONE_NAME]

    def has(self, kid: object) -> bool:
        """Whether there is a key of this name; for a token without a name, whether there is just one key."""
        return len(self.keys) == 1 if kid is None else any(key.kid == kid for key in self.keys)

    def _named(self, kid: object) -> Sequence[PublicKey]:
        if kid is None and len(self.keys) > 1:
            raise TokenError(
                TokenCode.KEY_UNKNOWN,
                f"the token does not name its key (kid), and its issuer has {len(self.keys)}",
            )
        named = self.keys if kid is None else [key for key in self.keys if key.kid == kid]
        if not named:
            what = "any key" if kid is None else f"the key {quoted(kid)}"
            raise TokenError(TokenCode.KEY_UNKNOWN, f"the issuer of the token does not publish {what}")
        return named


class _Jwk(msgspec.Struct, frozen=True):
    """What is read of a published key; anything else in it is for other uses."""

    kty: str
    kid: str = ""
    use: str = "sig"
    key_ops: tuple[str, ...] = ("verify",)
    alg: str = ""
    crv: str = ""
    x: str = ""
    y: str = ""
    n: str = ""
    e: str = ""
    d: str = ""


class _Document(msgspec.Struct, frozen=True):
    keys: list[msgspec.Raw]


_decode: Final = msgspec.json.Decoder(_Document).decode
_decode_key: Final = msgspec.json.Decoder(_Jwk).decode


def key_set(document: bytes) -> KeySet:
    """
    The keys of a document that can verify tokens; keys of other kinds, for other uses, or too weak are left out.

    A key whose secret half is published, too, is left out: everybody can sign with it.

    Raises ValueError: the document is none.
    """
    try:
        published = _decode(document).keys
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        raise ValueError("the keys of the issuer are no JWK set") from None
    if len(published) > _MOST_KEYS:
        raise ValueError(
            f"the issuer publishes {len(published)} keys, and more than {_MOST_KEYS} are not read"
        )
    found = (_usable(raw) for raw in published)
    return KeySet(tuple(key for key in found if key is not None))


def _usable(raw: msgspec.Raw) -> PublicKey | None:
    try:
        jwk = _decode_key(raw)
    except msgspec.ValidationError:
        return None
    if jwk.d or jwk.use != "sig" or "verify" not in jwk.key_ops:
        return None
    algorithm = next(
        (name for name, says in ALGORITHMS.items() if all(getattr(jwk, it) == says[it] for it in says)), ""
    )
    if not algorithm or jwk.alg not in {"", algorithm}:
        return None
    parts = {name: getattr(jwk, name) for name in _PUBLIC[jwk.kty]}
    try:
        if jwk.kty == "RSA" and not _LEAST_RSA_BITS <= _bits(jwk.n) <= _MOST_RSA_BITS:
            return None
        key = RSAKey.import_key(parts) if jwk.kty == "RSA" else ECKey.import_key(parts)
    except (ValueError, JoseError):  # no point of the curve, no modulus, no base64
        return None
    return PublicKey(jwk.kid, algorithm, key)


def _bits(number: str) -> int:
    return int.from_bytes(urlsafe_b64decode(f"{number}==")).bit_length()
