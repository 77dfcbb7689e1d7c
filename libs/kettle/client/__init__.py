"""
The thin client: what a person's program needs to run jobs in a pool, and no more.

`Client` is for programs with an event loop, `SyncClient` for the others; both find the pool by themselves
(`KETTLE_NATS_URL`, else `$KETTLE_HOME/pool.json`, which `kettle up` writes).  Commands that ask once and end use the same
`Client` over a transport that needs no event loop (`kettle.client.short_lived`).  Importing this is cheap: each name
is loaded when it is wanted, the bus's driver when a connection is made, the submit language when a description is read,
and no database's or web server's driver ever.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kettle.client.client import Client
    from kettle.client.connections.pool_file import PoolFile, home_directory, login_name
    from kettle.client.errors import ClientError, CommandRefusedError, PoolNotFoundError, PoolUnreachableError
    from kettle.client.events.progress import JobState, Progress
    from kettle.client.events.published import Published, Wanted
    from kettle.client.jobs.records import JobEvent
    from kettle.client.jobs.selection import job_id, select
    from kettle.client.jobs.submission import prepare, prepare_clusters
    from kettle.client.sync import SyncClient
    from kettle.client.why_report import WhyReport, WhyReports
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
    "WhyReports",
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
    "JobEvent": "kettle.client.jobs.records",
    "JobId": "kettle_wire.jobs",
    "JobState": "kettle.client.events.progress",
    "PoolFile": "kettle.client.connections.pool_file",
    "PoolNotFoundError": "kettle.client.errors",
    "PoolUnreachableError": "kettle.client.errors",
    "Progress": "kettle.client.events.progress",
    "Published": "kettle.client.events.published",
    "Select": "kettle_wire.commands.queue",
    "Submission": "kettle.submit",
    "SubmitError": "kettle.submit",
    "SyncClient": "kettle.client.sync",
    "Wanted": "kettle.client.events.published",
    "WhyReport": "kettle.client.why_report",
    "WhyReports": "kettle.client.why_report",
    "home_directory": "kettle.client.connections.pool_file",
    "job_id": "kettle.client.jobs.selection",
    "login_name": "kettle.client.connections.pool_file",
    "prepare": "kettle.client.jobs.submission",
    "prepare_clusters": "kettle.client.jobs.submission",
    "select": "kettle.client.jobs.selection",
}


def __getattr__(name: str) -> Any:
    """Each name is loaded when somebody wants it: a command that asks one question needs few of them."""
    if name not in _AT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_AT[name]), name)
    return value
