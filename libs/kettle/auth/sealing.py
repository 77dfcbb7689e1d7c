"""
A form that only the holder of a key can read (JWE, ECDH-ES with A256GCM).

Where a pool is known by its key and the line is not encrypted, somebody else who has taken the port of the pool's server hears no secret.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

_AGREEMENT: Final = "ECDH-ES"
_CIPHER: Final = "A256GCM"
_LONGEST: Final = 16 * 1024


class SealingError(ValueError):
    """It was not sealed for this key, or is no form; the message has nothing of what is in it."""


def sealed(parameters: Mapping[str, str], key: ECKey) -> str:
    """The form, for who has the private half of the key."""
    header = {"alg": _AGREEMENT, "enc": _CIPHER}
    return jwe.encrypt_compact(header, msgspec.json.encode(parameters), _for_this(key))


def opened(text: str, key: ECKey) -> dict[str, str]:
    """What was sealed; raises SealingError."""
    if len(text) > _LONGEST:
        raise SealingError("a sealed form is not that long")
    try:
        form = jwe.decrypt_compact(text, _for_this(key), algorithms=[_AGREEMENT, _CIPHER]).plaintext or b""
        return msgspec.json.decode(form, type=dict[str, str])
    except (JoseError, ValueError, RecursionError) as error:
        raise SealingError("this is no form that was sealed for this pool") from error


def _for_this(key: ECKey) -> ECKey:
    """The key without what its holder says of its use: it signs, too."""
    parts = key.as_dict(private=key.is_private)
    return ECKey.import_key({name: parts[name] for name in ("kty", "crv", "x", "y", "d") if name in parts})
