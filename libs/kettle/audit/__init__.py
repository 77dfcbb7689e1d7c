"""
The auditor of the log: proves from the database and the bus that the laws of the log hold. It only reads.

    report = await check(dsn, bus, subjects=subjects, wanted=Wanted(folds={"schedd": lambda shard: Queue(...).changed}))
    report.clean

Errors:

    AuditError   the audit could not be made: the database is away or is not a log
"""

from kettle.audit.check import AuditError, check
from kettle.audit.report import AuditReport, Check, Problem, ShardAudit
from kettle.audit.scope import AuditScope, Folds
from kettle.audit.shard import Told
from kettle.audit.working_set import Fold

__all__ = [
    "AuditError",
    "AuditReport",
    "AuditScope",
    "Check",
    "Fold",
    "Folds",
    "Problem",
    "ShardAudit",
    "Told",
    "check",
]
