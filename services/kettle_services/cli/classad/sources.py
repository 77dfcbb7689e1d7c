"""Ads and expressions as `kettle classad` takes them: from files, with errors that point at the place."""

from __future__ import annotations

import codecs
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.classad import ClassAdParseError, Context, read_ads
from kettle_services.cli.errors import UsageError
from kettle_services.cli.standard_input import standard_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kettle.classad import ClassAd, Form

_LONGEST: Final = 100


def text_of_file(name: str) -> str:
    """
    What a file holds, or standard input for `-`, without a byte order mark; octets that are no UTF-8 are kept.
    """
    try:
        data = standard_input().read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{_called(name)} cannot be read: {error.strerror}") from error
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def lines_of_input() -> Iterator[str]:
    """The lines of standard input as they come; octets that are no UTF-8 are kept."""
    try:
        for line in standard_input():
            yield line.removesuffix(b"\n").decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from error


def _called(name: str) -> str:
    return "standard input" if name == "-" else name


def ads_of_file(name: str, form: Form | None = None) -> Iterator[ClassAd]:
    """The ads of a file, in `form` or in the one that its beginning shows."""
    text = text_of_file(name)
    try:
        yield from read_ads(text, form)
    except ClassAdParseError as error:
        raise UsageError(refusal(error, _called(name))) from error


def ad_of_file(name: str) -> ClassAd:
    """The one ad that a file holds."""
    found = ads_of_file(name)
    ad, more = next(found, None), next(found, None)
    if ad is None or more is not None:
        raise UsageError(f"{_called(name)} holds {'no ad' if ad is None else 'several ads'}; one is needed")
    return ad


def refusal(error: ClassAdParseError, source: str) -> str:
    """What cannot be read and why; below it the line with a caret under the place."""
    line, caret = error.excerpt(_LONGEST).split("\n")
    return f"{source}, line {error.line}, column {error.column}: {error.sentence}\n  {line}\n  {caret}"


def context(*, local: bool = True, trace: Callable[[str], None] | None = None) -> Context:
    """The world of this process: its clock, its chance, its users, and its time zone unless UTC is wanted."""
    return Context(
        now=lambda: int(time.time()),
        random=_random,
        utc_offset=_local_offset if local else None,
        home=_home,
        trace=trace,
    )


# What few expressions ask for is loaded when one asks.


def _random() -> float:
    import random

    return random.random()  # noqa: S311 - the language's random() guards no secret


def _local_offset(instant: int) -> int:
    try:
        return time.localtime(instant).tm_gmtoff
    except (OverflowError, OSError):
        return -time.timezone  # no calendar goes that far; neither do the zone's rules


def _home(user: str) -> str | None:
    import pwd

    try:
        return pwd.getpwnam(user).pw_dir
    except (KeyError, ValueError):
        return None
