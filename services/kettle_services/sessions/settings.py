"""What can be set about a service of interactive sessions; profiles are in a file of their own."""

from typing import Annotated

import msgspec

from kettle.runtime import OwnerSettings
from kettle.runtime.setting_types import Pause, Seconds


class SessionsSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_SESSIONS_<FIELD>` or the table `[sessions]`."""

    name: str = "schedd"
    """The name of the schedd whose jobs the members of sessions are, which is also its own."""
    negotiator: str = "negotiator"
    """Who is asked why members wait."""
    profiles: str = ""
    """The file with the profiles, TOML; empty: those that are built in. It is read again when it changes."""
    profiles_interval: Seconds = 5.0
    """Seconds between two looks whether that file has changed."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 20
    """Sessions of one person that are not over, at most."""
    keep: Pause = 86_400.0
    """Seconds for which a session that is over is listed still."""
    keep_most: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 200
    """
    Sessions of one person that are over and listed still, at most, and task queues likewise; those that ended first are forgotten.
    """
    checkpoint_interval: Seconds = 1.0
    """Seconds between two savings of how sessions are."""
    tasks_lease: Annotated[float, msgspec.Meta(ge=5, le=86_400)] = 60.0
    """Seconds after which a worker of a task queue has lost its tasks that has said nothing; it ends them a quarter earlier."""
    tasks_queues: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 50
    """Task queues of one person that are not over, at most."""
    tasks_kept: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 64
    """MiB of all tasks of one person that have no result yet, at most: they are in memory."""
    tasks_keep: Pause = 604_800.0
    """Seconds for which a task queue that is over is listed, and its results can be read."""
