"""Which knobs say where keys and tokens are."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.idtokens.pool_key import POOL

_ETC: Final = "/etc/condor"


class TokenPlaces(msgspec.Struct, frozen=True):
    """Of one person on one machine."""

    trust_domain: str
    pool_key: Path
    """The file of the key that is called POOL."""
    keys: Path
    """The directory of all other keys."""
    tokens: Path
    """The directory of the person's tokens."""

    def key(self, name: str) -> Path:
        """The file of a key; raises ValueError: the name is none of a file."""
        if name in {"", POOL}:
            return self.pool_key
        if name != Path(name).name or name in {".", ".."}:
            raise ValueError(f"the name of a key is one of a file in {self.keys}, and {name!r} is none")
        return self.keys / name


def token_places(knob: Callable[[str], str | None]) -> TokenPlaces:
    """As the knobs say, with HTCondor's defaults. Raises RuntimeError: there is no home for tokens."""
    etc = Path(knob("ETC") or _ETC)
    keys = Path(knob("SEC_PASSWORD_DIRECTORY") or etc / "passwords.d")
    pool_key = knob("SEC_TOKEN_POOL_SIGNING_KEY_FILE") or knob("SEC_PASSWORD_FILE") or keys / POOL
    return TokenPlaces(
        trust_domain=knob("TRUST_DOMAIN") or knob("UID_DOMAIN") or socket.gethostname(),
        pool_key=Path(pool_key),
        keys=keys,
        tokens=_tokens(knob, etc),
    )


def _tokens(knob: Callable[[str], str | None], etc: Path) -> Path:
    named = knob("SEC_TOKEN_DIRECTORY")
    if named:
        return Path(named).expanduser()
    if os.geteuid() == 0:  # root's tokens are those of the machine
        return Path(knob("SEC_TOKEN_SYSTEM_DIRECTORY") or etc / "tokens.d")
    return Path("~/.condor/tokens.d").expanduser()
