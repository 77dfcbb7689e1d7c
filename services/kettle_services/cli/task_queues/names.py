"""What a person calls a queue, and a task of it: `fits`, `fits.17`."""

from kettle_services.cli.errors import UsageError


def task_of(text: str) -> tuple[str, int | None]:
    """The queue, and the number of the task if one is named; raises UsageError."""
    queue, point, number = text.partition(".")
    if not point:
        return queue, None
    if not queue or not number.isdecimal() or not int(number):
        raise UsageError(f"'{text}' is no task: write QUEUE.NUMBER, as in fits.17, where tasks count from 1")
    return queue, int(number)
