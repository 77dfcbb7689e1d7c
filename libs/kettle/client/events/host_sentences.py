"""What recorded events of machines of static pools say, in a sentence each."""

from typing import assert_never

from kettle.terminal.quantities import counted
from kettle_wire.events.host import (
    HostAsleep,
    HostAwake,
    HostBroken,
    HostEvent,
    HostFenced,
    HostForgotten,
    HostHibernating,
    HostMended,
    HostNotWoken,
    HostWaking,
)


def host_sentence(event: HostEvent) -> tuple[str, str]:
    """What an event says, and its meaning for colours."""
    match event:
        case HostHibernating():
            return f"{event.machine} is to sleep ({event.level}){_because(event.why)}", "idle"
        case HostFenced():
            return "it takes no more jobs, and its provider is asked to put it to sleep", "idle"
        case HostAsleep():
            return f"{event.machine} is asleep{_because(event.words)}", "dim"
        case HostWaking():
            jobs = sum(each.jobs for each in event.demand)
            of = f" for {counted(jobs, 'job')}" if jobs else ""
            return f"its provider is asked to wake it{of}", "running"
        case HostNotWoken():
            return f"it was not woken ({counted(event.failures, 'failure')} in a row): {event.words}", "bad"
        case HostBroken():
            return f"nobody counts on it after {counted(event.failures, 'failure')}: {event.words}", "bad"
        case HostAwake():
            return f"it is awake{_because(event.words)}", "good"
        case HostMended():
            return f"{event.by} says that it can be woken", "strong"
        case HostForgotten():
            return f"nothing is done about it any more: {event.why}", "dim"
        case _:
            assert_never(event)


def _because(words: str) -> str:
    return f": {words}" if words else ""
