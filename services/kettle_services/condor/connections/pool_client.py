"""The client of a condor_* command."""

from kettle.client.connections.condor_config import CondorConfig, pool_of
from kettle.client.connections.transport import PATIENCE_S
from kettle.client.short_lived import ShortLivedClient


def client_of(knobs: CondorConfig, *, pool: str = "", name: str = "") -> ShortLivedClient:
    """
    The client of the pool and the schedd that are meant, as patient as the knob TOOL_PATIENCE says, seconds.

    Raises PoolNotFoundError.
    """
    patience = knobs.number("TOOL_PATIENCE", PATIENCE_S)
    # Programs take any line of standard error for the command's own, and that says in one sentence what went wrong.
    return ShortLivedClient(pool_of(knobs, pool=pool, name=name), patience, quiet=True)
