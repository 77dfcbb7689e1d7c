"""Recorded values in the forms in which pool files have them."""

from typing import Final

_SPANS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def span_text(seconds: float) -> str:
    """A time as a file has it."""
    if seconds != int(seconds) or not seconds:
        return f"{seconds:g}s"
    rest = int(seconds)
    parts: list[str] = []
    for unit, length in _SPANS.items():
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def size_text(mb: int) -> str:
    """A size as a file has it."""
    for unit, factor in (("TB", 1 << 20), ("GB", 1 << 10)):
        if mb and not mb % factor:
            return f"{mb // factor} {unit}"
    return f"{mb} MB"


def money_text(value: float, currency: str) -> str:
    """An amount as a file has it."""
    return f"{value:.10g} {currency}".strip()
