"""What can be set about a compute entrypoint; its routes are in a file of their own."""

from typing import Annotated

import msgspec

from kettle.runtime import OwnerSettings
from kettle.runtime.setting_types import Pause, Seconds
from kettle_services.ce.batch.settings import BatchSettings, FilesSettings


class CeSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_CE_<FIELD>` or the table `[ce]`."""

    name: str = "schedd"
    """The name of the schedd whose jobs it routes, which is also its own."""
    routes: str = ""
    """The file with the routes, in HTCondor's language (JOB_ROUTER_ROUTE_NAMES and the rest); it is read again when it changes."""
    routes_interval: Seconds = 5.0
    """Seconds between two looks whether that file has changed."""
    hold_unrouted_after: Pause = 1800.0
    """Seconds after which a job that no route takes is held; 0: it waits."""
    at_once: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 500
    """Jobs that are asked for at once."""
    batch: tuple[BatchSettings, ...] = ()
    """The batch systems, tables `[[ce.batch]]`, by names that routes and jobs use: `GridResource = "batch NAME"`."""
    files: FilesSettings | None = None
    """Where nodes that share no file system with this service fetch the files of their jobs: a table `[ce.files]`."""
    checkpoint_interval: Seconds = 1.0
    """Seconds between two savings of what is decided."""
    administrators: tuple[str, ...] = ()
    """Users who may have the routes read again, besides the account that this service runs as."""
