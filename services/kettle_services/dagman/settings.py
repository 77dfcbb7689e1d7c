"""What can be set about a dagman."""

from typing import Annotated, Final

import msgspec

from kettle.runtime import OwnerSettings
from kettle.runtime.setting_types import Seconds

NODES_OF_ONE: Final = 10_000_000


class DagmanSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_DAGMAN_<FIELD>` or the table `[dagman]`."""

    name: str = "schedd"
    """The name of the schedd whose workflows it has, which is also its own."""
    checkpoint_interval: Seconds = 1.0
    """Seconds between two savings of which workflows there are."""
    max_nodes_per_owner: Annotated[int, msgspec.Meta(ge=1)] = NODES_OF_ONE
    """
    Nodes of all workflows of one owner that are not over, which are in memory, some 100 bytes each: a workflow with which there would be
    more begins when others of that owner have ended.
    """
