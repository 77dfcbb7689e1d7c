"""Which machines are meant, for commands that do something to them."""

import re
from typing import Final

from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.daemon_names import Daemon, meant

_SLOT: Final = re.compile(r"slot\d+(?:_\d+)?@(.+)", re.IGNORECASE)


def host_of(client: ShortLivedClient) -> str:
    """The name of this machine in the pool: that of its master."""
    return client.pool.name_of("master")


def startd_of(client: ShortLivedClient, said: str) -> str:
    """
    The startd that is meant by its name, by the name of one of its slots, or by its name up to the first dot.

    Raises ToolError: there is none, or there are several.
    """
    return one_of(client, "startd", "StartDaemon", slot_of(said) or said)


def slot_of(said: str) -> str:
    """The startd of a slot, by the slot's name; empty if it is not called like a slot."""
    match = _SLOT.fullmatch(said)
    return match[1] if match else ""


def one_of(client: ShortLivedClient, role: str, kind: str, said: str) -> str:
    """
    The name of the daemon with an ad of this kind that is meant.

    Raises ToolError.
    """
    return meant(role, said, daemons_of(client, kind))


def daemons_of(client: ShortLivedClient, kind: str) -> list[Daemon]:
    """All daemons with ads of this kind."""
    ads = client.run(lambda pool: pool.ads(kind, projection=["Name", "Machine"]))
    return [Daemon(str(ad.get("Name", "")), str(ad.get("Machine", ""))) for ad in ads]


def names_of(client: ShortLivedClient, kind: str, constraint: str = "") -> list[str]:
    """The names of all daemons with ads of this kind."""
    ads = client.run(lambda pool: pool.ads(kind, constraint=constraint, projection=["Name"]))
    return sorted({str(ad.get("Name", "")) for ad in ads})
