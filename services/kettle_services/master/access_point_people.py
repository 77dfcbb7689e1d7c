"""
The people of an access point that has joined a pool: accounts of its machine, for whom it vouches with a key of its own.

What they may do with such a statement is in the pool's account, and nothing of the queues of other access points.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from kettle.auth.trust.files import write
from kettle.auth.trust.jwts import encode
from kettle.auth.trust.keys import KeyPair, Kind
from kettle.auth.trust.pool import Kind as Member
from kettle.auth.trust.pool import tags_of
from kettle.auth.trust.server import Seeds
from kettle.bus.credentials import PERSON_AT
from kettle.pool.access_point import FILE, PEOPLE_KEY, AccessPointFile
from kettle.pool.home import Home
from kettle.runtime import SettingsError
from kettle_services.master.account_access import credential_of
from kettle_wire.subjects import token

PERSON: Final = "user"
"""The name of the credential of the account that runs the master."""


class AccessPointPeople:
    """Signs for them."""

    def __init__(self, home: Home, key: KeyPair, said: AccessPointFile) -> None:
        """`said`: what the pool has told when it joined."""
        self._home = home
        self._key = key
        self._said = said

    @classmethod
    def of(cls, home: Home) -> "AccessPointPeople | None":
        """
        None if this is no access point that has joined.

        Raises:
            SettingsError: the file that says so is damaged.
        """
        path = home.credentials / FILE
        try:
            said = msgspec.json.decode(path.read_bytes(), type=AccessPointFile)
            key = Seeds(home.credentials).key(PEOPLE_KEY, Kind.ACCOUNT)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise SettingsError(
                f"{path} cannot be used ({error}): join again with kettle schedd join"
            ) from error
        return cls(home, key, said)

    def admit(self, names: Sequence[str]) -> None:
        """
        Write the credentials of these, the first of which is the account that runs the master; others lose
        theirs.
        """
        wanted = {PERSON: names[0], **{credential_of(name): name for name in names[1:]}}
        for path in self._home.credentials.glob(f"{credential_of('*')}.creds"):
            if path.stem not in wanted:
                path.unlink()
        for credential, name in wanted.items():
            write(self._home.credential(credential), partial(self._stated, name))

    def _stated(self, name: str, public: str) -> str:
        tags = [*tags_of(Member.PERSON), f"{PERSON_AT}{self._said.name}"]
        nats = {"type": "user", "version": 2, "issuer_account": self._said.people_account, "tags": tags}
        return encode(self._key, public, nats, name=token(name), issued=int(time.time()))
