"""
HTCondor's module `htcondor2`, on Kettle; names only.
"""

from kettle.bindings.descriptions import Submit
from kettle.bindings.enumerations import (
    AdType,
    AdTypes,
    CommonFilesEventType,
    CompletionType,
    CredType,
    CredTypes,
    DaemonCommand,
    DaemonCommands,
    DaemonType,
    DaemonTypes,
    DrainType,
    DrainTypes,
    FileTransferEventType,
    HistorySrc,
    JobAction,
    JobEventType,
    JobStatus,
    LogLevel,
    QueryOpt,
    QueryOpts,
    SubmitMethod,
    SubsystemType,
    TransactionFlag,
    TransactionFlags,
    VacateType,
)
from kettle.bindings.errors import HTCondorException
from kettle.bindings.event_log import JobEvent, JobEventLog
from kettle.bindings.schedd import Schedd
from kettle.bindings.submitted import SubmitResult
from kettle.bindings.versions import platform, version

__all__ = [
    "AdType",
    "AdTypes",
    "CommonFilesEventType",
    "CompletionType",
    "CredType",
    "CredTypes",
    "DaemonCommand",
    "DaemonCommands",
    "DaemonType",
    "DaemonTypes",
    "DrainType",
    "DrainTypes",
    "FileTransferEventType",
    "HTCondorException",
    "HistorySrc",
    "JobAction",
    "JobEvent",
    "JobEventLog",
    "JobEventType",
    "JobStatus",
    "LogLevel",
    "QueryOpt",
    "QueryOpts",
    "Schedd",
    "Submit",
    "SubmitMethod",
    "SubmitResult",
    "SubsystemType",
    "TransactionFlag",
    "TransactionFlags",
    "VacateType",
    "platform",
    "version",
]
