"""What can be set about a dagman."""

from kettle.runtime import OwnerSettings
from kettle.runtime.setting_types import Seconds


class DagmanSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_DAGMAN_<FIELD>` or the table `[dagman]`."""

    name: str = "schedd"
    """The name of the schedd whose workflows it has, which is also its own."""
    checkpoint_interval: Seconds = 1.0
    """Seconds between two savings of which workflows there are."""
