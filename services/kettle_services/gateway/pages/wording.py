"""How values are written on pages: numbers with separators, sizes and spans with units, times twice."""

from datetime import UTC, datetime
from typing import Final

_SPANS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def number(value: float) -> str:
    """With a thin space between thousands."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def counted(count: int, what: str) -> str:
    """A count with what is counted, in the plural where it is not one."""
    return f"{number(count)} {what}" if count == 1 else f"{number(count)} {what}s"


def size(count: float) -> str:
    """Bytes in the unit that leaves at most four digits."""
    unit = 0
    while abs(count) >= 1024 and unit < len(_SIZES) - 1:
        count /= 1024
        unit += 1
    digits = 0 if not unit or abs(count) >= 100 else 1
    return f"{count:.{digits}f} {_SIZES[unit]}"


def span(seconds: float) -> str:
    """In at most two units, as in `3 h 12 min`."""
    if seconds < 0:
        return f"-{span(-seconds)}"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    left, said = int(seconds), list[str]()
    for length, unit in _SPANS:
        count, rest = divmod(left, length)
        if count or said:
            said.append(f"{count} {unit}")
            left = rest
        if len(said) == 2:
            break
    return " ".join(each for each in said if not each.startswith("0 ")) or "0 s"


def ago(moment: datetime, now: datetime) -> str:
    """How far a time is from another, in one unit."""
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 1:
        return "now"
    said = _in_one_unit(seconds)
    return f"{said} ago" if seconds > 0 else f"in {said}"


def apart(moment: datetime, then: datetime) -> str:
    """How far a time is from a moment of the past, in one unit."""
    seconds = (then - moment).total_seconds()
    if abs(seconds) < 1:
        return "then"
    return f"{_in_one_unit(seconds)} {'before' if seconds > 0 else 'after'}"


def _in_one_unit(seconds: float) -> str:
    left = int(abs(seconds))
    length, unit = next((each for each in _SPANS if left >= each[0]), _SPANS[-1])
    return f"{left // length} {unit}"


def clock(moment: datetime, now: datetime) -> str:
    """The time of the day in UTC; with the date where that is another one than today's."""
    there, here = moment.astimezone(UTC), now.astimezone(UTC)
    if there.date() == here.date():
        return f"{there:%H:%M:%S}"
    return f"{there:%m-%d %H:%M:%S}" if there.year == here.year else f"{there:%Y-%m-%d %H:%M:%S}"


def stamp(moment: datetime) -> str:
    """As it stands in addresses and attributes: UTC, with as many digits of the second as there are."""
    text = moment.astimezone(UTC).isoformat()
    return text.removesuffix("+00:00") + "Z"
