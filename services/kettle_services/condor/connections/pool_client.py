"""The client of a condor_* command."""

import time
from typing import Final

from kettle.client.connections.condor_config import CondorConfig, pool_of
from kettle.client.connections.pool_file import PoolFile
from kettle.client.connections.transport import PATIENCE_S
from kettle.client.short_lived import ShortLivedClient

DEFAULT_SCHEDD: Final = PoolFile(nats_url="").schedd
_RESTART_S: Final = 5.0
"""So long a schedd of that name is looked for, which may be restarting: its ad is not there meanwhile."""
_PAUSE_S: Final = 0.5


def client_of(knobs: CondorConfig, *, pool: str = "", name: str = "") -> ShortLivedClient:
    """
    The client of the pool and the schedd that are meant, as patient as the knob TOOL_PATIENCE says, seconds.

    Raises:
        PoolNotFoundError: there is no such pool.
        NoSuchDaemonError: it has no such schedd.
        ToolError: it has several that may be meant.
    """
    patience = knobs.number("TOOL_PATIENCE", PATIENCE_S)
    said = name or knobs.get("SCHEDD_NAME") or knobs.get("SCHEDD_HOST") or ""
    # Programs take any line of standard error for the command's own, and that says in one sentence what went wrong.
    client = ShortLivedClient(pool_of(knobs, pool=pool, name=name), patience, quiet=True)
    if said.strip() in {"", DEFAULT_SCHEDD}:
        return client
    return ShortLivedClient(
        client.pool.at(schedd_named(client, said.strip(), patience)), patience, quiet=True
    )


def schedd_named(client: ShortLivedClient, said: str, patience: float) -> str:
    """The name of the schedd that is meant; raises ToolError."""
    from kettle_services.condor.arguments.daemon_names import NoSuchDaemonError
    from kettle_services.condor.arguments.machines import one_of

    until = time.monotonic() + min(patience, _RESTART_S)
    while True:
        try:
            return one_of(client, "schedd", "Scheduler", said)
        except NoSuchDaemonError:
            if time.monotonic() >= until:
                raise
        time.sleep(_PAUSE_S)
