"""The page of what was used, and the same as a table for other programs."""

import csv
import io
from datetime import timedelta
from typing import ClassVar, Final

import msgspec
from aiohttp import web

from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.pool.parameters import narrowed
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.route import Moment
from kettle_wire.rest.usage import GET_USAGE, GetUsage, UsageAnswer, UsageGroup, UsageOf

GROUPS: Final[tuple[UsageGroup, ...]] = ("owner", "group", "project", "machine", "day", "month")
COLUMNS: Final = {
    "jobs": "Jobs",
    "attempts": "Runs",
    "wall": "Wall-clock h",
    "core": "Core h",
    "cpu": "CPU h",
    "good": "Core h kept",
    "lost": "Core h lost",
    "uncharged": "Unaccounted h",
}
MOST_ROWS: Final = 500
"""On the page; the table for programs has all."""
_MOST_DAYS: Final = timedelta(days=100)
"""Of a longer time there is a bar for each month."""
_TIMES: Final = frozenset({"day", "month"})
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class AskedUsage(GetUsage, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be added up."""

    by: UsageGroup | None = None
    """The second thing that is added up by: one field of a form."""
    as_of: Moment | None = None
    """When the time ends that is added up, unless `until` says something else."""


class UsageBar(msgspec.Struct, frozen=True):
    """What was used on one day, or in one month."""

    label: str
    core: float
    """Core hours."""
    height: float
    """Of the largest, in hundredths."""


class UsageView(msgspec.Struct, frozen=True, kw_only=True):
    """What was used."""

    asked: AskedUsage
    question: GetUsage
    found: UsageAnswer
    rows: list[UsageOf]
    left_out: int
    bars: list[UsageBar]
    """By time; none: the rows are by time themselves."""
    step: UsageGroup
    """What each bar is of."""
    columns: ClassVar[dict[str, str]] = COLUMNS
    groups: ClassVar[tuple[UsageGroup, ...]] = GROUPS

    @property
    def most(self) -> float:
        """Core hours of the largest row."""
        return max((row.core for row in self.rows), default=0.0)


USAGE: Final = Page(
    "/usage", "Usage", template="pool/usage.html", parameters=AskedUsage, link=Link("Pool", 60)
)
USAGE_TABLE: Final = Page("/usage.csv", "Usage", template="pool/usage.html", parameters=AskedUsage)


class UsagePages:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def usage(self, asked: Asked) -> Shown:
        """The report; those who used most come first, days in their order."""
        question, found = await self._found(asked)
        by_time = _TIMES & set(question.group_by)
        step: UsageGroup = "day" if found.until - found.since <= _MOST_DAYS else "month"
        bars: list[UsageBar] = []
        if not by_time and found.rows:
            over_time = msgspec.structs.replace(
                question, group_by=[step], since=found.since, until=found.until
            )
            bars = usage_bars(await self._questions.ask(asked, GET_USAGE, over_time, UsageAnswer), step)
        rows = found.rows if by_time else sorted(found.rows, key=lambda row: -row.core)
        view = UsageView(
            asked=asked.parameters,
            question=question,
            found=found,
            rows=rows[:MOST_ROWS],
            left_out=max(0, len(rows) - MOST_ROWS),
            bars=bars,
            step=step,
        )
        return Shown(view)

    async def table(self, asked: Asked) -> web.Response:
        """The report as comma-separated values, to be saved."""
        question, found = await self._found(asked)
        name = f"usage-{found.since:%Y%m%d}-{found.until:%Y%m%d}.csv"
        return web.Response(
            text=table(question.group_by, found.rows),
            content_type="text/csv",
            charset="utf-8",
            headers={
                "Cache-Control": "private, no-cache",
                "Content-Disposition": f'attachment; filename="{name}"',
                "Vary": "Authorization, Cookie",
            },
        )

    async def _found(self, asked: Asked) -> tuple[GetUsage, UsageAnswer]:
        parameters: AskedUsage = asked.parameters
        question = narrowed(
            parameters, GetUsage, group_by=_groups(parameters), until=parameters.until or parameters.as_of
        )
        return question, await self._questions.ask(asked, GET_USAGE, question, UsageAnswer)


def usage_bars(found: UsageAnswer, step: UsageGroup) -> list[UsageBar]:
    """A bar for each day or month in the span of time, those without use included."""
    used = {row.key[step]: row.core for row in found.rows}
    most = max(used.values(), default=0.0)
    labels: dict[str, None] = {}
    moment = found.since
    while moment < found.until:
        labels[f"{moment:%Y-%m-%d}" if step == "day" else f"{moment:%Y-%m}"] = None
        moment += timedelta(days=1)
    labels |= dict.fromkeys(used)
    return [
        UsageBar(label, used.get(label, 0.0), round(100 * used.get(label, 0.0) / most, 1) if most else 0.0)
        for label in sorted(labels)
    ]


def table(groups: list[UsageGroup], rows: list[UsageOf]) -> str:
    """Comma-separated values; a text that a spreadsheet would compute is quoted as it does that."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow([*groups, *COLUMNS])
    for row in rows:
        keys = (row.key.get(group, "") for group in groups)
        writer.writerow([*map(_harmless, keys), *(getattr(row, name) for name in COLUMNS)])
    return written.getvalue()


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def _groups(parameters: AskedUsage) -> list[UsageGroup]:
    groups: list[UsageGroup] = list(parameters.group_by)
    if not groups:
        groups.append("owner")
    if parameters.by is not None and parameters.by not in groups:
        groups.append(parameters.by)
    return groups
