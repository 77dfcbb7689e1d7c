"""
The thin client: what a person's program needs to run jobs in a pool, and no more.

`Client` is for programs with an event loop, `SyncClient` for the others; both find the pool by themselves
(`KETTLE_NATS_URL`, else `$KETTLE_HOME/pool.json`, which `kettle up` writes).  Importing this is cheap: each name
is loaded when it is wanted, the bus's driver when a connection is made, the submit language when a description is read,
and no database's or web server's driver ever.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kettle.client.client import Client
    from kettle.client.errors import ClientError, CommandRefusedError, PoolNotFoundError, PoolUnreachableError
    from kettle.client.explaining import WhyReport
    from kettle.client.pool_file import PoolFile, home_directory, login_name
    from kettle.client.preparing import prepare, prepare_clusters
    from kettle.client.progress import JobState, Progress
    from kettle.client.published import Published, Wanted
    from kettle.client.selecting import job_id, select
    from kettle.client.sync import SyncClient
    from kettle.client.watching import JobEvent
    from kettle.submit import Submission, SubmitError
    from kettle_wire.commands.queue import Select
    from kettle_wire.jobs import JobId

__all__ = [
    "Client",
    "ClientError",
    "CommandRefusedError",
    "JobEvent",
    "JobId",
    "JobState",
    "PoolFile",
    "PoolNotFoundError",
    "PoolUnreachableError",
    "Progress",
    "Published",
    "Select",
    "Submission",
    "SubmitError",
    "SyncClient",
    "Wanted",
    "WhyReport",
    "home_directory",
    "job_id",
    "login_name",
    "prepare",
    "prepare_clusters",
    "select",
]


_AT: Final = {
    "Client": "kettle.client.client",
    "ClientError": "kettle.client.errors",
    "CommandRefusedError": "kettle.client.errors",
    "JobEvent": "kettle.client.watching",
    "JobId": "kettle_wire.jobs",
    "JobState": "kettle.client.progress",
    "PoolFile": "kettle.client.pool_file",
    "PoolNotFoundError": "kettle.client.errors",
    "PoolUnreachableError": "kettle.client.errors",
    "Progress": "kettle.client.progress",
    "Published": "kettle.client.published",
    "Select": "kettle_wire.commands.queue",
    "Submission": "kettle.submit",
    "SubmitError": "kettle.submit",
    "SyncClient": "kettle.client.sync",
    "Wanted": "kettle.client.published",
    "WhyReport": "kettle.client.explaining",
    "home_directory": "kettle.client.pool_file",
    "job_id": "kettle.client.selecting",
    "login_name": "kettle.client.pool_file",
    "prepare": "kettle.client.preparing",
    "prepare_clusters": "kettle.client.preparing",
    "select": "kettle.client.selecting",
}


def __getattr__(name: str) -> Any:
    """Each name is loaded when somebody wants it: a command that asks one question needs few of them."""
    if name not in _AT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_AT[name]), name)
    return value
