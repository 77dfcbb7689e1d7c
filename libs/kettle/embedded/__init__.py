"""
NATS and PostgreSQL servers of our own, from the programs in the wheels of the `embedded` extra.

    async with EmbeddedPostgres(home / "postgres") as postgres:
        ...  # postgres.dsn

Both servers run as nobody we know, listen where only this machine or this account can reach them, have generated
credentials, die with the process that started them, and come back at the same address after a crash.
"""

from kettle.auth.trust.server import Permissions
from kettle.embedded.errors import AlreadySupervisedError, EmbeddedError, MissingBinaryError, StartError
from kettle.embedded.nats import EmbeddedNats
from kettle.embedded.nats_config import Limits, Member
from kettle.embedded.postgres import EmbeddedPostgres

__all__ = [
    "AlreadySupervisedError",
    "EmbeddedError",
    "EmbeddedNats",
    "EmbeddedPostgres",
    "Limits",
    "Member",
    "MissingBinaryError",
    "Permissions",
    "StartError",
]
