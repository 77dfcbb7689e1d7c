"""
PostgreSQL behind the ports of `kettle.eventsourcing`: the log, the working set, the cursors of projections.
"""

from kettle.storage.cursors import PgCursors
from kettle.storage.database import Database
from kettle.storage.pg_log import PgLog, PgWorkingSet

__all__ = ["Database", "PgCursors", "PgLog", "PgWorkingSet"]
