"""What can be set about a scaler; what a pool is to be like is in its pool file."""

from typing import Annotated

import msgspec

from kettle.runtime import OwnerSettings
from kettle.runtime.setting_types import Pause, Seconds

_Machines = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


class ScalerSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_SCALER_<FIELD>` or the table `[scaler]`."""

    name: str = "scaler"
    negotiator: str = "negotiator"
    """The name of the negotiator that is asked how submitters stand."""
    provisioner: str = "provisioner"
    """The name of the provisioners."""
    interval: Seconds = 15.0
    """Seconds after which a plan is made even if nothing is known to have changed."""
    min_interval: Pause = 2.0
    """Seconds from the start of a plan to the start of the next."""
    max_actions: _Machines = 250
    """So many machines a plan asks for at most, and removes at most."""
    checkpoint_interval: Seconds = 1.0
    """Seconds between two savings of what pools and leases are like."""
    administrators: tuple[str, ...] = ()
    """Users who may change pools, besides the account that this service runs as."""
