"""Which machines are meant, for commands that do something to them."""

import re
from typing import Final

from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.errors import ToolError

_SLOT: Final = re.compile(r"slot\d+(?:_\d+)?@(.+)", re.IGNORECASE)
_SHOWN: Final = 20
"""Names in a sentence."""


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
    The name of a daemon with ads of this kind; its part before the first dot is enough if it is one's only.

    Raises ToolError.
    """
    names = names_of(client, kind)
    if said in names:
        return said
    found = [name for name in names if name.partition(".")[0] == said]
    if len(found) == 1:
        return found[0]
    if found:
        raise ToolError(f"{said} may be any of {', '.join(found)}: write the whole name")
    more = ", ..." if len(names) > _SHOWN else ""
    known = f"it has {', '.join(names[:_SHOWN])}{more}" if names else "it has none now"
    raise ToolError(f"Can't find address for {role} {said}: the pool has no such {role}; {known}")


def names_of(client: ShortLivedClient, kind: str, constraint: str = "") -> list[str]:
    """The names of all daemons with ads of this kind."""
    ads = client.run(lambda pool: pool.ads(kind, constraint=constraint, projection=["Name"]))
    return sorted({str(ad.get("Name", "")) for ad in ads})
