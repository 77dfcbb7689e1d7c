"""The spans of a trace, and the fields of lines in logs."""

from typing import Final

from kettle_wire.telemetry.declaration import DeclaredSpan, LogField

ASSIGN: Final = DeclaredSpan(
    name="schedd.assign",
    meaning="A job is given to a claim, and its shadow is told.",
    services=("schedd",),
    attributes=("job", "attempt"),
)
SHADOW_ATTEMPT: Final = DeclaredSpan(
    name="shadow.attempt",
    meaning="From the assignment of an attempt to the record of its end.",
    services=("shadow",),
    attributes=("job", "attempt", "slot"),
)
STARTD_ATTEMPT: Final = DeclaredSpan(
    name="startd.attempt",
    meaning="An attempt on its machine.",
    services=("startd",),
    attributes=("job", "attempt"),
)

SPANS: Final = (ASSIGN, SHADOW_ATTEMPT, STARTD_ATTEMPT)
"""Besides these, each command that carries a trace is a span `<role>.<verb>` of the service that answers it."""

LOG_FIELDS: Final = (
    LogField(name="ts", meaning="When, in UTC, to the millisecond."),
    LogField(name="level", meaning="`debug`, `info`, `warning`, `error` or `critical`."),
    LogField(name="role", meaning="The service."),
    LogField(name="logger", meaning="The module that says it."),
    LogField(name="msg", meaning="The sentence."),
    LogField(name="trace_id", meaning="The trace that the line belongs to, where there is one."),
    LogField(name="exc", meaning="The traceback, where there is one."),
)
"""Of each line of JSON; what else is in it is about what the sentence says."""
