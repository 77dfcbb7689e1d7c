"""What can be set about a provisioner."""

from typing import Annotated, Any

import msgspec

from kettle.runtime import Settings
from kettle.runtime.setting_types import Seconds


class ProvisionerSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_PROVISIONER_<FIELD>` or the table `[provisioner]`."""

    name: str = "provisioner"
    """Provisioners of one name have the same providers, and each request goes to one of them."""
    deployment: Annotated[str, msgspec.Meta(max_length=63, pattern=r"^([a-z0-9][a-z0-9-]*)?$")] = ""
    """
    What machines are marked with, so that two installations on one account leave each other's alone; empty: the name of the
    pool and something of its key, which no other pool has.
    """
    providers: dict[str, dict[str, Any]] = {}
    """
    Tables `[provisioner.providers.NAME]` with `kind` and what providers of that kind have; empty: `process`, which makes machines as
    processes on this host.
    """
    iam: str = "iam"
    """The name of the iam that gives join tokens."""
    at_once: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 16
    """Calls of one provider at the same time."""
    rate: Annotated[float, msgspec.Meta(gt=0, le=10_000)] = 10.0
    """Calls of one provider in a second; it is halved while the provider says that these are too many."""
    call_deadline: Seconds = 60.0
    """Seconds for one call; one whose turn does not come within them is not made."""
