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
    iam: str = "iam"
    """The iam that machines have joined by."""
    reconcile_interval: Seconds = 60.0
    """Seconds after which each provider is asked which machines it has, give or take a fifth."""
    doubt_interval: Seconds = 10.0
    """Seconds after which a provider is asked again while it is in doubt whether it has some machine."""
    renew_interval: Seconds = 15.0
    """Seconds after which a machine says how it is."""
    answer: Seconds = 75.0
    """Seconds after which a request for a machine that was not answered is in doubt; provisioners take less time for one."""
    shortest_boot: Seconds = 120.0
    """A machine has so long to boot, even if it is expected to take less than a third of it."""
    longest_boot: Seconds = 1200.0
    """It has no longer, however long it is expected to take."""
    phase: Seconds = 300.0
    """Seconds that a machine may say nothing new while it joins or examines itself."""
    dead: Seconds = 120.0
    """Seconds after which a machine that is not heard of is looked for."""
    orphan_grace: Seconds = 900.0
    """Seconds after which a machine ends itself without us, and one that no lease wants is removed."""
    removal_interval: Seconds = 5.0
    """Seconds from the first request to remove a machine to the second; each pause is twice the one before."""
    sleep_deadline: Seconds = 120.0
    """Seconds after which a machine of a static pool that was put to sleep and still answers stays awake."""
    wake_pause: Seconds = 300.0
    """Seconds from a machine that did not wake to the next try; each pause is twice the one before, and the third failure is the last."""
    interval: Seconds = 15.0
    """Seconds after which a plan is made even if nothing is known to have changed."""
    min_interval: Pause = 0.3
    """Seconds from the start of a plan to the start of the next; plans never take more than a tenth of a processor."""
    max_actions: _Machines = 250
    """So many machines a plan asks for at most, and removes at most."""
    checkpoint_interval: Seconds = 1.0
    """Seconds between two savings of what pools and leases are like."""
    administrators: tuple[str, ...] = ()
    """Users who may change pools, besides the account that this service runs as."""
