"""
The thin client: what a person's program needs to run jobs in a pool, and no more.

`Client` is for programs with an event loop, `SyncClient` for the others; both find the pool by themselves
(`KETTLE_NATS_URL`, else `$KETTLE_HOME/pool.json`, which `kettle up` writes).  Importing this is cheap: the bus's
driver is loaded when a connection is made, and no database's or web server's ever.
"""

from kettle.client.client import Client, WhyReport
from kettle.client.errors import ClientError, CommandRefusedError, PoolNotFoundError, PoolUnreachableError
from kettle.client.pool_file import PoolFile, home_directory
from kettle.client.preparing import prepare
from kettle.client.progress import JobState, Progress
from kettle.client.selecting import job_id, select
from kettle.client.sync import SyncClient
from kettle.client.watching import JobEvent
from kettle.submit import Submission, SubmitError
from kettle.wire.commands.schedd import Select
from kettle.wire.jobs import JobId

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
    "Select",
    "Submission",
    "SubmitError",
    "SyncClient",
    "WhyReport",
    "home_directory",
    "job_id",
    "prepare",
    "select",
]
