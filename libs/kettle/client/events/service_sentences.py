"""What a report about the published services of a job says, as a sentence."""

from typing import Final

from kettle.terminal.quantities import counted, size
from kettle_wire.events import JobServed
from kettle_wire.events.job import ServiceUse

_KIB: Final = 1024


def served_sentence(event: JobServed) -> str:
    """As in `publishes web:8080/http; alice used web: 3 connections, 12 KB to the job, 4 MB from it`."""
    parts: list[str] = []
    if event.tunnel == "up":
        parts.append(f"publishes {', '.join(event.services) or 'no service yet'}")
    parts += [_use(each) for each in event.uses]
    if event.tunnel == "down":
        parts.append(f"its services are not reached any more: {event.reason or 'the connection has ended'}")
    return "; ".join(parts)


def _use(use: ServiceUse) -> str:
    by = "" if use.because in {"", "owner"} else f" ({use.because})"
    said: list[str] = []
    if use.refused:
        what = "connected with" if use.because else "let in to"
        because = f": {use.why}" if use.why else ""
        said.append(
            f"{use.person}{by} was not {what} {use.service} ({counted(use.refused, 'time')}){because}"
        )
    if use.because and (use.connections or use.sent or use.received or not use.refused):
        amounts = f"{size(use.sent / _KIB)} to the job, {size(use.received / _KIB)} from it"
        said.append(
            f"{use.person}{by} used {use.service}: {counted(use.connections, 'connection')}, {amounts}"
        )
    return "; ".join(said)
