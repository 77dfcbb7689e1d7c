"""Durations as reasons say them."""


def short(seconds: int) -> str:
    """
    `[days+]H:MM:SS`, from the first field on that says something, but minutes at least: `01:30`, `1:00:00`, `1+00:00:00`.
    """
    minutes, second = divmod(max(0, seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}+{hour:02d}:{minute:02d}:{second:02d}"
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute:02d}:{second:02d}"


def exceeded(what: str, seconds: int) -> str:
    """The reason of a job that went on for too long; `what` is `job` or `execute`."""
    return f"The job exceeded allowed {what} duration of {short(seconds)}"
