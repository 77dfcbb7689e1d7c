"""Times, durations and sizes in a form for people."""

import time


def clock(seconds: float) -> str:
    """A moment, in local time, as `condor_q` writes it."""
    return time.strftime("%m/%d %H:%M", time.localtime(seconds))


def moment(seconds: float) -> str:
    """A moment, in local time, to the millisecond."""
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{int(seconds % 1 * 1000):03}"


def day(seconds: float) -> str:
    """The date of a moment, in local time."""
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def run_time(seconds: float) -> str:
    """A duration as HTCondor writes it: days+hours:minutes:seconds."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3600)
    return f"{days}+{hours:02}:{rest // 60:02}:{rest % 60:02}"


def duration(seconds: float) -> str:
    """A duration in the unit that suits it."""
    if seconds < 0.9995:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"


def size(kib: float) -> str:
    """An amount of memory or disk in the unit that suits it."""
    if kib < 1:
        return f"{kib * 1024:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        if kib < 1024 or unit == "TiB":
            return f"{kib:.0f} {unit}" if kib >= 100 or kib == int(kib) else f"{kib:.1f} {unit}"
        kib /= 1024
    return ""


def counted(number: int, noun: str, nouns: str = "") -> str:
    """`1 job`, `2 jobs`."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"
