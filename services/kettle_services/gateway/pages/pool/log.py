"""The page of the log: what is recorded, and the pool at any moment of the past."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final, Literal

import msgspec

from kettle.terminal.nearest_names import nearest
from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.pool.parameters import narrowed
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.events.codec import EVENT_TYPES
from kettle_wire.rest.log import LIST_LOG, ListLog, LogRecord, LogRecords

Span = Literal["hour", "day", "week", "month"]
SPANS: Final[dict[Span, int]] = {"hour": 3600, "day": 86_400, "week": 7 * 86_400, "month": 30 * 86_400}
"""Seconds that the slider reaches back."""


class AskedLog(ListLog, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events, and how far the slider reaches back."""

    span: Span = "day"


class Step(msgspec.Struct, frozen=True):
    """Another moment; None: the present."""

    label: str
    moment: datetime | None


class LogView(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded events, the newest first."""

    asked: AskedLog
    found: LogRecords
    steps: list[Step]
    slider_from: int
    """Seconds since the epoch."""
    slider_to: int
    slider_at: int
    meant: str = ""
    """The kind that is nearest to one that was asked for and is none; empty: all are known, or nothing is near."""
    spans: ClassVar[tuple[Span, ...]] = tuple(SPANS)

    def fields(self, record: LogRecord) -> str:
        """What an event has, to be read."""
        return msgspec.json.format(msgspec.json.encode(record.event), indent=2).decode()


LOG: Final = Page("/log", "Log", template="pool/log.html", parameters=AskedLog, link=Link("Pool", 50))


class LogPages:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def log(self, asked: Asked) -> Shown:
        """A page of events."""
        parameters: AskedLog = asked.parameters
        found = await self._questions.ask(asked, LIST_LOG, narrowed(parameters, ListLog), LogRecords)
        now = datetime.now(UTC)
        at, reach = parameters.as_of or now, SPANS[parameters.span]
        last = max(now, at)
        view = LogView(
            asked=parameters,
            found=found,
            steps=steps(at, now),
            slider_from=int(min(last.timestamp() - reach, at.timestamp())),
            slider_to=int(last.timestamp()),
            slider_at=int(at.timestamp()),
            meant=""
            if found.records
            else next((near for kind in parameters.kind if (near := _meant(kind))), ""),
        )
        return Shown(view)


def _meant(kind: str) -> str:
    """What somebody may have meant by a kind that is none; empty: it is one, or nothing is near."""
    asked = kind.partition("/")[0]
    known = {str(each.__struct_config__.tag).partition("/")[0] for each in EVENT_TYPES}
    nouns = {each.partition(".")[0] for each in known}
    if "*" in asked or asked in known or asked in nouns:
        return ""
    return nearest(asked, known)


def steps(at: datetime, now: datetime) -> list[Step]:
    """Moments around one; what is not over yet is the present."""
    distances = {
        "a day earlier": timedelta(days=-1),
        "an hour earlier": timedelta(hours=-1),
        "a minute earlier": timedelta(minutes=-1),
        "a minute later": timedelta(minutes=1),
        "an hour later": timedelta(hours=1),
        "a day later": timedelta(days=1),
    }
    moments = {label: at + distance for label, distance in distances.items()}
    return [Step(label, moment) for label, moment in moments.items() if moment < now] + [Step("now", None)]
