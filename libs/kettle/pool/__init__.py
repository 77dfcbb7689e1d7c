"""
A personal pool as a whole: bringing it up and down, and what is known about it from outside.

    up(home)      -> Started: makes the home, starts the master, waits until the pool takes jobs
    down(home)    -> Stopped: stops everything, leaves the data (`purge=True`: leaves nothing)
    state(home)   -> MasterState, or None if no master lives there

All three block; none needs a running event loop.
"""

from kettle.pool.daemon_states import DaemonState, MasterState
from kettle.pool.errors import HomeRefusedError, PoolError, StartFailedError, StopFailedError
from kettle.pool.home import Home, open_home
from kettle.pool.shutdown import Stopped, down, state
from kettle.pool.startup import Started, up

__all__ = [
    "DaemonState",
    "Home",
    "HomeRefusedError",
    "MasterState",
    "PoolError",
    "StartFailedError",
    "Started",
    "StopFailedError",
    "Stopped",
    "down",
    "open_home",
    "state",
    "up",
]
