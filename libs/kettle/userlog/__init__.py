"""
The job event log ("user log"): the file in which submitters' tools read what happens to their jobs.

Written and read in HTCondor's forms, and derived from the recorded events: it is a projection into files that belong
to the submitters, and into one of the access point.
Each name is loaded when it is wanted: who only waits for a log to end loads little.

    UserLogError         a file cannot be appended to
    UserLogFormatError   a text is not a job event log
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kettle.userlog.appender import Appender, UserLogError
    from kettle.userlog.event_to_ad import attributes, number_of
    from kettle.userlog.events import (
        Aborted,
        Checkpointed,
        ClusterRemove,
        ClusterSubmit,
        CpuTimes,
        Disconnected,
        Evicted,
        Executing,
        FactoryPaused,
        FactoryResumed,
        FileTransfer,
        Generic,
        Held,
        ImageSize,
        JobAdInformation,
        LogEvent,
        Other,
        Reconnected,
        ReconnectFailed,
        Released,
        Resource,
        Submitted,
        Suspended,
        Terminated,
        Unsuspended,
    )
    from kettle.userlog.formats import Form, Format, format_of
    from kettle.userlog.framing import UserLogFormatError
    from kettle.userlog.parsing import event_of, parse
    from kettle.userlog.projector import UserLogProjector
    from kettle.userlog.reader import Heading, LogReader, heading
    from kettle.userlog.rendering import render
    from kettle.userlog.routed_lines import LogLine
    from kettle.userlog.shard_follower import Checkpoint, Missing, Projector, Writer, follow
    from kettle.userlog.tail import Tail

__all__ = [
    "Aborted",
    "Appender",
    "Checkpoint",
    "Checkpointed",
    "ClusterRemove",
    "ClusterSubmit",
    "CpuTimes",
    "Disconnected",
    "Evicted",
    "Executing",
    "FactoryPaused",
    "FactoryResumed",
    "FileTransfer",
    "Form",
    "Format",
    "Generic",
    "Heading",
    "Held",
    "ImageSize",
    "JobAdInformation",
    "LogEvent",
    "LogLine",
    "LogReader",
    "Missing",
    "Other",
    "Projector",
    "ReconnectFailed",
    "Reconnected",
    "Released",
    "Resource",
    "Submitted",
    "Suspended",
    "Tail",
    "Terminated",
    "Unsuspended",
    "UserLogError",
    "UserLogFormatError",
    "UserLogProjector",
    "Writer",
    "attributes",
    "event_of",
    "follow",
    "format_of",
    "heading",
    "number_of",
    "parse",
    "render",
]

_ELSEWHERE: Final = {
    "Appender": "appender",
    "UserLogError": "appender",
    "attributes": "event_to_ad",
    "number_of": "event_to_ad",
    "Checkpoint": "shard_follower",
    "Missing": "shard_follower",
    "Projector": "shard_follower",
    "Writer": "shard_follower",
    "follow": "shard_follower",
    "Form": "formats",
    "Format": "formats",
    "format_of": "formats",
    "UserLogFormatError": "framing",
    "event_of": "parsing",
    "parse": "parsing",
    "LogLine": "routed_lines",
    "UserLogProjector": "projector",
    "Heading": "reader",
    "LogReader": "reader",
    "heading": "reader",
    "render": "rendering",
    "Tail": "tail",
}
"""The modules of the names; the others are kinds of events."""


def __getattr__(name: str) -> Any:
    """Each name is loaded when somebody wants it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'events')}"), name)
    globals()[name] = value
    return value
