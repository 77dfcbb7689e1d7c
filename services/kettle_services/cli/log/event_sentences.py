"""What recorded events say, in a sentence each; also those that cannot be read."""

from typing import Final

import msgspec

from kettle.client import JobEvent
from kettle.client.explanations.timeline import lines
from kettle_services.cli.log.event_pages import EventRow
from kettle_services.iam.domain.audit import said
from kettle_wire.events import Event, UnknownEventError, decode
from kettle_wire.events.iam import IdentityEvent

_BYTES: Final = 32


class EventSentence(msgspec.Struct, frozen=True):
    """An event in words; `event` is None if it cannot be read."""

    sentence: str
    style: str
    event: Event | None


def told(row: EventRow) -> EventSentence:
    """What an event says."""
    try:
        event = decode(row.entry.data)
    except UnknownEventError as error:
        return EventSentence(f"UNREADABLE {shortened(row.entry.data)}: {error}", "bad", None)
    if isinstance(event, IdentityEvent):
        return _of_identity(event)
    [line] = lines([JobEvent(row.entry.stream, row.entry.version, row.frame, row.at / 1e6, event)])
    return EventSentence(line.sentence, line.style, event)


def _of_identity(event: IdentityEvent) -> EventSentence:
    words = said(event)
    origin = f", from {words.address}" if words.address else ""
    sentence = f"{words.who} {words.sentence}{origin}".strip()
    return EventSentence(sentence, "bad" if words.alarm else "", event)


def shortened(data: bytes) -> str:
    """Bytes as hexadecimal digits, not more than a line takes."""
    more = f"... ({len(data)} bytes)" if len(data) > _BYTES else ""
    return f"{data[:_BYTES].hex()}{more}"
