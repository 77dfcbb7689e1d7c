"""HTCondor's module `htcondor2`, on Kettle; names only."""

from importlib import import_module

import_module("kettle_installation")  # finds Kettle where this environment has none

from kettle.bindings.collector import (
    Collector,
)
from kettle.bindings.daemons import (
    Negotiator,
    RemoteParam,
    SecurityContext,
    Startd,
)
from kettle.bindings.dag_manager import (
    DAGMan,
)
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
from kettle.bindings.errors import (
    HTCondorException,
)
from kettle.bindings.job_event_log import (
    JobEvent,
    JobEventLog,
)
from kettle.bindings.module_functions import (
    disable_debug,
    enable_debug,
    enable_log,
    log,
    ping,
    reload_config,
    send_alive,
    send_command,
    set_ready_state,
    set_subsystem,
)
from kettle.bindings.param import (
    param,
)
from kettle.bindings.schedd import (
    Schedd,
)
from kettle.bindings.stored_credentials import CredCheck, Credd
from kettle.bindings.submit_description import (
    Submit,
)
from kettle.bindings.submit_result import (
    SubmitResult,
)
from kettle.bindings.versions import (
    __version__,
    platform,
    version,
)

__all__ = [
    "AdType",
    "AdTypes",
    "Collector",
    "CommonFilesEventType",
    "CompletionType",
    "CredCheck",
    "CredType",
    "CredTypes",
    "Credd",
    "DAGMan",
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
    "Negotiator",
    "QueryOpt",
    "QueryOpts",
    "RemoteParam",
    "Schedd",
    "SecurityContext",
    "Startd",
    "Submit",
    "SubmitMethod",
    "SubmitResult",
    "SubsystemType",
    "TransactionFlag",
    "TransactionFlags",
    "VacateType",
    "__version__",
    "disable_debug",
    "enable_debug",
    "enable_log",
    "log",
    "param",
    "ping",
    "platform",
    "reload_config",
    "send_alive",
    "send_command",
    "set_ready_state",
    "set_subsystem",
    "version",
]
