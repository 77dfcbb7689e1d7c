"""The tokens of programs of HTCondor (IDTOKENS), which a key of the pool signs."""

import os
from typing import Final

import msgspec

from kettle.auth.idtokens.idtoken import IdTokenClaims, create
from kettle.auth.idtokens.places import TokenPlaces, token_places
from kettle.auth.idtokens.pool_key import POOL, KeyFileError, read_key, scrambled, signing_secret
from kettle.auth.private_files import private_directory, write_private
from kettle.client.connections.condor_config import CondorConfig
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.settings import IamSettings

_KEY_BYTES: Final = 64
_PLACES: Final = ("SEC_PASSWORD_DIRECTORY", "SEC_TOKEN_POOL_SIGNING_KEY_FILE", "SEC_PASSWORD_FILE")


def pool_places(settings: IamSettings) -> TokenPlaces:
    """
    Where the keys of the pool are: where HTCondor's knobs say, else where an HTCondor of this machine has one, else in the pool's
    directory.
    """
    knobs = CondorConfig(os.environ)
    home = str(
        settings.directory / "tokens.d"
    )  # of the service, which has no tokens: its account may have no home
    found = token_places(lambda name: knobs.get(name) or (home if name == "SEC_TOKEN_DIRECTORY" else None))
    if any(map(knobs.get, _PLACES)) or (os.access(found.pool_key, os.R_OK) and os.geteuid() == 0):
        return found
    own = settings.directory / "passwords.d"
    return msgspec.structs.replace(found, keys=own, pool_key=own / POOL)


class IdTokens:
    """Makes tokens."""

    def __init__(self, places: TokenPlaces, *, longest: float) -> None:
        """`longest`: the longest life of a token, in seconds; 0: tokens need not end."""
        self._places: Final = places
        self._longest = int(longest)

    @property
    def trust_domain(self) -> str:
        """What the tokens of this pool name as theirs."""
        return self._places.trust_domain

    def lifetime(self, wanted: int) -> int:
        """Seconds of a token that is to live for so many, or as long as can be (0); 0: it does not end."""
        return min(wanted, self._longest) if wanted and self._longest else wanted or self._longest

    def require_key(self, name: str) -> str:
        """
        The name of a key that signs; the one that is called POOL is made if there is none.

        Raises:
            Denied: there is no such key, or it cannot be used.
        """
        key = name or POOL
        self._secret(key)
        return key

    def make(
        self, identity: str, levels: tuple[str, ...], token: str, key: str, *, issued: float, lifetime: int
    ) -> str:
        """
        The token of this id; the same arguments make the same token.

        Raises:
            Denied: the key is gone, or cannot be used.
        """
        claims = IdTokenClaims(
            trust_domain=self.trust_domain,
            identity=identity,
            issued=int(issued),
            id=token,
            lifetime=lifetime or None,
            levels=levels,
        )
        return create(claims, key, self._secret(key))

    def _secret(self, key: str) -> bytes:
        try:
            path = self._places.key(key)
            if key == POOL and not path.exists():
                private_directory(path.parent)
                write_private(path, scrambled(os.urandom(_KEY_BYTES)))
            return signing_secret(key, read_key(path))
        except (KeyFileError, ValueError) as error:
            raise Denied(
                Code.TOKENREQUEST_CLOSED, f"the pool has no key {key}: {error}", status=409
            ) from error
        except OSError as error:
            raise Denied(
                Code.TOKENREQUEST_CLOSED,
                f"the pool has no key that signs tokens, and none can be made: {error.filename}: {error.strerror}",
                status=409,
            ) from error
