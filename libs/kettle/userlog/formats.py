"""
How a job event log is written: as HTCondor's classic text, in XML or in JSON, and how it shows times.

HTCondor's DEFAULT_USERLOG_FORMAT_OPTIONS and EVENT_LOG_FORMAT_OPTIONS say it in the same words.
"""

import math
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec


class Form(StrEnum):
    """What stands between two events, and what an event is made of."""

    CLASSIC = "classic"
    XML = "XML"
    JSON = "JSON"

    @classmethod
    def of(cls, text: str) -> "Form":
        """The form of a log with this beginning."""
        return {"<": cls.XML, "{": cls.JSON}.get(text.lstrip()[:1], cls.CLASSIC)


class Format(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of all combinations."""

    form: Form = Form.CLASSIC
    iso_date: bool = True
    """Otherwise month and day without a year; in XML and JSON there always is one."""
    utc: bool = False
    sub_second: bool = False
    """Milliseconds too."""

    def shown(self, at: float, zone: tzinfo | None) -> str:
        """A time as the first line of an event in the classic form has it."""
        return _shown(self, at if self.sub_second else math.floor(at), zone)

    def stamp(self, at: float, zone: tzinfo | None) -> str:
        """The time as the attribute EventTime."""
        when, rest = self.clock(at, zone)
        return f"{when:%Y-%m-%dT%H:%M:%S}{rest}{'Z' if self.utc else ''}"

    def clock(self, at: float, zone: tzinfo | None) -> tuple[datetime, str]:
        """The time where it is shown, and what follows its seconds."""
        when = datetime.fromtimestamp(at, UTC if self.utc else zone)
        return when, f".{when.microsecond // 1000:03d}" if self.sub_second else ""


CLASSIC: Final = Format()


@lru_cache(maxsize=64)
def _shown(written: Format, at: float, zone: tzinfo | None) -> str:
    """Many events are of one second."""
    when, rest = written.clock(at, zone)
    if not written.iso_date:
        return f"{when:%m/%d %H:%M:%S}{rest}"
    return f"{when:%Y-%m-%d %H:%M:%S}{rest}{'Z' if written.utc else ''}"


@lru_cache(maxsize=64)
def format_of(options: str) -> Format:
    """
    The format for HTCondor's options; `!` before an option cancels it.

    Raises ValueError for an unknown option, and for two forms at once.
    """
    forms: set[Form] = set()
    told = {"ISO_DATE": True, "UTC": False, "SUB_SECOND": False}
    for word in options.replace(",", " ").split():
        name, wanted = word.lstrip("!").upper(), not word.startswith("!")
        if name in {Form.XML, Form.JSON}:
            (forms.add if wanted else forms.discard)(Form(name))
        elif name == "LEGACY":
            told["ISO_DATE"] = not wanted
        elif name in told:
            told[name] = wanted
        else:
            known = ", ".join((*_FORMS, *told, "LEGACY"))
            raise ValueError(f"{word!r} is no option of how event logs are written; there are {known}")
    if len(forms) > 1:
        raise ValueError("a log is written in XML or in JSON, not in both: leave one of the two out")
    form = forms.pop() if forms else Form.CLASSIC
    return Format(form, told["ISO_DATE"], told["UTC"], told["SUB_SECOND"])


_FORMS: Final = (Form.XML.value, Form.JSON.value)
