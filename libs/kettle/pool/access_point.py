"""What makes a machine an access point that has joined a pool."""

from typing import Final

import msgspec

PEOPLE_KEY: Final = "sign-people"
"""The name of the key with which it vouches for its people."""
FILE: Final = "access-point.json"
"""Beside the credentials."""


class AccessPointFile(msgspec.Struct, frozen=True):
    """What it has to know to vouch for them."""

    name: str
    """Its own, by which its people have places for answers that nobody of the same name elsewhere hears."""
    people_account: str
