"""
The thin client: what a person's program needs to run jobs in a pool, and no more.

`Client` is for programs with an event loop, `SyncClient` for the others; both find the pool by themselves
(`KETTLE_NATS_URL`, else `$KETTLE_HOME/pool.json`, which `kettle up` writes).  Importing this is cheap: the bus's
driver is loaded when a connection is made, the submit language when a description is read, and no database's or web
server's driver ever.
"""

from typing import TYPE_CHECKING, Any

from kettle.client.client import Client, WhyReport
from kettle.client.errors import ClientError, CommandRefusedError, PoolNotFoundError, PoolUnreachableError
from kettle.client.pool_file import PoolFile, home_directory
from kettle.client.preparing import prepare
from kettle.client.progress import JobState, Progress
from kettle.client.published import Published, Wanted
from kettle.client.selecting import job_id, select
from kettle.client.sync import SyncClient
from kettle.client.watching import JobEvent
from kettle.wire.commands.schedd import Select
from kettle.wire.jobs import JobId

if TYPE_CHECKING:
    from kettle.submit import Submission, SubmitError

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
    "prepare",
    "select",
]


def __getattr__(name: str) -> Any:
    """
    The two names of the submit language, which takes longer to load than all the rest.
    """
    if name in {"Submission", "SubmitError"}:
        from kettle import submit

        return getattr(submit, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
