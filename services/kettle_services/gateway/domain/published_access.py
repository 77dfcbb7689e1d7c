"""Who may use the published services of a job. Pure."""

from typing import Literal

import msgspec

from kettle.auth.mapping.principals import in_group
from kettle.published.sharing import Sharing

Because = Literal["owner", "shared", "group", "administrator", "session"]


class Asker(msgspec.Struct, frozen=True):
    """Who asks, by what the pool knows of the credential that was shown."""

    name: str
    groups: tuple[str, ...] = ()
    administrator: bool = False


def why_admitted(asker: Asker, owner: str, shared_with: Sharing) -> Because | None:
    """By what somebody may use them; None: he may not."""
    if asker.name == owner:
        return "owner"
    if asker.name in shared_with.people:
        return "shared"
    if any(in_group(asker.groups, each) for each in shared_with.groups):
        return "group"
    return "administrator" if asker.administrator else None
