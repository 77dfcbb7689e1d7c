"""
Projections: the contents of the log as tables that anybody may read.

    jobs          live jobs, history, usage, queue depth, claims    (shards of schedds)
    machines      machines that came and left                       (the collector's shard)
    negotiation   cycles, matches, rejections                       (the negotiator's shard)

Each has a PostgreSQL schema of its name, which is filled by the service `accounting`, can be rebuilt from the log
(`rebuild`) and can be compared with a fresh fold (`Refold`).

    lags(database, logs)                     how far each projection is behind, and why one has stopped
    prepare(projection, database, logs)      make the tables, or rebuild them if they are of an older release
    rebuild(projection, database, logs)      rebuild the tables beside the old ones, then swap
    follow(projection, shard, ...)           keep one of them near the head of the log
    refold(connection, projection, shard, upto, log=log), then differences(connection, projection, shard)

A projection is made by name, `PROJECTIONS["jobs"]()`; one that has applied nothing is needed for a rebuild or a refold.

Errors:

    LogError
    └── RebuildError   a rebuild cannot be started: another one is running, or a newer release made the tables
"""

from kettle.projections.catalog import PROJECTIONS
from kettle.projections.jobs import Jobs
from kettle.projections.lag import Lag, lags
from kettle.projections.machines import Machines
from kettle.projections.negotiation import Negotiation
from kettle.projections.rebuilding import RebuildError, Rebuilt, Report, prepare, rebuild, shards_of
from kettle.projections.refolding import Difference, Refold, differences, refold
from kettle.projections.runner import ProjectionFailure, follow, prepared
from kettle.projections.stored_projection import StoredProjection, follows

__all__ = [
    "PROJECTIONS",
    "Difference",
    "Jobs",
    "Lag",
    "Machines",
    "Negotiation",
    "ProjectionFailure",
    "RebuildError",
    "Rebuilt",
    "Refold",
    "Report",
    "StoredProjection",
    "differences",
    "follow",
    "follows",
    "lags",
    "prepare",
    "prepared",
    "rebuild",
    "refold",
    "shards_of",
]
