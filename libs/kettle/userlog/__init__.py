"""
The job event log ("user log"): the file in which submitters' tools read what happens to their jobs.

Written and read in HTCondor's format, and derived from the recorded events: it is a projection into files that belong
to the submitters.

    UserLogError         a file cannot be appended to
    UserLogFormatError   a text is not a job event log
"""

from kettle.userlog.appender import Appender, UserLogError
from kettle.userlog.events import (
    Aborted,
    Checkpointed,
    CpuTimes,
    Disconnected,
    Evicted,
    Executing,
    FileTransfer,
    Held,
    ImageSize,
    LogEvent,
    Other,
    Reconnected,
    ReconnectFailed,
    Released,
    Resource,
    Submitted,
    Suspended,
    Terminated,
    Termination,
    Unsuspended,
)
from kettle.userlog.follow import Checkpoint, Missing, Writer, follow
from kettle.userlog.parse import UserLogFormatError, parse
from kettle.userlog.project import Line, UserLogProjector
from kettle.userlog.render import render
from kettle.userlog.tail import Tail

__all__ = [
    "Aborted",
    "Appender",
    "Checkpoint",
    "Checkpointed",
    "CpuTimes",
    "Disconnected",
    "Evicted",
    "Executing",
    "FileTransfer",
    "Held",
    "ImageSize",
    "Line",
    "LogEvent",
    "Missing",
    "Other",
    "ReconnectFailed",
    "Reconnected",
    "Released",
    "Resource",
    "Submitted",
    "Suspended",
    "Tail",
    "Terminated",
    "Termination",
    "Unsuspended",
    "UserLogError",
    "UserLogFormatError",
    "UserLogProjector",
    "Writer",
    "follow",
    "parse",
    "render",
]
